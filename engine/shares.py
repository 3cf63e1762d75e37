"""Whose turn it is among those who wait alike: the account that was served least, then its client
that was. Pure.

An account is whoever is answerable: an API key, without keys the client itself. Work counts when it
was done, not when it is wanted: else whoever leaves in the middle, again and again, would have the
lanes for nothing and cost others what is thrown away.
"""

from playhead.engine.capacity import Capacity
from playhead.engine.ledger import ServiceLedger
from playhead.engine.stream import Stream
from playhead.engine.types import Request

MOST_OWED = 3.0
"""Seconds of audio by which a client can be ahead of its account's least served: more than chunks
take turns by, and so little that nobody does better under a new name."""


class Shares:
    """Written by the scheduler only. ``frame_seconds``: of audio in a frame."""

    def __init__(self, frame_seconds: float) -> None:
        self.accounts = ServiceLedger()
        self._frame_seconds = frame_seconds
        self._within: dict[str, ServiceLedger] = {}  # of each account that is served: its clients
        self._payers: dict[str, str] = {}  # of clients that are not forgotten

    def join(self, request: Request) -> None:
        """An utterance begins."""
        self.accounts.join(request.payer)
        self._payers[request.client] = request.payer
        within = self._within.setdefault(request.payer, ServiceLedger(MOST_OWED))
        within.join(request.client)

    def leave(self, stream: Stream, capacity: Capacity) -> None:
        """It is over. Frames that nobody will decode have cost what the backbone took."""
        request = stream.request
        if lost := stream.ready - stream.taken:
            self.charge(request, lost * capacity.backbone_part)
        self.accounts.leave(request.payer)
        within = self._within[request.payer]
        within.leave(request.client)
        if not within.clients:
            del self._within[request.payer]

    def charge(self, request: Request, frames: float) -> None:
        """Frames were made for an utterance that has not left, whether or not it wants them."""
        self.charge_seconds(request, frames * self._frame_seconds)

    def charge_seconds(self, request: Request, seconds: float) -> None:
        """The same in seconds of audio, or of a lane that made none of it."""
        self.accounts.serve(request.payer, seconds)
        self._within[request.payer].serve(request.client, seconds)

    def served(self, request: Request) -> tuple[float, float]:
        """Seconds of audio made for the account of an utterance that has not left, and for its
        client: each on a scale of its own."""
        payer = request.payer
        return self.accounts.served(payer), self._within[payer].served(request.client)

    def forget(self, client: str) -> None:
        """The client is gone for good."""
        self.accounts.forget(client)
        within = self._within.get(self._payers.pop(client, client))
        if within is not None:
            within.forget(client)
