"""What a model says later."""

from playhead.engine.answers import Answer, Hear, News, Plain, Relay, describe, unasked
from playhead.engine.types import RunnerDead, StepResult


def test_a_fault_is_told_with_its_kind() -> None:
    assert describe(ZeroDivisionError("why")) == "ZeroDivisionError: why"


def test_a_model_in_this_process_has_nothing_to_say_later() -> None:
    heard: list[object] = []
    unasked(heard.append)
    assert heard == []
    assert Answer(1) == Answer(1, steppable=False, code="", message="", end=False)


class Model:
    """Says what it is told to."""

    def follow(self, hear: Hear) -> None:
        self.say = hear


def test_news_go_to_whoever_listens_last() -> None:
    model, first, last = Model(), list[News](), list[News]()
    relay = Relay(model.follow)
    model.say([Answer(0)])
    relay.turn_to(first.append)
    model.say([Answer(1)])
    relay.turn_to(last.append)
    model.say([Answer(2)])
    assert (first, last) == ([[Answer(1)]], [[Answer(2)]])


def test_who_listens_late_is_told_of_the_end() -> None:
    model, first, last = Model(), list[News](), list[News]()
    relay, dead = Relay(model.follow), RunnerDead("it is gone")
    relay.turn_to(first.append)
    model.say(dead)
    relay.turn_to(last.append)
    assert first == last == [dead]


def test_a_plain_result_is_made_once() -> None:
    plain = Plain(2)
    assert plain[7] == StepResult(7, 2, boundary=False, hungry=False, ended=False)
    assert plain[7] is plain[7]
    assert list(plain) == [7]
