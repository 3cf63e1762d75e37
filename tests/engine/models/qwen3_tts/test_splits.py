"""Which part of the device the background lane gets: rules one by one, and over simulated days."""

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from playhead.engine.models.qwen3_tts import splits
from playhead.engine.models.qwen3_tts.splits import (
    PER_MULTIPROCESSOR,
    WHOLE,
    Done,
    Load,
    Rules,
    Splits,
    Window,
    Yields,
    mean_slack,
)

SIZES, DEVICE = (24, 32, 48, 64, WHOLE), 132
LAUNCH = 0.003
"""Seconds that a dispatch takes beside its work."""


def at_work(
    chosen: Splits, demand: float, until: float, *, now: float, slack: float | None = 1.0
) -> list[int]:
    """Dispatches every 20 ms that decode ``demand`` seconds of speech a second, as fast as the part
    can. Returns the parts chosen, each once."""
    seen: list[int] = []
    while now < until:
        size = chosen.choose(now)
        if seen[-1:] != [size]:
            seen.append(size)
        rate = PER_MULTIPROCESSOR * (size or DEVICE)
        speech = 0.02 * min(demand, rate)
        chosen.note(Done(now, now + speech / rate, speech, slack, full=True))
        now += 0.02
    return seen


def test_it_begins_with_the_largest_part() -> None:
    chosen = Splits(SIZES, DEVICE, 0.0)
    assert (chosen.size, chosen.switches) == (WHOLE, 0)
    assert chosen.choose(0.0) == WHOLE


def test_without_load_it_goes_down_one_size_at_a_time() -> None:
    chosen = Splits(SIZES, DEVICE, 0.0)
    seen = {now: chosen.choose(float(now)) for now in range(30)}
    assert [seen[now] for now in (4, 5, 9, 10, 15, 20, 29)] == [WHOLE, 64, 64, 48, 32, 24, 24]
    assert chosen.switches == 4


def test_load_within_the_hysteresis_changes_nothing() -> None:
    """768 a second on 24: between 60 and 85 % the part stays, from either side."""
    for demand in (470.0, 640.0):
        chosen = Splits((24, 32), DEVICE, 0.0)
        chosen._take(0, 0.0)
        assert at_work(chosen, demand, 20.0, now=0.0) == [24]
        chosen._take(1, 20.0)
        assert at_work(chosen, demand, 40.0, now=20.0) == [32]


def test_too_much_load_takes_the_part_that_has_room_at_once() -> None:
    """The smallest with at most 70 %: of 900 a second 48 and not 32."""
    chosen = Splits(SIZES, DEVICE, 0.0)
    chosen._take(1, 0.0)
    assert at_work(chosen, 900.0, 0.25, now=0.0) == [32]  # has not settled
    assert at_work(chosen, 900.0, 5.0, now=0.26) == [48]


def test_load_beyond_a_part_is_seen_once_the_next_one_takes_it() -> None:
    """On 24, 1,350 a second look like 768; within a second all of it has its room."""
    chosen = Splits(SIZES, DEVICE, 0.0)
    chosen._take(0, 0.0)
    assert at_work(chosen, 1350.0, 1.0, now=0.0) == [24, 48, 64]


def test_more_than_any_part_has_room_for_takes_the_largest() -> None:
    chosen = Splits((24, 32), DEVICE, 0.0)
    chosen._take(0, 0.0)
    assert at_work(chosen, 5000.0, 3.0, now=0.0) == [24, 32]
    assert chosen.choose(3.0) == 32  # there is none that is larger


@pytest.mark.parametrize(
    ("slack", "busy", "grows"),
    [(0.2, 0.7, True), (0.2, 0.5, False), (0.3, 0.7, False), (None, 0.7, False)],
    ids=["short", "not the lane's fault", "enough", "no deadlines"],
)
def test_slack_that_runs_out_is_heeded_where_the_lane_is_what_is_slow(
    slack: float | None, busy: float, grows: bool
) -> None:
    """Whatever the part is believed to yield: dispatches are small here."""
    chosen = Splits((24, 48), DEVICE, 0.0)
    chosen._take(0, 0.0)
    for turn in range(20):
        begin = 0.05 * turn
        chosen.note(Done(begin, begin + 0.05 * busy, 1.0, slack, full=False))
    assert chosen.choose(1.0) == (48 if grows else 24)


@pytest.mark.parametrize(("slack", "stays"), [(0.3, True), (0.5, False), (None, False)])
def test_a_smaller_part_only_follows_while_slack_is_ample(slack: float | None, stays: bool) -> None:
    chosen = Splits((24, 48), DEVICE, 0.0)
    for turn in range(400):
        begin = 0.02 * turn
        chosen.choose(begin)
        chosen.note(Done(begin, begin + 0.015, 2.0, slack, full=False))
    assert chosen.size == (48 if stays else 24)


def test_one_busy_moment_begins_the_stay_anew() -> None:
    chosen = Splits((24, 48), DEVICE, 0.0)
    at_work(chosen, 100.0, 4.0, now=0.0)
    at_work(chosen, 700.0, 5.0, now=4.0)
    assert at_work(chosen, 100.0, 10.0, now=5.0) == [48]
    assert at_work(chosen, 100.0, 12.0, now=10.0) == [48, 24]


def test_who_comes_back_soon_waits_longer_the_next_time() -> None:
    """Each return within twice the stay doubles it, up to the longest; a late one forgets that."""
    chosen = Splits((24, 48), DEVICE, 0.0, Rules(longest=15.0))
    stays, now = [], 0.0
    for _ in range(4):
        began = now
        while chosen.choose(now) == 48:
            now += 0.05
        stays.append(now - began)
        at_work(chosen, 900.0, now + 2.0, now=now)
        now += 2.0
    assert stays == pytest.approx([5.0, 10.0, 15.0, 15.0], abs=1.2)
    while chosen.choose(now) == 48:
        now += 0.05
    at_work(chosen, 100.0, now + 60.0, now=now)
    at_work(chosen, 900.0, now + 62.0, now=now + 60.0)
    assert chosen._stay == Rules().stay


def test_a_window_counts_what_ended_in_it() -> None:
    window = Window(1.0, 0.0)
    assert window.load(0.5) == Load(0.0, 0.0, None)
    window.add(Done(0.0, 0.1, 2.0, None, full=False))
    assert window.load(0.0) == Load(0.0, 0.0, None)
    assert window.load(0.5) == Load(4.0, 0.2, None)
    window.add(Done(0.6, 0.9, 3.0, 0.5, full=False))
    window.add(Done(0.9, 1.0, 1.0, 1.5, full=False))
    assert window.load(1.05) == pytest.approx(Load(6.0, 0.5, 1.0))
    assert window.load(1.2) == pytest.approx(Load(4.0, 0.4, 1.0))
    window.restart(2.0)
    assert window.load(2.5) == Load(0.0, 0.0, None)
    window.add(Done(2.0, 3.5, 1.0, None, full=False))
    assert window.load(3.5).busy == 1.0  # reaches back beyond the window


def test_a_window_holds_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is shorter, and its figures are right all the same."""
    monkeypatch.setattr(splits, "MOST_KEPT", 10)
    window = Window(1.0, 0.0)
    for turn in range(40):
        window.add(Done(0.01 * turn, 0.01 * turn + 0.005, 0.02, None, full=False))
    assert len(window._kept) == 10
    load = window.load(0.395)
    assert (load.demand, load.busy) == pytest.approx((2.0, 0.5), rel=0.1)


def test_yields_are_by_size_until_seen() -> None:
    yields = Yields((24, 48, WHOLE), DEVICE)
    assert yields.of(24) == 768.0
    assert yields.of(WHOLE) == 32.0 * 132
    yields.note(48, Done(0.0, 1.0, 10.0, None, full=False))  # a small batch shows nothing
    yields.note(48, Done(1.0, 1.0, 10.0, None, full=True))
    assert yields.of(48) == 1536.0
    for _ in range(200):
        yields.note(48, Done(0.0, 1.0, 960.0, None, full=True))
    assert yields.of(48) == pytest.approx(960.0)
    assert yields.of(24) == pytest.approx(480.0, rel=0.01)  # in proportion to what was seen
    for _ in range(200):
        yields.note(WHOLE, Done(0.0, 1.0, 1600.0, None, full=True))
    assert yields.of(WHOLE) == pytest.approx(1600.0)
    assert yields.of(24) == pytest.approx(480.0, rel=0.01)  # it shares with the other lanes


def test_a_crowd_counts_as_soon_as_it_is_there() -> None:
    """Before any of it has been decoded; and a part is kept for those that are silent for now."""
    chosen = Splits(SIZES, DEVICE, 0.0)
    chosen._take(0, 0.0)
    assert chosen.choose(1.0, streams=640) == 24
    assert chosen.choose(1.1, streams=700) == 32
    assert chosen.choose(1.2, streams=1200) == 32  # has not settled
    assert chosen.choose(1.4, streams=1200) == 64
    assert {chosen.choose(1.4 + turn, streams=1200) for turn in range(20)} == {64}
    assert chosen.choose(22.0, streams=300) == 64
    assert chosen.choose(27.1, streams=300) == 48


def test_mean_slack_is_of_those_that_have_one() -> None:
    assert mean_slack([None, None]) is None
    assert mean_slack([0.5, None, 1.5]) == 1.0


# -- over time ------------------------------------------------------------------------------------


@dataclass
class Machine:
    """A background lane that decodes chunks of 0.64 s in batches of up to 64, which come with
    ``slack`` seconds to spare; a multiprocessor yields ``each`` seconds of speech a second, and all
    of the device, which others use too, as much as ``whole`` of them."""

    demand: Callable[[float], float]
    each: float = PER_MULTIPROCESSOR
    slack: float = 0.6
    whole: int = DEVICE
    late: int = 0
    decoded: int = 0
    time_on: dict[int, float] = field(default_factory=dict)

    def run(
        self, choose: Callable[[float], int], note: Callable[[Done], None], until: float
    ) -> None:
        draw, queue = random.Random(7), deque[float]()
        now, coming = 0.0, 0.0
        while now < until:
            while coming <= now:
                queue.append(coming)
                coming += draw.expovariate(self.demand(coming) / 0.64)
            if not queue:
                now = coming
                continue
            size = choose(now)
            batch = [queue.popleft() for _ in range(min(64, len(queue)))]
            speech = 0.64 * len(batch)
            end = now + LAUNCH + speech / (self.each * (size or self.whole))
            slack = sum(self.slack - (now - at) for at in batch) / len(batch)
            note(Done(now, end, speech, slack, full=len(batch) >= 32))
            self.late += sum(end - at > self.slack for at in batch)
            self.decoded += len(batch)
            self.time_on[size] = self.time_on.get(size, 0.0) + end - now
            now = end


def day(now: float) -> float:
    """Seconds of speech a second: a night, a rush, a plateau, a surge, a night."""
    if now < 40:
        return 200.0
    if now < 50:
        return 200.0 + 90.0 * (now - 40)
    return 1100.0 if now < 90 else 2600.0 if now < 110 else 300.0


def test_over_a_day_nobody_is_late_and_the_part_follows_the_load() -> None:
    chosen, machine, seen = Splits(SIZES, DEVICE, 0.0), Machine(day), {}

    def choose(now: float) -> int:
        seen[math.floor(now)] = size = chosen.choose(now)
        return size

    machine.run(choose, chosen.note, 170.0)
    assert machine.decoded > 120_000 / 0.64
    assert machine.late == 0
    assert seen[39] == 24
    assert {seen[now] for now in range(75, 90)} == {64}
    assert seen[100] == WHOLE
    assert seen[169] == 24
    assert chosen.switches <= 16


def test_over_the_same_day_one_small_part_is_late() -> None:
    """What the choice is for, and that the simulation can tell."""
    machine = Machine(day)
    machine.run(lambda _: 24, lambda _: None, 60.0)
    assert machine.late > 10_000


def test_parts_that_yield_less_than_thought_are_found_out() -> None:
    """Half of it: the first estimate would keep 24 for 500 a second, which 24 cannot do."""
    chosen = Splits(SIZES, DEVICE, 0.0)
    machine = Machine(lambda _: 500.0, each=PER_MULTIPROCESSOR / 2)
    machine.run(chosen.choose, chosen.note, 120.0)
    assert machine.late <= 0.002 * machine.decoded
    assert chosen.size > 24 or chosen.size == WHOLE
    assert chosen.switches <= 12


def test_a_device_that_the_lanes_share_yields_less_than_a_part_and_is_left() -> None:
    """1,600 a second on all of it, beside the LM lane: 80 multiprocessors of its own are better."""
    chosen = Splits((24, 80, WHOLE), DEVICE, 0.0)
    machine = Machine(lambda _: 1200.0, whole=50)
    machine.run(chosen.choose, chosen.note, 30.0)
    assert (chosen.size, chosen.switches, machine.late) == (80, 1, 0)


def test_load_that_swings_does_not_make_it_swing() -> None:
    """Between 300 and 800 every two seconds: the part for 800 is kept."""
    chosen = Splits(SIZES, DEVICE, 0.0)
    machine = Machine(lambda now: 300.0 if int(now / 2) % 2 else 800.0)
    machine.run(chosen.choose, chosen.note, 120.0)
    assert machine.late == 0
    assert chosen.switches <= 6


def test_a_part_on_the_edge_is_left_ever_more_seldom() -> None:
    """A load that rises whenever the part has become smaller."""
    chosen = Splits((24, 32), DEVICE, 0.0)
    machine = Machine(lambda _: 700.0 if chosen.size == 24 else 440.0)
    machine.run(chosen.choose, chosen.note, 300.0)
    assert chosen.switches <= 16
    assert machine.late == 0
