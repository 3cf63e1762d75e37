"""MP3 (MPEG-2 layer III at 24 kHz) through LAME, for players that understand nothing else.

Constant bit rate and no information frame: a stream cannot go back to say how long it became.
"""

from typing import Any, Final

import lameenc

BIT_RATE: Final = 96  # kbit/s: enough for mono speech at 24 kHz with something to spare
QUALITY: Final = 5  # of 0 (slow) to 9; LAME's own default is near it
SAMPLE_RATES: Final = (16_000, 22_050, 24_000, 44_100, 48_000)


class Mp3Writer:
    """Encodes one stream of mono 16-bit PCM. ``bit_rate`` in kbit/s. For one thread at a time.

    Raises ``ValueError`` for a rate that is not in ``SAMPLE_RATES``.
    """

    def __init__(self, sample_rate: int, bit_rate: int = BIT_RATE) -> None:
        if sample_rate not in SAMPLE_RATES:
            rates = ", ".join(map(str, SAMPLE_RATES))
            raise ValueError(f"MP3 does not run at {sample_rate} Hz here; use one of {rates}")
        encoder: Any = lameenc.Encoder()
        encoder.set_bit_rate(bit_rate)
        encoder.set_in_sample_rate(sample_rate)
        encoder.set_out_sample_rate(sample_rate)
        encoder.set_channels(1)
        encoder.set_quality(QUALITY)
        encoder.silence()
        self._encoder = encoder
        self._begun = False

    def write(self, pcm: bytes) -> bytes:
        """Little-endian 16-bit samples to whole frames; often none."""
        if not pcm:
            return b""
        self._begun = True
        return bytes(self._encoder.encode(pcm))

    def finish(self) -> bytes:
        """The rest. Nothing may be written after it."""
        return bytes(self._encoder.flush()) if self._begun else b""
