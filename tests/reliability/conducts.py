"""How clients behave: what they tell of their players, when they come and go.

A strategy is given the truth and says what it likes; a conduct adds sessions, cuts and churn.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from playhead.engine.sim_listener import Listener
from playhead.engine.types import ListenerState, Report

HZ = 24_000


@dataclass
class Seat:
    """One utterance: the true player, and what its client makes of it. Most texts have no end."""

    utterance: int
    client: str
    account: str
    listener: Listener
    conduct: "Conduct"
    sat: float = 0.0  # when it began
    told: int = 0
    last: Report | None = None
    state: ListenerState = ListenerState.IDLE
    gone: bool = False
    cut: bool = False
    kept: list[float] = field(default_factory=list)  # sent while it was cut off
    unsaid: float = math.inf  # frames of its text that are not made
    unsent: float = math.inf  # and not sent

    def truth(self, now: float) -> Report:
        """An honest report."""
        player = self.listener
        received, consumed = round(player.received * HZ), round(player.consumed * HZ)
        return Report(
            self.utterance,
            received,
            consumed,
            consumed,
            received - consumed,
            0,
            player.state,
            player.underruns,
            player.starved,
            now + 1000.0,
        )


Strategy = Callable[[Seat, Report, float], Report | None]
"""What a client says, given its seat, the true report and the time."""


def honest(seat: Seat, true: Report, now: float) -> Report | None:
    return true


def empty(seat: Seat, true: Report, now: float) -> Report | None:
    """Everything is played, and it starves."""
    return replace(
        true,
        consumed=true.received,
        heard=true.received,
        buffered=0,
        state=ListenerState.STALLED,
        underruns=seat.told,
        starved=now,
    )


def full(seat: Seat, true: Report, now: float) -> Report | None:
    """Nothing is played."""
    return replace(true, consumed=0, heard=0, buffered=true.received)


def flip(seat: Seat, true: Report, now: float) -> Report | None:
    """Half a second empty, half a second full."""
    return (empty if now % 1.0 < 0.5 else full)(seat, true, now)


def negative(seat: Seat, true: Report, now: float) -> Report | None:
    return replace(true, consumed=true.received + HZ, buffered=-HZ, state=ListenerState.STALLED)


def not_a_number(seat: Seat, true: Report, now: float) -> Report | None:
    return replace(empty(seat, true, now) or true, starved=math.nan)


def infinite(seat: Seat, true: Report, now: float) -> Report | None:
    return replace(empty(seat, true, now) or true, client_time=math.inf)


def backwards(seat: Seat, true: Report, now: float) -> Report | None:
    """Its counters run down."""
    less = max(0, true.received - seat.told * HZ // 10)
    return replace(true, received=less, consumed=less, buffered=0, state=ListenerState.STALLED)


def replayed(seat: Seat, true: Report, now: float) -> Report | None:
    """The first report of a starving moment, again and again, with a fresh time."""
    seat.last = seat.last or empty(seat, true, now)
    return replace(seat.last or true, client_time=true.client_time)


def double(seat: Seat, true: Report, now: float) -> Report | None:
    """Plays twice as fast as it does."""
    played = min(true.received, 2 * true.consumed)
    return replace(true, consumed=played, heard=played, buffered=true.received - played)


def pause_then_empty(seat: Seat, true: Report, now: float) -> Report | None:
    """Two seconds paused, two seconds starving."""
    if now % 4.0 < 2.0:
        return replace(true, state=ListenerState.PAUSED)
    return empty(seat, true, now)


def beyond(seat: Seat, true: Report, now: float) -> Report | None:
    """Has played what was never sent."""
    more = true.received + 2 * HZ
    return replace(true, received=more, consumed=more, buffered=0, state=ListenerState.STALLED)


def silent(seat: Seat, true: Report, now: float) -> Report | None:
    return None


@dataclass(frozen=True)
class Conduct:
    """How the one client behaves that is looked at."""

    tells: Strategy = honest
    sessions: int = 1  # at a time, all of one account
    cuts: float = math.inf  # seconds after which its network is gone for CUT, again and again
    churn: float = math.inf  # seconds after which it drops its session and opens another
    frames: float = math.inf  # of its text; when it has heard them, the next one comes


CONDUCTS = {
    "honest": Conduct(),
    "empty": Conduct(empty),
    "full": Conduct(full),
    "flip": Conduct(flip),
    "negative": Conduct(negative),
    "not a number": Conduct(not_a_number),
    "infinite": Conduct(infinite),
    "backwards": Conduct(backwards),
    "replayed": Conduct(replayed),
    "double speed": Conduct(double),
    "pause, then empty": Conduct(pause_then_empty),
    "beyond what was sent": Conduct(beyond),
    "silent": Conduct(silent),
    "reconnects": Conduct(churn=4.0),
    "reconnects, empty": Conduct(empty, churn=4.0),
    "reconnects fast": Conduct(churn=1.0),
    "reconnects faster": Conduct(churn=0.5),
    "at once": Conduct(churn=0.25),
    "ten sessions": Conduct(sessions=10),
    "is cut off, returns": Conduct(cuts=6.0),
    "newcomers, 1 s each": Conduct(frames=80),
    "newcomers, 4 s each": Conduct(frames=320),
}

STRATEGIES = (
    *("honest", "empty", "negative", "not a number", "infinite", "full", "flip", "backwards"),
    *("replayed", "double speed", "pause, then empty", "reconnects", "ten sessions"),
)
"""The thirteen by which a server is judged; what else there is here was thought of later."""

RETURNS = ("reconnects", "reconnects, empty", "reconnects fast", "reconnects faster", "at once")
"""A new session every four seconds, every second, and before the last can have paid."""

PLENTY = ("ten sessions", *RETURNS)
"""While there is enough for all, ten sessions hear ten texts, and one that returns starts anew."""

NEWCOMERS = ("newcomers, 1 s each", "newcomers, 4 s each")
"""Honest ones: each speaks once and is heard out, then another comes."""
