"""Sessions that are kept for the next utterance, so that a listener's history goes on."""

import asyncio
from collections.abc import Mapping

from playhead.loadgen.plan import Plan
from playhead.loadgen.session import Session
from playhead.loadgen.shaping import DIRECT
from playhead.loadgen.targets import OPENERS

#: Ends after which a session is as good as new: nothing of the utterance can still come.
_CLEAN = frozenset({"complete", "length_budget", "cancelled", "failed"})


class Pool:
    """Event loop only. ``urls``: where to dial for each network."""

    def __init__(self, plan: Plan, process: int, urls: Mapping[str, str]) -> None:
        self._plan = plan
        self._number = process  # sessions of different processes have different numbers
        self._urls = urls
        self._idle: list[Session] = []
        self._closing: set[asyncio.Task[None]] = set()
        self.opened = 0

    async def take(self) -> Session:
        """An idle session, the longest idle first, or a new one. Raises ``SessionError``."""
        if self._idle:
            return self._idle.pop(0)
        plan, number = self._plan, self._number
        self._number += plan.processes
        caller = plan.listeners.caller(plan.seed, number)
        opener = OPENERS[plan.target]
        session = await opener(self._urls[caller.network], plan, caller, number)
        self.opened += 1
        return session

    def give(self, session: Session, finish: str) -> None:
        """Back after an utterance that ended as ``finish`` (record.py)."""
        if finish in _CLEAN and session.turns < self._plan.turns:
            self._idle.append(session)
            return
        task = asyncio.create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close what is idle, and wait for what is closing."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*self._closing, *(session.close() for session in idle))


def networks(plan: Plan) -> list[str]:
    """The shaped networks that the plan's listeners may be on."""
    return [name for name in plan.listeners.networks if name != DIRECT]
