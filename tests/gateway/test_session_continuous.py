"""Sessions whose listener hears one stream: the next utterance is made while the last plays."""

from dataclasses import replace

import session_kit
from playhead.engine.types import Finish, Finished, ListenerState, Source
from playhead.gateway import messages as m
from playhead.gateway.effects import CancelUtterance, ForwardReport, Hold, Submit
from playhead.gateway.session import Session
from session_kit import RATE, Talk, of, sent, words

SECOND = RATE


def stream(**hello: object) -> Talk:
    talk = Talk(greet=False)
    facts = replace(session_kit.facts(), continuous=True)
    talk.session = Session(facts, session="s1", token="t1", client="carol", now=0.0)
    talk.say(m.Hello(**{"reports": False, "start_threshold": 0.0, **hello}))  # type: ignore[arg-type]
    return talk


def two(talk: Talk) -> tuple[int, Submit]:
    """One second of the first utterance, complete at 0 s; the second, as it is submitted."""
    first = talk.utter("one")
    assert talk.utter("two") == 0, "the engine is still at the first"
    talk.total = 0
    talk.audio(first, SECOND, placed=words(("one", 0, 0)))
    (submitted,) = of(Submit, talk.complete(first))
    talk.total = 0
    return first, submitted


def test_the_next_is_submitted_when_the_last_has_been_made() -> None:
    talk = stream()
    _, second = two(talk)
    assert second.request.ahead == 1.0


def test_what_was_played_meanwhile_is_not_ahead() -> None:
    talk = stream()
    first = talk.utter("one")
    talk.total = 0
    talk.audio(first, SECOND)
    talk.complete(first)
    (later,) = of(Submit, talk.say(m.Text("two"), 0.75))
    assert later.request.ahead == 0.25
    talk.session.handle_timer(1.5)
    assert of(Submit, talk.say(m.Text("x"), 3.0)) == []


def test_after_the_last_was_played_nothing_is_ahead() -> None:
    talk = stream()
    first = talk.utter("one")
    talk.total = 0
    talk.audio(first, SECOND)
    talk.complete(first)
    (later,) = of(Submit, talk.say(m.Text("two"), 1.25))
    assert later.request.ahead == 0.0


def test_an_ordinary_session_waits_for_the_listener() -> None:
    talk = Talk(reports=False, start_threshold=0.0)
    first = talk.utter("one")
    talk.utter("two")
    talk.total = 0
    talk.audio(first, SECOND)
    assert of(Submit, talk.complete(first)) == []
    assert of(Submit, talk.session.handle_timer(1.5))


def test_both_are_cut_where_the_listener_is() -> None:
    talk = stream()
    first, second = two(talk)
    talk.audio(second.request.utterance, SECOND, placed=words(("two", 0, 0)))
    effects = talk.say(m.Cancel(), 0.5)
    told = [message for message in sent(effects) if isinstance(message, m.Cancelled)]
    assert [(t.epoch, t.heard) for t in told] == [(1, SECOND // 2), (2, 0)]
    assert told[1].unheard_text == "two"
    assert [c.utterance for c in of(CancelUtterance, effects)] == [first, second.request.utterance]


def test_the_second_is_heard_once_the_first_has_been() -> None:
    talk = stream()
    _, second = two(talk)
    talk.audio(second.request.utterance, SECOND, placed=words(("two", 0, 0)))
    told = [t for t in sent(talk.say(m.Cancel(), 1.25)) if isinstance(t, m.Cancelled)]
    assert [(t.epoch, t.heard) for t in told] == [(1, SECOND), (2, SECOND // 4)]
    assert told[1].heard_text == "two"


def test_nothing_is_heard_behind_what_the_client_has_not_heard() -> None:
    talk = stream()
    _, second = two(talk)
    talk.audio(second.request.utterance, SECOND)
    told = [t for t in sent(talk.say(m.Cancel(epoch=1, heard=100), 1.25))]
    assert [(t.epoch, t.heard) for t in told if isinstance(t, m.Cancelled)] == [(1, 100), (2, 0)]


def test_reports_of_both_are_taken() -> None:
    talk = stream(reports=True)
    first, second = two(talk)
    number = second.request.utterance
    talk.audio(number, SECOND)
    (forwarded,) = of(ForwardReport, talk.report(1, SECOND, 100, 0.1))
    assert forwarded.report.utterance == first
    (forwarded,) = of(ForwardReport, talk.report(2, SECOND, 0, 0.1, source=Source.MARK))
    assert (forwarded.report.utterance, forwarded.report.source) == (number, Source.MARK)


def test_a_lost_socket_holds_both() -> None:
    talk = stream()
    first, second = two(talk)
    held = of(Hold, talk.session.detach(0.1))
    assert [(hold.utterance, hold.state) for hold in held] == [
        (first, ListenerState.SUSPENDED),
        (second.request.utterance, ListenerState.SUSPENDED),
    ]


def test_what_follows_one_that_stands_still_is_not_ahead_of_it() -> None:
    talk = stream()
    first = talk.utter("one")
    talk.utter("two")
    talk.total = 0
    talk.audio(first, SECOND)
    talk.say(m.Pause())
    (second,) = of(Submit, talk.complete(first))
    assert second.request.ahead == 0.0


def test_the_first_is_done_before_the_second() -> None:
    talk = stream()
    _, second = two(talk)
    number = second.request.utterance
    talk.audio(number, SECOND)
    talk.complete(number)
    ends = [(at, sent(talk.session.handle_timer(at))) for at in (1.4, 1.5, 2.4, 2.5)]
    done = [(at, m_.epoch) for at, told in ends for m_ in told if isinstance(m_, m.Done)]
    assert done == [(1.5, 1), (2.5, 2)]


def test_a_failure_of_the_second_leaves_the_first() -> None:
    talk = stream()
    _, second = two(talk)
    fault = Finished(second.request.utterance, Finish.FAILED, 0, "engine_error", "x")
    told = sent(talk.session.engine_event(fault, 0.2))
    assert [type(t) for t in told] == [m.Failed]
    assert [type(t) for t in sent(talk.session.handle_timer(1.5))] == [m.Done]


def test_a_socket_does_not_say_that_all_was_heard() -> None:
    talk = stream()
    first = talk.utter("one")
    talk.total = 0
    talk.audio(first, SECOND)
    talk.complete(first)
    talk.report(1, SECOND, SECOND, 0.9, ListenerState.DRAINED, source=Source.SOCKET)
    assert sent(talk.session.handle_timer(1.3)) == []
    (done,) = sent(talk.session.handle_timer(1.4))
    assert isinstance(done, m.Done)
    assert done.estimated


def test_a_position_from_a_socket_is_an_estimate() -> None:
    talk = stream()
    first = talk.utter("one")
    talk.total = 0
    talk.audio(first, SECOND)
    talk.report(1, SECOND, 100, 0.1, source=Source.SOCKET)
    (told,) = sent(talk.say(m.Cancel(), 0.1))
    assert isinstance(told, m.Cancelled)
    assert (told.heard, told.estimated) == (100, True)


def test_observed_sessions_expect_reports() -> None:
    talk = Talk(greet=False)
    facts = replace(session_kit.facts(), observed=True)
    talk.session = Session(facts, session="s1", token="t1", client="carol", now=0.0)
    talk.say(m.Hello(reports=False))
    (submitted,) = of(Submit, talk.say(m.Text("x")))
    assert submitted.request.reports
