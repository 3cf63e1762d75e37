"""Who has been served how much, so that ties go to the least served client.

Counters are kept by the server alone; no client input changes them. A client that (re)joins is
lifted to the least served of those being served now, so that idling earns no credit (as in Virtual
Token Counter scheduling, arXiv 2401.00588). Nor does anybody owe more than ``MOST_OWED``: what was
made while there was plenty is no debt in an hour of need.
"""

MOST_OWED = 30.0
"""Seconds of audio by which a client can be ahead of the least served: long enough that leaving and
coming back pays nothing, short enough that nobody starves for what it was given before."""


class ServiceLedger:
    """Seconds of audio made per client, comparable among those with live utterances."""

    def __init__(self) -> None:
        self._served: dict[str, float] = {}
        self._live: dict[str, int] = {}
        self._gone: set[str] = set()  # to be forgotten when the last utterance has ended
        self._since = 0.0  # seconds made since the debts were last cut

    def join(self, client: str) -> None:
        """An utterance of ``client`` begins."""
        if client not in self._live:
            level = self._level()
            self._served[client] = max(self._served.get(client, 0.0), level)
        self._live[client] = self._live.get(client, 0) + 1
        self._gone.discard(client)

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

    def serve(self, client: str, seconds: float) -> None:
        """``seconds`` of audio were made for ``client``."""
        self._served[client] = self._served.get(client, 0.0) + seconds
        self._since += seconds
        if self._since > len(self._served):  # rarely enough to cost nothing
            self._cut_debts()

    def served(self, client: str) -> float:
        """Seconds of audio made for ``client``, on the common scale."""
        return self._served.get(client, 0.0)

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
            self._gone.add(client)
            return
        self._gone.discard(client)
        self._served.pop(client, None)

    def _level(self) -> float:
        return min((self._served.get(client, 0.0) for client in self._live), default=0.0)

    def _cut_debts(self) -> None:
        self._since = 0.0
        most = self._level() + MOST_OWED
        for client, served in self._served.items():
            self._served[client] = min(served, most)
