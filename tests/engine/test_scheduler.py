"""Plan and commit: literal turns of one scheduler, and random ones that must keep its promises."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from doubles import (
    FRAME,
    FRAME_SECONDS,
    HZ,
    MODEL,
    FakeRunner,
    Rig,
    machine,
    report,
    request,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from playhead.engine.capacity import KNOWN
from playhead.engine.lead import LeadLimits
from playhead.engine.longest import OTHER, PLAIN
from playhead.engine.places import GIVEN_AWAY, TAKEN
from playhead.engine.policy import PolicyConfig
from playhead.engine.types import (
    PLACE_KEPT,
    Finish,
    Lane,
    ListenerState,
    Source,
    StepResult,
    Urgency,
    Word,
)
from truth_player import RATE, TICK, Script, TruthPlayer

S = ListenerState
FAR = LeadLimits(fixed=1000.0)  # nobody is parked


def rig(urgency: Urgency = Urgency.REPORTED, workers: int = 2, **policy: object) -> Rig:
    return Rig(machine(workers), PolicyConfig(urgency, **policy))  # type: ignore[arg-type]


def lanes(dispatches: list) -> list[str]:  # type: ignore[type-arg]
    return [str(dispatch.lane) for dispatch in dispatches]


# -- one utterance ----------------------------------------------------------------------------


def test_an_utterance_is_spoken_to_its_end() -> None:
    one = rig(lead=FAR)
    one.say(1, "Hello World. This is Text~")
    one.settle()
    heard = one.heard[1]
    assert heard.finished is not None
    assert heard.finished.reason is Finish.COMPLETE
    assert heard.samples == 26 * FRAME
    assert (heard.words, heard.warnings) == ("HWTT", 1)
    assert heard.chunks[0].lane is Lane.URGENT
    sizes = [len(chunk.pcm) // FRAME for chunk in heard.chunks]
    assert sizes[0] == 1, "small first"
    assert max(sizes) == 8, "and growing"
    assert one.closed == [1]
    assert one.scheduler.live == 0
    assert list(one.scheduler.streams()) == []
    assert one.scheduler.tally.finished == {Finish.COMPLETE: 1}


def test_text_may_come_in_pieces_and_wait_for_more() -> None:
    one = rig(lead=FAR)
    assert one.submit(request(1)) is None
    one.settle()
    one.text(1, "abc")
    one.settle()
    assert one.heard[1].samples == 3 * FRAME
    assert one.heard[1].finished is None
    one.text(1, "de")
    one.text(1, "", end=True)
    one.settle()
    assert one.heard[1].samples == 5 * FRAME
    assert one.heard[1].finished is not None
    assert not one.scheduler.speaks(1)


def test_no_chunk_crosses_a_flush() -> None:
    one = rig(lead=FAR)
    one.submit(request(1))
    one.text(1, "abcdefg", flush=True)
    one.text(1, "hijklmnopqrstu", end=True)
    one.settle()
    ends = {chunk.start // FRAME + len(chunk.pcm) // FRAME for chunk in one.heard[1].chunks}
    assert 7 in ends
    assert one.heard[1].samples == 21 * FRAME


def test_an_utterance_without_a_word_to_say_ends_without_audio() -> None:
    one = rig()
    one.say(1, "")
    one.settle()
    finished = one.heard[1].finished
    assert finished is not None
    assert (finished.reason, finished.samples) == (Finish.COMPLETE, 0)


def test_the_finish_reason_is_the_model_s() -> None:
    one = rig()
    one.say(1, "abc")
    (dispatch,) = one.plan()
    one.running.clear()
    done = StepResult(1, 0, True, False, True, finish=Finish.LENGTH_BUDGET)
    one.scheduler.commit_steps(dispatch, [done], 0.01, one.now)
    one.collect()
    assert one.heard[1].finished is not None
    assert one.heard[1].finished.reason is Finish.LENGTH_BUDGET


class Endless(FakeRunner):
    """Speaks on for ever, whatever its text."""

    def _step(self, utterance: int) -> StepResult:
        self.speeches[utterance].text += "." * self.info.step_frames
        return replace(super()._step(utterance), boundary=False, hungry=False, ended=False)


def test_a_model_that_never_ends_is_ended_after_half_a_minute_and_what_its_text_takes() -> None:
    one = rig(lead=FAR)
    one.runner = Endless()
    one.say(1, "hello 10")
    one.settle()
    finished = one.heard[1].finished
    assert finished is not None
    assert finished.reason is Finish.LENGTH_BUDGET
    most = 30.0 + 4 * (6 * PLAIN + 2 * OTHER)
    assert most <= finished.samples / HZ <= most + MODEL.step_frames * FRAME_SECONDS
    assert one.closed == [1]


def test_words_that_start_after_the_last_frame_come_with_the_last_chunk() -> None:
    """Rounding may put a word's start just past the audio; no word is lost."""
    one = rig()
    one.submit(request(1))
    one.text(1, "abcd", end=True)
    (dispatch,) = one.plan()
    one.running.clear()
    (done,) = one.runner.step([1])
    late = (Word("late", 4 * FRAME + 1, 0, 4),)
    one.scheduler.commit_steps(dispatch, [replace(done, words=late)], 0.01, one.now)
    words = []
    for _ in range(10):
        for chunk in one.scheduler.plan(one.now).dispatches:
            pcm = [np.zeros(work.frames * FRAME, np.float32) for work in chunk.chunks]
            one.scheduler.commit_chunks(chunk, pcm, 0.01, one.now)
        words += [event.words for event in one.scheduler.events() if hasattr(event, "words")]
    assert words[-1] == late
    assert sum(map(len, words)) == 1


def test_an_utterance_is_submitted_once() -> None:
    one = rig()
    one.say(1, "abc")
    with pytest.raises(ValueError, match="utterance 1 is already being spoken"):
        one.scheduler.submit(request(1), one.now)


# -- ends -------------------------------------------------------------------------------------


def test_cancel_frees_an_idle_utterance_at_once() -> None:
    one = rig()
    one.say(1, "abc")
    one.scheduler.cancel(1, one.now)
    one.collect()
    assert one.heard[1].finished is not None
    assert one.heard[1].finished.reason is Finish.CANCELLED
    assert one.closed == [1]


@pytest.mark.parametrize("lane", [Lane.LM, Lane.URGENT])
def test_cancel_frees_a_running_utterance_with_its_work(lane: Lane) -> None:
    one = rig(workers=1)
    one.say(1, "abcdefgh")
    (work,) = one.plan()
    if lane is Lane.URGENT:
        one.finish(work)
        (work,) = one.plan()
    assert work.lane is lane
    one.scheduler.cancel(1, one.now)
    one.collect()
    assert one.heard[1].finished is not None, "its listener hears at once"
    assert one.closed == [], "the lane is still at it"
    assert not one.scheduler.speaks(1)
    assert one.plan() == [], "nothing new starts for it"
    samples = one.heard[1].samples
    one.finish(work)
    assert one.closed == [1]
    assert one.heard[1].samples == samples
    assert one.scheduler.busy(lane) == 0


def test_an_utterance_ends_once() -> None:
    one = rig()
    one.say(1, "abc")
    one.scheduler.cancel(1, one.now)
    one.scheduler.cancel(1, one.now)
    one.scheduler.fail(1, "engine_error", "too late")
    one.scheduler.cancel(99, one.now)
    one.scheduler.fail(99, "engine_error", "never was")
    one.collect()
    assert one.scheduler.tally.finished == {Finish.CANCELLED: 1}


def test_text_for_what_is_over_is_ignored() -> None:
    one = rig()
    one.scheduler.text(99, steppable=True)
    one.say(1, "abc")
    (step,) = one.plan()
    one.finish(step)
    one.scheduler.text(1, steppable=True)
    assert [work.lane for work in one.plan()] == [Lane.URGENT]


def test_a_running_utterance_that_was_cancelled_cannot_fail_again() -> None:
    one = rig()
    one.say(1, "abc")
    (work,) = one.plan()
    one.scheduler.cancel(1, one.now)
    one.scheduler.fail(1, "engine_error", "too late")
    one.scheduler.text(1, steppable=True)
    one.finish(work)
    assert one.scheduler.tally.finished == {Finish.CANCELLED: 1}
    assert one.closed == [1]


def test_fail_names_the_code() -> None:
    one = rig()
    one.say(1, "abc")
    one.scheduler.fail(1, "bad_value", "no such thing")
    one.collect()
    finished = one.heard[1].finished
    assert finished is not None
    assert (finished.reason, finished.code, finished.message) == (
        Finish.FAILED,
        "bad_value",
        "no such thing",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ab?", "the step of this one broke"),
        ("ab#", "the decoding of this one broke"),
        ("ab!", "RuntimeError: the step broke"),
        ("ab%", "RuntimeError: the decoder broke"),
    ],
)
def test_a_fault_ends_its_utterance_and_no_other(text: str, message: str) -> None:
    one = rig(lead=FAR)
    one.say(1, "abcdefgh")
    one.say(2, text)
    one.say(3, "ABCDEFGH")
    one.settle()
    failed = one.heard[2].finished
    assert failed is not None
    assert (failed.reason, failed.code, failed.message) == (Finish.FAILED, "engine_error", message)
    for well in (1, 3):
        assert one.heard[well].samples == 8 * FRAME
        assert one.heard[well].finished is not None
        assert one.heard[well].finished.reason is Finish.COMPLETE
    assert sorted(one.closed) == [1, 2, 3]


def test_a_fault_without_words_is_named_by_its_kind() -> None:
    one = rig()
    one.say(1, "abcd")
    (step,) = one.plan()
    one.finish(step)
    (chunk,) = (work for work in one.plan() if work.lane is Lane.URGENT)
    one.running.clear()
    one.scheduler.commit_chunks(chunk, [MemoryError()], 0.01, one.now)
    one.collect()
    assert one.heard[1].finished is not None
    assert one.heard[1].finished.message == "MemoryError"


@pytest.mark.parametrize("lane", [Lane.LM, Lane.URGENT])
def test_a_batch_that_breaks_ends_its_members_alone(lane: Lane) -> None:
    one = Rig(machine(workers=1, batch=2), PolicyConfig(lead=FAR))
    one.say(1, "ab!" if lane is Lane.LM else "%b")
    one.say(2, "abcd")
    (batch,) = one.plan()
    if lane is Lane.URGENT:
        one.finish(batch)
        (batch,) = one.plan()
    assert (batch.lane, batch.utterances) == (lane, (1, 2))
    one.say(3, "abcd")
    one.scheduler.cancel(2, one.now)
    one.settle()
    reasons = [one.heard[n].finished.reason for n in (1, 2, 3)]  # type: ignore[union-attr]
    assert reasons == [Finish.FAILED, Finish.CANCELLED, Finish.COMPLETE]
    assert sorted(one.closed) == [1, 2, 3]


# -- who goes first ---------------------------------------------------------------------------


def warm(one: Rig, *others: int) -> None:
    """Utterance 1 has been sent 8 frames, has 4 more ready and waits for text; ``others`` are
    new and have 4 frames ready."""
    one.submit(request(1))
    one.text(1, "a" * 8)
    one.settle()
    one.text(1, "a" * 4)
    for number in others:
        one.say(number, "abcd")
    for work in one.plan():
        one.finish(work)


def test_urgent_chunks_before_steps_before_background() -> None:
    one = rig(workers=4, lead=FAR)
    warm(one, 2)
    one.say(3, "abcd")
    assert [(work.lane, work.utterances) for work in one.plan()] == [
        (Lane.URGENT, (2,)),
        (Lane.LM, (3,)),
        (Lane.BACKGROUND, (1,)),
    ]


def test_with_one_worker_the_needy_take_turns_before_the_rich() -> None:
    one = rig(workers=1, lead=FAR)
    warm(one)
    one.say(2, "abcd")
    (step,) = one.plan()
    assert step.steps == (2,), "the new one has been waiting, the other holds audio"
    assert one.scheduler.waiting(Lane.BACKGROUND) == 1
    one.finish(step)
    (chunk,) = one.plan()
    assert (chunk.lane, chunk.utterances) == (Lane.URGENT, (2,))


def test_a_step_for_one_in_greater_need_goes_before_an_urgent_chunk() -> None:
    """Were all chunks made before any step, who has no frames left would starve beside those who
    have, however little it has been served."""
    one = rig(workers=1, lead=FAR)
    for number, text in ((1, "a" * 4), (2, "b")):
        one.submit(request(number))
        one.text(number, text)
    one.settle()
    one.text(1, "a" * 4)
    (step,) = one.plan()
    one.finish(step)
    one.now += 60.0  # both are dry; one has frames ready and was served more, two has neither
    one.text(2, "b" * 4)
    assert [(work.lane, work.utterances) for work in one.plan()] == [(Lane.LM, (2,))]
    assert one.scheduler.waiting(Lane.URGENT) == 1


def test_the_least_served_of_the_dry_goes_first() -> None:
    one = rig(workers=1, lead=FAR)
    for number, text in ((1, "a" * 9), (2, "b"), (3, "c" * 9)):
        one.submit(request(number))
        one.text(number, text)
    one.settle()
    one.now += 60.0  # all are dry
    for number in (1, 3, 2):
        one.text(number, "d", end=True)
    order = []
    while plan := one.plan():
        order += [work.utterances[0] for work in plan if work.lane is Lane.URGENT]
        one.finish(plan[0])
    assert order == [2, 1, 3], "two has had least; the others as much as each other"


def test_without_urgency_chunks_are_made_in_the_order_they_were_wanted() -> None:
    one = rig(Urgency.NONE, workers=1)
    for number in (1, 2, 3):
        one.say(number, "abcd")
        one.now += 0.01
    order = []
    while plan := one.plan():
        order += [work.utterances[0] for work in plan if work.lane is not Lane.LM]
        one.finish(plan[0])
        one.now += 0.01
    assert order[:3] == [1, 2, 3]
    assert one.scheduler.tally.chunks[Lane.URGENT] == 0
    assert all(chunk.slack is None for heard in one.heard.values() for chunk in heard.chunks)


def test_background_work_never_takes_the_last_free_worker() -> None:
    one = rig(workers=3, lead=FAR)
    for number in range(1, 6):
        one.submit(request(number))
        one.text(number, "a" * 12)
    one.settle()
    for number in range(1, 6):
        one.text(number, "b" * 12, end=True)
    for _ in range(2):
        for work in [work for work in one.plan() if work.lane is Lane.LM]:
            one.finish(work)
    while one.running:
        one.finish(one.running[0])
    one.plan()
    background = [work for work in one.running if work.lane is Lane.BACKGROUND]
    assert len(background) <= 2
    assert one.scheduler.busy(Lane.BACKGROUND) == len(background)
    one.settle()
    assert sorted(one.closed) == [1, 2, 3, 4, 5]


def test_a_report_promotes_a_queued_chunk() -> None:
    one = rig(workers=2, lead=FAR)
    warm(one)
    one.say(2, "abcd")
    assert lanes(one.plan()) == ["lm"]
    assert one.scheduler.waiting(Lane.BACKGROUND) == 1, "not on the last free worker"
    one.now += 0.5
    assert one.plan() == []
    samples = one.heard[1].samples
    one.now += 0.2
    one.scheduler.report(report(1, samples, 0, S.STALLED, at=one.now), one.now)
    assert [(work.lane, work.utterances) for work in one.plan()] == [(Lane.URGENT, (1,))]
    assert one.scheduler.tally.promoted == 1


# -- parking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reports", [True, False])
def test_beyond_the_lead_nothing_is_made_until_it_is_played(reports: bool) -> None:
    """Of a listener who never tells where it is, whether or not it has said that it will."""
    one = rig(lead=LeadLimits(fixed=1.0))
    one.say(1, "a" * 100, reports=reports)
    one.settle()
    held = one.heard[1].samples / HZ
    assert 1.0 <= held < 1.0 + 8 * FRAME_SECONDS
    assert one.wake_at is not None
    assert one.wake_at == pytest.approx(one.now + held - 1.0, abs=1e-3)
    one.now = one.wake_at - 1e-3
    assert one.plan() == []
    one.now = one.wake_at + 1e-3
    one.settle()
    assert one.heard[1].samples / HZ > held


def test_a_report_wakes_a_parked_stream_only_if_it_says_something_new() -> None:
    one = rig(lead=LeadLimits(fixed=1.0))
    one.say(1, "a" * 100)
    one.settle()
    held = one.heard[1].samples
    for buffered, parked in ((held, 1), (held - 200, 0)):
        one.scheduler.report(report(1, held, buffered, at=one.now), one.now)
        assert one.scheduler.parked == parked
    assert one.scheduler.tally.reports == 2


def test_waking_when_told_and_only_then_is_enough() -> None:
    """The whole of an utterance gets spoken by planning at ``wake_at`` alone, in few turns."""
    one = rig(lead=LeadLimits(fixed=0.5))
    one.say(1, "a" * 125)
    began, turns = one.now, 0
    while one.heard[1].finished is None:
        one.settle()
        turns += 1
        if one.heard[1].finished is None:
            assert one.wake_at is not None
            assert one.wake_at > one.now
            one.now = one.wake_at
    assert one.now - began == pytest.approx(10.0 - 0.5, abs=0.5)
    assert turns < 60


@pytest.mark.parametrize("state", [S.PAUSED, S.SUSPENDED])
def test_a_held_listener_gets_its_lead_and_then_nothing(state: ListenerState) -> None:
    one = rig(lead=LeadLimits(fixed=1.0))
    one.say(1, "a" * 100)
    one.scheduler.hold(1, state, one.now)
    one.settle()
    held = one.heard[1].samples
    assert held >= HZ
    assert one.wake_at is None
    assert all(chunk.lane is Lane.BACKGROUND for chunk in one.heard[1].chunks)
    one.now += 3600.0
    assert one.plan() == []
    one.scheduler.hold(1, None, one.now)
    one.now += 1.0
    one.settle()
    assert one.heard[1].samples > held
    one.scheduler.hold(99, state, one.now)  # already over: nothing happens


# -- signals ----------------------------------------------------------------------------------


def belief(one: Rig, number: int = 1) -> float:
    (stream,) = (s for s in one.scheduler.streams() if s.request.utterance == number)
    return stream.playhead.runway(one.now)


@pytest.mark.parametrize(
    ("urgency", "reports", "heeded"),
    [
        (Urgency.REPORTED, True, True),
        (Urgency.REPORTED, False, False),
        (Urgency.ESTIMATED, True, False),
        (Urgency.NONE, True, False),
    ],
)
def test_only_reported_urgency_listens_and_only_to_those_that_report(
    urgency: Urgency, reports: bool, heeded: bool
) -> None:
    one = rig(urgency, lead=LeadLimits(fixed=1.0))
    one.submit(request(1, reports=reports))
    one.text(1, "a" * 100)
    one.settle()
    samples = one.heard[1].samples
    one.now += 0.2
    before = belief(one)
    one.scheduler.report(report(1, samples, samples, at=one.now), one.now)  # it has not begun
    assert (belief(one) != before) is heeded
    assert one.scheduler.tally.reports == heeded
    assert one.scheduler.tally.belief_error == pytest.approx(0.2 if heeded else 0.0)


def test_reports_of_nobody_and_bad_ones_are_counted() -> None:
    one = rig()
    one.say(1, "abcd")
    one.scheduler.report(report(9, 0, 0), one.now)
    one.scheduler.report(report(1, 10**9, 0), one.now)
    assert one.scheduler.tally.reports_foreign == 1
    assert one.scheduler.tally.reports == 0
    one.scheduler.cancel(1, one.now)
    assert one.scheduler.tally.reports_invalid == 1


def test_a_client_s_delay_reaches_its_present_and_its_later_utterances() -> None:
    one = rig()
    one.say(1, "abcd", "ann")
    one.say(2, "abcd", "bob")
    one.scheduler.delay("ann", 0.12)
    one.say(3, "abcd", "ann")
    assert [s.playhead.one_way for s in one.scheduler.streams()] == [0.12, 0.0, 0.12]
    one.scheduler.forget("ann")
    one.say(4, "abcd", "ann")
    assert [s.playhead.one_way for s in one.scheduler.streams()][-1] == 0.0


def test_what_was_learned_of_a_client_outlives_its_utterance_but_not_the_client() -> None:
    one = rig()
    one.say(1, "abcd", "ann")
    one.say(2, "abcd", "bob")
    learners = [s.learner for s in one.scheduler.streams()]
    assert learners[0] is not learners[1]
    one.scheduler.cancel(1, one.now)
    one.say(3, "abcd", "ann")
    assert list(one.scheduler.streams())[-1].learner is learners[0]
    one.scheduler.forget("ann")
    one.say(4, "abcd", "ann")
    assert list(one.scheduler.streams())[-1].learner is not learners[0]


def learned(script: Script) -> float:
    """The lead learned of a listener over one utterance of half a minute."""
    model = replace(MODEL, sample_rate=RATE, frame_samples=round(FRAME_SECONDS * RATE))
    one = Rig(machine(), PolicyConfig(), model)
    start, truth = one.now, TruthPlayer(script)
    one.scheduler.delay("ann", script.one_way)
    one.say(1, "a" * 375, "ann")
    (stream,) = one.scheduler.streams()
    for tick in range(round(28.0 / TICK)):
        now = tick * TICK
        one.now = start + now
        one.settle()
        if one.heard[1].samples > truth.sent:
            truth.send(one.heard[1].samples - truth.sent, now)
        truth.tick(now)
        for arrived, told in truth.mail(now):
            one.scheduler.report(told, start + arrived)
    return stream.learner.limit


def test_a_steady_listener_earns_the_least_lead() -> None:
    """Audio just sent is on its way, not late, however rarely reports come."""
    assert learned(Script(one_way=0.05)) == pytest.approx(LeadLimits().least, abs=0.05)


def test_a_listener_whose_connection_pauses_keeps_a_long_lead() -> None:
    limits = LeadLimits()
    assert learned(Script(one_way=0.05, cuts=[(20.0, 21.8)])) > limits.unknown


def test_a_starvation_counts_once() -> None:
    one = rig()
    one.say(1, "abcd", "ann")
    for _ in range(2):
        for work in one.plan():
            one.finish(work)
    (stream,) = one.scheduler.streams()
    one.now += 5.0
    told = replace(report(1, one.heard[1].samples, 0, S.STALLED, at=one.now), starved=0.5)
    one.scheduler.report(told, one.now)
    assert stream.learner.worst_pause == pytest.approx(0.5)
    stream.learner.begin()
    stream.learner._worst = 0.0
    one.scheduler.report(told, one.now)
    assert stream.learner.worst_pause == 0.0


# -- admission and meters ---------------------------------------------------------------------


def test_a_full_house_refuses_and_says_when_to_come_back() -> None:
    one = rig(max_live=2)
    one.say(1, "abcd")
    one.say(2, "abcd")
    refusal = one.submit(request(3))
    assert refusal is not None
    assert refusal.code == "overloaded"
    assert refusal.retry_after > 0
    assert one.scheduler.tally.refused == 1
    assert one.scheduler.live == 2
    one.scheduler.cancel(1, one.now)
    assert one.submit(request(3)) is None


def test_in_a_full_house_who_was_cut_off_for_long_gives_its_place() -> None:
    one = rig(max_live=2)
    one.say(1, "a" * 100)
    one.say(2, "a" * 100)
    one.settle()
    one.scheduler.hold(1, S.SUSPENDED, one.now)
    one.now += PLACE_KEPT - 0.1
    assert one.submit(request(3)) is not None, "it may be back any moment"
    one.now += 0.1
    one.say(3, "abcd")
    one.collect()
    ended = one.heard[1].finished
    assert ended is not None
    assert (ended.reason, ended.code, ended.message) == (Finish.FAILED, "overloaded", GIVEN_AWAY)
    assert ended.retry_after is not None
    assert (one.closed, one.scheduler.live, one.scheduler.tally.displaced) == ([1], 2, 1)
    assert one.submit(request(4)) is not None, "the others are here"


def test_where_there_is_room_who_was_cut_off_goes_on() -> None:
    one = rig(max_live=2)
    one.say(1, "a" * 100)
    one.scheduler.hold(1, S.SUSPENDED, one.now)
    one.settle()
    one.now += 5 * PLACE_KEPT
    one.say(2, "abcd")
    one.scheduler.hold(1, None, one.now)
    one.scheduler.hold(99, None, one.now)  # unknown: over, most likely
    while one.heard[1].finished is None:
        one.settle()
        one.now += 0.5
    assert one.heard[1].finished.reason is Finish.COMPLETE
    assert one.heard[1].samples == 100 * FRAME
    assert one.scheduler.tally.displaced == 0


def slow(one: Rig, utterance: int) -> None:
    """Speak until the lanes were measured to need 0.6 s for a second of speech."""
    one.say(utterance, "a" * (2 * round(KNOWN / FRAME_SECONDS)))
    while one.heard[utterance].samples < 1.2 * KNOWN * HZ:
        for work in one.plan():
            seconds = 4 * FRAME_SECONDS if work.lane is Lane.LM else 0.0
            seconds += sum(chunk.frames for chunk in work.chunks) * FRAME_SECONDS
            one.finish(work, service=0.3 * seconds)
    assert one.scheduler.capacity.cost(2) == pytest.approx(0.6, rel=0.05)


def test_who_comes_back_late_to_busy_lanes_is_told_so() -> None:
    one = rig(workers=1, lead=FAR)
    assert one.submit(request(1)) is None
    one.scheduler.hold(1, S.SUSPENDED, one.now)
    slow(one, 2)
    one.now += PLACE_KEPT
    one.scheduler.hold(1, S.SUSPENDED, one.now)  # told twice: nothing changes
    one.scheduler.hold(1, None, one.now)
    one.collect()
    ended = one.heard[1].finished
    assert ended is not None
    assert (ended.code, ended.message) == ("overloaded", TAKEN)


def test_a_machine_that_is_too_slow_for_one_more_refuses() -> None:
    one = rig(workers=1, lead=FAR)
    slow(one, 1)
    refusal = one.submit(request(2))
    assert refusal is not None
    assert "120%" in refusal.message


def test_a_burst_of_starts_is_not_taken_for_the_cost_of_speech() -> None:
    """First chunks are small and dear: 30 callers at once must not look like an overload."""
    one = rig(workers=2)
    for number in range(30):
        assert one.submit(request(number)) is None
        one.text(number, "a" * 40, end=True)
        for work in one.plan():
            one.finish(work, service=0.05)


def test_a_text_of_which_nothing_will_be_made_is_ended() -> None:
    one = rig()
    assert one.submit(request(1)) is None
    one.scheduler.text(1, False, "abc", end=True)
    while one.heard[1].finished is None:
        assert one.plan() == []
        if one.heard[1].finished is None:
            assert one.wake_at is not None
            one.now = one.wake_at
    assert one.heard[1].finished.reason is Finish.FAILED
    assert one.closed == [1]


def test_the_lanes_are_metered() -> None:
    one = rig(lead=FAR)
    one.say(1, "abcd")
    (step,) = one.plan()
    one.finish(step, service=0.25)
    lm = one.scheduler.meters[Lane.LM]
    assert (lm.dispatches, lm.items, lm.busy_seconds) == (1, 1, 0.25)
    (chunk,) = (work for work in one.plan() if work.lane is Lane.URGENT)
    one.now += 0.5
    one.finish(chunk, service=0.125)
    urgent = one.scheduler.meters[Lane.URGENT]
    assert (urgent.dispatches, urgent.items, urgent.busy_seconds) == (1, 1, 0.125)
    assert urgent.sojourn.quantile(0.95) == pytest.approx(0.5)


# -- anything in any order --------------------------------------------------------------------

TEXTS = st.text(alphabet="aaaaaabcDEF~?#!% ", max_size=12)


class AnyOrder(RuleBasedStateMachine):
    """Submits, texts, reports, cancels, holds, plans and commits in any order."""

    utterances = Bundle("utterances")

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig(
            machine(workers=3, batch=2),
            PolicyConfig(lead=LeadLimits(fixed=1.0), max_live=6, max_utilisation=math.inf),
        )
        self.numbers = itertools.count(1)
        self.admitted: list[int] = []
        self.refused: list[int] = []

    @rule(
        target=utterances,
        client=st.sampled_from(["ann", "bob"]),
        threshold=st.sampled_from([0.0, 0.3]),
        reports=st.booleans(),
        text=TEXTS,
    )
    def submit(self, client: str, threshold: float, reports: bool, text: str) -> int:
        number = next(self.numbers)
        wanted = request(number, client, start_threshold=threshold, reports=reports)
        if self.rig.submit(wanted) is None:
            self.admitted.append(number)
            self.rig.text(number, text)
        else:
            self.refused.append(number)
        return number

    @rule(number=utterances, text=TEXTS, flush=st.booleans())
    def text(self, number: int, text: str, flush: bool) -> None:
        self.rig.text(number, text, flush=flush)

    @rule(number=consumes(utterances), text=TEXTS)
    def end(self, number: int, text: str) -> None:
        self.rig.text(number, text, end=True)

    @rule(number=utterances)
    def cancel(self, number: int) -> None:
        self.rig.scheduler.cancel(number, self.rig.now)
        self.rig.collect()
        if number in self.rig.heard:
            assert self.rig.heard[number].finished is not None
            busy = [u for work in self.rig.running for u in work.utterances]
            assert number in busy or number in self.rig.closed

    @rule(
        number=utterances,
        received=st.integers(-1, 5000) | st.none(),
        share=st.floats(0.0, 1.0),
        state=st.sampled_from(S),
        clock=st.floats() | st.none(),
    )
    def report(
        self,
        number: int,
        received: int | None,
        share: float,
        state: ListenerState,
        clock: float | None,
    ) -> None:
        now = self.rig.now
        heard = self.rig.heard.get(number)
        total = received if received is not None else heard.samples if heard else 0
        at = now if clock is None else clock
        self.rig.scheduler.report(report(number, total, round(total * share), state, at), now)

    @rule(number=utterances, state=st.sampled_from([S.PAUSED, S.SUSPENDED, None]))
    def hold(self, number: int, state: ListenerState | None) -> None:
        self.rig.scheduler.hold(number, state, self.rig.now)

    @rule(client=st.sampled_from(["ann", "bob"]), one_way=st.floats(0.0, 0.3))
    def delay(self, client: str, one_way: float) -> None:
        self.rig.scheduler.delay(client, one_way)

    @rule(client=st.sampled_from(["ann", "bob"]))
    def forget(self, client: str) -> None:
        self.rig.scheduler.forget(client)

    @rule(seconds=st.floats(0.0, 2.0))
    def wait(self, seconds: float) -> None:
        self.rig.now += seconds

    @rule()
    def plan(self) -> None:
        started = self.rig.plan()
        late = [work.lane is Lane.BACKGROUND for work in started]
        assert late == sorted(late), "background last; urgent chunks and steps have their turns"

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        if self.rig.running:
            self.rig.finish(data.draw(st.sampled_from(self.rig.running)))

    @invariant()
    def the_books_are_right(self) -> None:
        scheduler, running = self.rig.scheduler, self.rig.running
        for lane in Lane:
            assert scheduler.busy(lane) == sum(work.lane is lane for work in running)
        alive = set(self.admitted) - set(self.rig.closed)
        assert {stream.request.utterance for stream in scheduler.streams()} == alive
        assert scheduler.live == len(alive)

    def teardown(self) -> None:
        """Let everything end, and see that it did, once each."""
        one = self.rig
        for number in self.admitted:
            one.scheduler.hold(number, None, one.now)
            one.text(number, "", end=True)
        for _ in range(60):
            one.settle()
            one.now += 1.0
        for number in self.admitted:
            one.scheduler.cancel(number, one.now)  # those that say they are paused
        one.settle()
        assert sorted(one.closed) == self.admitted
        assert all(not one.scheduler.busy(lane) for lane in Lane)
        for number in self.admitted:
            heard = one.heard[number]
            assert heard.finished is not None
        assert one.scheduler.tally.refused == len(self.refused)
        assert sum(one.scheduler.tally.finished.values()) == len(self.admitted)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_what_we_inferred_ourselves_is_no_measure_of_our_belief() -> None:
    one = rig(lead=FAR)
    one.submit(request(1))
    one.text(1, "abcd")
    one.settle()
    told = replace(report(1, 4 * FRAME, 2 * FRAME), source=Source.SOCKET)
    one.scheduler.report(told, one.now)
    assert one.scheduler.tally.reports == 1
    assert one.scheduler.tally.belief_error == 0.0


def test_who_is_left_alone() -> None:
    one = rig(lead=LeadLimits(fixed=0.1))
    one.say(1, "a" * 100)
    one.say(2, "a" * 100)
    one.scheduler.hold(2, S.PAUSED, one.now)
    assert (one.scheduler.live, one.scheduler.parked) == (2, 0)
    one.settle()
    assert one.scheduler.parked == 1, "and the other is held"
