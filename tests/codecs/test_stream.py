"""Encoders of one utterance: repair, ends, refusals."""

import numpy as np
import pytest
from playhead.codecs.base import NOTHING, BadAudio, StreamEnded
from playhead.codecs.pcm import pack_f32le, pack_s16le, unpack_f32le, unpack_s16le
from playhead.codecs.resample import Resampler
from playhead.codecs.stream import SampleDecoder, SamplePacker, StreamEncoder


def plain() -> StreamEncoder:
    return StreamEncoder(SamplePacker(pack_s16le), None)


def test_samples_become_bytes_at_once() -> None:
    encoded = plain().encode(np.array([0.5, -0.5], np.float32))
    assert encoded.data == bytes.fromhex("0040 00c0")
    assert (encoded.samples, encoded.packets) == (2, ())


def test_nothing_in_gives_nothing_out() -> None:
    encoder = plain()
    assert encoder.encode(np.zeros(0, np.float32)) == NOTHING
    assert encoder.flush() == NOTHING


def test_broken_samples_become_silence_and_are_counted() -> None:
    encoder = plain()
    encoded = encoder.encode(np.array([np.nan, 0.5], np.float32))
    encoder.encode(np.array([np.inf, -np.inf, 2.0], np.float32))
    assert encoded.data == bytes.fromhex("0000 0040")
    assert encoder.repaired == 3


def test_a_broken_sample_does_not_poison_the_resampler() -> None:
    encoder = StreamEncoder(SamplePacker(pack_f32le), Resampler(24000, 16000))
    tone = np.full(2400, 0.25, np.float32)
    tone[1000] = np.nan
    data = encoder.encode(tone).data + encoder.flush().data
    pcm = np.frombuffer(data, "<f4")
    assert np.isfinite(pcm).all()
    assert pcm[1200] == pytest.approx(0.25, abs=1e-3)
    assert encoder.repaired == 1


def test_overshoot_of_the_resampler_is_clipped() -> None:
    square = np.sign(np.sin(np.arange(4800) / 20) + 1e-9).astype(np.float32)
    raw = Resampler(24000, 48000).push(square)
    encoder = StreamEncoder(SamplePacker(pack_f32le), Resampler(24000, 48000))
    clipped = np.frombuffer(encoder.encode(square).data, "<f4")
    assert np.abs(raw).max() > 1.0
    assert np.abs(clipped).max() == 1.0


def test_after_flush_every_call_says_so() -> None:
    encoder = plain()
    encoder.flush()
    with pytest.raises(StreamEnded, match="open a new one"):
        encoder.encode(np.zeros(1, np.float32))
    with pytest.raises(StreamEnded, match="open a new one"):
        encoder.flush()


def test_integers_are_refused_and_the_stream_goes_on() -> None:
    encoder = plain()
    with pytest.raises(TypeError, match="1-D float array"):
        encoder.encode(np.ones(3, np.int16))  # type: ignore[arg-type]
    assert encoder.encode(np.zeros(3, np.float32)).samples == 3


@pytest.mark.parametrize(("size", "samples"), [(3, 1), (1, 1), (4, 1), (0, 1), (2, 0), (2, -1)])
def test_a_decoder_refuses_bytes_that_do_not_match(size: int, samples: int) -> None:
    with pytest.raises(BadAudio, match=f"{size} bytes are not the announced {samples} samples"):
        SampleDecoder(unpack_s16le, 2).decode(bytes(size), (), samples)


def test_a_decoder_gives_what_was_announced() -> None:
    data = np.array([0.25, -0.5], "<f4").tobytes()
    decoded = SampleDecoder(unpack_f32le, 4).decode(data, (), 2)
    assert decoded.tolist() == [0.25, -0.5]
