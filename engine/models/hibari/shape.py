"""Numbers of the voice that several modules share (hibari-tts 0.2.1)."""

SAMPLE_RATE = 24000  # Hz
HOP = 300  # samples of one frame: 12.5 ms
FFT = 1200  # samples of one analysis window
BINS = FFT // 2 + 1
PADDED_BINS = 608  # the decoder's rows are whole SIMD vectors, see graphs.py
OVERLAP = FFT // HOP  # windows that cover one sample
LATENTS = 130  # 128 phoneme channels, compressed f0, log energy
ENERGY = 129  # index of the log energy among the latents, roughly standardised
CHANNELS = 256
BLOCKS = 8
KERNEL = 7
LAYERS = BLOCKS + 1  # convolutions in a row
CONTEXT = LAYERS * (KERNEL // 2)  # frames of latents one spectrum needs on each side
MAX_PHONEMES = 400  # the backbone was trained on no more at once
