"""Wire encoders that raise, dawdle or hang, on real sockets: each costs its own utterance alone.

Clients that ask for 8 kHz get the odd encoder. All others' work runs on the same threads and is
compared sample by sample.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from kit import Bare, client
from live import live_server, sound
from machine import PATIENCE
from playhead.codecs import registry
from playhead.codecs.base import Encoded
from playhead.engine.types import Pcm
from playhead.gateway import encoding
from playhead.gateway import messages as m

ODD_RATE = 8_000
TEXT = "A bystander is heard."
THREADS = 2


class Odd:
    """An encoder that does something else first."""

    pre_skip = 0
    repaired = 0

    def __init__(self, inner: Any, first: Callable[[], None], entered: list[str]) -> None:
        self._inner, self._first, self._entered = inner, first, entered

    def encode(self, pcm: Pcm) -> Encoded:
        self._entered.append(threading.current_thread().name)
        self._first()
        encoded: Encoded = self._inner.encode(pcm)
        return encoded

    def flush(self) -> Encoded:
        encoded: Encoded = self._inner.flush()
        return encoded


class Oddity:
    """What odd encoders do first, and on which threads they were entered."""

    def __init__(self) -> None:
        self.first: Callable[[], None] = lambda: None
        self.entered: list[str] = []
        self.gate = threading.Event()


@pytest.fixture
def oddity(monkeypatch: pytest.MonkeyPatch) -> Iterator[Oddity]:
    odd = Oddity()
    real = registry.encoder

    def encoder(wire_format: registry.Format, rate: int) -> Any:
        made = real(wire_format, rate)
        wanted = wire_format.sample_rate == ODD_RATE
        return Odd(made, lambda: odd.first(), odd.entered) if wanted else made

    monkeypatch.setattr(registry, "encoder", encoder)
    monkeypatch.setattr(registry, "is_cheap", lambda wire_format, rate: False)
    yield odd
    odd.gate.set()


async def bystander(url: str) -> None:
    async with client(url) as bare:
        await bare.send(m.Text(TEXT), m.End())
        np.testing.assert_array_equal(await bare.all_audio(), sound(TEXT))


async def odd_one(url: str, *, done: Callable[[Bare], Any]) -> Any:
    async with client(url, codec="pcm_s16le", sample_rate=ODD_RATE) as bare:
        await bare.send(m.Text("This one is odd."), m.End())
        return await done(bare)


def run(url_case: Callable[[str], Any]) -> None:
    async def main() -> None:
        async with live_server(encoder_threads=THREADS) as url, asyncio.timeout(PATIENCE):
            await url_case(url + "/v1/session")

    asyncio.run(main())


def test_an_encoder_that_raises_costs_its_own_utterance_and_nobody_else(oddity: Oddity) -> None:
    def broken() -> None:
        raise ArithmeticError("the encoder broke")

    oddity.first = broken

    async def fails_and_goes_on(bare: Bare) -> None:
        failed = await bare.until(m.Failed)
        assert failed.code == "internal_error"
        assert failed.heard_text + failed.unheard_text == "This one is odd."
        oddity.first = lambda: None
        await bare.send(m.Text("Once more."), m.End())
        assert (await bare.until(m.Done)).reason == "complete"

    async def case(url: str) -> None:
        await asyncio.gather(
            odd_one(url, done=fails_and_goes_on), *(bystander(url) for _ in range(3))
        )

    run(case)


def test_an_encoder_that_is_slow_keeps_one_thread_and_never_the_event_loop(oddity: Oddity) -> None:
    oddity.first = lambda: time.sleep(0.1)

    async def case(url: str) -> None:
        slow = asyncio.create_task(odd_one(url, done=lambda bare: bare.until(m.Done)))
        await asyncio.gather(*(bystander(url) for _ in range(3)))
        assert (await slow).reason == "complete", "slow is no fault"

    run(case)
    assert set(oddity.entered) == {"encoder"}


def test_encoders_that_hang_fail_and_the_others_still_have_their_threads(
    oddity: Oddity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "LOOK", 0.1)
    oddity.first = lambda: oddity.gate.wait(PATIENCE) and None

    async def case(url: str) -> None:
        hung = [
            asyncio.create_task(odd_one(url, done=lambda bare: bare.until(m.Failed)))
            for _ in range(THREADS)
        ]
        while len(oddity.entered) < THREADS:  # no thread is free
            await asyncio.sleep(0.005)
        await asyncio.gather(*(bystander(url) for _ in range(3)))
        assert {(await one).code for one in hung} == {"internal_error"}

    run(case)
