"""Who has been served how much, so that ties go to the least served client.

Counters are kept by the server alone; no client input changes them. A client that (re)joins is
lifted to the least served of those being served now, so that idling earns no credit (as in Virtual
Token Counter scheduling, arXiv 2401.00588). One never seen before is lifted further once it can be
heard without a break: were it still the least served, whoever comes again and again under new names
would always go first. It is lifted to what they were served on average, or to where one stood that
has gone for good, if that was further ahead: newcomers take the places of those who left, and who
comes again under a new name finds itself where it was. Nor does anybody owe more than
``MOST_OWED``: what was made while there was plenty is no debt in an hour of need.
"""

import math
from bisect import insort
from dataclasses import dataclass

MOST_OWED = 30.0
"""Seconds of audio by which a client can be ahead of the least served: long enough that leaving and
coming back pays nothing, short enough that nobody starves for what it was given before."""

ENTRANCE = 1.0
"""Seconds by which a newcomer is lifted at the most, wherever the average is and whoever left: more
than a chunk, by which those who take turns differ anyway, and what it may have before it is."""

FEW = 64
GOES_STALE = 0.1
"""Of more clients than a few, the least and the average are not worked out anew for everybody who
joins, but when so many seconds of audio each have been made since."""

SETTLED = 0.6
"""Seconds of audio that a newcomer has before it is lifted: the least lead. Were it lifted at its
first chunk, it would stall at the second (simulated: 6 of 63 starts in a crowd, against none)."""


@dataclass(slots=True)
class Newcomer:
    """One that is not lifted yet; seconds of audio."""

    level: float  # the least served when it came
    until: float  # it pays when it was served so much
    owes: float  # so much in all
    paid: float = 0.0  # of it, already

    @property
    def unpaid(self) -> float:
        """Seconds that it owes still."""
        return self.owes - self.paid

    def follow(self, position: float) -> float:
        """It takes the place of one who stood there, if that is further than it is lifted anyway.
        Returns what it must pay at once: ``SETTLED`` seconds are lent to it, and no more."""
        if position <= self.level + self.owes:
            return 0.0
        self.owes = min(ENTRANCE, position - self.level)
        now = max(0.0, self.unpaid - SETTLED)
        self.paid += now
        self.until += now
        return now


class ServiceLedger:
    """Seconds of audio made per client, comparable among those with live utterances."""

    def __init__(self, most_owed: float = MOST_OWED) -> None:
        self._most_owed = most_owed
        self._served: dict[str, float] = {}
        self._live: dict[str, int] = {}
        self._gone: dict[str, str] = {}  # to be forgotten when their work has ended: their heirs
        self._newcomers: dict[str, Newcomer] = {}
        self._vacant: list[float] = []  # where those stood who have gone for good; ascending
        self._since = 0.0  # seconds made since the debts were last cut
        self._made = math.inf  # and since it was last worked out where everybody stands
        self._standing = (0.0, 0.0)

    def join(self, client: str) -> None:
        """An utterance of ``client`` begins."""
        if client not in self._live:
            level, average = self._stand()
            if client not in self._served:
                level = self._welcome(client, level, average)
            self._served[client] = max(self._served.get(client, 0.0), level)
        self._live[client] = self._live.get(client, 0) + 1
        self._gone.pop(client, None)

    def leave(self, client: str) -> None:
        """An utterance of ``client`` ended."""
        self._live[client] -= 1
        if self._live[client] > 0:
            return
        del self._live[client]
        if client in self._gone:
            self.forget(client)
        if not self._live:
            self._served.clear()
            self._newcomers.clear()
            self._vacant.clear()

    def serve(self, client: str, seconds: float) -> None:
        """``seconds`` of audio were made for ``client``."""
        served = self._served.get(client, 0.0) + seconds
        newcomer = self._newcomers.get(client)
        if newcomer is not None and served >= newcomer.until:
            served += newcomer.unpaid
            del self._newcomers[client]
        self._served[client] = served
        self._made += seconds
        self._since += seconds
        if self._since > len(self._served):  # rarely enough to cost nothing
            self._cut_debts()

    def served(self, client: str) -> float:
        """Seconds of audio made for ``client``, on the common scale."""
        return self._served.get(client, 0.0)

    def ahead(self, client: str) -> float:
        """Seconds by which ``client`` was served more than those being served on average; less
        than nothing for one that is behind."""
        return self.served(client) - self._stand()[1] if self._live else 0.0

    def live(self, client: str) -> int:
        """Utterances of ``client`` that are being served."""
        return self._live.get(client, 0)

    @property
    def clients(self) -> int:
        """Clients that are being served."""
        return len(self._live)

    def forget(self, client: str) -> None:
        """The client is gone for good; what still runs for it counts until it ends."""
        if client in self._live:
            self._gone.setdefault(client, "")
            return
        heir = self._gone.pop(client, "")
        served = self._served.pop(client, None)
        newcomer = self._newcomers.pop(client, None)
        if served is not None and self._live:
            self._vacate(served + (newcomer.unpaid if newcomer else 0.0), heir)

    def _welcome(self, client: str, level: float, average: float) -> float:
        """Where one starts that was never seen before: it takes the place of one who has gone for
        good, as soon as it is known where that is."""
        newcomer = Newcomer(level, level + SETTLED, min(ENTRANCE, average - level))
        self._newcomers[client] = newcomer
        gone = next((gone for gone, heir in self._gone.items() if not heir), None)
        if gone is not None:
            self._gone[gone] = client
        elif self._vacant:
            return level + newcomer.follow(self._vacant.pop())
        return level

    def _vacate(self, position: float, heir: str) -> None:
        """Somebody who stood there has gone for good, and his work has ended."""
        if newcomer := self._newcomers.get(heir):
            self._served[heir] += newcomer.follow(position)
        elif position > (level := self._stand()[0]):
            insort(self._vacant, min(position, level + ENTRANCE))
            del self._vacant[:-FEW]

    def _stand(self) -> tuple[float, float]:
        """What the least served of those being served now was, and what they were on average."""
        count = len(self._live)
        if count <= FEW or self._made >= GOES_STALE * count:
            served = [self._served.get(client, 0.0) for client in self._live]
            self._standing = (min(served), sum(served) / count) if served else (0.0, 0.0)
            self._made = 0.0
        return self._standing

    def _cut_debts(self) -> None:
        self._since = 0.0
        most = self._stand()[0] + self._most_owed
        for client, served in self._served.items():
            self._served[client] = min(served, most)
