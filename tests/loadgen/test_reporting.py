"""What virtual clients say: when, and how true it is."""

import pytest
from playhead.engine.types import ListenerState as State
from playhead.loadgen.habits import Habits, Reports
from playhead.loadgen.listener import Listener
from playhead.loadgen.reporting import LATE, Link, Reporter

RATE = 1_000
LINK = Link(seq=7, echo=123.0, echo_at=10.0)


def pair(style: Reports) -> tuple[Listener, Reporter]:
    listener = Listener(Habits(), RATE, 10.0)
    return listener, Reporter(style, 4, listener, 10.0)


def test_reports_every_change_and_every_quarter_of_a_second() -> None:
    listener, reporter = pair(Reports.ON)
    assert reporter.due() == 10.25
    assert reporter.reports(LINK, 10.1) == []
    listener.arrive(400, False, 10.1)
    (first,) = reporter.reports(LINK, 10.1)
    assert (first.state, first.received, first.consumed) == (State.PLAYING, 400, 0)
    assert reporter.due() == pytest.approx(10.35)
    (second,) = reporter.reports(LINK, 10.35)
    assert (second.consumed, second.buffered, second.epoch) == (250, 150, 4)
    assert reporter.due() == pytest.approx(10.5)
    (dry,) = reporter.reports(LINK, 10.5)
    assert (dry.state, dry.underruns) == (State.STALLED, 1)


def test_stamps_measure_the_network() -> None:
    listener, reporter = pair(Reports.ON)
    listener.arrive(100, False, 10.2)
    (report,) = reporter.reports(LINK, 10.2)
    assert (report.seq, report.echo, report.time) == (7, 123.0, pytest.approx(10_200))
    assert report.hold == pytest.approx(200)
    (later,) = reporter.reports(Link(), 10.5)
    assert (later.seq, later.echo, later.hold) == (None, None, None)


def test_a_silent_client_only_plays() -> None:
    listener, reporter = pair(Reports.OFF)
    listener.arrive(400, False, 10.1)
    assert reporter.due() == pytest.approx(10.5)
    assert reporter.reports(LINK, 12.0) == []
    assert listener.state is State.STALLED


def test_a_late_client_tells_old_news() -> None:
    listener, reporter = pair(Reports.LATE)
    listener.arrive(1_000, False, 10.1)
    assert reporter.reports(LINK, 10.1) == []
    assert reporter.reports(LINK, 10.35) == []
    assert reporter.due() == pytest.approx(10.1 + LATE)
    (report,) = reporter.reports(LINK, 10.5)
    assert (report.time, report.consumed) == (pytest.approx(10_100), 0)


@pytest.mark.parametrize(
    ("style", "consumed", "state"),
    [(Reports.EMPTY, 400, State.STALLED), (Reports.FULL, 0, State.PLAYING)],
)
def test_a_liar_lies_until_it_has_played_all(style: Reports, consumed: int, state: State) -> None:
    listener, reporter = pair(style)
    (idle,) = reporter.reports(LINK, 10.25)
    assert (idle.received, idle.state) == (0, State.IDLE)
    listener.arrive(400, True, 10.3)
    (lie,) = reporter.reports(LINK, 10.4)
    assert (lie.consumed, lie.state) == (consumed, state)
    assert lie.received == lie.consumed + lie.buffered
    (end,) = reporter.reports(LINK, 10.7)
    assert (end.consumed, end.state) == (400, State.DRAINED)
