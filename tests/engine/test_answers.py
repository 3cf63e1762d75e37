"""What a model says later."""

from playhead.engine.answers import Answer, describe, unasked


def test_a_fault_is_told_with_its_kind() -> None:
    assert describe(ZeroDivisionError("why")) == "ZeroDivisionError: why"


def test_a_model_in_this_process_has_nothing_to_say_later() -> None:
    heard: list[object] = []
    unasked(heard.append)
    assert heard == []
    assert Answer(1) == Answer(1, steppable=False, code="", message="")
