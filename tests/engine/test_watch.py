"""Who is looked at: what was touched, and whose time has come."""

import math
import sys

from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.playhead import Playhead
from playhead.engine.policy import Key
from playhead.engine.stream import Stream
from playhead.engine.types import Lane, Request
from playhead.engine.watch import OUTDATED, Watch

INF = math.inf


def stream(utterance: int) -> Stream:
    request = Request(utterance, "client", "voice")
    return Stream(request, Playhead(24_000, 0.0), LeadLearner(LeadLimits()))


def names(streams: list[Stream]) -> list[int]:
    return [each.request.utterance for each in streams]


def test_a_touched_stream_is_awake_until_it_is_put_to_rest() -> None:
    watch, one, two = Watch(), stream(1), stream(2)
    assert watch.awake(0.0) == []
    watch.touch(one)
    watch.touch(two)
    watch.touch(one)
    assert names(watch.awake(0.0)) == [1, 2]
    watch.rest(one, math.inf)
    assert names(watch.awake(99.0)) == [2]
    assert watch.next_alarm() == math.inf
    watch.touch(one)
    assert names(watch.awake(99.0)) == [2, 1]


def test_a_resting_stream_wakes_at_its_time() -> None:
    watch, one, two = Watch(), stream(1), stream(2)
    for each, until in ((one, 5.0), (two, 3.0)):
        watch.touch(each)
        watch.rest(each, until)
    assert watch.next_alarm() == 3.0
    assert watch.awake(2.999) == []
    assert names(watch.awake(3.0)) == [2]
    assert watch.next_alarm() == 5.0
    assert names(watch.awake(6.0)) == [2, 1]
    assert watch.next_alarm() == math.inf


def test_an_alarm_that_was_overtaken_is_void() -> None:
    watch, one = Watch(), stream(1)
    watch.touch(one)
    watch.rest(one, 3.0)
    watch.touch(one)
    assert watch.next_alarm() == math.inf, "it is awake"
    watch.rest(one, 7.0)
    assert watch.awake(3.0) == []
    assert watch.next_alarm() == 7.0
    watch.touch(one)
    watch.rest(one, math.inf)
    assert watch.awake(8.0) == []


def test_a_forgotten_stream_never_wakes() -> None:
    watch, one, two = Watch(), stream(1), stream(2)
    watch.touch(one)
    watch.touch(two)
    watch.rest(two, 3.0)
    watch.forget(one)
    watch.forget(two)
    assert watch.next_alarm() == math.inf
    assert watch.awake(9.0) == []


def test_a_forgotten_stream_s_alarm_rings_for_nobody() -> None:
    watch, one = Watch(), stream(1)
    watch.touch(one)
    watch.rest(one, 3.0)
    watch.forget(one)
    assert watch.awake(3.0) == []


ALL = {Lane.LM: 99}


def key(deadline: float) -> Key:
    return (deadline, 0.0, 0.0, 0)


def block(watch: Watch, each: Stream, *lanes: Lane, turn: float = 0.0, until: float = INF) -> None:
    watch.touch(each)
    watch.block(each, frozenset(lanes), key(turn), until)


def test_a_blocked_stream_waits_for_one_of_its_lanes() -> None:
    watch, one, two = Watch(), stream(1), stream(2)
    block(watch, one, Lane.LM)
    block(watch, two, Lane.URGENT, Lane.LM)
    assert watch.awake(0.0) == []
    assert [watch.blocked(lane) for lane in (Lane.LM, Lane.URGENT, Lane.BACKGROUND)] == [2, 1, 0]
    watch.release({Lane.BACKGROUND: 9})
    assert watch.awake(0.0) == []
    watch.release({Lane.URGENT: 9})
    assert names(watch.awake(0.0)) == [2]
    assert (watch.blocked(Lane.LM), watch.blocked(Lane.URGENT)) == (1, 0)
    watch.release(ALL)
    assert names(watch.awake(0.0)) == [2, 1], "the other wait of the second is over too"


def test_a_lane_wakes_no_more_than_it_takes_the_neediest_first() -> None:
    watch = Watch()
    for utterance, turn in ((1, 3.0), (2, 1.0), (3, 2.0)):
        block(watch, stream(utterance), Lane.LM, turn=turn)
    watch.release({Lane.LM: 2})
    assert names(watch.awake(0.0)) == [2, 3]
    assert watch.blocked(Lane.LM) == 1


def test_a_blocked_stream_wakes_when_something_happens_and_can_end() -> None:
    watch, one, two = Watch(), stream(1), stream(2)
    for each in (one, two):
        block(watch, each, Lane.LM)
    watch.touch(one)
    watch.forget(two)
    assert names(watch.awake(0.0)) == [1]
    assert watch.blocked(Lane.LM) == 0
    watch.release(ALL)
    assert names(watch.awake(0.0)) == [1]


def test_a_blocked_stream_may_come_to_want_another_lane() -> None:
    watch, one = Watch(), stream(1)
    block(watch, one, Lane.BACKGROUND, until=5.0)
    assert watch.next_alarm() == 5.0
    assert watch.parked == 0, "it is not parked: it waits"
    assert names(watch.awake(5.0)) == [1]
    assert watch.blocked(Lane.BACKGROUND) == 0


def test_waits_that_are_over_do_not_pile_up() -> None:
    watch, one = Watch(), stream(1)
    for turn in range(10_000):
        block(watch, one, Lane.LM, turn=turn)
    assert sys.getsizeof(watch._queues[Lane.LM]) < 100 * OUTDATED
    watch.release(ALL)
    assert names(watch.awake(0.0)) == [1]


def test_the_parked_are_those_that_time_alone_wakes() -> None:
    watch, one, two = Watch(), stream(1), stream(2)
    for each, until in ((one, 5.0), (two, math.inf)):
        watch.touch(each)
        watch.rest(each, until)
    assert watch.parked == 1
    watch.awake(6.0)
    assert watch.parked == 0


def test_who_is_released_still_wants_what_it_waited_for_unless_it_was_touched() -> None:
    watch, one, two, three = Watch(), stream(1), stream(2), stream(3)
    for each, settled in ((one, True), (two, True), (three, False)):
        watch.touch(each)
        watch.block(each, frozenset({Lane.LM}), key(each.request.utterance), INF, settled=settled)
    watch.touch(two)
    watch.block(two, frozenset({Lane.LM}), key(2), INF)
    assert watch.release(ALL) == {1}
    assert names(watch.awake(0.0)) == [1, 2, 3]
    assert watch.release(ALL) == set(), "told once"


def test_a_settled_one_whose_time_comes_is_looked_at() -> None:
    watch, one = Watch(), stream(1)
    watch.touch(one)
    watch.block(one, frozenset({Lane.LM}), key(0.0), 5.0, settled=True)
    assert names(watch.awake(5.0)) == [1]
    assert watch.release(ALL) == set()


def test_who_got_what_it_wanted_rests_until_it_is_touched() -> None:
    watch, one = Watch(), stream(1)
    watch.touch(one)
    watch.leave(one, INF)
    watch.leave(one, 5.0)
    assert (watch.awake(99.0), watch.parked) == ([], 0), "it has left already"
    watch.touch(one)
    assert names(watch.awake(99.0)) == [1]


def test_what_is_on_the_shelf_comes_back_when_one_of_its_lanes_is_free() -> None:
    watch, one, two, three = Watch(), stream(1), stream(2), stream(3)
    step, codec = frozenset({Lane.LM}), frozenset({Lane.URGENT, Lane.BACKGROUND})
    for each, lanes in ((one, step), (two, codec), (three, step | codec)):
        watch.touch(each)
        watch.shelve(each, lanes)
    assert (watch.awake(0.0), watch.parked) == ([], 0)
    assert [watch.blocked(lane) for lane in (Lane.LM, Lane.URGENT, Lane.BACKGROUND)] == [2, 0, 1]
    assert watch.release({Lane.LM: 1}) == set(), "nobody has looked at them"
    assert names(watch.awake(0.0)) == [1, 3]
    watch.release({Lane.URGENT: 1})
    assert names(watch.awake(0.0)) == [1, 3, 2]
    assert watch.blocked(Lane.LM) == watch.blocked(Lane.BACKGROUND) == 0


def test_what_is_on_the_shelf_can_be_touched_and_can_end() -> None:
    watch, one, two = Watch(), stream(1), stream(2)
    for each in (one, two):
        watch.touch(each)
        watch.shelve(each, frozenset({Lane.LM}))
    watch.touch(one)
    watch.forget(two)
    assert names(watch.awake(0.0)) == [1]
    watch.release(ALL)
    assert names(watch.awake(0.0)) == [1]
    assert watch.blocked(Lane.LM) == 0


def test_who_got_what_it_wanted_may_wake_by_itself() -> None:
    watch, one = Watch(), stream(1)
    watch.touch(one)
    watch.leave(one, 5.0)
    assert watch.awake(4.0) == []
    watch.ring(5.0)
    assert watch.release(ALL) == set()
    assert names(watch.awake(5.0)) == [1]
