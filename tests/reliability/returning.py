"""A crowd that talks, loses its server at the same moment, and comes back to the next one.

Each member is the Python client as it is shipped: it finds its own way back, and speaks again what
had not arrived. What is measured is how long the first sound of an utterance takes, refusals and
the waits that they ask for included.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from playhead.client import Moved, Voice, connect
from playhead.client.errors import PlayheadError, UtteranceFailed

WORDS = ("one", "server", "goes", "and", "all", "of", "its", "clients", "find", "the", "next")


@dataclass(frozen=True, slots=True)
class Start:
    """One utterance: when it was asked for (monotonic seconds), and how long its first sound took
    from then on."""

    asked: float
    took: float


@dataclass(frozen=True, slots=True)
class Heard:
    """One utterance that came to its end: when its first sound and its end did (monotonic seconds),
    and whether one server spoke all of it."""

    first: float
    end: float
    by_one: bool


@dataclass
class Member:
    """``gap``: seconds between its utterances, on average, of ``words`` words each."""

    rng: random.Random
    gap: float
    words: int = 6
    starts: list[Start] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    moved: list[float] = field(default_factory=list)  # when it was at another server
    refused: int = 0
    lost: list[str] = field(default_factory=list)  # what came in the end of what went wrong
    connected: bool = False
    waiting: float | None = None  # since when it waits for a first sound

    async def talk(self, url: str, over: asyncio.Event) -> None:
        """Until ``over``."""

        def note(event: object) -> None:
            if isinstance(event, Moved):
                self.moved.append(time.monotonic())

        try:
            async with connect(url, on_event=note, timeout=60.0) as voice:
                self.connected = True
                await self._pause(over, self.rng.uniform(0.0, self.gap))
                while not over.is_set():
                    await self._speak(voice)
                    await self._pause(over, self.rng.uniform(0.5, 1.5) * self.gap)
        except PlayheadError as fault:
            self.lost.append(f"{type(fault).__name__}: {fault}")

    async def _speak(self, voice: Voice) -> None:
        self.waiting = asked = time.monotonic()
        text = " ".join(self.rng.choices(WORDS, k=self.words)) + "."
        for _ in range(100):
            utterance = voice.speak(text)
            try:
                await anext(aiter(utterance))
                break
            except UtteranceFailed as failed:
                if failed.code not in ("overloaded", "rate_limited"):
                    raise
                self.refused += 1
                await asyncio.sleep(failed.retry_after or 1.0)
        first, moves = time.monotonic(), len(self.moved)
        self.starts.append(Start(asked, first - asked))
        self.waiting = None
        await utterance.done()
        self.heard.append(Heard(first, time.monotonic(), len(self.moved) == moves))

    async def _pause(self, over: asyncio.Event, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), seconds)


def quantile(starts: Sequence[Start], share: float) -> float:
    """Of the times to the first sound, seconds."""
    took = sorted(start.took for start in starts)
    return took[min(len(took) - 1, int(share * len(took)))] if took else float("nan")
