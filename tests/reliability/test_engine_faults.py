"""Every fault of the engine that can be injected: who pays for it, and that nobody else does."""

import asyncio
import contextlib
import math
import re
import time
import urllib.request
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty import FaultyRunner
from kit import Bare, client, served
from live import RATE, live_server, sound
from machine import AT_ONCE, PATIENCE, kept_waiting
from playhead.engine import barren
from playhead.gateway import messages as m
from websockets.exceptions import ConnectionClosed

EXIT_ENGINE_DEAD = 70
BYSTANDERS = ("The first neighbour.", "And the second one.", "A third, further off.")


def run(case: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(case, 2 * PATIENCE))


async def hears(url: str, text: str) -> None:
    """An utterance comes over bit for bit."""
    async with client(url) as bare:
        await bare.send(m.Text(text), m.End())
        np.testing.assert_array_equal(await bare.all_audio(), sound(text))


async def fails(url: str, text: str) -> m.Failed:
    async with client(url) as bare:
        await bare.send(m.Text(text), m.End())
        failed = await bare.until(m.Failed)
        await bare.send(m.Text("Once more."), m.End())
        np.testing.assert_array_equal(await bare.all_audio(2), sound("Once more."))
        return failed


@pytest.mark.parametrize("sign", ["text", "step", "decode", "nan", "inf", "loud", "many", "shape"])
def test_a_fault_of_one_utterance_is_its_own(sign: str) -> None:
    runner = FaultyRunner()

    async def main() -> None:
        async with live_server(runner) as url:
            url += "/v1/session"
            others = [hears(url, text) for text in BYSTANDERS]
            failed, *_ = await asyncio.gather(fails(url, f"Here {{{sign}}} it is."), *others)
            assert failed.code == "engine_error"
            assert failed.heard_text + failed.unheard_text == f"Here {{{sign}}} it is."

    run(main())
    assert runner._texts == {}, "everything was closed"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(barren, "PATIENCE", 1.0)
    monkeypatch.setattr(barren, "AT_ONCE", 0.2)
    monkeypatch.setattr(barren, "PAUSE", 0.02)


@pytest.mark.parametrize("signs", [("nothing",), ("mute",), ("nothing", "mute", "nothing")])
@pytest.mark.usefixtures("impatient")
def test_a_model_that_makes_neither_a_sound_nor_an_end_is_waited_for_no_longer(
    signs: tuple[str, ...],
) -> None:
    runner = FaultyRunner()

    async def main() -> None:
        async with live_server(runner) as url:
            url += "/v1/session"
            others = [hears(url, text) for text in BYSTANDERS]
            silent = [fails(url, f"Here {{{sign}}} it is.") for sign in signs]
            for failed in (await asyncio.gather(*silent, *others))[: len(signs)]:
                assert failed is not None
                assert failed.code == "engine_error"
                assert "neither a sound nor an end" in failed.message
                assert failed.unheard_text.startswith("Here {")

    run(main())
    assert runner._texts == {}, "everything was closed"


def test_an_end_before_the_first_sound_is_told_and_the_session_goes_on() -> None:
    async def main() -> None:
        async with live_server(FaultyRunner()) as url, client(url + "/v1/session") as bare:
            await bare.send(m.Text("It {early} ends."), m.End())
            warning = await bare.until(m.Warn)
            assert (warning.code, warning.epoch) == ("unspeakable_text", 1)
            done = await bare.until(m.Done)
            assert (done.reason, done.samples) == ("complete", 0)
            await bare.send(m.Text("Once more."), m.End())
            np.testing.assert_array_equal(await bare.all_audio(2), sound("Once more."))

    run(main())


@pytest.mark.parametrize("sign", ["batch", "memory"])
def test_a_batch_that_breaks_costs_those_in_it_and_nobody_after(sign: str) -> None:
    async def main() -> None:
        async with live_server(FaultyRunner()) as url:
            url += "/v1/session"
            failed = await fails(url, f"The {{{sign}}} breaks.")
            assert failed.code == "engine_error"
            assert failed.unheard_text.endswith(" breaks.")
            await asyncio.gather(*(hears(url, text) for text in BYSTANDERS))

    run(main())


def test_nothing_of_a_bad_chunk_is_heard() -> None:
    async def main() -> None:
        async with live_server(FaultyRunner()) as url, client(url + "/v1/session") as bare:
            await bare.send(m.Text("All {nan} over."), m.End())
            await bare.until(m.Failed)
            assert np.isfinite(bare.heard()).all()

    run(main())


# -- the process ------------------------------------------------------------------------------


async def told(bare: Bare) -> tuple[float, int]:
    """Read to the end: when the utterance failed, and the close code."""
    failed = await bare.until(m.Failed)
    at = time.monotonic()
    assert failed.code == "engine_error"
    with contextlib.suppress(ConnectionClosed):
        while True:
            await bare.receive()
    assert bare.socket.close_code is not None
    return at, bare.socket.close_code


@pytest.mark.parametrize("sign", ["dead", "stuck", "hang"])
def test_when_the_engine_dies_all_are_told_and_the_process_ends(sign: str) -> None:
    with served(PLAYHEAD_STUCK_AFTER="0.5") as (process, url):

        async def main() -> None:
            async with contextlib.AsyncExitStack() as stack:
                bares = [await stack.enter_async_context(client(url)) for _ in range(4)]
                idle = await stack.enter_async_context(client(url))
                for bare in bares:
                    await bare.send(m.Text("It goes on and on. " * 9))
                    await bare.until(m.Audio)
                began = time.monotonic()
                await bares[0].send(m.Text(f"Now {{{sign}}}."), m.End())
                ends = await asyncio.gather(*map(told, bares))
                with contextlib.suppress(ConnectionClosed):
                    while True:
                        await idle.receive()
                idle_told = time.monotonic()
                first, last = min(at for at, _ in ends), max(at for at, _ in ends)
                assert last - first < AT_ONCE
                assert idle_told - first < AT_ONCE
                assert {code for _, code in ends} == {1012}
                assert first - began < AT_ONCE, "0.5 s to be sure, and the watchdog's own way"

        run(main())
        assert process.wait(AT_ONCE) == EXIT_ENGINE_DEAD
        assert process.stderr is not None
        assert "shutting down" in process.stderr.read()


async def late(url: str, text: str) -> float:
    """An utterance comes over bit for bit; by how many seconds a listener that began to play 0.2 s
    after the first of it ran dry at the worst."""
    async with client(url) as bare:
        await bare.send(m.Text(text), m.End())
        worst, received, began = 0.0, 0, math.inf
        while 1 not in bare.endings:
            message = await bare.receive()
            if isinstance(message, m.Audio):
                now = time.monotonic()
                began = min(began, now + 0.2)
                worst = max(worst, now - began - received / RATE)
                received += message.samples
                if message.final:
                    break
        np.testing.assert_array_equal(bare.heard(), sound(text))
        return worst


def test_a_voice_that_keeps_the_interpreter_to_itself_is_seen_and_nobody_runs_dry() -> None:
    texts = [text * 2 for text in BYSTANDERS]

    async def main(url: str) -> list[float]:
        async with client(url) as greedy:
            await greedy.send(m.Text("{lock} " + "On and on and on. " * 8), m.End())
            return list(await asyncio.gather(*(late(url, text) for text in texts)))

    with served("--http-port", "off") as (_, url), kept_waiting() as kept:
        worst = asyncio.run(asyncio.wait_for(main(url), 2 * PATIENCE))
        page = url.replace("ws:", "http:").replace("v1/session", "metrics")
        with urllib.request.urlopen(page, timeout=PATIENCE) as answer:
            shown = answer.read().decode()
    lag = dict(re.findall(r'^playhead_loop_lag_seconds_bucket{le="(\S+)"} (\S+)$', shown, re.M))
    assert float(lag["+Inf"]) > float(lag["0.02"]), lag
    assert max(worst) <= kept.in_turn


def test_a_wire_encoder_that_hangs_does_not_keep_the_process() -> None:
    with served(PLAYHEAD_DRAIN_TIMEOUT="0.2", FAULTY_ENCODER="hang") as (process, url):

        async def main() -> None:
            async with client(url) as bare, client(url) as other:
                for each in (bare, other):  # all encoder threads
                    await each.send(m.Text("It is never heard."), m.End())
                await bare.until(m.Started)
                process.terminate()
                assert (await bare.until(m.Failed)).code == "draining"

        run(main())
        assert process.wait(AT_ONCE) == 0


def test_a_full_disk_under_the_log_costs_no_sound() -> None:
    with Path("/dev/full").open("w") as full, served(stderr=full) as (process, url):

        async def main() -> None:
            await fails(url, "This {decode} is logged.")
            await hears(url, BYSTANDERS[0])

        run(main())
        process.terminate()
        assert process.wait(AT_ONCE) == 0
