"""What crosses between the engine's process and its gateways arrives as it left."""

import math

import numpy as np
import pytest
from playhead.engine.picture import Belief, EnginePicture
from playhead.engine.remote import wire
from playhead.engine.stats import EngineStats, LaneStats
from playhead.engine.types import (
    AudioChunk,
    Finish,
    Finished,
    Lane,
    ListenerState,
    ModelInfo,
    Report,
    Request,
    Source,
    TextWarning,
    Word,
)

INFO = ModelInfo("model", ("alto", "tenor"), 24_000, 1_920, (1, 2, 4), 2, languages=("auto", "de"))
STATS = EngineStats(
    at=3.5,
    live=2,
    max_live=64,
    utilisation=0.25,
    lanes={lane: LaneStats(1, 2, 0.5, 3, 4, 0.01, (1, 0, 2)) for lane in Lane},
    promoted=1,
    refused=2,
    reports=3,
    reports_stale=4,
    reports_invalid=5,
    reports_clamped=6,
    belief_error=0.125,
    finished={Finish.COMPLETE: 7, Finish.FAILED: 1},
    max_utilisation=math.inf,
    belief_errors=(1, 2),
)
REPORT = Report(7, 100, 50, 40, 45, 5, ListenerState.STALLED, 2, 0.5, 12.25, source=Source.MARK)
FROM_GATEWAY = [
    wire.Submit(Request(7, "client", "alto", speed=1.1, seed=3, instruct="leise", account="a")),
    wire.Text(7, "Grüße 🎈\x00", True, False),
    wire.Cancel(7),
    wire.Reported(REPORT, 12.5),
    wire.Held(7, ListenerState.PAUSED, 13.0),
    wire.Held(7, None, 13.5),
    wire.Delay("client", 0.02),
    wire.Forget("client"),
    wire.Paused(0.4, 12.5),
    wire.Look(5, [7, 8]),
]
FROM_ENGINE = [
    wire.Hello(INFO, STATS, 129),
    wire.Warned(TextWarning(7, "unspeakable_text", "no sound", "☃")),
    wire.Ended(Finished(7, Finish.FAILED, 1_920, "engine_error", "it broke", 0.5)),
    wire.Ended(Finished(7, Finish.COMPLETE, 1_920)),
    wire.Stats(STATS),
    wire.Picture(
        5,
        EnginePicture(
            STATS,
            {Lane.LM: ((7, 8), (9,)), Lane.URGENT: (), Lane.BACKGROUND: ((),)},
            {7: Belief(0.5, 0.75, 2.0, 0.1, False, True)},
        ),
    ),
    wire.Tell(),
    wire.Dead("RunnerDead: the device is gone"),
]


def packed(*messages: wire.FromGateway | wire.FromEngine) -> bytes:
    return b"".join(wire.Packer().pack(messages))


def cut(frame: bytes) -> bytes:
    (found,) = wire.Frames().feed(frame)
    return found


READER = wire.Unpacker()


def test_what_a_gateway_says_arrives_as_it_was() -> None:
    assert READER.from_gateway(cut(packed(*FROM_GATEWAY))) == FROM_GATEWAY


def test_what_the_engine_says_arrives_as_it_was() -> None:
    assert READER.from_engine(cut(packed(*FROM_ENGINE))) == FROM_ENGINE


@pytest.mark.parametrize("samples", [0, 1, 1_920])
def test_audio_arrives_sample_by_sample(samples: int) -> None:
    pcm = np.random.default_rng(0).normal(size=2 * samples).astype(np.float32)[::2]
    words = (Word("hello", 0, 0, 5), Word("there", 960, 6, 11))
    sent = AudioChunk(7, 3, 5_760, pcm, words, Lane.URGENT, None, 0.25, 1.5, 1.75)
    (message,) = READER.from_engine(cut(packed(wire.Chunk(sent))))
    assert isinstance(message, wire.Chunk)
    got = message.event
    assert got.pcm.dtype == np.float32
    np.testing.assert_array_equal(got.pcm, pcm)
    assert (got.utterance, got.index, got.start, got.words) == (7, 3, 5_760, words)
    assert (got.lane, got.slack, got.depth) == (Lane.URGENT, None, 0.25)
    assert (got.queued_at, got.made_at) == (1.5, 1.75)


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_frames_come_whole_however_they_are_cut(size: int) -> None:
    stream = b"".join(packed(message) for message in FROM_GATEWAY)
    frames = wire.Frames()
    found: list[wire.FromGateway] = []
    for at in range(0, len(stream), size):
        for frame in frames.feed(stream[at : at + size]):
            found += READER.from_gateway(frame)
    assert found == FROM_GATEWAY


def test_a_frame_longer_than_any_is_refused_before_it_comes() -> None:
    with pytest.raises(wire.WireError, match=f"{wire.MOST} are the most"):
        wire.Frames().feed((wire.MOST + 1).to_bytes(4, "big"))


@pytest.mark.parametrize("frame", [b"", b"\xc1", b"\x91\x91\x63", b"\x91\xa3abc"])
def test_what_is_no_message_says_who_sent_it(frame: bytes) -> None:
    frame = len(frame).to_bytes(4, "big") + frame
    with pytest.raises(wire.WireError, match="a gateway sent"):
        READER.from_gateway(frame)
    with pytest.raises(wire.WireError, match="the engine sent"):
        READER.from_engine(frame)


def test_only_known_values_cross() -> None:
    with pytest.raises(NotImplementedError, match="object cannot cross"):
        wire.Packer().pack([wire.Forget(object())])  # type: ignore[arg-type]


def chunk(utterance: int, samples: int) -> wire.Chunk:
    pcm = np.full(samples, utterance / 16, np.float32)
    return wire.Chunk(AudioChunk(utterance, 0, 0, pcm, (), Lane.URGENT, None, 0.0))


def test_each_chunk_of_a_frame_gets_its_own_audio_however_it_is_cut() -> None:
    stream = packed(chunk(1, 3), wire.Tell(), chunk(2, 0), chunk(3, 5)) + packed(chunk(4, 1))
    frames = wire.Frames()
    found: list[wire.FromEngine] = []
    for at in range(0, len(stream), 7):
        for frame in frames.feed(stream[at : at + 7]):
            found += READER.from_engine(frame)
    audio = [m.event.pcm.tolist() for m in found if isinstance(m, wire.Chunk)]
    assert audio == [[1 / 16] * 3, [], [3 / 16] * 5, [4 / 16]]
    assert all(m.event.pcm.flags.aligned for m in found if isinstance(m, wire.Chunk))


def test_audio_crosses_without_a_copy_on_the_engine_s_side() -> None:
    sent = chunk(1, 1_920)
    _, part = wire.Packer().pack([sent])
    assert isinstance(part, memoryview)
    assert np.shares_memory(np.frombuffer(part, np.float32), sent.event.pcm)


def test_a_frame_that_lacks_audio_is_no_message() -> None:
    whole = cut(packed(chunk(1, 100)))
    with pytest.raises(wire.WireError, match="the engine sent"):
        READER.from_engine(whole[:-4])
