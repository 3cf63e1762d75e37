"""Batches for the lanes: in order, as many as fit, the others counted as waiting."""

import pytest
from doubles import FRAME_SECONDS, HZ, request
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.plan import CHOICE, Dispatch, Dispatcher
from playhead.engine.playhead import Playhead
from playhead.engine.policy import YIELDS_AFTER, LaneLimits
from playhead.engine.stream import Stream
from playhead.engine.turn import Candidate, Step, Turn
from playhead.engine.types import ChunkWork, Lane

KEY = (0.0, 0.0, 0.0, 0)


def stream(utterance: int) -> Stream:
    made = Stream(request(utterance), Playhead(HZ, 0.0), LeadLearner(LeadLimits()))
    made.ready = 10
    return made


def chunks(*utterances: int, lane: Lane = Lane.BACKGROUND) -> list[Candidate]:
    return [Candidate(stream(n), 2, KEY, lane, 0.5, 2 * FRAME_SECONDS) for n in utterances]


def steps(*utterances: int) -> list[Step]:
    return [Step(stream(n), KEY) for n in utterances]


def limits(workers: int = 4, slots: int = 4, batch: int = 2, reserve: int = 1) -> LaneLimits:
    return LaneLimits(workers, dict.fromkeys(Lane, slots), dict.fromkeys(Lane, batch), reserve)


def who(dispatches: list[Dispatch]) -> list[tuple[int, ...]]:
    return [dispatch.utterances for dispatch in dispatches]


def turn(
    urgent: list[Candidate] | None = None,
    steps: list[Step] | None = None,
    background: list[Candidate] | None = None,
) -> Turn:
    return Turn(urgent or [], background or [], steps or [])


def test_steps_are_batched_in_order_and_marked_as_running() -> None:
    dispatcher, wanted = Dispatcher(limits(slots=2)), steps(5, 3, 8)
    started = dispatcher.fill(turn(steps=wanted), 0.0)
    assert who(started) == [(5, 3), (8,)]
    assert all(dispatch.lane is Lane.LM and not dispatch.chunks for dispatch in started)
    assert all(step.stream.stepping for step in wanted)
    assert dispatcher.busy == {Lane.LM: 2, Lane.URGENT: 0, Lane.BACKGROUND: 0}
    assert dispatcher.waiting[Lane.LM] == 0


def test_few_are_spread_over_the_workers_that_are_free() -> None:
    dispatcher = Dispatcher(limits(workers=4, slots=4, batch=4))
    assert who(dispatcher.fill(turn(urgent=chunks(1, 2, lane=Lane.URGENT)), 0.0)) == [(1,), (2,)]
    more = chunks(3, 4, 5, lane=Lane.URGENT)
    assert who(dispatcher.fill(turn(urgent=more), 0.0)) == [(3, 4), (5,)]


def test_chunks_are_taken_from_their_streams_as_they_start() -> None:
    dispatcher, wanted = Dispatcher(limits(slots=1)), chunks(5, 3, 8)
    wanted[0].stream.queued_at = 42.0
    started = dispatcher.fill(turn(background=wanted), 50.0)
    assert who(started) == [(5, 3)]
    assert started[0].chunks[0] == ChunkWork(5, 0, 0, 2, Lane.BACKGROUND, 0.5, 0.0, 42.0)
    assert started[0].chunks[1].queued_at == 50.0, "it starts the moment it is wanted"
    assert [candidate.stream.decoding for candidate in wanted] == [True, True, False]
    assert dispatcher.waiting[Lane.BACKGROUND] == 1


@pytest.mark.parametrize(("running", "started", "waiting"), [(0, 3, 3), (1, 2, 4), (3, 0, 6)])
def test_background_work_stops_before_the_last_worker(
    running: int, started: int, waiting: int
) -> None:
    dispatcher = Dispatcher(limits(batch=1))
    dispatcher.fill(turn(steps=steps(*range(100, 100 + running))), 0.0)
    assert len(dispatcher.fill(turn(background=chunks(*range(6))), 0.0)) == started
    assert dispatcher.waiting[Lane.BACKGROUND] == waiting


def test_what_comes_back_makes_room() -> None:
    dispatcher = Dispatcher(limits(workers=1, batch=1))
    (first,) = dispatcher.fill(turn(urgent=chunks(1, 2)), 0.0)
    assert first.utterances == (1,)
    assert dispatcher.fill(turn(urgent=chunks(2)), 0.0) == []
    assert dispatcher.waiting[Lane.URGENT] == 1
    assert dispatcher.running == [first]
    dispatcher.done(first)
    assert dispatcher.running == []
    assert who(dispatcher.fill(turn(urgent=chunks(2)), 0.0)) == [(2,)]
    assert dispatcher.waiting[Lane.URGENT] == 0


def test_a_place_is_held_until_its_result_is_taken() -> None:
    dispatch = Dispatch(Lane.LM, steps=(1,), started=2.0)
    assert dispatch.held(service=0.5, now=2.75) == 0.75
    assert dispatch.held(service=0.5, now=2.25) == 0.5  # by another clock


def test_nothing_wanted_starts_nothing() -> None:
    dispatcher = Dispatcher(limits())
    assert dispatcher.fill(turn(), 0.0) == []
    assert dispatcher.busy == dispatcher.waiting == dict.fromkeys(Lane, 0)


def keyed(*needs: float) -> list[Step]:
    """Steps of the streams 100, 101 … with these deadlines."""
    return [Step(stream(100 + n), (need, 0.0, 0.0, n)) for n, need in enumerate(needs)]


@pytest.mark.parametrize(
    ("wanted", "order"),
    [
        (keyed(5.0), [(1,), (2,), (100,)]),
        (keyed(KEY[0]), [(1,), (2,), (100,)]),  # in no greater need
        (keyed(-1.0), [(100,), (1,), (2,)]),
        (keyed(-1.0, -0.5, 3.0), [(100,), (101,), (1,), (2,)]),
    ],
)
def test_a_step_goes_before_the_chunks_of_those_in_lesser_need(
    wanted: list[Step], order: list[tuple[int, ...]]
) -> None:
    dispatcher = Dispatcher(limits(batch=1))
    assert who(dispatcher.fill(turn(chunks(1, 2), wanted), 0.0)) == order


def test_a_batch_of_steps_is_filled_with_those_in_lesser_need() -> None:
    dispatcher = Dispatcher(limits(slots=1, batch=3))
    wanted = keyed(-1.0) + keyed(3.0, 4.0)
    assert who(dispatcher.fill(turn(chunks(1), wanted), 0.0)) == [(100, 100, 101), (1,)]


def test_a_lane_without_a_slot_does_not_hold_up_the_others() -> None:
    dispatcher = Dispatcher(limits(slots=1, batch=1))
    dispatcher.fill(turn(steps=steps(50)), 0.0)
    started = dispatcher.fill(turn(chunks(1, 2), keyed(-1.0), chunks(3)), 0.0)
    assert who(started) == [(1,), (3,)]
    assert dispatcher.waiting == {Lane.LM: 1, Lane.URGENT: 1, Lane.BACKGROUND: 0}


def test_a_free_lane_has_room_for_a_choice_and_a_busy_one_for_nobody() -> None:
    batch = {Lane.LM: 512, Lane.URGENT: 8, Lane.BACKGROUND: 8}
    dispatcher = Dispatcher(LaneLimits(3, dict.fromkeys(Lane, 1), batch))
    assert dispatcher.room() == {Lane.LM: 1024, Lane.URGENT: CHOICE, Lane.BACKGROUND: CHOICE}
    (running,) = dispatcher.fill(turn(steps=steps(1)), 0.0)
    assert dispatcher.room().keys() == {Lane.URGENT, Lane.BACKGROUND}
    dispatcher.done(running)
    assert Lane.LM in dispatcher.room()


def test_background_work_that_has_waited_gets_the_reserve_until_nothing_waits() -> None:
    dispatcher = Dispatcher(limits(workers=2, batch=1))

    def started(now: float) -> int:
        many = len(dispatcher.fill(turn(background=chunks(1, 2, 3)), now))
        dispatcher.behind(dispatcher.waiting[Lane.BACKGROUND] > 0, now)
        return many

    assert started(1.0) == 1
    assert started(1.0 + 0.9 * YIELDS_AFTER) == 0
    assert started(1.0 + YIELDS_AFTER) == 0, "told at the end of a turn, it counts in the next"
    assert Lane.BACKGROUND in dispatcher.room()
    assert started(1.0 + YIELDS_AFTER) == 1
    dispatcher.behind(False, 2.0)
    dispatcher.done(dispatcher.running[0])
    assert Lane.BACKGROUND not in dispatcher.room(), "the reserve stands again"
    assert started(2.1) == 0
