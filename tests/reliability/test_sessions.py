"""Sessions over bad cables, and a drain while all speak: nothing is lost, nothing comes twice."""

import asyncio
import contextlib
import signal

import numpy as np
from cuts import Cut, call
from kit import client, served
from live import sound
from machine import AT_ONCE, PATIENCE
from playhead.gateway import messages as m
from websockets.exceptions import ConnectionClosed

TEXT = "Cut me off and take me up again, and nothing shall be missing."


def test_random_cuts_lose_and_repeat_nothing() -> None:
    """Quick form of bench/reliability/cuts.py."""
    with served() as (_, url):

        async def main() -> None:
            calls = (call(url, TEXT, seed, cuts=4, longest=0.4) for seed in range(8))
            tales = await asyncio.gather(*calls)
            assert {kind for tale in tales for kind in tale.cuts} == set(Cut)
            assert sum(tale.resumed for tale in tales) >= len(tales)
            for tale in tales:
                assert (tale.fault, tale.lost, tale.repeated, tale.exact) == ("", 0, 0, True)

        asyncio.run(main())


def test_a_drain_loses_nothing_and_ends_though_one_listener_is_stuck() -> None:
    """Quick form of bench/reliability/drain.py."""
    texts = [f"This is stream number {number} of them." for number in range(20)]
    with served("--drain-timeout", "5") as (process, url):

        async def whole(text: str) -> bool:
            async with client(url) as bare:
                await bare.send(m.Text(text), m.End())
                await bare.until(m.Audio)
                speaking.release()
                with contextlib.suppress(ConnectionClosed):
                    while True:
                        await bare.receive()
                assert bare.socket.close_code == 1012
                return bool(np.array_equal(bare.heard(), sound(text)))

        async def stuck() -> str | None:
            async with client(url) as bare:
                await bare.send(m.Text("Held for good."), m.End(), m.Pause())
                return (await bare.until(m.Failed)).code

        async def main() -> None:
            tasks = [asyncio.create_task(whole(text)) for text in texts]
            held = asyncio.create_task(stuck())
            for _ in texts:
                await speaking.acquire()
            process.send_signal(signal.SIGTERM)
            assert all(await asyncio.gather(*tasks))
            assert await held == "draining"

        speaking = asyncio.Semaphore(0)
        asyncio.run(asyncio.wait_for(main(), PATIENCE))
        assert process.wait(AT_ONCE) == 0


def test_after_a_restart_a_return_is_refused_honestly() -> None:
    """What a killed server knew is gone; the new one says so, and the client starts over."""
    with served() as (process, url):

        async def before() -> m.Ready:
            async with client(url) as bare:
                await bare.send(m.Text(TEXT), m.End())
                await bare.until(m.Audio)
                process.kill()
                with contextlib.suppress(ConnectionClosed):
                    while True:
                        await bare.receive()
                assert bare.socket.close_code in (None, 1006)
                return bare.ready

        ready = asyncio.run(before())
    with served() as (_, url):

        async def after() -> None:
            async with client(url) as bare:
                await bare.send(m.Text("Anew."), m.End())
                np.testing.assert_array_equal(await bare.all_audio(), sound("Anew."))
            origin = m.ResumeFrom(ready.session, ready.token, 3)
            async with client(url, resume=origin, greeted=False) as bare:
                refused = await bare.until(m.ErrorEvent)
                assert (refused.code, refused.heard_text) == ("resume_failed", None)
                assert (refused.recovered, refused.reason) == (False, "unknown")
                with contextlib.suppress(ConnectionClosed):
                    await bare.receive()
                assert bare.socket.close_code == 4001

        asyncio.run(after())
