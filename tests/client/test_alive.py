"""A connection that is dead without a word: the client finds out, and comes back."""

import asyncio
import socket
import time
from functools import partial
from typing import Any, cast

import pytest
from client_stub import Peer, stub, tone
from machine import PATIENCE, eventually
from playhead.client import carrier as carriers
from playhead.client import connect, link, vigil
from playhead.client.errors import ConnectionFailed
from playhead.client.link import Address, Link, dial
from playhead.client.reach import Reached, direct
from playhead.engine.clock import monotonic
from playhead.gateway import messages as m
from playhead.gateway.protocol import Wire

PCM = tone(4800)
SILENT: list[Peer] = []


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks soon, and waits briefly for the answer. The library's own keepalive, which would find
    out after 40 s, is off."""
    monkeypatch.setattr(vigil, "SILENCE", 0.05)
    monkeypatch.setattr(link, "PATIENCE", 0.2)
    without = partial(link.websocket_connect, ping_interval=None)
    monkeypatch.setattr(link, "websocket_connect", without)


@pytest.fixture
def calm_again(hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience with all connections but the first, however busy the machine is."""
    greet = Peer.greet

    async def then_calm(peer: Peer, **changes: Any) -> m.Hello:
        if peer.number > 0:
            monkeypatch.setattr(link, "PATIENCE", PATIENCE)
        return await greet(peer, **changes)

    monkeypatch.setattr(Peer, "greet", then_calm)


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


def test_a_connection_that_has_died_silently_is_replaced(calm_again: None) -> None:
    async def main() -> None:
        async with stub(speak_or_fall_silent) as url, connect(url) as voice:
            async with asyncio.timeout(PATIENCE):
                assert len(await voice.speak("Is anybody there?").read()) == len(PCM)
            assert voice.resumptions == 1

    asyncio.run(main())


async def speak_or_never_begin(peer: Peer) -> None:
    """The first connection dies when nothing has been said for a while: the sound is waited for."""
    await peer.greet(received=0 if peer.number == 0 else 3)
    if peer.number == 0:
        await peer.started(1)
        await asyncio.sleep(4 * vigil.IN_USE)
        peer.socket.transport.pause_reading()
        SILENT.append(peer)
        await peer.socket.wait_closed()
        return
    SILENT.pop().socket.transport.abort()
    peer.seq = 1
    await peer.audio(1, 0, 0, b"", 0, True)
    await peer.done(1, 0)
    await peer.until(m.CloseSession)


def test_one_that_dies_long_into_a_wait_for_the_first_sound_is_replaced(
    calm_again: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vigil, "IN_USE", 0.2)

    async def main() -> None:
        async with stub(speak_or_never_begin) as url, connect(url, reports=False) as voice:
            async with asyncio.timeout(PATIENCE):
                await voice.speak("Is anybody there?").read()
            assert voice.resumptions == 1

    asyncio.run(main())


class Standing:
    """A connection whose answers the test gives; ``transport`` is itself."""

    def __init__(self) -> None:
        self.came = monotonic()
        self.pongs: list[asyncio.Future[float]] = []
        self.aborted = False
        self.transport = self

    async def ping(self) -> asyncio.Future[float]:
        self.pongs.append(asyncio.get_running_loop().create_future())
        return self.pongs[-1]

    def abort(self) -> None:
        self.aborted = True


async def watched(there: Standing) -> asyncio.Task[None]:
    """It has been asked once."""
    watching = asyncio.create_task(Link(cast(Reached, there), Wire("json")).watch(lambda: True))
    await eventually(lambda: there.pongs)
    return watching


def test_a_client_that_stood_still_reads_the_answer_before_it_judges(hasty: None) -> None:
    async def main() -> None:
        there = Standing()
        watching = await watched(there)
        time.sleep(1.2 * link.PATIENCE)  # the whole process; the answer is in the kernel
        for _ in range(5):  # turns of the loop, until it has been read
            await asyncio.sleep(0)
        there.pongs[0].set_result(0.0)
        await eventually(lambda: len(there.pongs) > 1 or there.aborted)
        assert not there.aborted
        await eventually(lambda: there.aborted)  # nobody answers the second one
        watching.cancel()

    asyncio.run(main())


def test_bytes_are_a_sign_of_life_whatever_they_are_part_of(hasty: None) -> None:
    async def main() -> None:
        there = Standing()
        watching = await watched(there)
        there.came = monotonic()  # of a message so long that the answer waits behind it
        await eventually(lambda: len(there.pongs) > 1 or there.aborted)
        assert not there.aborted
        watching.cancel()

    asyncio.run(main())


def test_when_bytes_came_last_is_known(hasty: None) -> None:
    async def part_by_part(peer: Peer) -> None:
        await peer.greet()
        await peer.until(m.Ping)
        await peer.socket.pong()  # which no message is
        await peer.until(m.CloseSession)

    async def main() -> None:
        async with stub(part_by_part) as url:
            there, _ = await dial(Address(url, "json", PATIENCE), m.Hello())
            since = there._socket.came
            await there.send(m.Ping(1.0))
            await eventually(lambda: there._socket.came > since)
            await there.send(m.CloseSession())

    asyncio.run(main())


def test_one_that_answers_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vigil, "SILENCE", 0.05)
    monkeypatch.setattr(link, "PATIENCE", PATIENCE)
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


def test_a_client_that_stood_still_looks_again_before_it_gives_an_attempt_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def arrive_late(url: str, *, create_connection: Any, **options: Any) -> Any:
        time.sleep(0.3)  # the whole process; the other machine has long answered
        for _ in range(5):  # turns of the loop, until that has been read
            await asyncio.sleep(0)
        create_connection.keywords["there"].set()
        await asyncio.Event().wait()

    monkeypatch.setattr(link, "websocket_connect", arrive_late)

    async def main() -> None:
        with pytest.raises(ConnectionFailed, match=r"did not answer within 0\.5 s"):
            await dial(Address("ws://127.0.0.1:9/", "json", 0.5), m.Hello(), reach=0.25)

    asyncio.run(main())


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_a_machine_is_reached_when_its_kernel_has_taken_the_connection(scheme: str) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as busy:  # accepts nothing, says nothing
            address = Address(f"{scheme}://127.0.0.1:{busy.getsockname()[1]}/", "json", 0.0)
            there = asyncio.Event()
            opening = asyncio.create_task(link._open(address, there))
            await eventually(there.is_set)
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)

    asyncio.run(main())


def test_a_proxy_that_may_be_busy_is_not_hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert not direct("wss://speech.example/")
    monkeypatch.setenv("no_proxy", "speech.example")
    assert direct("wss://speech.example/")
    assert direct("what is this"), "whoever opens it says so"
    monkeypatch.delenv("no_proxy")
    monkeypatch.setattr(link, "websocket_connect", hang)

    async def main() -> None:
        with pytest.raises(ConnectionFailed, match=r"did not answer within 0\.2 s"):
            await dial(Address("wss://speech.example/", "json", 0.2), m.Hello(), reach=0.01)

    asyncio.run(main())


def test_a_way_back_that_leads_nowhere_is_tried_anew(
    calm_again: None, monkeypatch: pytest.MonkeyPatch
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
