"""Synthetic listeners of the demo: what each of them sends, hears and suffers. Pure.

The same virtual listener, network and texts as the load generator's, so that a stall is counted
by a player that shares nothing with the engine's belief. Event times are exact: a tick that comes
late changes nothing of what the listeners hear.
"""

import heapq
import random
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from playhead.engine.types import ListenerState
from playhead.gateway.messages import (
    Ack,
    Audio,
    ClientMessage,
    Hello,
    Ready,
    ServerMessage,
)
from playhead.loadgen.habits import Habits, Reports
from playhead.loadgen.record import Record
from playhead.loadgen.reporting import Link
from playhead.loadgen.shaping import NETWORKS, Shaper, Weather
from playhead.loadgen.texts import CONVERSATION
from playhead.loadgen.turn import Turn

RATE: Final = 24_000
THRESHOLD: Final = 0.1
SHAKY_EVERY: Final = 4
"""Every so manyth listener has a network that stands still now and then."""
SENTENCES: Final = 3
PATIENCE: Final = 60.0
"""Seconds after which a listener gives an utterance up."""
MESSAGE_BYTES: Final = 200


@dataclass(slots=True)
class Tally:
    """What listeners of one kind went through. Seconds; ``ahead`` is audio held, summed over
    ``looks`` at a listener that was playing."""

    spoken: int = 0
    stalled: int = 0
    stalls: int = 0
    refused: int = 0
    failed: int = 0
    silence: float = 0.0
    longest: float = 0.0
    ahead: float = 0.0
    looks: int = 0

    def add(self, record: Record) -> None:
        """An utterance is over."""
        if record.fault == "overloaded":
            self.refused += 1
            return
        self.failed += bool(record.fault)
        self.spoken += 1
        self.stalled += bool(record.stalls)
        self.stalls += len(record.stalls)
        self.silence += sum(stall.length for stall in record.stalls)
        self.longest = max([self.longest, *(stall.length for stall in record.stalls)])

    def public(self) -> dict[str, Any]:
        """For a viewer; milliseconds."""
        return {
            "spoken": self.spoken,
            "stalled": self.stalled,
            "stalls": self.stalls,
            "refused": self.refused,
            "failed": self.failed,
            "silence": round(self.silence * 1000),
            "longest": round(self.longest * 1000),
            "ahead": round(self.ahead / self.looks * 1000) if self.looks else 0,
        }


class Member:
    """One listener: a session spoken to over a simulated network.

    ``deliver`` what the session sends, ``advance`` when ``due`` and hand over what comes back.
    """

    def __init__(self, number: int, reports: bool, tally: Tally, now: float) -> None:
        self.number = number
        self.lane = ""
        self.over = False
        self._tally = tally
        self._reports = reports
        self._rng = random.Random(f"member {number}")
        shaky = number % SHAKY_EVERY == SHAKY_EVERY - 1
        conditions = NETWORKS["shaky" if shaky else "home"]
        weather = Weather(conditions, random.Random(f"weather {number}"), now)
        self._up = Shaper(conditions, weather, self._rng)
        self._down = Shaper(conditions, weather, self._rng)
        self._order = count()
        self._coming: list[tuple[float, int, ServerMessage]] = []
        self._leaving: list[tuple[float, int, ClientMessage]] = []
        self._habits = Habits(THRESHOLD, reports=Reports.ON if reports else Reports.OFF)
        self._link = Link()
        self._turn: Turn | None = None
        self._begin_at: float | None = None
        self._origin = now
        self._send([Hello(start_threshold=1000 * THRESHOLD, reports=reports)], now)

    # ------------------------------------------------------------ in and out

    def deliver(self, message: ServerMessage, now: float) -> None:
        """The session sent something at ``now``."""
        size = MESSAGE_BYTES + (len(message.data) if isinstance(message, Audio) else 0)
        at = self._down.release(size, now)
        heapq.heappush(self._coming, (at, next(self._order), message))

    def lost(self) -> None:
        """The session was closed by the server."""
        self.over = True

    def due(self) -> float:
        """When :meth:`advance` has something to do."""
        times = [float("inf")]
        times += [queue[0][0] for queue in (self._coming, self._leaving) if queue]
        times += [self._begin_at] if self._begin_at is not None else []
        times += [self._turn.due()] if self._turn is not None else []
        return min(times)

    def advance(self, now: float, room: bool = True) -> list[ClientMessage]:
        """Everything up to ``now``; what reaches the session, in order. Without ``room`` no
        utterance is begun: the machine is for people first."""
        arrived: list[ClientMessage] = []
        while not self.over and (at := self.due()) <= now:
            if self._leaving and self._leaving[0][0] <= at:
                arrived.append(heapq.heappop(self._leaving)[2])
            elif self._coming and self._coming[0][0] <= at:
                self._hear(heapq.heappop(self._coming)[2], at)
            elif self._begin_at is not None and self._begin_at <= at:
                self._begin(at, room)
            else:
                self._tick(at)
        return arrived

    def _send(self, messages: list[ClientMessage], now: float) -> None:
        for message in messages:
            at = self._up.release(MESSAGE_BYTES, now)
            heapq.heappush(self._leaving, (at, next(self._order), message))

    # ------------------------------------------------------------ one utterance after the other

    def _hear(self, message: ServerMessage, at: float) -> None:
        if isinstance(message, Ready):
            self._link.interval = message.report_interval / 1000
            self._begin_at = at + self._rng.uniform(0.0, 2.0)
        if self._turn is None:
            return
        if isinstance(message, Audio):
            self.lane = message.lane.value
        size = MESSAGE_BYTES + (len(message.data) if isinstance(message, Audio) else 0)
        self._send(self._turn.receive(message, size, at), at)
        self._settle(at)

    def _begin(self, at: float, room: bool) -> None:
        self._begin_at = None if room else at + self._rng.uniform(0.2, 0.6)
        if room:
            self._speak(at)

    def _speak(self, at: float) -> None:
        text = " ".join(self._rng.sample(CONVERSATION, SENTENCES))
        record = Record(self.number, at - self._origin, text, sample_rate=RATE, codec="pcm_s16le")
        self._turn = Turn(
            record, self._habits, self._link, origin=self._origin, deadline=at + PATIENCE
        )
        self._send(self._turn.start(at), at)

    def _tick(self, at: float) -> None:
        assert self._turn is not None, "nothing else is due"
        self._send(self._turn.tick(at), at)
        self._settle(at)

    def _settle(self, at: float) -> None:
        turn = self._turn
        assert turn is not None
        if not turn.over:
            return
        self._tally.add(turn.record)
        if not self._reports and self._link.seq is not None:
            self._send([Ack(self._link.seq)], at)
        self._turn, self._begin_at = None, at + self._rng.uniform(0.3, 1.5)

    # ------------------------------------------------------------ for viewers

    def look(self) -> tuple[str, float]:
        """State and seconds of audio held, as of the last :meth:`advance`; counts the look."""
        if self._turn is None:
            return "idle", 0.0
        state, held = self._turn.listening
        if state is ListenerState.PLAYING:
            self._tally.ahead += held
            self._tally.looks += 1
        return state.value, held


class Crowd:
    """All of them, and the tallies of both kinds, which stay until the crowd is ended."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.reports = True
        self._tallies: dict[bool, Tally] = {}

    def start(self, listeners: int, reports: bool, now: float) -> list[Member]:
        """Replace the crowd by a new one of the same or the other kind."""
        self.reports = reports
        tally = self._tallies.setdefault(reports, Tally())
        self.members = [Member(number, reports, tally, now) for number in range(listeners)]
        return self.members

    def end(self) -> None:
        """Nobody is left, and what was counted is forgotten."""
        self.members = []
        self._tallies.clear()

    def due(self) -> float:
        """When some member has something to do."""
        return min((member.due() for member in self.members), default=float("inf"))

    def public(self) -> dict[str, Any]:
        """For viewers: each member as state, milliseconds held, and lane of its latest chunk."""
        looks = [(member, *member.look()) for member in self.members]
        states = Counter(state for _, state, _ in looks)
        return {
            "listeners": len(self.members),
            "reports": self.reports,
            "states": dict(states),
            "members": [[state, round(held * 1000), member.lane] for member, state, held in looks],
            "tallies": {
                "reported" if reports else "estimated": tally.public()
                for reports, tally in self._tallies.items()
            },
        }
