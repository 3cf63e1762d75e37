"""Clients that misbehave, and clients that drop out: nobody's sound differs by a sample.

Whole server, real engine and sockets; the voice is a known wave (see ``live``).
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import numpy as np
import pytest
from live import Cable, WaveRunner, live_server, sound
from machine import PATIENCE, kept_waiting
from playhead.client import Cancelled, Done, connect
from playhead.engine.types import ListenerState
from playhead.gateway import messages as m
from playhead.gateway.protocol import Wire
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as websocket
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

TEXT = "The neighbour says what he always says, word by word, to the end."
LONG = "This one goes on and on. " * 20


def run(case: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await case

    asyncio.run(bounded())


class Raw:
    """A client without manners."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.wire = Wire("msgpack")

    async def send(self, *messages: m.ClientMessage) -> None:
        for message in messages:
            await self.socket.send(self.wire.encode_client(message))

    async def until(self, kind: type[Any]) -> Any:
        while True:
            message = self.wire.decode_server(await self.socket.recv())
            if isinstance(message, kind):
                return message


async def raw(url: str) -> Raw:
    socket = await websocket(
        url + "/v1/session", subprotocols=[Subprotocol("playhead.v1.msgpack")], compression=None
    )
    client = Raw(socket)
    await client.send(m.Hello(codec="pcm_f32le"), m.Text(LONG), m.End())
    return client


async def is_killed(url: str) -> None:
    client = await raw(url)
    await client.until(m.Audio)
    client.socket.transport.abort()


async def never_reads(url: str) -> None:
    client = await raw(url)
    client.socket.transport.pause_reading()
    await asyncio.sleep(60)


async def sends_garbage(url: str) -> None:
    rng = random.Random(5)
    client = await raw(url)
    for size in (0, 1, 17, 400, 60000) * 40:
        await client.socket.send(rng.randbytes(size))
        await asyncio.sleep(0.01)


async def lies_that_it_is_dry(url: str) -> None:
    """Claims, 50 times a second, to have played everything and to starve."""
    client = await raw(url)
    started = await client.until(m.Started)
    for tick in range(1000):
        await client.send(
            m.PlaybackReport(
                epoch=started.epoch,
                received=10**6,
                consumed=10**6,
                heard=10**6,
                buffered=0,
                state=ListenerState.STALLED,
                underruns=tick,
                starved=20.0 * tick,
                time=20.0 * tick,
            )
        )
        await asyncio.sleep(0.02)


async def lies_that_nothing_came(url: str) -> None:
    client = await raw(url)
    started = await client.until(m.Started)
    for tick in range(1000):
        await client.send(
            m.PlaybackReport(
                epoch=started.epoch,
                received=0,
                consumed=0,
                heard=0,
                buffered=0,
                state=ListenerState.PREBUFFER,
                time=20.0 * tick,
            )
        )
        await asyncio.sleep(0.02)


async def starts_and_cancels(url: str) -> None:
    client = await raw(url)
    for _ in range(1000):
        await client.send(m.Cancel(), m.Start(), m.Text(LONG), m.Flush())
        await asyncio.sleep(0.02)


Misfit = Callable[[str], Awaitable[None]]
MISFITS: list[Misfit] = [
    is_killed,
    never_reads,
    sends_garbage,
    lies_that_it_is_dry,
    lies_that_nothing_came,
    starts_and_cancels,
]


async def misbehave(misfit: Misfit, url: str) -> None:
    """Until the server has had enough of it."""
    try:
        await misfit(url)
    except ConnectionClosed:
        return


@pytest.mark.slow
@pytest.mark.parametrize("misfit", MISFITS, ids=lambda misfit: misfit.__name__)
def test_the_neighbour_hears_every_sample_in_time(misfit: Misfit) -> None:
    """Three of a kind beside two honest listeners, on an engine that they nearly fill."""

    async def case() -> None:
        async with live_server(WaveRunner(pace=5.0)) as url:
            bad = [asyncio.create_task(misbehave(misfit, url)) for _ in range(3)]
            await asyncio.sleep(0.1)
            with kept_waiting() as kept:
                heard = await asyncio.gather(*[listen(url, TEXT + str(n)) for n in range(2)])
            for task in bad:
                task.cancel()
            await asyncio.gather(*bad, return_exceptions=True)
            for n, (pcm, starved) in enumerate(heard):
                assert np.array_equal(pcm, sound(TEXT + str(n)))
                assert starved <= 0.1 + kept.in_turn

    run(case())


async def listen(url: str, text: str) -> tuple[Any, float]:
    """The sound of a text, and how long its listener was dry (seconds)."""
    async with connect(url, codec="pcm_f32le") as voice:
        utterance = voice.speak(text)
        pcm = await utterance.read()
        await utterance.done()
        counters = utterance.counters
        assert counters is not None
        return pcm, counters.starved


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["msgpack", "json"])
@pytest.mark.parametrize("seed", range(2))
def test_a_cable_cut_again_and_again_loses_nothing(seed: int, encoding: Any) -> None:
    """Text goes in word by word while the connection drops; every sample arrives once."""

    async def cutter(cable: Cable, rng: random.Random) -> None:
        while True:
            await asyncio.sleep(rng.uniform(0.1, 0.5))
            cable.cut()

    async def case() -> None:
        rng = random.Random(seed)
        async with (
            live_server() as url,
            Cable(url).laid() as cable,
            connect(cable.url, codec="pcm_f32le", encoding=encoding) as voice,
        ):
            cutting = asyncio.create_task(cutter(cable, rng))
            utterance = voice.open()
            reading = asyncio.create_task(utterance.read())
            for word in TEXT.split(" "):
                utterance.send(word + " ")
                await asyncio.sleep(rng.uniform(0.0, 0.1))
            utterance.end()
            pcm = await reading
            cutting.cancel()
            assert voice.resumptions >= 3
            assert await utterance.done() == Done(len(pcm), len(pcm), False, "complete")
            assert np.array_equal(pcm, sound(TEXT + " "))
            assert (await voice.speak("And on.").read()).size == sound("And on.").size

    run(case())


def test_cancel_splits_the_text_at_what_was_heard() -> None:
    async def case() -> None:
        async with live_server() as url, connect(url) as voice:
            utterance = voice.speak(TEXT)
            while (counters := utterance.counters) is None or counters.heard < 0.8 * 24000:
                await asyncio.sleep(0.01)
            cancelled = await utterance.cancel()
            assert cancelled.heard_text + cancelled.unheard_text == TEXT
            characters = cancelled.heard / 24000 / 0.075
            assert abs(len(cancelled.heard_text) - characters) <= len("neighbour ")
            assert not cancelled.estimated
            assert isinstance(await utterance.done(), Cancelled)

    run(case())


def test_paused_listener_costs_nothing_and_goes_on_where_it_was() -> None:
    async def case() -> None:
        async with live_server() as url, connect(url, codec="pcm_f32le") as voice:
            utterance = voice.speak(LONG)
            parts = [part async for part in take(utterance, 0.5)]
            voice.pause()
            before, after = None, utterance.counters
            while before is None or after != before:  # what was on its way when it paused
                await asyncio.sleep(0.5)
                before, after = after, utterance.counters
            assert before.state is ListenerState.PAUSED
            assert 0 < before.received < sound(LONG).size
            voice.resume()
            parts += [part async for part in take(utterance, 3.0)]
            pcm = np.concatenate([part.pcm for part in parts])
            assert np.array_equal(pcm, sound(LONG)[: pcm.size])
            assert pcm.size > before.received
            await utterance.cancel()

    run(case())


async def take(utterance: Any, seconds: float) -> Any:
    """What arrives of an utterance within so many seconds of sound or of time."""
    samples = 0
    async for part in utterance:
        yield part
        samples += len(part.pcm)
        if samples > seconds * 24000:
            return


def test_json_is_plain_enough_to_write_by_hand() -> None:
    """The protocol document's promise: any WebSocket client will do."""

    async def case() -> None:
        async with (
            live_server() as url,
            websocket(
                url + "/v1/session", subprotocols=[Subprotocol("playhead.v1.json")]
            ) as socket,
        ):
            for line in (
                '{"type": "hello", "reports": false}',
                '{"type": "text", "text": "Hi"}',
                '{"type": "end"}',
            ):
                await socket.send(line)
            seen = []
            async for frame in socket:
                seen.append(json.loads(frame)["type"])
                if seen[-1] == "done":
                    break
            assert seen[:2] == ["ready", "started"]
            assert seen[-2:] == ["audio", "done"]

    run(case())
