"""A session's way from a server that goes away to another one."""

import asyncio
from collections.abc import Callable

from playhead.client.carrier import Carrier
from playhead.client.moving import Moved
from playhead.client.player import Player
from playhead.client.utterance import Cancelled, Done, Utterance
from playhead.gateway.messages import Pause

Over = Callable[[Utterance, Done | Cancelled], None]


class Relocation:
    """Knows whether the server takes anything new, and what goes on at the next one.

    ``live``: utterances that are not over, by id; ``opened``: those that the server speaks, by
    epoch. Both are the session's own.
    """

    def __init__(
        self,
        carrier: Carrier,
        player: Player,
        live: dict[str, Utterance],
        opened: dict[int, Utterance],
    ) -> None:
        self.leaving = False  # the server takes nothing new
        self.paused = False  # by the user
        self._carrier = carrier
        self._player = player
        self._live = live
        self._opened = opened
        self._farewell: asyncio.Task[None] | None = None

    def announced(self) -> None:
        """The server goes away and finishes what it speaks."""
        self.leaving = self._carrier.moves
        self.leave_if_idle()

    def keeps(self, code: str) -> bool:
        """Whether what was refused or failed with ``code`` is spoken by the next server."""
        return code == "draining" and self._carrier.moves

    def leave_if_idle(self) -> None:
        """Go as soon as nothing of ours is spoken here."""
        if self.leaving and not self._opened and self._farewell is None:
            self._farewell = asyncio.create_task(self._carrier.leave())

    def arrived(self, now: float, over: Over) -> Moved:
        """Another server is ready, and knows nothing of what was spoken at the former one."""
        self.leaving, self._farewell = False, None
        self._opened.clear()
        for utterance in list(self._live.values()):
            epoch = utterance.epoch
            if epoch is not None:
                self._player.add(epoch, 0, True, now)  # what has arrived is still played
            counters = None if epoch is None else self._player.counters(epoch, now)
            outcome = utterance.on_moved(counters)
            if outcome is not None:
                over(utterance, outcome)
        if self.paused:
            self._carrier.post(Pause())
        carrier = self._carrier
        return Moved(carrier.ready.session, len(self._live), reason=carrier.lost_reason)
