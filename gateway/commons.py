"""What all connections of one listener share."""

import asyncio
from dataclasses import dataclass

from playhead.gateway.arrivals import Arrivals
from playhead.gateway.keepalive import Keepalive
from playhead.gateway.settings import Settings
from playhead.gateway.turns import Turns


@dataclass(frozen=True, slots=True)
class Commons:
    """Settings, the counts of who is there, one timer for all pings, turns for all messages."""

    settings: Settings
    arrivals: Arrivals
    pacemaker: Keepalive
    turns: Turns

    @classmethod
    def of(
        cls, settings: Settings, arrivals: Arrivals, loop: asyncio.AbstractEventLoop
    ) -> "Commons":
        """For connections that are served on ``loop``."""
        return cls(settings, arrivals, Keepalive(loop), Turns(loop))
