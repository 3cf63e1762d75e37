"""Tells the server where the playhead is, whenever the player has something to tell."""

import asyncio

from playhead.client.carrier import Carrier, Clock
from playhead.client.player import Player
from playhead.client.track import Counters
from playhead.gateway.messages import Ack, PlaybackReport


class Reporter:
    """Posts the player's reports when they are due.

    Without ``reports`` it only acknowledges what has arrived, so that the server need not keep
    it for a resume.
    """

    def __init__(self, player: Player, carrier: Carrier, clock: Clock, *, reports: bool) -> None:
        self.player = player
        self._carrier = carrier
        self._clock = clock
        self._reports = reports
        self._wanted = asyncio.Event()
        self._echo: float | None = None
        self._echo_at = 0.0
        self._acked = 0

    def wake(self) -> None:
        """The player has changed."""
        self._wanted.set()

    def echo(self, stamp: float, now: float) -> None:
        """Remember the latest stamp of the server (its milliseconds), read at ``now``."""
        self._echo, self._echo_at = stamp, now

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            self._wanted.clear()
            wait = self._report() if self._reports else await self._acknowledge()
            try:
                async with asyncio.timeout(wait):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    def _report(self) -> float | None:
        """Post what is due; seconds until more will be."""
        now = self._clock()
        for counters in self.player.reports(now):
            self._carrier.post(self._message(counters, now))
        due = self.player.next_report(now)
        return None if due is None else due - now

    async def _acknowledge(self) -> float | None:
        if self._carrier.seq > self._acked:
            self._acked = self._carrier.seq
            self._carrier.post(Ack(self._acked))
            await asyncio.sleep(self.player.config.report_interval)
        return None

    def _message(self, counters: Counters, now: float) -> PlaybackReport:
        return PlaybackReport(
            epoch=counters.epoch,
            received=counters.received,
            consumed=counters.consumed,
            heard=counters.heard,
            buffered=counters.buffered,
            discarded=counters.discarded,
            state=counters.state,
            underruns=counters.underruns,
            starved=1000 * counters.starved,
            time=1000 * now,
            seq=self._carrier.seq,
            echo=self._echo,
            hold=1000 * (now - self._echo_at),
        )
