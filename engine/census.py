"""Who is being spoken to, counted so that one more costs about the same however many there are.

What changes at a known event (somebody comes, ends, is cut off) is kept as it happens. What only
time changes, which is how much each listener holds, needs a look at all of them: it is taken anew
when it is older than its own cost allows, and moved on by events in between. Pure.
"""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Final

from playhead.engine import places
from playhead.engine.admission import SAFE, SLACK, Load
from playhead.engine.capacity import Capacity
from playhead.engine.ledger import ServiceLedger
from playhead.engine.policy import PolicyConfig
from playhead.engine.stream import Stream
from playhead.engine.types import ListenerState

FRESH_EACH: Final = 40e-6
"""Seconds for which a look stays good, per stream that it looked at: some thirty times what looking
takes, so that it never takes more than a few hundredths of the engine's thread."""

FEW: Final = 64
"""Streams that are looked at every time."""

BEGUN: Final = 1.0
"""Seconds of speech after which a listener is no newcomer: it should be safe by then."""


class Census:
    """Counts over ``streams``, all live utterances, and ``ledger``, their accounts, both of which
    the scheduler keeps."""

    def __init__(self, streams: Mapping[int, Stream], ledger: ServiceLedger) -> None:
        self._streams = streams
        self._ledger = ledger
        self._away: dict[int, Stream] = {}
        self._playing = 0
        self._missing = 0.0  # seconds of speech
        self._thin = 0.0  # and those that are no newcomers lack more than that
        self._looked = -math.inf
        self._good_for = 0.0  # seconds

    def enter(self, stream: Stream, now: float) -> None:
        """``stream`` is live, and lacks everything."""
        self._playing += 1
        self._missing += _lack(stream, now)[0]

    def leave(self, stream: Stream) -> None:
        """``stream`` has given its slot back."""
        self._away.pop(stream.request.utterance, None)
        self._playing = max(0, self._playing - (not stream.playhead.frozen))

    def hold(self, stream: Stream, state: ListenerState | None, now: float) -> None:
        """Freeze its listener, or let it go on with ``None``."""
        places.note_hold(stream, state, now)
        stream.playhead.hold(state, now)
        if stream.away_since is None:
            self._away.pop(stream.request.utterance, None)
        else:
            self._away[stream.request.utterance] = stream

    def longest_gone(self, now: float) -> Stream | None:
        """Who gives its slot away."""
        return places.longest_gone(self._away.values(), now)

    def load(self, capacity: Capacity, config: PolicyConfig, payer: str, now: float) -> Load:
        """The load at ``now``, as an utterance of ``payer`` finds it. Where only places count,
        nobody looks at what every single listener holds."""
        spare = [s.request.payer for s in self._away.values() if places.expendable(s, now)]
        live = len(self._streams) - len(spare)
        gone = Counter(spare)
        own = self._ledger.live(payer) - gone[payer]
        accounts = self._ledger.clients
        accounts -= sum(count == self._ledger.live(name) for name, count in gone.items())
        accounts += own == 0
        if not math.isfinite(config.max_utilisation):
            return Load(live, live, 0.0, 0.0, accounts, own)
        self._look(now)
        cost = capacity.cost(self._playing + 1)
        urgent = capacity.urgent(math.ceil(self._missing / SAFE) + 1)
        ahead = self._ledger.ahead(payer) if own else 0.0
        return Load(
            live, self._playing, self._missing, cost, accounts, own, ahead, urgent, self._thin
        )

    def _look(self, now: float) -> None:
        """Count who plays, and the seconds of speech that these lack, unless that was done just
        now. Nothing more has to be made for the dead and the spoken, or not now for those who are
        held."""
        if now - self._looked < self._good_for:
            return
        playing, lacking, thin = 0, 0.0, 0.0
        for stream in self._streams.values():
            if stream.away_since is None and not stream.playhead.frozen:
                playing += 1
                lack, more = _lack(stream, now)
                lacking, thin = lacking + lack, thin + more
            elif stream.away_since is not None:
                playing += places.takes_part(stream, now)
        self._playing, self._missing, self._thin = playing, lacking, thin
        self._looked = now
        self._good_for = FRESH_EACH * max(0, len(self._streams) - FEW)


def _lack(stream: Stream, now: float) -> tuple[float, float]:
    """Seconds of speech that its listener lacks to be safe, and that one who is no newcomer lacks
    beyond that: nobody is made to hold more than its lead. Who has heard all that could be made and
    waits for more text is owed nothing."""
    if stream.dead or stream.spoken or stream.idle:
        return 0.0, 0.0
    head, most = stream.playhead, stream.learner.limit
    runway, safe = head.runway(now), min(SAFE, most)
    lack = max(0.0, safe - runway)
    if head.sent <= BEGUN * head.sample_rate:
        return lack, 0.0
    return lack, max(0.0, min(SLACK, most) - max(safe, runway))
