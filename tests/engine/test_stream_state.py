"""One utterance's state: frames, boundaries, words, when to look again."""

import math

import pytest
from doubles import HZ, report, request
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.longest import Longest
from playhead.engine.playhead import Playhead
from playhead.engine.stream import UNPARK_SLOP, Stream
from playhead.engine.types import Finish, Lane, ListenerState, StepResult, Word


def stream(**state: object) -> Stream:
    made = Stream(request(1), Playhead(HZ, 0.0), LeadLearner(LeadLimits()))
    for name, value in state.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("steppable", "stepping", "may"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_one_step_at_a_time_and_only_when_it_yields(
    steppable: bool, stepping: bool, may: bool
) -> None:
    assert stream(steppable=steppable, stepping=stepping).may_step is may


@pytest.mark.parametrize(
    ("stepping", "decoding", "running"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_it_runs_while_a_lane_has_work_of_it(stepping: bool, decoding: bool, running: bool) -> None:
    assert stream(stepping=stepping, decoding=decoding).running is running


@pytest.mark.parametrize(
    ("state", "idle"),
    [
        ({}, True),
        ({"chunks": 0}, False),  # it is about to begin
        ({"steppable": True}, False),
        ({"stepping": True}, False),
        ({"decoding": True}, False),
        ({"ready": 1}, False),
    ],
)
def test_it_is_idle_when_it_has_spoken_and_waits_for_text(
    state: dict[str, object], idle: bool
) -> None:
    assert stream(**{"chunks": 2, **state}).idle is idle


@pytest.mark.parametrize(
    ("state", "available"),
    [
        ({"steppable": True}, (6, False)),
        ({"stepping": True}, (6, False)),
        ({}, (6, True)),  # the backbone has nothing to go on with
        ({"ended": True}, (6, True)),
    ],
)
def test_frames_may_be_joined_by_more_while_the_backbone_goes_on(
    state: dict[str, object], available: tuple[int, bool]
) -> None:
    assert stream(ready=10, taken=4, **state).available() == available


def test_no_chunk_runs_past_a_boundary() -> None:
    one = stream(ready=10, steppable=True)
    one.boundaries.extend((3, 7))
    assert one.available() == (3, True)
    assert one.take(2, 0.16) == 0
    assert one.available() == (1, True)
    assert one.take(1, 0.08) == 2
    assert one.available() == (4, True)
    assert one.take(4, 0.32) == 3
    assert one.available() == (3, False)
    assert one.take(3, 0.24) == 7


def test_taking_a_chunk_counts_it_and_ends_its_queueing() -> None:
    one = stream(ready=10, queued_at=3.0, queued_lane=Lane.BACKGROUND)
    one.take(4, 0.32)
    assert (one.taken, one.chunks, one.decoding, one.decoding_seconds) == (4, 1, True, 0.32)
    assert one.queued_at is None
    assert one.queued_lane is None


def test_words_come_in_order_each_once() -> None:
    words = [Word(text, start, 0, 1) for text, start in (("a", 0), ("b", 80), ("c", 160))]
    one = stream()
    one.words.extend(words)
    assert one.pop_words(80) == (words[0],)
    assert one.pop_words(80) == ()
    assert one.pop_words(math.inf) == (words[1], words[2])
    assert one.pop_words(math.inf) == ()


def test_a_parked_stream_wakes_when_its_listener_has_played_the_excess() -> None:
    one = stream()
    assert one.unpark_time(0.5, 10.0) == math.inf, "it waits, and holds too much to be stepped"
    one.playhead.on_sent(1000, 10.0)
    assert one.unpark_time(0.5, 10.0) == pytest.approx(10.5 + UNPARK_SLOP)
    one.playhead.hold(ListenerState.PAUSED, 10.1)
    assert one.unpark_time(0.5, 10.0) == math.inf


def test_what_a_step_made_is_taken_up() -> None:
    speaking = stream(steppable=True)
    word = Word("one", 0, 0, 3)
    speaking.made(StepResult(1, 4, boundary=True, hungry=False, ended=False, words=(word,)))
    assert (speaking.ready, list(speaking.words), list(speaking.boundaries)) == (4, [word], [4])
    assert (speaking.steppable, speaking.ended) == (True, False)
    speaking.made(StepResult(1, 0, boundary=True, hungry=True, ended=False))
    assert list(speaking.boundaries) == [4], "one boundary in one place"
    assert speaking.steppable, "text may have come while the step ran"
    speaking.made(
        StepResult(1, 2, boundary=False, hungry=True, ended=True, finish=Finish.LENGTH_BUDGET)
    )
    assert (speaking.ready, speaking.steppable) == (6, False)
    assert (speaking.ended, speaking.finish) == (True, Finish.LENGTH_BUDGET)


def test_what_goes_on_far_beyond_its_text_is_ended() -> None:
    one = stream(steppable=True)
    one.expect("abcde", Longest(base=0.4, factor=2.0), 0.1)  # 0.5 s expected
    one.made(StepResult(1, 13, boundary=False, hungry=False, ended=False))
    assert (one.ended, one.steppable) == (False, True)
    one.expect("abcde", Longest(base=0.4, factor=2.0), 0.1)
    one.made(StepResult(1, 1, boundary=False, hungry=False, ended=False))
    assert not one.ended, "more text, more time"
    one.made(StepResult(1, 10, boundary=False, hungry=False, ended=False))
    assert (one.ended, one.finish, one.steppable) == (True, Finish.LENGTH_BUDGET, False)


def test_who_ends_by_itself_at_that_point_is_complete() -> None:
    one = stream(steppable=True)
    one.expect("", Longest(base=1.0), 0.1)
    one.made(StepResult(1, 99, boundary=True, hungry=True, ended=True))
    assert (one.ended, one.finish) == (True, Finish.COMPLETE)


def test_a_fresh_one_takes_over_what_was_asked() -> None:
    wanted = request(1, start_threshold=0.5, reports=True)
    learner = LeadLearner(LeadLimits())
    made = Stream.opened(wanted, learner, HZ, now=1.0, one_way=0.25, listens=True)
    assert (made.request, made.learner) == (wanted, learner)
    assert (made.playhead.one_way, made.playhead.use_reports) == (0.25, True)
    deaf = Stream.opened(wanted, learner, HZ, now=1.0, one_way=0.0, listens=False)
    assert not deaf.playhead.use_reports


def test_a_report_shows_how_far_the_belief_was_off() -> None:
    one = stream()
    one.playhead.on_sent(1_000, 0.0)
    assert one.hear(report(1, 1_000, 400, at=0.5), 0.5) == pytest.approx(0.1, abs=0.02)
    assert one.hear(report(1, 9_000, 400, at=0.6), 0.6) is None, "more than was sent"


def test_it_decodes_one_chunk_at_a_time() -> None:
    assert stream(ready=2).may_decode
    assert not stream(ready=2, decoding=True).may_decode
    assert not stream().may_decode


def test_work_comes_back_from_the_lane_it_was_in() -> None:
    one = stream(stepping=True, decoding=True, decoding_seconds=0.5)
    one.back_from(Lane.LM)
    assert (one.stepping, one.decoding) == (False, True)
    one.back_from(Lane.URGENT)
    assert (one.decoding, one.decoding_seconds) == (False, 0.0)


def test_it_is_spoken_when_no_frame_is_left_nor_will_come() -> None:
    assert stream(ended=True, ready=3, taken=3).spoken
    assert not stream(ended=False, ready=3, taken=3).spoken
    assert not stream(ended=True, ready=3, taken=2).spoken


def test_words_lie_within_what_is_known_of_the_text() -> None:
    def told(*ends: int, error: str | None = None) -> StepResult:
        words = tuple(Word("a", 0, 0, end) for end in ends)
        return StepResult(1, 1, False, False, False, words=words, error=error)

    one = stream()
    assert one.fault(told(10**9)) is None, "nobody has told of its text"
    one.expect("", Longest(), 0.08)
    assert one.fault(told()) is None
    assert "beyond the end" in str(one.fault(told(1)))
    one.expect("ab", Longest(), 0.08)
    one.expect("c", Longest(), 0.08)
    assert one.fault(told(1, 3)) is None
    assert "beyond the end" in str(one.fault(told(4, 3)))
    assert one.fault(told(1, error="broke")) == "broke"
