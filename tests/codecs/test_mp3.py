"""MP3: whole frames, and the same sound after a decoder that is not ours."""

import io

import numpy as np
import pytest
from playhead.codecs.mp3 import Mp3Writer


def tone(samples: int) -> bytes:
    return (np.sin(np.arange(samples) / 15) * 9_000).astype("<i2").tobytes()


@pytest.mark.parametrize("rate", [16_000, 22_050, 24_000, 44_100, 48_000])
def test_a_decoder_hears_the_same(rate: int) -> None:
    av = pytest.importorskip("av")
    writer = Mp3Writer(rate)
    pcm = tone(rate)
    made = b"".join(writer.write(pcm[at : at + 3_840]) for at in range(0, len(pcm), 3_840))
    made += writer.finish()
    assert made[0] == 0xFF
    assert b"Xing" not in made
    assert b"Info" not in made
    with av.open(io.BytesIO(made), format="mp3") as container:
        stream = container.streams.audio[0]
        assert (stream.rate, stream.channels) == (rate, 1)
        heard = np.concatenate([f.to_ndarray()[0] for f in container.decode(stream)])
    assert len(heard) >= rate
    spectrum = np.abs(np.fft.rfft(heard[rate // 4 : rate // 4 + rate // 2]))
    peak = np.argmax(spectrum) * 2
    assert abs(peak - rate / (2 * np.pi * 15)) <= 4


def test_nothing_in_nothing_out() -> None:
    writer = Mp3Writer(24_000)
    assert writer.write(b"") == b""
    assert writer.finish() == b""


def test_other_rates_are_refused() -> None:
    with pytest.raises(
        ValueError, match="8000 Hz here; use one of 16000, 22050, 24000, 44100, 48000"
    ):
        Mp3Writer(8_000)
