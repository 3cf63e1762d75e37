"""The CPU voice: hibari-tts 0.2.1 "heart", run as a stream.

Its backbone is not autoregressive: one run gives the latents of a whole segment. They are released
step by step, so that scheduling, back-pressure and cancelling work as for a model that is.
"""
