"""What the server lacks after a dropped socket is sent again; what ages is not."""

from hypothesis import given
from hypothesis import strategies as st
from playhead.client.backlog import Backlog
from playhead.engine.types import ListenerState
from playhead.gateway.messages import Ack, Cancel, ClientMessage, End, PlaybackReport, Start, Text

REPORT = PlaybackReport(
    epoch=1,
    received=0,
    consumed=0,
    heard=0,
    buffered=0,
    state=ListenerState.PREBUFFER,
    time=0.0,
)


def drain(backlog: Backlog) -> list[ClientMessage]:
    taken = []
    while backlog:
        taken.append(backlog.take())
    return taken


def filled(*messages: ClientMessage) -> Backlog:
    backlog = Backlog()
    for message in messages:
        backlog.put(message)
    return backlog


def test_resends_what_was_lost_ahead_of_what_is_new() -> None:
    backlog = filled(Start(id="a"), Text("1"), REPORT, Text("2"))
    drain(backlog)
    backlog.put(Text("3"))
    backlog.put(REPORT)
    backlog.resume(2)
    assert drain(backlog) == [Text("2"), Text("3")]
    backlog.resume(3)
    assert drain(backlog) == [Text("3")]


def test_reports_count_though_they_are_not_repeated() -> None:
    backlog = filled(REPORT, Ack(1), Text("1"), Text("2"))
    drain(backlog)
    backlog.resume(3)
    assert drain(backlog) == [Text("2")]


def test_confirmed_messages_are_forgotten() -> None:
    backlog = filled(Start(id="a"), Text("1"), End(), Start(id="b"), Text("2"))
    drain(backlog)
    backlog.confirm("b")
    backlog.confirm("a")
    backlog.confirm("c")
    backlog.resume(4)
    assert drain(backlog) == [Text("2")]


@given(st.lists(st.sampled_from([REPORT, Text("x"), Cancel()])), st.data())
def test_the_server_gets_each_message_once(
    messages: list[ClientMessage], data: st.DataObject
) -> None:
    """Whatever part of what was sent arrives before each drop."""
    backlog = Backlog()
    arrived: list[ClientMessage] = []
    for message in messages:
        backlog.put(message)
        if data.draw(st.booleans()):
            sent = drain(backlog)
            arrived += sent[: data.draw(st.integers(0, len(sent)))]
            backlog.resume(len(arrived))
    arrived += drain(backlog)
    kept = [m for m in arrived if m is not REPORT]
    assert kept == [m for m in messages if m is not REPORT]
