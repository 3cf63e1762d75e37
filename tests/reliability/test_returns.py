"""Sessions that many want at once: two sockets for one, and a whole house that comes back."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Iterable
from typing import TypeVar

import numpy as np
from kit import Bare, client, served
from live import sound
from machine import PATIENCE
from playhead.gateway import messages as m
from websockets.exceptions import ConnectionClosed

RACES = 20
HOUSE = 50
TEXT = "Two of us want to hear this, and one of us will, from the first word to the very last."
T = TypeVar("T")
TAKEN_OVER, RESUME_FAILED = 4000, 4001


async def all_of(several: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*several))


def origin_of(ready: m.Ready, seq: int) -> m.ResumeFrom:
    return m.ResumeFrom(ready.session, ready.token, seq)


async def come_back(stack: contextlib.AsyncExitStack, url: str, origin: m.ResumeFrom) -> Bare:
    """A socket that has asked for the session, answered or not."""
    bare = await stack.enter_async_context(client(url, greeted=False, resume=origin))
    bare.seq = origin.seq
    return bare


async def holds(bare: Bare) -> bool:
    """Whether this socket has the session now. Whoever has not was told why it is closed."""
    try:
        while True:
            first = await bare.receive()
            if isinstance(first, m.Ready):
                bare.ready = first
                break
        await asyncio.sleep(0.02)  # the other one has asked by now
        await bare.send(m.Ping(time=0.0))
        await bare.until(m.Pong)
    except ConnectionClosed:
        assert bare.socket.close_code in (TAKEN_OVER, RESUME_FAILED)
        return False
    return True


def test_of_two_that_return_at_once_one_has_the_session_and_all_of_the_sound() -> None:
    async def main(url: str) -> None:
        rng, heard = random.Random(1), list[bytes]()
        async with contextlib.AsyncExitStack() as stack:
            holder = await stack.enter_async_context(client(url, playback_rate=2.0))
            await holder.send(m.Text(TEXT), m.End())
            await holder.until(m.Audio)
            for _ in range(RACES):
                heard += holder.sound.get(1, [])
                origin = origin_of(holder.ready, holder.seq)
                if rng.random() < 0.5:
                    holder.socket.transport.abort()
                both = await asyncio.gather(*(come_back(stack, url, origin) for _ in range(2)))
                won = [bare for bare in both if await holds(bare)]
                assert len(won) == 1
                holder = won[0]
            if 1 not in holder.endings:
                await holder.until(m.Done)
            heard += holder.sound.get(1, [])
        assert np.array_equal(np.frombuffer(b"".join(heard), "<f4"), sound(TEXT))

    with served() as (_, url):
        asyncio.run(asyncio.wait_for(main(url), PATIENCE))


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
