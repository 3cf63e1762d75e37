"""Who has been served how much, so that ties go to the least served client.

Counters are kept by the server alone; no client input changes them. A client that (re)joins is
lifted to the least served of those being served now, so that idling earns no credit (as in Virtual
Token Counter scheduling, arXiv 2401.00588).
"""


class ServiceLedger:
    """Seconds of audio made per client, comparable among those with live utterances."""

    def __init__(self) -> None:
        self._served: dict[str, float] = {}
        self._live: dict[str, int] = {}
        self._gone: set[str] = set()  # to be forgotten when the last utterance has ended

    def join(self, client: str) -> None:
        """An utterance of ``client`` begins."""
        if client not in self._live:
            level = min((self._served[c] for c in self._live), default=0.0)
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

    def served(self, client: str) -> float:
        """Seconds of audio made for ``client``, on the common scale."""
        return self._served.get(client, 0.0)

    def forget(self, client: str) -> None:
        """The client is gone for good; what still runs for it counts until it ends."""
        if client in self._live:
            self._gone.add(client)
            return
        self._gone.discard(client)
        self._served.pop(client, None)
