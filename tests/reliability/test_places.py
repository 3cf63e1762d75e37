"""A full house: whose place is kept while its socket is gone, and what is told to who lost it."""

import asyncio

import numpy as np
import pytest
from kit import client
from live import WaveRunner, live_gateway, sound
from machine import PATIENCE
from playhead.engine import places, stats
from playhead.engine.loop import Engine
from playhead.engine.policy import PolicyConfig
from playhead.gateway import messages as m

HOUSE = PolicyConfig(max_live=2)
LONG = "A text of some length, longer than the lead, that goes on when the others have left."
SHORT = "A newcomer."


def kept_for(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    for module in (places, stats):
        monkeypatch.setattr(module, "PLACE_KEPT", seconds)


async def vanish(url: str) -> m.ResumeFrom:
    """A client that begins to speak and is gone."""
    async with client(url, playback_rate=2.0) as bare:
        await bare.send(m.Text(LONG), m.End())
        await bare.until(m.Audio)
        bare.socket.transport.abort()
        return m.ResumeFrom(bare.ready.session, bare.ready.token, 0)


async def say(url: str, text: str) -> str:
    """Speak in a session of its own: how it ended."""
    async with client(url, playback_rate=2.0) as bare:
        await bare.send(m.Text(text), m.End())
        ending = await bare.until(m.Done, m.Failed)  # type: ignore[type-var]
        if isinstance(ending, m.Failed):
            return f"{ending.code} {ending.message}"
        np.testing.assert_array_equal(bare.heard(), sound(text))
        return "done"


async def come_back(url: str, origin: m.ResumeFrom) -> tuple[object, bool]:
    """How it ended so far, and whether all of the sound has come."""
    async with client(url, resume=origin, greeted=False) as bare:
        ready = await bare.until(m.Ready)
        assert ready.resumed
        heard = await bare.all_audio()
        np.testing.assert_array_equal(heard, sound(LONG)[: len(heard)])
        return bare.endings.get(1), len(heard) == len(sound(LONG))


def test_ghosts_do_not_keep_newcomers_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_for(monkeypatch, PATIENCE)

    async def main() -> None:
        async with live_gateway(WaveRunner(200.0), policy=HOUSE, grace=PATIENCE) as server:
            url = f"ws://127.0.0.1:{server.port}/v1/session"
            engine = server.hub.engine
            assert isinstance(engine, Engine)
            ghosts = [await vanish(url) for _ in range(2)]
            assert (await say(url, SHORT)).startswith("overloaded"), "they may be back any moment"
            async with asyncio.timeout(PATIENCE):
                while any(
                    stream.running or stream.away_since is None
                    for stream in list(engine._scheduler.streams())
                ):
                    await asyncio.sleep(0.01)  # what was begun for them has yet to be made
            kept_for(monkeypatch, 0.0)
            assert await say(url, SHORT) == "done"
            lost, _ = await come_back(url, ghosts[0])
            assert isinstance(lost, m.Failed)
            assert (lost.code, lost.message) == ("overloaded", places.GIVEN_AWAY)
            assert lost.heard_text + lost.unheard_text == LONG
            assert lost.retry_after
            assert await come_back(url, ghosts[1]) == (None, True), "one place was needed, not two"

    asyncio.run(main())
