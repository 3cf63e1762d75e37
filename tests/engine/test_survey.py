"""One look: what could start, in which lane, in which order, and when to look again."""

import math
from dataclasses import replace

import pytest
from doubles import FRAME, FRAME_SECONDS, HZ, MODEL, report, request
from playhead.engine.events import Tally
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.meters import Meters
from playhead.engine.playhead import Playhead
from playhead.engine.policy import OUTLAST, PAD, PolicyConfig
from playhead.engine.shares import Shares
from playhead.engine.stream import Stream
from playhead.engine.survey import LOOKAHEAD, Survey
from playhead.engine.turn import Turn
from playhead.engine.types import Lane, ListenerState, Urgency
from playhead.engine.watch import Watch

LEAD = 2.0
GUESS = 0.05  # seconds, of background sojourn and of LM service, before anything is measured
NEEDED = 2 * GUESS + PAD


class World:
    """A survey and what it reads; streams are made by hand."""

    def __init__(self, urgency: Urgency = Urgency.REPORTED, lead: float | None = LEAD) -> None:
        limits = LeadLimits(fixed=lead)
        self.shares = Shares(FRAME_SECONDS)
        self.meters = Meters.starting_from(GUESS)
        self.tally = Tally()
        self.watch = Watch()
        self.config = PolicyConfig(urgency, limits)
        self.survey = Survey(MODEL, self.config, self.shares, self.meters, self.tally, self.watch)

    def stream(
        self,
        number: int = 1,
        *,
        sent: float = 0.0,
        ready: int = 4,
        now: float = 0.0,
        **state: object,
    ) -> Stream:
        """A stream whose listener was sent ``sent`` seconds at ``now``."""
        threshold = float(state.pop("threshold", 0.0))  # type: ignore[arg-type]
        reports = bool(state.pop("reports", True))
        made = Stream(
            request(number, start_threshold=threshold),
            Playhead(HZ, now, start_threshold=threshold, use_reports=reports),
            LeadLearner(self.config.lead),
            ready=ready,
        )
        for name, value in state.items():
            setattr(made, name, value)
        if sent:
            made.playhead.on_sent(round(sent * HZ), now)
            made.chunks = 1
        self.shares.join(made.request)
        self.watch.touch(made)
        return made

    def look(self, now: float = 0.0) -> Turn:
        return self.survey.look(now)


def numbers(turn: Turn) -> dict[str, list[int]]:
    return {
        "urgent": [each.stream.request.utterance for each in turn.urgent],
        "background": [each.stream.request.utterance for each in turn.background],
        "steps": [each.stream.request.utterance for each in turn.steps],
    }


# -- lanes ------------------------------------------------------------------------------------


def test_the_first_chunk_is_urgent_and_small() -> None:
    world = World()
    world.stream(ready=4)
    (chunk,) = world.look(3.0).urgent
    assert (chunk.frames, chunk.lane, chunk.slack) == (1, Lane.URGENT, -3.0)
    assert chunk.seconds == FRAME_SECONDS


@pytest.mark.parametrize(
    ("held", "lane"), [(NEEDED - 0.01, Lane.URGENT), (NEEDED + 0.01, Lane.BACKGROUND)]
)
def test_slack_against_the_measured_margin_decides_the_lane(held: float, lane: Lane) -> None:
    world = World()
    world.stream(sent=held)
    turn = world.look()
    chunk = (turn.urgent + turn.background)[0]
    assert chunk.lane is lane
    assert chunk.slack == pytest.approx(held)


def test_the_margin_follows_what_the_background_lane_takes() -> None:
    world = World()
    world.stream(sent=0.8, ready=20)
    assert world.look().background
    for _ in range(20):
        world.meters[Lane.BACKGROUND].done(0.1, [0.9], 0.0)
    assert world.look().urgent


def test_a_listener_below_its_threshold_is_urgent_whatever_it_was_sent() -> None:
    world = World()
    world.stream(sent=0.4, threshold=0.5)
    assert numbers(world.look())["urgent"] == [1]


def test_a_held_listener_is_in_no_hurry_even_for_its_first_chunk() -> None:
    world = World()
    stream = world.stream(ready=4)
    stream.playhead.hold(ListenerState.SUSPENDED, 0.0)
    (chunk,) = world.look(3.0).background
    assert chunk.slack is None
    assert chunk.key[0] == math.inf


def test_a_measured_margin_never_makes_everything_urgent_for_good() -> None:
    """A bad minute of the background lane must not be the last thing that is measured of it."""
    world = World()
    world.stream(sent=1.9, ready=20)
    world.meters[Lane.BACKGROUND].done(1.0, [30.0] * 200, 0.0)
    assert numbers(world.look())["background"] == [1]


def test_a_gateway_that_stood_still_has_its_own_listeners_hold_more() -> None:
    world = World(lead=None)
    his, other = world.stream(1), world.stream(2)
    his.request = replace(his.request, gateway=1)
    for stream in (his, other):
        stream.learner.limit = LeadLimits().least
    world.meters.pauses.told(1, 0.5, 0.0)
    world.look()
    assert world.survey.lead(other) == LeadLimits().least
    assert world.survey.lead(his) == pytest.approx(2 * GUESS + 1.0)


# -- order ------------------------------------------------------------------------------------


def test_earliest_deadline_first_and_the_least_served_among_the_dry() -> None:
    world = World()
    for number, sent in ((1, 0.9), (2, 0.3), (3, 0.0), (4, 0.0), (5, 0.6)):
        world.stream(number, sent=sent, ready=20)
    world.shares.accounts.serve("client-3", 7.0)
    world.shares.accounts.serve("client-4", 2.0)
    assert numbers(world.look()) == {"urgent": [4, 3], "background": [2, 5, 1], "steps": []}


def test_without_urgency_all_is_background_in_the_order_of_asking() -> None:
    world = World(Urgency.NONE)
    world.stream(9, sent=0.9, ready=20)
    world.look(0.0)
    world.stream(2, ready=20)
    world.look(0.1)
    world.stream(5, sent=0.5, ready=20, now=0.2)
    turn = world.look(0.3)
    assert numbers(turn) == {"urgent": [], "background": [9, 2, 5], "steps": []}
    assert [chunk.slack for chunk in turn.background] == [None] * 3
    assert turn.wake_at == math.inf, "time changes nothing"


# -- steps ------------------------------------------------------------------------------------


def test_the_backbone_is_stepped_in_the_order_of_need() -> None:
    world = World()
    for number, sent in ((1, 0.9), (2, 0.3), (3, 0.0)):
        world.stream(number, sent=sent, ready=0, steppable=True)
    assert numbers(world.look()) == {"urgent": [], "background": [], "steps": [3, 2, 1]}


def test_without_urgency_steps_too_go_in_the_order_of_asking() -> None:
    world = World(Urgency.NONE)
    world.stream(2, ready=0, steppable=True)
    world.stream(1, ready=0, steppable=True, sent=1.0)
    assert numbers(world.look())["steps"] == [1, 2]


@pytest.mark.parametrize(
    ("state", "by"),
    [
        ({"ready": 0}, 0.0),  # it waits: as urgent as a chunk can be
        ({"ready": 0, "sent": 1.0}, 1.0),
        ({"ready": 4, "sent": 0.4}, 0.4 + 4 * FRAME_SECONDS),  # these are heard before
        ({"ready": 4, "sent": 1.0}, 1.0),  # too few for a chunk: there is nothing to be heard
        ({"decoding": True, "decoding_seconds": 0.3, "ready": 0, "sent": 1.0}, 1.3),
    ],
)
def test_a_step_is_due_when_all_that_there_is_has_been_heard(
    state: dict[str, object], by: float
) -> None:
    world = World()
    world.stream(steppable=True, **state)  # type: ignore[arg-type]
    (step,) = world.look().steps
    assert step.key[0] == pytest.approx(max(by, OUTLAST * GUESS))


def test_a_step_has_its_turn_among_the_chunks_of_others() -> None:
    """A crowd in which every chunk is urgent: who has a little more, but must be stepped first,
    would be dry before the others want nothing more."""
    world = World()
    world.stream(1, sent=0.35, ready=0, steppable=True)
    world.stream(2, sent=0.4, ready=8)
    world.stream(3, sent=0.3, ready=8)
    for sojourn in (*(GUESS,) * 8, 0.5):
        world.meters[Lane.URGENT].sojourn.add(sojourn, 0.0)
    turn = world.look()
    assert [c.stream.request.utterance for c in turn.urgent] == [3, 2]
    assert turn.urgent[0].key < turn.steps[0].key < turn.urgent[1].key


def test_who_is_dry_and_has_frames_is_stepped_as_if_it_had_had_a_chunk_of_them() -> None:
    """Where all are dry newcomers wait for their first chunk: what others could have besides one
    comes later."""
    world = World()
    world.stream(1, ready=4, steppable=True)
    world.stream(2, ready=4)
    world.shares.accounts.serve("client-2", MODEL.chunk_frames[0] * FRAME_SECONDS / 2)
    world.stream(3, ready=0, steppable=True)
    turn = world.look()
    assert numbers(turn) == {"urgent": [1, 2], "background": [], "steps": [3, 1]}
    assert turn.steps[0].key < turn.urgent[1].key < turn.steps[1].key


def test_the_backbone_runs_no_further_ahead_of_the_codec_than_is_useful() -> None:
    world = World()
    enough = math.ceil(LOOKAHEAD / FRAME_SECONDS)
    world.stream(1, ready=enough, steppable=True)
    world.stream(2, ready=enough - 1, steppable=True)
    world.stream(3, ready=enough, steppable=True, decoding=True)
    turn = world.look()
    assert numbers(turn)["steps"] == [2]
    assert numbers(turn)["urgent"] == [1, 2]


def test_frames_too_few_for_a_chunk_do_not_keep_the_backbone_from_going_on() -> None:
    world = World()
    big = 2 * math.ceil(LOOKAHEAD / FRAME_SECONDS)
    world.survey = Survey(
        MODEL.__class__("big", ("voice",), HZ, FRAME, (big,), 4),
        world.config,
        world.shares,
        world.meters,
        world.tally,
        world.watch,
    )
    world.stream(ready=big - 1, steppable=True)
    assert numbers(world.look()) == {"urgent": [], "background": [], "steps": [1]}


def test_what_runs_or_cannot_run_is_not_offered() -> None:
    world = World()
    world.stream(1, dead=True, steppable=True)
    world.stream(2, decoding=True, stepping=True, steppable=True)
    world.stream(3, decoding=True)
    world.stream(4, ready=0)
    turn = world.look()
    assert numbers(turn) == {"urgent": [], "background": [], "steps": []}
    assert turn.wake_at == math.inf
    assert world.watch.awake(99.0) == []


def test_decoding_and_stepping_go_side_by_side() -> None:
    world = World()
    world.stream(1, decoding=True, steppable=True)
    world.stream(2, stepping=True, steppable=True)
    assert numbers(world.look()) == {"urgent": [2], "background": [], "steps": [1]}


# -- the lead ---------------------------------------------------------------------------------


def test_a_listener_that_holds_its_lead_is_parked_until_it_does_not() -> None:
    world = World()
    world.stream(sent=2.5, ready=20, steppable=True)
    turn = world.look(0.0)
    assert numbers(turn) == {"urgent": [], "background": [], "steps": []}
    assert turn.wake_at == pytest.approx(0.5, abs=1e-3)
    assert numbers(world.look(turn.wake_at - 1e-3))["steps"] == []
    assert numbers(world.look(turn.wake_at))["background"] == [1]


def test_a_chunk_being_decoded_counts_towards_the_lead() -> None:
    world = World()
    world.stream(sent=1.9, steppable=True, decoding=True, decoding_seconds=0.2)
    turn = world.look(0.0)
    assert numbers(turn)["steps"] == []
    assert turn.wake_at == pytest.approx(0.1, abs=1e-3)


def test_a_held_listener_beyond_its_lead_sleeps_until_something_happens() -> None:
    world = World()
    stream = world.stream(sent=2.5, steppable=True)
    stream.playhead.hold(ListenerState.PAUSED, 0.0)
    assert world.look(0.0).wake_at == math.inf
    assert world.look(1e6).steps == []
    stream.playhead.hold(None, 10.0)
    world.watch.touch(stream)
    assert world.look(10.0).wake_at == pytest.approx(10.5, abs=1e-3)


@pytest.mark.parametrize(
    ("lead", "reports", "threshold", "expected"),
    [
        (1.2, True, 0.0, 1.2),  # fixed for all
        (1.2, False, 0.0, 1.2),
        (None, True, 0.0, 2.0),  # learned, nothing known yet
        (None, False, 0.0, 2.0),  # never known
        (1.2, True, 1.5, 1.5 + 0.6 / 2),  # its player starts with more than that
        (1.2, True, 0.2, 1.2),
    ],
)
def test_the_lead_is_learned_or_fixed_and_covers_the_threshold(
    lead: float | None, reports: bool, threshold: float, expected: float
) -> None:
    world = World(lead=lead)
    stream = world.stream(reports=reports, threshold=threshold)
    assert world.survey.lead(stream) == pytest.approx(expected)


def test_only_a_reporting_listener_profits_from_what_was_learned() -> None:
    world = World(lead=None)
    reporting, silent = world.stream(1), world.stream(2, reports=False)
    for stream in (reporting, silent):
        for tick in range(1000):
            now = tick * 0.25
            stream.learner.observe(report(1, 0, 0, at=now), 0.0, now)
    assert world.survey.lead(reporting) == pytest.approx(0.6)
    assert world.survey.lead(silent) == pytest.approx(2.0)


# -- promotion --------------------------------------------------------------------------------


def test_a_queued_chunk_is_promoted_when_its_time_gets_short_and_counted_once() -> None:
    world = World()
    stream = world.stream(sent=0.5)
    turn = world.look(0.0)
    assert numbers(turn)["background"] == [1]
    assert turn.wake_at == pytest.approx(0.5 - NEEDED)
    late = world.look(turn.wake_at + 1e-6)
    assert numbers(late)["urgent"] == [1]
    assert world.tally.promoted == 1
    world.look(turn.wake_at + 0.01)
    assert world.tally.promoted == 1
    assert late.urgent[0].take(9.0).queued_at == 0.0, "it has been waiting since it was wanted"
    assert stream.queued_at is None


def test_a_report_can_promote_a_queued_chunk() -> None:
    world = World()
    stream = world.stream(sent=1.0)
    assert world.look(0.0).background
    stream.playhead.on_report(report(1, 1000, 50, at=1.0), 0.9)
    world.watch.touch(stream)
    assert world.look(0.9).urgent
    assert world.tally.promoted == 1


def test_a_chunk_that_is_urgent_from_the_start_was_not_promoted() -> None:
    world = World()
    world.stream()
    world.look(0.0)
    world.look(5.0)
    assert world.tally.promoted == 0


def test_close_to_the_margin_looks_are_a_millisecond_apart() -> None:
    world = World()
    world.stream(sent=NEEDED + 1e-3)
    assert world.look(0.0).wake_at == pytest.approx(1e-3)
    assert world.look(0.9e-3).wake_at == pytest.approx(1.9e-3)


def test_a_chunk_carries_how_it_was_routed() -> None:
    world = World()
    stream = world.stream(sent=1.0, ready=20)
    (candidate,) = world.look(0.25).background
    work = candidate.take(0.25)
    assert (work.utterance, work.index, work.first, work.frames) == (1, 1, 0, 8)
    assert (work.lane, work.queued_at) == (Lane.BACKGROUND, 0.25)
    assert work.slack == pytest.approx(0.75)
    assert work.depth == pytest.approx(0.75)
    assert stream.taken == 8


def test_a_step_that_is_taken_runs() -> None:
    world = World()
    stream = world.stream(7, ready=0, steppable=True)
    (step,) = world.look(0.0).steps
    assert step.take() == 7
    assert stream.stepping
    assert world.look(0.0).steps == []


# -- busy lanes -------------------------------------------------------------------------------


def test_what_only_lacks_a_free_lane_is_left_alone_until_there_is_one() -> None:
    world = World()
    world.stream(1, sent=0.1, ready=0, steppable=True)
    world.stream(2, ready=4, steppable=False)
    turn = world.survey.look(0.0, {Lane.BACKGROUND: 9})
    assert numbers(turn) == {"urgent": [], "background": [], "steps": []}
    assert world.watch.blocked(Lane.LM) == 1
    assert world.watch.awake(0.0) == [], "nothing is worked out for a stream that wants busy lanes"
    assert world.watch.blocked(Lane.URGENT) == 1, "a first chunk has no use for the background lane"
    assert numbers(world.survey.look(0.0, {Lane.LM: 9}))["steps"] == [1]
    assert numbers(world.look())["urgent"] == [2]


def test_a_step_waits_for_its_lane_in_the_order_of_need() -> None:
    world = World()
    for utterance, sent in ((1, 1.5), (2, 0.9), (3, 1.2)):
        world.stream(utterance, sent=sent, ready=1, steppable=True)
        assert world.survey.look(0.0, {Lane.URGENT: 9}).steps == []
    assert world.watch.blocked(Lane.LM) == 3
    assert numbers(world.survey.look(0.0, {Lane.LM: 2}))["steps"] == [2, 3]


def test_a_background_chunk_that_may_become_urgent_keeps_its_time_while_urgent_is_free() -> None:
    world = World()
    world.stream(1, sent=NEEDED + 0.5, ready=8)
    turn = world.survey.look(0.0, {Lane.URGENT: 9})
    assert numbers(turn)["background"] == []
    assert world.watch.blocked(Lane.BACKGROUND) == 1
    assert turn.wake_at == pytest.approx(0.5)
    turn = world.survey.look(0.5, {Lane.URGENT: 9})
    assert numbers(turn)["urgent"] == [1]
    assert world.tally.promoted == 1


def test_one_free_lane_of_two_is_enough() -> None:
    world = World()
    world.stream(1, ready=4, steppable=True)
    assert numbers(world.survey.look(0.0, {Lane.LM: 9}))["steps"] == [1]


def test_an_onlooker_is_told_the_margin_that_decides() -> None:
    world = World()
    stream = world.stream(sent=NEEDED + 0.01)
    margin = world.survey.margin(stream, 0.0)
    assert margin == pytest.approx(NEEDED)
    assert numbers(world.look(0.0))["background"] == [1]
    assert numbers(world.look(stream.playhead.deadline(0.0) - margin + 1e-3))["urgent"] == [1]


# -- looked at no more often than needed ------------------------------------------------------


def blocked_step(world: World, **state: object) -> Stream:
    """A stream that waits for the LM lane."""
    stream = world.stream(1, steppable=True, **state)
    assert world.survey.look(0.0, {Lane.URGENT: 9, Lane.BACKGROUND: 9}).steps == []
    assert world.watch.blocked(Lane.LM) == 1
    return stream


def test_a_step_that_waited_alone_starts_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    stream = blocked_step(world, sent=1.0, ready=3)
    monkeypatch.setattr(world.survey, "_look_at", None)
    (step,) = world.survey.look(0.3, {Lane.LM: 9}).steps
    assert step.stream is stream
    assert step.key == world.survey._key(stream, 1.0, 0.3), "its turn is that of now"


def test_who_waits_for_a_step_wakes_when_its_frames_become_a_chunk() -> None:
    world = World()
    blocked_step(world, sent=1.0, ready=3)  # 8 frames are a chunk for who holds 1 s; 4 below 0.64 s
    wake_at = world.watch.next_alarm()
    assert wake_at == pytest.approx(1.0 - 4 * FRAME_SECONDS, abs=1e-3)
    assert world.survey.look(wake_at - 1e-3, {Lane.BACKGROUND: 9}).background == []
    (chunk,) = world.survey.look(wake_at, {Lane.BACKGROUND: 9}).background
    assert chunk.frames == 2


def test_a_crowd_s_chunks_do_not_shrink_with_time() -> None:
    world = World()
    for _ in range(200):
        world.meters[Lane.URGENT].sojourn.add(0.35, 0.0)
    blocked_step(world, sent=0.3, ready=3)
    assert world.watch.next_alarm() == math.inf


def test_who_steps_is_looked_at_when_the_step_is_back() -> None:
    world = World()
    stream = world.stream(1, sent=1.0, ready=3, steppable=True)
    (step,) = world.look(0.0).steps
    step.take()
    world.survey.started([stream])
    assert world.watch.awake(0.5) == []


def test_who_has_more_to_start_stays_awake() -> None:
    world = World()
    stream = world.stream(1, sent=0.1, ready=4, steppable=True)
    turn = world.look(0.0)
    turn.steps[0].take()
    world.survey.started([stream])
    assert world.watch.awake(0.0) == [stream], "its chunk has not started"
    turn.urgent[0].take(0.0)
    world.survey.started([stream])
    assert world.watch.awake(0.0) == []


def test_who_decodes_may_want_a_step() -> None:
    world = World()
    stream = world.stream(1, sent=0.1, ready=4, steppable=True)
    world.look(0.0).urgent[0].take(0.0)
    world.survey.started([stream])
    assert world.watch.awake(0.0) == [stream]


def parked(world: World, sent: float = LEAD + 0.5) -> Stream:
    stream = world.stream(1, sent=sent, ready=8)
    world.look(0.0)
    return stream


def told(stream: Stream, buffered: float, now: float, **more: object) -> None:
    """A report of ``buffered`` seconds, all received."""
    said = report(1, stream.playhead.sent, round(buffered * HZ), at=now, **more)  # type: ignore[arg-type]
    assert stream.playhead.on_report(said, now)


@pytest.mark.parametrize(("off", "outdated"), [(0.0, False), (0.008, False), (-0.012, True)])
def test_a_report_of_what_was_believed_changes_nothing(off: float, outdated: bool) -> None:
    world = World()
    stream = parked(world)
    told(stream, LEAD + 0.4 + off, 0.1)
    assert world.survey.outdated(stream, 0.1) is outdated


def test_small_changes_add_up() -> None:
    world = World()
    stream = parked(world)
    told(stream, LEAD + 0.4 - 0.006, 0.1)
    assert not world.survey.outdated(stream, 0.1)
    told(stream, LEAD + 0.3 - 0.012, 0.2)
    assert world.survey.outdated(stream, 0.2)


def test_a_listener_that_was_never_looked_at_or_waits_or_is_held_is_looked_at() -> None:
    world = World()
    fresh = world.stream(1)
    assert world.survey.outdated(fresh, 0.0)
    world.look(0.0)
    assert world.survey.outdated(fresh, 0.0), "it waits for its first audio"
    held = parked(world)
    held.playhead.hold(ListenerState.PAUSED, 0.0)
    world.watch.touch(held)
    world.look(0.0)
    assert world.survey.outdated(held, 0.0)


def test_a_lead_or_a_need_that_rises_is_heeded() -> None:
    world = World(lead=None)
    stream = parked(world)
    assert not world.survey.outdated(stream, 0.0)
    stream.learner.observe(report(1, 0, 0, at=0.0), late=1.0, now=0.0)
    assert world.survey.outdated(stream, 0.0)
    other = World()
    stream = parked(other)
    for _ in range(200):
        other.meters[Lane.BACKGROUND].sojourn.add(GUESS + 0.1, 0.0)
    other.look(0.0)
    assert other.survey.outdated(stream, 0.0)


def test_frames_that_are_no_chunk_yet_go_when_their_listener_is_nearly_dry() -> None:
    """Though the step that would make more is not back: nothing else might wake it in time."""
    world = World()
    stream = world.stream(1, sent=1.0, ready=3, steppable=True)
    world.look(0.0).steps[0].take()
    world.survey.started([stream])
    world.watch.touch(stream)
    assert world.look(0.1).background == [], "looked at again, it rests as before"
    dry_soon = 1.0 - world.survey._needed()
    assert world.watch.next_alarm() == pytest.approx(dry_soon)
    (chunk,) = world.look(dry_soon + 1e-6).urgent
    assert chunk.frames == 1


def test_who_is_dry_already_or_has_nothing_ready_is_not_waited_for() -> None:
    world = World()
    for number, sent, ready in ((1, NEEDED - 0.05, 3), (2, 1.0, 0)):
        world.meters[Lane.URGENT].sojourn.add(0.35, 0.0)  # chunks are long in a crowd
        stream = world.stream(number, sent=sent, ready=ready, steppable=True)
        for step in world.look(0.0).steps:
            step.take()
        world.survey.started([stream])
    assert world.watch.next_alarm() == math.inf


def test_a_step_is_not_all_that_is_wanted_when_its_time_has_come_too() -> None:
    world = World()
    blocked_step(world, sent=1.0, ready=3)
    turn = world.look(world.watch.next_alarm())
    assert (len(turn.steps), len(turn.background)) == (1, 1)
