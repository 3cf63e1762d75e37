"""Carries one turn over a connection by callbacks: no task and no timer for each message.

What has arrived is always given to the turn before time passes for it, so that a late generator
does not make a listener run dry whose audio was there.
"""

import asyncio
from collections.abc import Callable, Sequence

from playhead.engine.clock import monotonic
from playhead.gateway.messages import ClientMessage
from playhead.loadgen.turn import Turn

Send = Callable[[Sequence[ClientMessage]], None]


class Drive:
    """``send`` puts messages on the connection; ``poll`` makes it give what has arrived and then
    call :meth:`settled`."""

    def __init__(self, turn: Turn, send: Send, poll: Callable[[], None]) -> None:
        self._turn = turn
        self._send = send
        self._poll = poll
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._fires = 0.0  # when the timer does

    def start(self) -> None:
        """Send the text, or the first of it."""
        self.say(self._turn.start(monotonic()))
        self._arm()

    async def ended(self) -> None:
        """Until the turn is over."""
        try:
            if not self._turn.over:
                await self._over
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def say(self, messages: Sequence[ClientMessage]) -> None:
        """Send now."""
        if messages:
            self._send(messages)
        if self._turn.record.text_sent is None:
            self._turn.sent(monotonic())

    def settled(self, now: float) -> None:
        """All that had arrived by ``now`` was given to the turn."""
        if not self._turn.over:
            self.say(self._turn.tick(now))
        self.look()

    def look(self) -> None:
        """The turn has changed: wait for what it wants next, or end."""
        if not self._turn.over:
            self._arm()
        elif not self._over.done():
            self._over.set_result(None)

    def _arm(self) -> None:
        due = self._turn.due()
        if self._timer is not None and self._fires <= due:
            return  # it will look again when it fires
        if self._timer is not None:
            self._timer.cancel()
        self._fires = due
        self._timer = self._loop.call_later(max(0.0, due - monotonic()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        if self._turn.due() <= monotonic():
            self._poll()
        else:
            self.look()
