"""Events and freed utterances come out once, in order; reports are added up at the end."""

import numpy as np
import pytest
from doubles import HZ, request
from playhead.engine.anchor import Counters
from playhead.engine.events import Outbox, Tally, broken, died, unheard
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.playhead import Playhead
from playhead.engine.stream import Stream
from playhead.engine.types import (
    AudioChunk,
    ChunkWork,
    Finish,
    Finished,
    Lane,
    TextWarning,
    Word,
)


def test_events_come_out_in_order_and_once() -> None:
    outbox = Outbox()
    warning = TextWarning(7, "unspeakable_text", "skipped", "☃")
    work = ChunkWork(7, 2, 10, 4, Lane.URGENT, -0.1, 0.25, 5.0)
    word = Word("hi", 800, 0, 2)
    pcm = np.zeros(320, np.float32)
    outbox.add(warning)
    outbox.add_chunk(work, 800, pcm, (word,), 5.5)
    events = outbox.drain()
    assert events[0] is warning
    chunk = events[1]
    assert isinstance(chunk, AudioChunk)
    assert (chunk.utterance, chunk.index, chunk.start) == (7, 2, 800)
    assert chunk.pcm is pcm
    assert (chunk.words, chunk.lane, chunk.slack, chunk.depth) == ((word,), Lane.URGENT, -0.1, 0.25)
    assert (chunk.queued_at, chunk.made_at) == (5.0, 5.5)
    assert outbox.drain() == []


def test_the_terminal_event_says_how_much_was_made() -> None:
    stream = Stream(request(7), Playhead(HZ, 0.0), LeadLearner(LeadLimits()))
    stream.playhead.on_sent(640, 1.0)
    outbox = Outbox()
    outbox.finish(stream, Finish.FAILED, broken("it broke"))
    assert outbox.drain() == [Finished(7, Finish.FAILED, 640, "engine_error", "it broke")]


def test_freed_utterances_come_out_once() -> None:
    outbox = Outbox()
    outbox.close(7)
    outbox.close(3)
    assert outbox.drain_closed() == [7, 3]
    assert outbox.drain_closed() == []


def test_the_end_of_an_utterance_adds_up_its_reports() -> None:
    tally = Tally()
    tally.end(Finish.COMPLETE, Counters(1, 2, 3))
    tally.end(Finish.CANCELLED, Counters(10, 20, 30))
    assert tally.finished == {Finish.COMPLETE: 1, Finish.CANCELLED: 1}
    assert (tally.reports_stale, tally.reports_invalid, tally.reports_clamped) == (11, 22, 33)


def test_errors_of_the_belief_are_told_apart_by_size() -> None:
    tally = Tally()
    for error in (0.0, 0.01, 0.015, 99.0):
        tally.believed(error)
    assert tally.belief_error == 99.025
    assert tally.belief_errors == [2, 1, 0, 0, 0, 0, 0, 0, 1]


def test_an_engine_that_ends_is_no_secret() -> None:
    told = died(7, 1_920, RuntimeError("inside"))
    assert (told.utterance, told.reason, told.samples) == (7, Finish.FAILED, 1_920)
    assert (told.code, told.message) == ("engine_error", "the engine stopped: RuntimeError")
    assert told.retry_after is None


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({}, True),
        ({"ready": 1}, False),  # there is sound
        ({"warned": True}, False),  # the model has said why
        ({"ended": False}, False),
        ({"speakable": False}, False),  # nobody expects a sound
    ],
)
def test_an_end_without_a_sound_is_told_unless_it_was(state: dict[str, object], told: bool) -> None:
    stream = Stream(request(7), Playhead(HZ, 0.0), LeadLearner(LeadLimits()))
    for name, value in {"ended": True, "speakable": True, **state}.items():
        setattr(stream, name, value)
    found = [(warning.utterance, warning.code) for warning in unheard(stream)]
    assert found == ([(7, "unspeakable_text")] if told else [])
