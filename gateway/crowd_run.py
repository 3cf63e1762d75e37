"""Gives each synthetic listener a session of this server, and carries its messages.

In-process: a message crosses by a call, and the network between is the listener's own model.
Everything behind the session is real: engine, lanes, encoder, limits. Event loop only.
"""

import asyncio
from typing import Any, Final

from playhead.engine import clock
from playhead.gateway.access import Grant, unmetered
from playhead.gateway.crowd import Crowd, Member
from playhead.gateway.host import SessionHost
from playhead.gateway.hub import Hub
from playhead.gateway.messages import ServerMessage
from playhead.gateway.observe import CrowdOrder

NORMAL: Final = 1000
TICK: Final = 0.010
"""Seconds between looks at the listeners: their own times are exact whenever it comes."""

CROWDED: Final = 0.5
"""Share of the machine from which no listener of the crowd begins anew: whoever opened the page is
to find room for a sentence of their own, and their browser often shares the machine."""


class _Wire:
    """Where a session's messages to its synthetic listener go (see ``host.Outlet``)."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def send(self, message: ServerMessage) -> None:
        self._member.deliver(message, clock.monotonic())

    def close(self, code: int, reason: str) -> None:
        self._member.lost()


class CrowdRun:
    """At most one crowd; it belongs to whoever ordered it last and ends with them."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._crowd = Crowd()
        self._hosts: list[tuple[Member, SessionHost]] = []
        self._owner: object = None
        self._timer: asyncio.TimerHandle | None = None

    def obey(self, order: CrowdOrder, owner: object, grant: Grant) -> None:
        """Start, change or end the crowd, in the name of the viewer that holds ``grant``."""
        self._owner = owner
        self._dismiss()
        if not order.listeners:
            self._crowd.end()
            return
        now = clock.monotonic()
        for member in self._crowd.start(order.listeners, order.reports, now):
            wire, owner = _Wire(member), unmetered(grant.owner)
            self._hosts.append((member, self._hub.open(wire, owner, now, dialect="crowd")))
        self._tick()

    def left(self, owner: object) -> None:
        """A viewer has gone; a crowd of theirs goes as well."""
        if owner is self._owner:
            self.close()

    def close(self) -> None:
        """End the crowd."""
        self._dismiss()
        self._crowd.end()

    def public(self) -> dict[str, Any]:
        """For viewers."""
        return self._crowd.public()

    def _tick(self) -> None:
        now = clock.monotonic()
        for member, host in self._hosts:
            for message in member.advance(now, self._hub.engine.stats().utilisation < CROWDED):
                host.receive(message, now)
        self._timer = self._hub.loop.call_later(TICK, self._tick)

    def _dismiss(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = clock.monotonic()
        hosts, self._hosts = self._hosts, []
        for member, host in hosts:
            if not member.over:
                host.stop(NORMAL, "the crowd was ended", now)
