"""Sockets that have just been accepted, before anything is known of who is there."""

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from playhead.engine import clock
from playhead.gateway.accepts import Accepts, HalfOpen, Pace
from playhead.gateway.admission import ConnectionCaps
from playhead.gateway.last_call import heard, last_call
from playhead.gateway.settings import Settings


class Arrival(Protocol):
    """A connection as it is seen here."""

    address: str
    pace: Pace
    transport: asyncio.Transport


class Arrivals:
    """Counts connections in all, by address and by time, and those that are half open."""

    def __init__(self, settings: Settings) -> None:
        self.caps = ConnectionCaps(settings.max_connections, settings.max_connections_per_address)
        self.accepts = Accepts(settings.max_connections_per_address)
        self.half_open: HalfOpen[Arrival] = HalfOpen(settings.max_connections)
        self.listener: socket.socket | None = None

    def enter(self, peer: Arrival) -> None:
        """One was accepted: note how fast its address comes, and cut what is too much."""
        self.caps.enter(peer.address)
        peer.pace = self.accepts.arrive(peer.address, clock.monotonic())
        if self.caps.flooded or peer.pace is Pace.CUT:
            peer.transport.abort()
        elif (oldest := self.half_open.add(peer)) is not None:
            oldest.transport.abort()

    def asked(self, peer: Arrival) -> None:
        """Its request has come."""
        self.half_open.discard(peer)

    def leave(self, peer: Arrival) -> None:
        """It is gone."""
        self.caps.leave(peer.address)
        self.half_open.discard(peer)

    async def last(self, hurried: Callable[[], bool]) -> None:
        """Wait until everybody who has connected at ``listener`` is accepted; it is closed next."""
        if self.listener is not None:
            await last_call(self.listener, hurried)

    async def heard(self, hurried: Callable[[], bool]) -> None:
        """Wait a moment for the requests of those who have not asked yet, then cut them."""
        await heard(lambda: len(self.half_open), hurried)
        for peer in self.half_open:
            peer.transport.abort()
