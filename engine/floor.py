"""The least that a listener can hold: what was sent less what the fastest allowed player could have
played. Kept by the server alone; no word of a client moves it.

Two such players bound it. One plays faster than real time by ten per cent, as players that stretch
time do to catch up; but nobody catches up for ever, so the other plays only as much too fast as a
device's clock may run, with a head start. Both follow Lindley's recursion
``end = max(end, now) + length``. A client that claims to be dry all the time is therefore sent
hardly more than one that plays all the time.
"""

import math

QUICKEST = 1.10
"""Fastest drain, relative to the declared rate: players that stretch time to catch up."""

SUSTAINED = 1.005
"""Fastest drain in the long run: device clocks differ by parts per million, bad ones by a few in a
thousand. Who plays faster than that declares it."""

CATCH_UP = 0.3
"""Seconds that a player may be ahead of the sustained drain: about a jitter buffer."""


class Floor:
    """``drain``: samples per second that the listener declared to play."""

    def __init__(self, drain: float) -> None:
        self._drain = drain
        self._quick = -math.inf  # dry time of the quickest player
        self._sustained = -math.inf
        self.end = -math.inf
        """When the fastest listener there could be runs dry; ``-inf`` before anything was sent."""

    def add(self, samples: float, now: float) -> None:
        """``samples`` were handed to the network at ``now``."""
        seconds = samples / self._drain
        self._quick = max(self._quick, now) + seconds / QUICKEST
        self._sustained = max(self._sustained, now) + seconds / SUSTAINED
        self.end = max(self._quick, self._sustained - CATCH_UP)
