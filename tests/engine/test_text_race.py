"""Text that arrives between a step and its commit must not be forgotten."""

from doubles import Rig, request
from playhead.engine.types import Finish


def test_text_that_comes_while_a_step_is_on_its_way_back_is_spoken() -> None:
    rig = Rig()
    rig.submit(request(1))
    rig.text(1, "ab", flush=True)
    (dispatch,) = rig.plan()
    results = rig.runner.step(dispatch.steps)
    assert results[0].hungry
    rig.text(1, "", end=True)
    rig.running.remove(dispatch)
    rig.scheduler.commit_steps(dispatch, results, 0.01, rig.now)
    for _ in range(10):
        for work in [*rig.plan(), *rig.running]:
            if work in rig.running:
                rig.finish(work)
    finished = rig.heard[1].finished
    assert finished is not None
    assert finished.reason is Finish.COMPLETE
