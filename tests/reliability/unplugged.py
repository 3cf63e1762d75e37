"""Clients in mid-speech behind a cable that is pulled, and whose machine changes its address.

They are the Python client as it is shipped, which has to find out by itself. None may move to a
session of its own (``recover=False``): what is lost would be spoken anew.
"""

import asyncio
import hashlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from live import sound
from machine import PATIENCE
from playhead.client import connect
from playhead.client.errors import PlayheadError
from playhead.client.utterance import Utterance
from wire import FAR, NEAR, Wire

PIECE = 12
"""Characters that are said at a time."""
SENTENCE = "Pull the cable or carry the phone away, and nothing shall be missing. "


@dataclass(frozen=True, slots=True)
class Event:
    """``end`` is pulled for ``seconds``; without one the address changes."""

    after: float  # seconds since the one before
    end: str | None
    seconds: float


def events(seed: int, cuts: int, moves: int, longest: float) -> list[Event]:
    """In random order; the same for the same seed."""
    rng = random.Random(seed)
    found = [
        Event(rng.uniform(1.0, 3.0), rng.choice((NEAR, FAR)), rng.uniform(0.2, longest))
        for _ in range(cuts)
    ]
    found += [Event(rng.uniform(1.0, 3.0), None, 0.0) for _ in range(moves)]
    rng.shuffle(found)
    return found


@dataclass
class Listener:
    """One client, and what came of its text. The end of it is said when ``released``."""

    text: str
    rate: float = 1.0
    arrivals: list[float] = field(default_factory=list)  # monotonic seconds
    resumed: int = 0
    samples: int = 0
    exact: bool = False
    over: bool = False
    fault: str = ""
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def hear(self, url: str, rng: random.Random) -> None:
        """All of it."""
        heard = hashlib.sha256()
        try:
            async with (
                connect(
                    url, codec="pcm_f32le", playback_rate=self.rate, recover=False, timeout=30.0
                ) as voice,
                asyncio.TaskGroup() as tasks,
            ):
                utterance = voice.open()
                tasks.create_task(self._say(utterance, rng))
                async for message in utterance:
                    self.arrivals.append(time.monotonic())
                    heard.update(message.pcm.tobytes())
                    self.samples += len(message.pcm)
                self.resumed = voice.resumptions
        except* PlayheadError as faults:
            self.fault = "; ".join(
                f"{type(fault).__name__}: {fault}" for fault in faults.exceptions
            )
        self.over = True
        self.exact = heard.digest() == hashlib.sha256(sound(self.text).tobytes()).digest()

    async def _say(self, utterance: Utterance, rng: random.Random) -> None:
        *pieces, last = [self.text[at : at + PIECE] for at in range(0, len(self.text), PIECE)]
        for piece in pieces:
            utterance.send(piece)
            await asyncio.sleep(rng.uniform(0.0, 0.3))
        await self.released.wait()
        utterance.send(last)
        utterance.end()

    def heard_again(self, since: float) -> float | None:
        """Seconds from ``since`` until the next sound came."""
        return next((at - since for at in self.arrivals if at >= since), None)


@dataclass
class Met:
    """One event, and when it ended, monotonic seconds."""

    event: Event
    ended: float


async def happen(wire: Wire, planned: Sequence[Event], listeners: Sequence[Listener]) -> list[Met]:
    """One after the other, as long as somebody listens."""
    met = []
    for event in planned:
        await asyncio.sleep(event.after)
        if any(listener.over for listener in listeners):
            break
        if event.end is None:
            await asyncio.to_thread(wire.move)
        else:
            await asyncio.to_thread(wire.pull, event.end)
            await asyncio.sleep(event.seconds)
            await asyncio.to_thread(wire.plug, event.end)
        met.append(Met(event, time.monotonic()))
    return met


async def live_through(
    url: str, wire: Wire, planned: Sequence[Event], listeners: Sequence[Listener], seed: int
) -> list[Met]:
    """What happened while they listened, each until its text has been heard to its end."""
    async with asyncio.TaskGroup() as tasks:
        for number, listener in enumerate(listeners):
            tasks.create_task(listener.hear(url, random.Random(f"{seed} {number}")))
        async with asyncio.timeout(PATIENCE):
            while not all(listener.arrivals or listener.over for listener in listeners):
                await asyncio.sleep(0.02)
        met = await happen(wire, planned, listeners)
        for listener in listeners:
            listener.released.set()
        return met
