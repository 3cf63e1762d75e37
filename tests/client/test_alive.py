"""A connection that is dead without a word: the client finds out, and comes back."""

import asyncio
from typing import Any

import pytest
from client_stub import Peer, stub, tone
from machine import PATIENCE
from playhead.client import carrier as carriers
from playhead.client import connect, link, vigil
from playhead.client.errors import ConnectionFailed
from playhead.client.link import Address, dial
from playhead.gateway import messages as m

PCM = tone(4800)
SILENT: list[Peer] = []


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks soon, and waits briefly for the answer."""
    monkeypatch.setattr(vigil, "SILENCE", 0.05)
    for module in (vigil, link):
        monkeypatch.setattr(module, "PATIENCE", 0.2)


async def speak_or_fall_silent(peer: Peer) -> None:
    """The first connection reads nothing after the first sound, not even a ping."""
    hello = await peer.greet(received=0 if peer.number == 0 else 3)
    if peer.number == 0:
        await peer.started(1)
        await peer.audio(1, 0, 0, bytes(2 * len(PCM)), len(PCM))
        peer.socket.transport.pause_reading()
        SILENT.append(peer)
        await peer.socket.wait_closed()
        return
    SILENT.pop().socket.transport.abort()  # paused, it would never see the end
    assert hello.resume == m.ResumeFrom("s1", "t1", 2)
    peer.seq = 2
    await peer.audio(1, 1, len(PCM), b"", 0, True)
    await peer.done(1, len(PCM))
    await peer.until(m.CloseSession)


def test_a_connection_that_has_died_silently_is_replaced(hasty: None) -> None:
    async def main() -> None:
        async with stub(speak_or_fall_silent) as url, connect(url) as voice:
            async with asyncio.timeout(PATIENCE):
                assert len(await voice.speak("Is anybody there?").read()) == len(PCM)
            assert voice.resumptions == 1

    asyncio.run(main())


def test_one_that_answers_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vigil, "SILENCE", 0.05)
    for module in (vigil, link):
        monkeypatch.setattr(module, "PATIENCE", PATIENCE)
    pings, ask = list[link.Link](), link.Link._ask

    async def note(self: link.Link) -> None:
        pings.append(self)
        await ask(self)

    monkeypatch.setattr(link.Link, "_ask", note)

    async def answer(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        for index in range(5):
            await asyncio.sleep(0.1)  # longer than the client takes for silence
            await peer.audio(1, index, 0, b"", 0, index == 4)
        await peer.done(1, 0)
        await peer.until(m.CloseSession)

    async def main() -> None:
        async with stub(answer) as url, connect(url) as voice:
            await voice.speak("Yes.").read()
            assert voice.resumptions == 0

    asyncio.run(main())
    assert pings


async def hang(*args: Any, **kwargs: Any) -> None:
    """As a first packet into nothing does."""
    await asyncio.Event().wait()


def test_a_machine_that_is_not_reached_is_given_up_before_a_busy_server_would_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "websocket_connect", hang)

    async def main() -> None:
        with pytest.raises(ConnectionFailed, match=r"was not reached within 0\.05 s"):
            await dial(Address("ws://127.0.0.1:9/", "json", PATIENCE, None), m.Hello(), reach=0.05)
        with pytest.raises(ConnectionFailed, match=r"did not answer within 0\.05 s"):
            await dial(Address("ws://127.0.0.1:9/", "json", 0.05, None), m.Hello())

    asyncio.run(main())


def test_a_way_back_that_leads_nowhere_is_tried_anew(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, tried = link.websocket_connect, list[str]()

    async def first_into_nothing(url: str, **options: Any) -> Any:
        tried.append(url)
        if len(tried) == 2:
            await hang()
        return await really(url, **options)

    monkeypatch.setattr(link, "websocket_connect", first_into_nothing)
    monkeypatch.setattr(carriers, "reaches", lambda: iter([0.1] + [PATIENCE] * 100))

    async def main() -> None:
        async with stub(speak_or_fall_silent) as url, connect(url) as voice:
            async with asyncio.timeout(PATIENCE):
                await voice.speak("Is anybody there?").read()
            assert voice.resumptions == 1

    asyncio.run(main())
    assert len(tried) == 3
