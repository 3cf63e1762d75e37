"""How far loading has come."""

from playhead.engine.progress import Count, Progress, Stage, quiet


def test_the_latest_stage_is_remembered() -> None:
    progress = Progress()
    assert progress.stage == Stage("starting", 0.0)
    progress("reading weights", 0.25)
    assert progress.stage == Stage("reading weights", 0.25)


def test_a_share_is_one() -> None:
    progress = Progress()
    progress("reading weights", 1.5)
    assert progress.stage.done == 1.0
    progress("reading weights", -0.5)
    assert progress.stage.done == 0.0


def test_pieces_are_counted() -> None:
    progress = Progress()
    count = Count(progress, "capturing graphs", 4)
    assert progress.stage == Stage("capturing graphs", 0.0)
    count.add()
    assert progress.stage.done == 0.25
    count.add(2)
    assert progress.stage.done == 0.75


def test_nothing_to_do_is_done() -> None:
    progress = Progress()
    Count(progress, "learning voices", 0).add()
    assert progress.stage == Stage("learning voices", 1.0)
    quiet("nobody waits", 0.5)
