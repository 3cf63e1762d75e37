"""What an onlooker sees of lanes and beliefs."""

import pytest
from doubles import FRAME, HZ, Rig, machine, report, request
from playhead.engine.lead import LeadLimits
from playhead.engine.picture import picture
from playhead.engine.policy import PolicyConfig
from playhead.engine.types import Lane, ListenerState, Urgency


def test_lanes_show_who_runs_and_who_waits() -> None:
    one = Rig(machine(workers=2), PolicyConfig())
    for number in (1, 2, 3):
        one.say(number, "abcd")
    one.plan()
    seen = picture(one.scheduler, (), one.now)
    assert seen.running == {Lane.LM: ((1,), (2,)), Lane.URGENT: (), Lane.BACKGROUND: ()}
    assert seen.stats.lanes[Lane.LM].waiting == 1
    assert seen.stats.live == 3
    assert seen.beliefs == {}


def test_a_belief_is_what_the_scheduler_goes_by() -> None:
    one = Rig(machine(), PolicyConfig(lead=LeadLimits(fixed=9.0)))
    one.say(1, "a" * 20)
    for _ in range(2):
        for work in one.plan():
            one.finish(work)
    samples = one.heard[1].samples
    assert samples >= FRAME
    now = one.now + samples / 2 / HZ
    one.scheduler.report(report(1, samples, samples // 2), now)
    belief = picture(one.scheduler, (1, 7), now).beliefs[1]
    assert belief.depth == pytest.approx(samples / 2 / HZ, abs=0.001)
    assert belief.runway >= belief.depth
    assert (belief.lead, belief.frozen, belief.estimated) == (9.0, False, False)
    assert 0.0 < belief.margin < 1.0
    one.scheduler.hold(1, ListenerState.PAUSED, one.now)
    assert picture(one.scheduler, (1,), one.now).beliefs[1].frozen


def test_without_reports_it_is_an_estimate() -> None:
    one = Rig(machine(), PolicyConfig(Urgency.ESTIMATED))
    one.submit(request(1, reports=False))
    assert picture(one.scheduler, (1,), one.now).beliefs[1].estimated


def test_of_the_dead_nothing_is_believed() -> None:
    one = Rig(machine(), PolicyConfig())
    one.say(1, "abcd")
    one.plan()  # a lane works on it, so it is not released yet
    one.scheduler.cancel(1, one.now)
    assert picture(one.scheduler, (1,), one.now).beliefs == {}


def test_the_slack_is_that_of_the_listener_in_greatest_need_of_what_runs() -> None:
    one = Rig(machine(workers=2), PolicyConfig())
    for number in (1, 2):
        one.say(number, "abcd")
    one.scheduler.hold(2, ListenerState.PAUSED, one.now)
    one.plan()
    later = one.now + 0.5
    slack = picture(one.scheduler, (), later).slack
    assert slack[Lane.LM] is not None
    assert slack[Lane.LM] <= 0.0, "it waits for its first sound"
    assert (slack[Lane.URGENT], slack[Lane.BACKGROUND]) == (None, None)


def test_who_is_held_or_dead_cannot_run_dry() -> None:
    one = Rig(machine(workers=2), PolicyConfig())
    for number in (1, 2):
        one.say(number, "abcd")
    one.plan()
    one.scheduler.hold(1, ListenerState.PAUSED, one.now)
    one.scheduler.cancel(2, one.now)
    assert picture(one.scheduler, (), one.now).slack[Lane.LM] is None
