"""A session whose server goes away goes on at another, from the last word that had arrived."""

import asyncio
from typing import Any

import numpy as np
import pytest
from client_stub import Peer, stub, tone
from machine import PATIENCE
from playhead import client as api
from playhead.client import connect
from playhead.client.link import at_node
from playhead.client.moving import Epochs, Moved
from playhead.client.script import END, FLUSH, Script
from playhead.client.utterance import AudioMessage
from playhead.gateway import messages as m

PCM = tone(4800)
TEXT = "One two three."


def run(case: Any) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await case

    asyncio.run(bounded())


def word(text: str, position: int, start: int) -> m.SpokenWord:
    return m.SpokenWord(text=text, position=position, char_start=start, char_end=start + len(text))


async def begin(peer: Peer, epoch: int = 1) -> m.Hello:
    """Take an utterance and make the sound of its first two words."""
    hello = await peer.greet()
    await peer.started(epoch)
    await peer.until(m.End)
    data = (PCM * 32767).astype("<i2").tobytes()
    words = (word("One", 0, 0), word("two", 2400, 4))
    await peer.audio(epoch, 0, 0, data, len(PCM), words=words)
    return hello


async def finish(peer: Peer, hello: m.Hello, epoch: int = 1) -> str:
    """Speak all of an utterance; the text that was sent for it."""
    await peer.started(epoch)
    await peer.until(m.End)
    data = (PCM * 32767).astype("<i2").tobytes()
    await peer.audio(epoch, 0, 0, data, len(PCM), True, words=(word("two", 0, 0), word("t", 9, 4)))
    await peer.done(epoch, len(PCM))
    return peer.sent_text()


def two_servers(first: Any, texts: list[str]) -> Any:
    async def script(peer: Peer) -> None:
        if peer.number == 0:
            await first(peer)
            return
        hello = await peer.receive()
        assert isinstance(hello, m.Hello)
        if hello.resume is not None:
            await peer.send(m.ErrorEvent(code="resume_failed", message="gone", expected="new"))
            await peer.socket.close(4001, "resume failed")
            return
        from client_stub import ready_for

        await peer.send(ready_for(hello, session="another"))
        texts.append(await finish(peer, hello))
        await peer.until(m.CloseSession)

    return script


async def killed(peer: Peer) -> None:
    await begin(peer)
    await peer.until(m.PlaybackReport)
    peer.drop()


async def restarted(peer: Peer) -> None:
    await begin(peer)
    await peer.socket.close(1012, "server is shutting down")


@pytest.mark.parametrize("first", [killed, restarted])
def test_what_had_not_arrived_is_spoken_again_from_the_last_word(first: Any) -> None:
    texts: list[str] = []
    events: list[Any] = []

    async def case() -> None:
        async with (
            stub(two_servers(first, texts)) as url,
            connect(url, on_event=events.append) as voice,
        ):
            utterance = voice.speak(TEXT)
            parts: list[AudioMessage] = [part async for part in utterance]
            assert isinstance(await utterance.done(), api.Done)
            assert texts == ["two three."]
            assert [part.epoch for part in parts] == [1, 2]
            assert [w.char_start for part in parts for w in part.words] == [0, 4, 4, 8]
            assert np.concatenate([part.pcm for part in parts]).shape == (2 * len(PCM),)
            assert events == [Moved("another", 1)]
            assert not events[0].recovered
            assert voice.resumptions == 0

    run(case())


def test_a_server_that_drains_is_left_when_it_has_spoken() -> None:
    texts: list[str] = []

    async def first(peer: Peer) -> None:
        hello = await peer.greet()
        await peer.started(1)
        await peer.number_and_send(m.Draining, deadline=30_000.0)
        await peer.until(m.Start)  # was on its way
        await peer.number_and_send(m.Started, epoch=2, id="u2")
        await peer.number_and_send(
            m.Failed,
            epoch=2,
            code="draining",
            message="",
            expected="",
            heard=0,
            heard_text="",
            unheard_text="",
        )
        await peer.speak(1, PCM, hello)
        await peer.done(1, len(PCM))
        await peer.socket.wait_closed()

    async def case() -> None:
        async with stub(two_servers(first, texts)) as url, connect(url) as voice:
            one, two = voice.speak("First."), voice.speak("Second.")
            assert isinstance(await one.done(), api.Done)
            assert isinstance(await two.done(), api.Done)
            assert texts == ["Second."]

    run(case())


def test_a_refused_start_is_spoken_by_the_next_server() -> None:
    texts: list[str] = []

    async def first(peer: Peer) -> None:
        await peer.greet()
        await peer.until(m.Start)
        await peer.send(m.ErrorEvent(code="draining", message="going", expected="later"))
        await peer.number_and_send(m.Draining, deadline=30_000.0)
        await peer.socket.wait_closed()

    async def case() -> None:
        async with stub(two_servers(first, texts)) as url, connect(url) as voice:
            assert isinstance(await voice.speak(TEXT).done(), api.Done)
            assert texts == [TEXT]

    run(case())


def test_what_was_cut_or_complete_is_not_spoken_again() -> None:
    async def first(peer: Peer) -> None:
        hello = await begin(peer)
        await peer.speak(1, PCM, hello)
        await peer.until(m.Pause)
        peer.drop()

    async def second(peer: Peer) -> None:
        if peer.number == 0:
            await first(peer)
            return
        hello = await peer.receive()
        assert isinstance(hello, m.Hello)
        if hello.resume is not None:
            await peer.send(m.ErrorEvent(code="resume_failed", message="gone", expected="new"))
            await peer.socket.close(4001, "resume failed")
            return
        from client_stub import ready_for

        await peer.send(ready_for(hello))
        assert isinstance(await peer.until(m.Pause), m.Pause)
        assert isinstance(await peer.receive(), m.CloseSession)

    async def case() -> None:
        async with stub(second) as url, connect(url) as voice:
            spoken, cut = voice.speak(TEXT), voice.speak("More.")
            await spoken.read()
            voice.pause()
            outcome = await cut.cancel()
            assert (outcome.heard_text, outcome.unheard_text) == ("", "More.")
            assert isinstance(await spoken.done(), api.Done)

    run(case())


def test_the_way_back_names_the_node() -> None:
    url = "ws://h:1/v1/session"
    assert at_node(url, "secret") == url
    assert at_node(url, "n-1.secret") == url + "?node=n-1"
    assert at_node(url + "?a=b&node=old", "n-1.secret") == url + "?a=b&node=n-1"


def test_epochs_never_repeat() -> None:
    epochs = Epochs()
    started = m.Started(seq=1, epoch=2)
    assert epochs.incoming(started) is started
    cancel = m.Cancel(epoch=2)
    assert epochs.outgoing(cancel) is cancel
    epochs.moved()
    again = epochs.incoming(m.Started(seq=1, epoch=1))
    assert isinstance(again, m.Started)
    assert again.epoch == 3
    assert epochs.outgoing(cancel) is None
    assert epochs.outgoing(m.Cancel(epoch=3)) == m.Cancel(epoch=1)
    assert epochs.outgoing(m.Cancel()) == m.Cancel()
    assert epochs.outgoing(m.End()) == m.End()
    warned = epochs.incoming(m.Warn(seq=2, code="c", message="", epoch=1))
    assert isinstance(warned, m.Warn)
    assert warned.epoch == 3
    plain = m.Warn(seq=2, code="c", message="")
    assert epochs.incoming(plain) is plain


@pytest.mark.parametrize(
    ("given", "taken", "again"),
    [
        (("One two", END), 9, ["two", "End"]),
        (("One two", FLUSH), 9, ["two", "Flush"]),
        (("One two", FLUSH, " more"), 2, ["two", "Flush", " more"]),
        (("One two", FLUSH, " more"), 9, ["two more"]),
        (("One two",), 9, ["two"]),
        (("One two", "", END), 0, ["One two", "End"]),
    ],
)
def test_a_script_rewinds(given: tuple[Any, ...], taken: int, again: list[str]) -> None:
    def named(message: Any) -> str:
        return message.text if isinstance(message, m.Text) else type(message).__name__

    script = Script()
    for piece in given[:taken]:
        script.add(piece)
    if taken:
        count = len(list(script.take(2000, 10_000)))
        assert count
    for piece in given[taken:]:
        script.add(piece)
    script.started = True
    script.rewind(4 if taken else 0)
    assert not script.started
    assert [named(message) for message in script.take(2000, 10_000)] == again
