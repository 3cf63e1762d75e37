"""Qwen3-TTS (12 Hz): text to 16 codes per 80 ms frame, and a causal codec from codes to 24 kHz PCM.

Needs the ``qwen`` extra. Nothing here imports torch until a module that computes is imported.
"""
