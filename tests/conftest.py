"""Lets every test import the helpers that lie beside this file (``from asr import transcribe``)."""
