"""One utterance, or a whole run, against a stub of another kind of server."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

from machine import PATIENCE
from playhead.engine.clock import monotonic
from playhead.loadgen.habits import Caller, Habits, Reports
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import Record
from playhead.loadgen.targets import OPENERS
from playhead.loadgen.turn import Turn
from playhead.loadgen.typist import Piece


async def speak(
    plan: Plan, timeout: float = PATIENCE, pieces: tuple[Piece, ...] = (), **habits: Any
) -> Record:
    """One utterance on a session of its own. Raises ``SessionError``."""
    session = await OPENERS[plan.target](plan.url, plan, Caller(), 0)
    assert session.caller.reports is Reports.OFF
    origin = monotonic()
    record = Record(0, 0.0, "Hello there.", sample_rate=plan.sample_rate, codec="pcm_s16le")
    given = Habits(reports=Reports.OFF, **habits)
    turn = Turn(
        record, given, session.link, origin=origin, deadline=origin + timeout, pieces=pieces
    )
    await session.speak(turn, origin + timeout)
    await session.close()
    return record


@contextmanager
def elsewhere(stub: AbstractAsyncContextManager[str]) -> Iterator[str]:
    """The stub in a thread of its own, since a run has its own loop; yields its address."""
    urls: list[str] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with stub as url:
            urls.append(url)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield urls[0]
    finally:
        over.set()
        thread.join()
