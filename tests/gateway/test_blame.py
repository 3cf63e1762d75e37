"""Who is blamed for a stall."""

import itertools

import pytest
from playhead.engine.types import ListenerState, Report
from playhead.gateway.blame import CLAUSE, MAX_STALLS, Blame, Cause, Stall

RATE = 1000  # samples a second, so that positions read as milliseconds
WAY = 0.02


def heard(
    consumed: int,
    buffered: int = 0,
    *,
    state: str = "playing",
    underruns: int = 0,
    starved: float = 0.0,
    at: float = 0.0,
    discarded: int = 0,
) -> Report:
    return Report(
        7,
        consumed + buffered + discarded,
        consumed,
        consumed,
        buffered,
        discarded,
        ListenerState(state),
        underruns,
        starved,
        at,
    )


class Case:
    """One second of audio leaves at time 10 for a text of 50 characters, all spoken, ended."""

    def __init__(self, *, given: int = 50, spoken: int = 50, ended: bool = True) -> None:
        self.blame = Blame(RATE)
        self.blame.text(given, ended, 9.9)
        self.send(10.0, spoken)
        assert self.report(11.0, heard(980)) == []

    def send(
        self, now: float, spoken_to: int = 0, *, samples: int = 1000, kept: float = 0.0
    ) -> None:
        self.blame.sent(samples, spoken_to, kept, WAY, now)

    def report(self, now: float, report: Report) -> list[Stall]:
        return self.blame.report(report, WAY, now)

    def stall(self, now: float, starved: float, consumed: int = 1500) -> list[Stall]:
        """The listener has run dry once and plays again."""
        return self.report(now, heard(consumed, 500, underruns=1, starved=starved))


def test_nobody_is_blamed_while_nothing_runs_dry() -> None:
    case = Case()
    case.send(10.5)
    assert case.report(11.5, heard(1480, 520)) == []
    assert case.blame.over() == []


def test_audio_that_was_made_too_late_is_the_engines() -> None:
    case = Case()
    case.send(11.3)
    assert case.stall(11.8, 0.3) == [Stall(Cause.ENGINE, 0.3)]


def test_audio_that_was_made_in_time_and_kept_is_the_loops() -> None:
    case = Case()
    case.send(11.3, kept=0.25)
    assert case.stall(11.8, 0.3) == [Stall(Cause.LOOP, 0.3)]


def test_audio_that_left_in_time_is_the_networks() -> None:
    case = Case()
    case.send(10.5)
    assert case.stall(11.8, 0.3) == [Stall(Cause.NETWORK, 0.3)]


def test_audio_held_back_for_a_blocked_socket_is_the_networks() -> None:
    case = Case()
    case.blame.blocked()
    case.send(11.3)
    assert case.stall(11.8, 0.3) == [Stall(Cause.NETWORK, 0.3)]


def test_a_text_that_pauses_is_the_texts() -> None:
    case = Case(ended=False)
    case.blame.text(10, False, 11.2)
    case.send(11.3)
    assert case.stall(11.8, 0.3) == [Stall(Cause.TEXT, 0.3)]


@pytest.mark.parametrize(
    ("given", "ended", "text_at"), [(50 + CLAUSE, False, 11.2), (50, True, 11.2), (50, False, 10.9)]
)
def test_an_engine_that_had_text_cannot_say_that_it_had_none(
    given: int, ended: bool, text_at: float
) -> None:
    case = Case(given=given, ended=ended)
    case.blame.text(1, False, text_at)
    case.send(11.3)
    assert [stall.cause for stall in case.stall(11.8, 0.3)] == [Cause.ENGINE]


def test_a_program_that_stood_still_is_the_clients() -> None:
    case = Case()
    case.report(11.05, heard(990, at=11.03))
    case.send(10.5)
    report = heard(1500, 500, underruns=1, starved=0.3, at=12.1)
    assert case.report(12.2, report) == [Stall(Cause.CLIENT, 0.3)]


def test_a_dry_listener_that_holds_audio_is_the_clients() -> None:
    case = Case()
    case.send(10.5)
    dry = heard(1000, 600, state="stalled", underruns=1, starved=0.1, at=1.0)
    assert case.report(11.5, dry) == []
    assert case.report(11.7, heard(1100, 900, underruns=1, starved=0.4, at=1.2)) == [
        Stall(Cause.CLIENT, 0.4)
    ]


def test_lateness_counts_from_when_the_listener_ran_dry() -> None:
    case = Case()
    dry = heard(1000, state="stalled", underruns=1, starved=0.2, at=1.0)
    assert case.report(11.25, dry) == []
    case.send(11.3, kept=0.1)
    # Dry since 11.03 by its own count: 0.29 s late, of which the loop kept 0.1.
    assert case.stall(11.8, 0.3) == [Stall(Cause.ENGINE, 0.3)]


@pytest.mark.parametrize(("given", "cause"), [(50, Cause.TEXT), (51 + CLAUSE, Cause.ENGINE)])
def test_a_stall_that_nothing_ends(given: int, cause: Cause) -> None:
    case = Case(given=given, ended=False)
    case.report(11.4, heard(1000, state="stalled", underruns=1, starved=0.3))
    assert case.blame.over() == [Stall(cause, 0.3)]
    assert case.blame.over() == []


def test_a_blocked_socket_at_the_end() -> None:
    case = Case()
    case.blame.blocked()
    case.report(11.4, heard(1000, state="stalled", underruns=1, starved=0.3))
    assert case.blame.over() == [Stall(Cause.NETWORK, 0.3)]


def test_the_greater_lateness_decides() -> None:
    case = Case()
    case.send(11.1, samples=100, kept=0.12)
    case.send(11.5)
    assert [stall.cause for stall in case.stall(11.8, 0.4, 1400)] == [Cause.ENGINE]


def test_old_lateness_that_did_no_harm_is_forgotten() -> None:
    case = Case()
    case.send(11.1)
    assert case.report(11.6, heard(1500, 500)) == []
    case.send(11.7)
    assert case.report(12.5, heard(2400, 600)) == []
    assert [stall.cause for stall in case.stall(13.5, 0.1, 2800)] == [Cause.NETWORK]


def test_a_held_listener_needs_nothing() -> None:
    case = Case()
    case.report(11.0, heard(500, 500, state="paused"))
    case.send(14.0)
    case.report(20.0, heard(500, 1500))
    case.send(21.0)
    assert [stall.cause for stall in case.stall(22.0, 0.1)] == [Cause.NETWORK]


def test_several_stalls_share_their_seconds_and_counts_are_bounded() -> None:
    case = Case()
    case.send(11.3)
    case.report(11.4, heard(1000, state="stalled", underruns=2, starved=0.2))
    stalls = case.report(11.6, heard(1200, 800, underruns=4, starved=0.8))
    assert stalls == [Stall(Cause.ENGINE, pytest.approx(0.2))] * 4
    wild = case.report(11.7, heard(1300, 700, underruns=10**9, starved=0.8))
    assert len(wild) == MAX_STALLS


def test_reports_that_go_back_open_nothing() -> None:
    case = Case()
    for number, underruns in enumerate(itertools.chain([1], [0, 1])):
        case.report(11.1 + number, heard(990, underruns=underruns))
    assert case.blame.over() == []


def test_a_report_before_any_audio() -> None:
    blame = Blame(RATE)
    assert blame.report(heard(0, state="idle"), WAY, 5.0) == []
    blame.sent(1000, 5, 0.0, WAY, 9.0)
    assert blame.report(heard(1000, state="drained"), WAY, 11.0) == []
