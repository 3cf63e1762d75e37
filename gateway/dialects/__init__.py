"""Protocols of other speech services, spoken over the same sessions and engine as ``playhead.v1``.

``base`` says what a dialect is, ``table`` which path speaks which, ``adapter`` runs one over a
socket; every other file is one dialect.
"""
