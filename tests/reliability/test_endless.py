"""A model that never says that it has ended: its utterance ends all the same, with a reason, and
nobody else notices. With the model in a process of its own: ``engine/remote/test_runner_apart.py``;
a real model's own bounds: ``gateway/test_qwen_served.py``.
"""

import asyncio

import numpy as np
import pytest
from faulty import FaultyRunner
from kit import Bare, client
from live import FRAME, RATE, live_server, sound
from machine import PATIENCE
from playhead.client import connect
from playhead.engine.longest import Longest
from playhead.engine.policy import PolicyConfig
from playhead.gateway import messages as m

pytestmark = pytest.mark.slow  # sound takes its time

SOON = PolicyConfig(longest=Longest(base=1.5, factor=0.0))
MOST = 1.5 + FaultyRunner.info.step_frames * FRAME / RATE
"""Seconds: what the last step made is still spoken."""


async def ends(bare: Bare, text: str, *, complete: bool) -> m.Done:
    await bare.send(m.Text(text), *([m.End()] if complete else []))
    return await bare.until(m.Done)


@pytest.mark.parametrize("complete", [True, False])
def test_what_never_ends_is_ended_and_its_session_goes_on(complete: bool) -> None:
    runner = FaultyRunner()

    async def neighbour(url: str) -> None:
        async with client(url) as bare:
            await bare.send(m.Text("A neighbour speaks."), m.End())
            np.testing.assert_array_equal(await bare.all_audio(), sound("A neighbour speaks."))

    async def endless(url: str) -> None:
        async with client(url) as bare:
            done = await ends(bare, "On and on {endless}.", complete=complete)
            assert done.reason == "length_budget"
            assert 1.5 <= done.samples / RATE <= MOST
            assert len(bare.heard()) == done.samples
            if not complete:  # the rest of a text that is over is nobody's, up to its end
                await bare.send(m.Text("More of it."), m.End())
            done = await ends(bare, "Once more.", complete=True)
            assert (done.epoch, done.reason) == (2, "complete")
            np.testing.assert_array_equal(bare.heard(2), sound("Once more."))

    async def main() -> None:
        async with live_server(runner, SOON) as url:
            url += "/v1/session"
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(endless(url), neighbour(url), neighbour(url))

    asyncio.run(main())
    assert runner._texts == {}, "everything was closed"


def test_the_client_is_told_why() -> None:
    async def main() -> None:
        async with live_server(FaultyRunner(), SOON) as url, connect(url) as voice:
            outcome = await voice.speak("On and on {endless}.").done()
            assert outcome.reason == "length_budget"  # type: ignore[union-attr]

    asyncio.run(asyncio.wait_for(main(), PATIENCE))
