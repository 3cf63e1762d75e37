"""Round trips to the server, measured NTP-style (RFC 5905, section 8, without the offset)."""

import asyncio

from playhead.gateway.messages import Ping, Pong

_PATIENCE = 10.0  # seconds; a ping that was lost with a socket is never answered


class Pings:
    """Pings that wait for their answers, known by their stamps (milliseconds of our clock)."""

    def __init__(self) -> None:
        self._waiting: dict[float, asyncio.Future[float]] = {}

    @property
    def waiting(self) -> bool:
        """Whether any is without its answer."""
        return bool(self._waiting)

    def open(self, now: float) -> Ping:
        """The message to send at ``now``; then :meth:`wait` for it."""
        ping = Ping(1000 * now)
        self._waiting[ping.time] = asyncio.get_running_loop().create_future()
        return ping

    async def wait(self, ping: Ping) -> float:
        """Seconds of the round trip, the server's own time taken off.

        Raises ``TimeoutError``, or what :meth:`fail` was given.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._waiting[ping.time]
        finally:
            del self._waiting[ping.time]

    def answer(self, pong: Pong, now: float) -> None:
        """An answer was read at ``now``."""
        waiting = self._waiting.get(pong.time)
        if waiting is not None and not waiting.done():
            held = pong.sent - pong.received
            waiting.set_result((1000 * now - pong.time - held) / 1000)

    def fail(self, error: Exception) -> None:
        """No answers will come."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)
