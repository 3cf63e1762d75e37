"""The picture of the engine that others read."""

import pytest
from doubles import Rig, machine, report, request
from playhead.engine.capacity import KNOWN
from playhead.engine.lead import LeadLimits
from playhead.engine.meters import BATCH_BOUNDS
from playhead.engine.policy import PolicyConfig
from playhead.engine.stats import LaneStats, snapshot
from playhead.engine.types import Finish, Lane


def test_an_idle_engine() -> None:
    stats = snapshot(Rig(machine(), PolicyConfig(max_live=5)).scheduler, 7.0)
    assert (stats.at, stats.live, stats.max_live, stats.utilisation) == (7.0, 0, 5, 0.0)
    assert stats.finished == {}
    assert set(stats.lanes) == set(Lane)
    assert stats.lanes[Lane.LM] == LaneStats(
        0, 0, 0.0, 0, 0, pytest.approx(0.02), (0,) * (len(BATCH_BOUNDS) + 1), 2
    )


def test_a_busy_engine() -> None:
    one = Rig(machine(workers=2), PolicyConfig(max_live=3))
    for number in (1, 2, 3):
        one.say(number, "abcd")
    assert one.submit(request(4)) is not None
    one.plan()
    stats = snapshot(one.scheduler, one.now)
    assert (stats.live, stats.refused) == (3, 1)
    assert (stats.lanes[Lane.LM].running, stats.lanes[Lane.LM].waiting) == (2, 1)
    one.finish(one.running[0], service=0.25)
    one.scheduler.cancel(3, one.now)
    one.scheduler.report(report(2, 10**6, 0), one.now)
    one.scheduler.cancel(2, one.now)
    stats = snapshot(one.scheduler, one.now)
    lm = stats.lanes[Lane.LM]
    assert (lm.running, lm.dispatches, lm.items, lm.busy_seconds) == (1, 1, 1, 0.25)
    assert lm.workers == 2
    assert lm.sojourn_p95 == 0.25
    assert stats.finished == {Finish.CANCELLED: 2}
    assert stats.reports_invalid == 1
    assert (stats.reports, stats.reports_stale, stats.reports_clamped) == (0, 0, 0)


def test_reports_promotions_and_belief_errors_are_passed_on() -> None:
    one = Rig(machine(), PolicyConfig(lead=LeadLimits(fixed=99.0)))
    one.say(1, "a" * 20)
    for _ in range(3):
        for work in one.plan():
            one.finish(work)
    samples = one.heard[1].samples
    one.scheduler.report(report(1, samples, samples), one.now + samples / 2000)
    one.scheduler.tally.promoted = 4
    stats = snapshot(one.scheduler, one.now)
    assert (stats.reports, stats.promoted) == (1, 4)
    assert stats.belief_error == pytest.approx(samples / 2000)
    assert (sum(stats.belief_errors), stats.parked, stats.held) == (1, 0, 0)


def test_utilisation_is_what_the_live_ones_take_of_all_workers() -> None:
    one = Rig(machine(workers=2), PolicyConfig())
    one.say(1, "abcd")
    one.say(2, "abcd")
    for _ in range(round(KNOWN) + 1):
        one.scheduler.capacity.note(Lane.LM, 0.1, 1, 1.0)
        one.scheduler.capacity.note(Lane.BACKGROUND, 0.3, 1, 1.0)
    assert snapshot(one.scheduler, one.now).utilisation == pytest.approx(0.4)
