"""Utterances are spoken in order, each ends once, and what it held is freed."""

import pytest
from playhead.codecs.base import Encoded
from playhead.codecs.registry import Format
from playhead.engine.types import Finish, ListenerState, Request
from playhead.gateway import messages as m
from playhead.gateway.effects import CancelUtterance, CloseEncoder, Hold, OpenEncoder, Submit
from playhead.gateway.limits import Limits
from playhead.gateway.session_channel import Channel
from playhead.gateway.session_playback import Playback
from playhead.gateway.session_queue import Fault, Queue
from playhead.gateway.session_types import Outcome
from playhead.gateway.session_utterance import Utterance
from session_kit import RATE, sent

FORMAT = Format("pcm_s16le", RATE, 0, 0)


def utterance(epoch: int) -> Utterance:
    request = Request(utterance=100 + epoch, client="carol", voice="ada")
    playback = Playback(rate=RATE, threshold=0.0, fresh=0.5, quantum=240)
    made = Utterance(epoch, request, FORMAT, RATE, playback)
    made.push(f"text {epoch}")
    return made


@pytest.fixture
def queue() -> Queue:
    made = Queue(Channel(Limits()))
    made.utterances += [utterance(1), utterance(2)]
    made.advance(0.0)
    return made


def play(queue: Queue, samples: int, *, final: bool = False) -> None:
    assert queue.current is not None
    queue.current.next_audio(1, Encoded(bytes(2 * samples), samples), final=final, now=0.0)


def test_empty_queue() -> None:
    empty = Queue(Channel(Limits()))
    assert empty.current is None
    assert empty.find(1) is None
    assert empty.outcome(0.0) is None
    assert empty.advance(0.0) == []
    assert empty.finish_if_played(0.0) == []
    assert empty.set_hold(ListenerState.PAUSED, 0.0) == []


def test_only_the_first_is_with_the_engine(queue: Queue) -> None:
    assert queue.current is queue.utterances[0]
    assert queue.newest is queue.utterances[1]
    assert queue.advance(0.0) == []
    assert queue.find(101) is queue.current
    assert queue.find(102) is None


def test_done_hands_the_next_to_the_engine(queue: Queue) -> None:
    play(queue, 2_400)
    play(queue, 0, final=True)
    current = queue.current
    assert current is not None
    assert queue.finish_if_played(0.0) == []  # the engine has not ended
    current.finish = Finish.LENGTH_BUDGET
    assert queue.finish_if_played(0.0) == []  # the listener has not played it
    effects = queue.done(current, estimated=True, now=1.0)
    assert sent(effects) == [
        m.Done(seq=1, epoch=1, samples=2_400, heard=2_400, estimated=True, reason="length_budget")
    ]
    assert [type(effect) for effect in effects[1:3]] == [OpenEncoder, Submit]
    assert queue.find(102) is queue.current


def test_nothing_to_play_is_done_at_once(queue: Queue) -> None:
    play(queue, 0, final=True)
    assert queue.current is not None
    queue.current.finish = Finish.COMPLETE
    (done, *_) = sent(queue.finish_if_played(0.0))
    assert isinstance(done, m.Done)
    assert (done.samples, done.estimated) == (0, False)


def test_cancel_frees_engine_and_encoder(queue: Queue) -> None:
    play(queue, 2_400)
    assert queue.current is not None
    effects = queue.cancel(queue.current, 9_999, 0.05)
    assert effects[:2] == [CancelUtterance(101), CloseEncoder(101)]
    assert sent(effects) == [
        m.Cancelled(
            seq=1, epoch=1, heard=2_400, heard_text="", unheard_text="text 1", estimated=False
        )
    ]


def test_cancel_without_a_position_estimates(queue: Queue) -> None:
    play(queue, 2_400)
    assert queue.current is not None
    (cancelled,) = sent(queue.cancel(queue.current, None, 0.05))
    assert isinstance(cancelled, m.Cancelled)
    assert (cancelled.heard, cancelled.estimated) == (1_200, True)


def test_cancel_of_one_that_waits_asks_nothing_of_the_engine(queue: Queue) -> None:
    effects = queue.cancel(queue.newest, None, 0.0)
    assert effects == [effect for effect in effects if sent([effect])]


@pytest.mark.parametrize(
    ("finish", "freed"),
    [
        (None, [CancelUtterance(101), CloseEncoder(101)]),
        (Finish.COMPLETE, [CancelUtterance(101)]),
        (Finish.LENGTH_BUDGET, [CancelUtterance(101)]),
        (Finish.FAILED, []),
        (Finish.CANCELLED, []),
    ],
)
def test_what_a_failed_one_still_holds(queue: Queue, finish: Finish | None, freed: object) -> None:
    assert queue.current is not None
    queue.current.finish = finish
    effects = queue.fail(queue.current, Fault("engine_error", "broken"), 0.0)
    assert effects[:-1] == freed


def test_failed_tells_what_to_do(queue: Queue) -> None:
    assert queue.current is not None
    (failed,) = sent(queue.fail(queue.current, Fault("overloaded", "full", 1.5), 0.0))
    assert failed == m.Failed(
        seq=1,
        epoch=1,
        code="overloaded",
        message="full",
        expected="the same text after retry_after",
        retry_after=1_500,
        heard=0,
        heard_text="",
        unheard_text="text 1",
    )
    assert queue.current is not None
    (other,) = sent(queue.fail(queue.current, Fault("odd", "odd"), 0.0))
    assert isinstance(other, m.Failed)
    assert (other.expected, other.retry_after) == ("the same text again", None)


def test_hold_is_for_whoever_is_current(queue: Queue) -> None:
    assert queue.set_hold(ListenerState.PAUSED, 0.0) == [Hold(101, ListenerState.PAUSED)]
    assert queue.set_hold(ListenerState.PAUSED, 0.0) == []
    assert queue.current is not None
    queue.cancel(queue.current, None, 0.0)
    assert Hold(102, ListenerState.PAUSED) in queue.advance(0.0)
    assert queue.set_hold(None, 0.0) == [Hold(102, None)]


def test_outcome_of_the_current_or_else_of_the_last(queue: Queue) -> None:
    play(queue, 2_400)
    assert queue.outcome(0.05) == Outcome(1, 1_200, "", "text 1")
    for _ in range(2):
        assert queue.current is not None
        queue.cancel(queue.current, None, 0.05)
    assert queue.outcome(9.0) == Outcome(2, 0, "", "text 2")
