"""Runs a dialect over a socket: its contexts are ordinary sessions of the hub."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from playhead.engine import clock
from playhead.gateway.access import Denied
from playhead.gateway.access_offer import Offer
from playhead.gateway.dialects.base import (
    INTERNAL,
    Action,
    Actions,
    Dialect,
    Frame,
    Hangup,
    Native,
    Show,
)
from playhead.gateway.host import SessionHost
from playhead.gateway.hub import Hub
from playhead.gateway.line import SLOW_CONSUMER, Line, audio_bytes
from playhead.gateway.messages import Cancel, ClientMessage, Hello, Ready, ServerMessage
from playhead.gateway.peer import Peer
from playhead.gateway.session import ServerFacts
from playhead.gateway.settings import Settings
from playhead.gateway.silence import SilentListener

log: Final = logging.getLogger("playhead.gateway.dialects")

TIMER_STEP: Final = 0.001


def without_resume(facts: ServerFacts) -> ServerFacts:
    """Facts for sessions that end with their socket: no other protocol comes back to one."""
    return replace(
        facts,
        observed=False,
        limits=replace(facts.limits, grace=0.0, tombstone=0.0, outbox_bytes=0, outbox_seconds=0.0),
    )


class DialectConnection:
    """Serves one peer until either side is done. Event loop only.

    ``admit`` lets a peer in by what it shows in a message, where its request showed nothing and
    its protocol allows that; it raises ``Denied``.
    """

    def __init__(
        self,
        peer: Peer,
        hub: Hub,
        dialect: Dialect,
        settings: Settings,
        admit: Callable[[Offer], None],
    ) -> None:
        self._hub = hub
        observed = hub.facts.observed
        self._facts = replace(without_resume(hub.facts), continuous=True, observed=observed)
        self._dialect = dialect
        self._peer = peer
        self._admit = admit
        self._patience = settings.hello_timeout
        self._guest: asyncio.TimerHandle | None = None  # while its key is awaited
        self._line = Line(peer, settings, self)
        self._contexts: dict[str, _Context] = {}
        self._actions: deque[Action] = deque()
        self._acting = False
        self._held = False
        self._one_way: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Serve until the connection is closed. Raises nothing for a peer that vanishes."""
        now = clock.monotonic()
        if self._peer.grant is None:
            self._guest = self._hub.loop.call_later(self._patience, self._show, Offer())
        self.act(self._dialect.opened(now), now)
        try:
            await self._line.run()
        finally:
            self._leave(clock.monotonic())

    def _leave(self, now: float) -> None:
        """The socket is gone: nothing is spoken for it any more, whatever closed it."""
        self._stop_timer()
        self._expect_no_key()
        self._actions.clear()
        for context in list(self._contexts.values()):
            context.leave(now)
        self._contexts.clear()

    # -- user of the line ---------------------------------------------------------------------

    def take(self, frame: bytes | str, now: float) -> None:
        """Give a frame to the dialect."""
        self.act(self._dialect.receive(frame, now), now)

    def hold(self, held: bool, now: float) -> None:
        """The peer takes nothing, or does again."""
        self._held = held
        for context in list(self._contexts.values()):
            context.host.blocked(held, now)

    def delay(self, one_way: float) -> None:
        """A bound of the one-way network delay, seconds."""
        self._one_way = one_way
        for context in list(self._contexts.values()):
            context.host.network_delay(one_way)

    def gave_up(self, now: float) -> None:
        """The peer does not read."""
        self._hub.metrics.refused(SLOW_CONSUMER)
        self._leave(now)

    # -- actions ------------------------------------------------------------------------------

    def act(self, actions: Actions, now: float) -> None:
        """Perform actions in order, behind those that are being performed."""
        self._actions.extend(actions)
        if self._acting:
            return
        self._acting = True
        try:
            while self._actions:
                self._perform(self._actions.popleft(), now)
        finally:
            self._acting = False
        self._arm()

    def _perform(self, action: Action, now: float) -> None:
        match action:
            case Frame(data):
                self._line.send(data)
            case Native(name, message):
                self._native(name, message, now)
            case Show(offer):
                self._show(offer)
            case Hangup(code, reason):
                self._line.close(code, reason)
                self._leave(now)

    def _show(self, offer: Offer) -> None:
        """A guest becomes a client, or is shown the door."""
        if self._peer.grant is not None or self._line.closing:
            return
        self._expect_no_key()
        try:
            self._admit(offer)
        except Denied as denied:
            self._hub.metrics.refused(denied.code)
            now = clock.monotonic()
            self._actions.clear()
            self.act(self._dialect.denied(denied, now), now)

    def _expect_no_key(self) -> None:
        if self._guest is not None:
            self._guest.cancel()
            self._guest = None

    def _native(self, name: str, message: ClientMessage, now: float) -> None:
        context = self._contexts.get(name)
        if context is None and isinstance(message, Hello) and not self._line.closing:
            self._show(Offer())
            context = self._open(name, message, now)
        if context is not None:
            context.receive(message, now)

    def _open(self, name: str, hello: Hello, now: float) -> "_Context | None":
        grant = self._peer.grant
        if grant is None:
            return None  # a guest that showed nothing, or that has gone
        context = _Context(name, self)
        if not hello.reports and self._facts.observed:
            context.silent = SilentListener(self._line, hello, context.receive)
        spoken = type(self._dialect).__name__.lower()
        context.host = self._hub.open(context, grant, now, self._facts, dialect=spoken)
        self._contexts[name] = context
        if self._one_way is not None:
            context.host.network_delay(self._one_way)
        context.host.blocked(self._held, now)
        return context

    # -- what sessions say ----------------------------------------------------------------------

    def told(self, context: "_Context", message: ServerMessage) -> None:
        """A session's message, for the dialect to put into its own words."""
        if self._contexts.get(context.name) is not context:
            return
        if isinstance(message, Ready):
            self._line.allow(audio_bytes(message.codec, message.sample_rate))
        now = clock.monotonic()
        self.act(self._dialect.tell(context.name, message, now), now)
        if context.silent is not None:
            context.silent.sent(message, now)

    def over(self, context: "_Context", code: int, reason: str) -> None:
        """A session has ended by itself."""
        if self._contexts.get(context.name) is context:
            del self._contexts[context.name]
            context.hush()
            now = clock.monotonic()
            self.act(self._dialect.ended(context.name, code, reason, now), now)

    # -- the dialect's timer ----------------------------------------------------------------------

    def _arm(self) -> None:
        self._stop_timer()
        due = None if self._line.closing else self._dialect.get_timer()
        if due is not None:
            delay = max(due - clock.monotonic(), TIMER_STEP)
            self._timer = self._hub.loop.call_later(delay, self._fire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        now = clock.monotonic()
        try:
            self.act(self._dialect.handle_timer(now), now)
        # Top of a callback: a dialect's fault must end its connection, not leave it hanging.
        except Exception:
            log.exception("connection %s failed", self._line.peer.id)
            self._line.close(INTERNAL, "internal_error")
            self._leave(now)


class _Context:
    """Outlet of one session."""

    host: SessionHost

    def __init__(self, name: str, owner: DialectConnection) -> None:
        self.name = name
        self.silent: SilentListener | None = None
        self._owner = owner

    def receive(self, message: ClientMessage, now: float) -> None:
        """A message for the session. Where the listener is must be known before it is cut off."""
        if isinstance(message, Cancel) and self.silent is not None:
            self.silent.look(now)
        self.host.receive(message, now)

    def leave(self, now: float) -> None:
        """The socket is gone."""
        self.hush()
        self.host.detach(self, now)

    def hush(self) -> None:
        """No more reports on the client's behalf."""
        if self.silent is not None:
            self.silent.stop()
            self.silent = None

    def send(self, message: ServerMessage) -> None:
        """A message of the session."""
        self._owner.told(self, message)

    def close(self, code: int, reason: str) -> None:
        """The session has ended."""
        self._owner.over(self, code, reason)
