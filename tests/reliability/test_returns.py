"""A whole house that comes back at once. Several who want one session: ``test_races.py``."""

import asyncio
import contextlib
from collections.abc import Awaitable, Iterable
from typing import TypeVar

import numpy as np
from kit import Bare, client, served
from live import sound
from machine import PATIENCE
from playhead.gateway import messages as m

HOUSE = 50
T = TypeVar("T")


async def all_of(several: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*several))


def origin_of(ready: m.Ready, seq: int) -> m.ResumeFrom:
    return m.ResumeFrom(ready.session, ready.token, seq)


async def come_back(stack: contextlib.AsyncExitStack, url: str, origin: m.ResumeFrom) -> Bare:
    """A socket that has asked for the session, answered or not."""
    bare = await stack.enter_async_context(client(url, greeted=False, resume=origin))
    bare.seq = origin.seq
    return bare


def test_a_whole_house_that_is_cut_off_comes_back_at_once() -> None:
    """A network that breaks for a moment: all reconnect together, and nobody loses a sample."""
    texts = [f"This is what number {number} hears of it." for number in range(HOUSE)]
    flags = ("--max-connections-per-address", "1000")

    async def begun(stack: contextlib.AsyncExitStack, url: str, text: str) -> Bare:
        bare = await stack.enter_async_context(client(url, playback_rate=2.0))
        await bare.send(m.Text(text), m.End())
        await bare.until(m.Audio)
        return bare

    async def main(url: str) -> None:
        async with contextlib.AsyncExitStack() as stack:
            before = await all_of(begun(stack, url, text) for text in texts)
            for bare in before:
                bare.socket.transport.abort()
            after = await all_of(
                come_back(stack, url, origin_of(bare.ready, bare.seq)) for bare in before
            )
            readies = await all_of(bare.until(m.Ready) for bare in after)
            assert all(ready.resumed for ready in readies)
            await all_of(bare.all_audio() for bare in after)
            for text, first, second in zip(texts, before, after, strict=True):
                whole = np.concatenate([first.heard(), second.heard()])
                assert np.array_equal(whole, sound(text)), text

    with served(*flags, FAULTY_PACE="2000", FAULTY_BATCH="32") as (_, url):
        asyncio.run(asyncio.wait_for(main(url), PATIENCE))
