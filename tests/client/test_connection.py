"""The client's session against a scripted server: real sockets, no engine."""

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from client_stub import READY, Peer, stub, tone
from machine import PATIENCE, undisturbed
from playhead import client as api
from playhead.client import connect
from playhead.client.link import endpoint
from playhead.engine.types import Lane, ListenerState
from playhead.gateway import messages as m
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

PCM = tone(9600)


def run(case: Coroutine[Any, Any, None]) -> None:
    """Every case has to end by itself, and soon."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await case

    asyncio.run(bounded())


async def serve_one(peer: Peer) -> None:
    """Speak PCM for each utterance until the client goes."""
    hello = await peer.greet()
    epoch = 0
    while True:
        epoch += 1
        await peer.started(epoch)
        await peer.until(m.End)
        await peer.speak(epoch, PCM, hello)
        await peer.done(epoch, len(PCM))


@pytest.mark.parametrize(
    ("encoding", "binary_audio"), [("msgpack", False), ("json", False), ("json", True)]
)
@pytest.mark.parametrize(
    ("codec", "sample_rate", "error"),
    [("pcm_s16le", 24000, 1e-4), ("pcm_f32le", 24000, 0.0), ("opus", 24000, 0.2)],
)
def test_sound_comes_back_as_it_was_made(
    encoding: Any, binary_audio: bool, codec: str, sample_rate: int, error: float
) -> None:
    async def case() -> None:
        async with (
            stub(serve_one) as url,
            connect(
                url,
                encoding=encoding,
                binary_audio=binary_audio,
                codec=codec,
                sample_rate=sample_rate,
            ) as voice,
        ):
            utterance = voice.speak("Hello there.")
            pcm = await utterance.read()
            assert pcm.dtype == np.float32
            assert pcm.shape == PCM.shape
            assert np.abs(pcm - PCM).max() <= error
            outcome = await utterance.done()
            assert outcome == api.Done(len(PCM), len(PCM), False, "complete")

    run(case())


def test_messages_carry_position_words_lane_slack_and_depth() -> None:
    word = m.SpokenWord(text="Hi", position=480, char_start=0, char_end=2)

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.started(7)
        await peer.audio(
            7, 0, 0, bytes(4), 2, words=(word,), lane=Lane.URGENT, slack=-20.0, depth=80.0
        )
        await peer.audio(7, 1, 2, b"", 0, True)
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            utterance = voice.speak("Hi")
            first, last = [message async for message in utterance]
            assert utterance.epoch == 7
            assert (first.position, first.lane, first.slack, first.depth) == (
                0,
                Lane.URGENT,
                -0.02,
                0.08,
            )
            assert first.words == (word,)
            assert not first.final
            assert (last.position, last.slack, last.final, len(last.pcm)) == (2, None, True, 0)

    run(case())


def test_hello_and_start_say_what_was_asked_for() -> None:
    seen: list[Any] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.greet(voices=("ann", "bob")))
        seen.append(await peer.started(1))
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with (
            stub(script) as url,
            connect(
                url, voice="ann", speed=1.5, start_threshold=0.25, playback_rate=0.9, reports=False
            ) as voice,
        ):
            await voice.open(voice="bob", speed=0.8).opened()

    run(case())
    hello, start = seen
    assert hello == m.Hello(
        voice="ann", speed=1.5, start_threshold=250.0, playback_rate=0.9, reports=False
    )
    assert (start.voice, start.speed) == ("bob", 0.8)


def test_text_streams_in_order_and_long_text_in_pieces() -> None:
    texts: list[list[Any]] = []

    async def script(peer: Peer) -> None:
        await peer.greet(limits={"text_message": 4})
        for epoch in (1, 2):
            await peer.started(epoch)
            await peer.until(m.End)
        texts.append([x for x in peer.got if isinstance(x, m.Start | m.Text | m.Flush | m.End)])
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            first, second = voice.open(), voice.speak("Next.")
            first.send("Hello ")
            first.send("")
            first.send("world")
            first.flush()
            await asyncio.sleep(0.05)
            assert second.epoch is None
            first.send("!")
            first.end()
            first.end()
            await second.opened()
            assert (first.text, second.epoch) == ("Hello world!", 2)
            with pytest.raises(ValueError, match="no more text"):
                first.send("x")

    run(case())
    parts = [x.text if isinstance(x, m.Text) else x.type for x in texts[0]]
    first = ["start", "Hell", "o ", "worl", "d", "flush", "!", "end"]
    assert parts == [*first, "start", "Next", ".", "end"]


def test_does_not_flood_the_server_with_text() -> None:
    """Text beyond ``text_waiting`` waits until what was sent before has become sound."""
    got: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.greet(limits={"text_message": 10, "text_waiting": 20, "text_utterance": 50})
        await peer.started(1)
        while len(peer.sent_text()) < 20:
            await peer.receive()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await peer.until(m.End)
        got.append(len(peer.sent_text()))
        word = m.SpokenWord(text="x", position=0, char_start=0, char_end=10)
        await peer.audio(1, 0, 0, bytes(2), 1, words=(word,))
        await peer.until(m.Text)
        got.append(len(peer.sent_text()))
        await peer.number_and_send(
            m.Warn, epoch=1, code="unspeakable_text", message="?", text="y" * 20
        )
        await peer.until(m.End)
        got.append(len(peer.sent_text()))
        await peer.until(m.CloseSession)

    async def case() -> None:
        events: list[Any] = []
        async with stub(script) as url, connect(url, on_event=events.append) as voice:
            utterance = voice.speak("x" * 45)
            with pytest.raises(ValueError, match="at most 50"):
                voice.speak("x" * 51)
            async for _ in utterance:
                break
            while not utterance.warnings:
                await asyncio.sleep(0.01)
            assert events == utterance.warnings
            await asyncio.sleep(0.05)

    run(case())
    assert got == [20, 30, 45]


def test_cancel_tells_what_was_heard_and_drops_what_waits() -> None:
    cancels: list[m.Cancel] = []
    most: list[float] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        await peer.audio(1, 0, 0, bytes(2 * 48000), 48000)
        await peer.until(m.Text)
        cancel = await peer.until(m.Cancel)
        cancels.append(cancel)
        await peer.number_and_send(
            m.Cancelled,
            epoch=1,
            heard=cancel.heard,
            heard_text="One ",
            unheard_text="two",
            estimated=False,
        )
        await peer.started(2)
        await peer.until(m.CloseSession)
        assert peer.sent_text() == "One twoNew."

    async def case() -> None:
        async with stub(script) as url, connect(url, start_threshold=0.0) as voice:
            utterance = voice.open()
            utterance.send("One two")
            waiting = voice.speak("three")
            began = time.monotonic()
            async for _ in utterance:
                break
            await asyncio.sleep(0.1)
            cancelled = await utterance.cancel()
            most.append((time.monotonic() - began) * 24_000)
            assert (cancelled.heard_text, cancelled.unheard_text) == ("One ", "two")
            assert await waiting.done() == api.Cancelled(0, "", "three", False)
            assert await utterance.cancel() == cancelled
            assert [part async for part in utterance] == []
            counters = utterance.counters
            assert counters is not None
            assert counters.heard == cancelled.heard
            assert counters.discarded == 48000 - counters.consumed
            await voice.speak("New.").opened()

    run(case())
    heard = cancels[0].heard
    assert heard is not None
    assert 2400 <= heard <= min(48000, most[0])
    assert cancels[0].epoch == 1


def test_cancel_before_the_server_has_opened_it() -> None:
    """Found in review: what was spoken next was cut along with it."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        start = await peer.until(m.Start)
        await asyncio.sleep(0.1)
        assert len(peer.got) == 2
        await peer.number_and_send(m.Started, epoch=1, id=start.id)
        assert (await peer.until(m.Cancel)).epoch == 1
        assert peer.sent_text() == "Unwanted."
        await peer.number_and_send(
            m.Cancelled,
            epoch=1,
            heard=0,
            heard_text="",
            unheard_text="Unwanted.",
            estimated=False,
        )
        await peer.started(2)
        await peer.until(m.End)
        assert peer.sent_text() == "Unwanted.Wanted."
        await peer.done(2, 0)
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            utterance = voice.open()
            utterance.send("Unwanted.")
            cancelling = asyncio.create_task(utterance.cancel())
            await asyncio.sleep(0.05)
            following = voice.speak("Wanted.")
            assert (await cancelling).unheard_text == "Unwanted."
            assert isinstance(await following.done(), api.Done)

    run(case())


def test_what_waits_at_the_client_can_be_cancelled_there() -> None:
    """No more than two utterances are opened at a time; the third is known to nobody."""

    async def script(peer: Peer) -> None:
        hello = await peer.greet()
        for epoch in (1, 2):
            await peer.started(epoch)
        await peer.speak(1, PCM, hello)
        await peer.until(m.CloseSession)
        assert sum(isinstance(message, m.Start) for message in peer.got) == 2
        assert not any(isinstance(message, m.Cancel) for message in peer.got)

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            first, second, third, fourth = [voice.speak(f"Number {n}.") for n in range(4)]
            await second.opened()
            assert await third.cancel() == api.Cancelled(0, "", "Number 2.", False)
            assert await fourth.done() == api.Cancelled(0, "", "Number 3.", False)
            assert len(await first.read()) == len(PCM)

    run(case())


def test_iterating_again_ends_at_once() -> None:
    """Found in review: a third iteration waited for ever."""

    async def case() -> None:
        async with stub(serve_one) as url, connect(url) as voice:
            utterance = voice.speak("Hello.")
            assert len(await utterance.read()) == len(PCM)
            for _ in range(3):
                assert len(await utterance.read()) == 0

    run(case())


def test_cancel_after_the_end_gives_the_whole_text_as_heard() -> None:
    async def case() -> None:
        async with stub(serve_one) as url, connect(url) as voice:
            utterance = voice.speak("All of it.")
            await utterance.done()
            cancelled = await utterance.cancel()
            assert (cancelled.heard_text, cancelled.unheard_text) == ("All of it.", "")

    run(case())


def reported() -> list[m.PlaybackReport]:
    """What the player of 0.4 s of sound tells."""
    reports: list[m.PlaybackReport] = []

    async def script(peer: Peer) -> None:
        hello = await peer.greet()
        await peer.started(1)
        await peer.speak(1, PCM, hello)
        while not (peer.reports() and peer.reports()[-1].state is ListenerState.DRAINED):
            await peer.receive()
        reports.extend(peer.reports())
        await peer.done(1, len(PCM))
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url, start_threshold=0.1) as voice:
            await voice.speak("Hello.").done()

    run(case())
    return reports


def played_for(reports: list[m.PlaybackReport]) -> float:
    """Milliseconds from the first report of playing to the last of all; 0 where none told of it."""
    last = reports[-1].time
    return last - next((r.time for r in reports if r.state is ListenerState.PLAYING), last)


def test_reports_follow_the_player() -> None:
    def off() -> float:
        """Seconds by which a player of 0.4 s of sound says that it played longer or shorter. One
        that is kept waiting plays on without a word, and tells of both ends later."""
        reports = reported()
        last = reports[-1]
        assert (last.received, last.consumed, last.heard, last.buffered) == (9600, 9600, 9600, 0)
        assert last.seq == 7  # started, five chunks, the flushed end
        assert last.echo is not None
        assert last.hold is not None
        assert all(r.received == r.consumed + r.discarded + r.buffered for r in reports)
        assert len(reports) < 10
        found = abs(played_for(reports) - 400) / 1000
        states = (ListenerState.PREBUFFER, ListenerState.PLAYING)
        assert reports[0].state in states or found >= 0.06, "it tells of its start"
        return found

    undisturbed(off, below=0.06)


def test_without_reports_what_has_arrived_is_acknowledged() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        while (await peer.until(m.Ack)).seq < 1:
            pass
        await peer.until(m.CloseSession)
        assert peer.reports() == []

    async def case() -> None:
        async with stub(script) as url, connect(url, reports=False) as voice:
            await voice.speak("Hello.").opened()
            await asyncio.sleep(0.1)

    run(case())


def test_pause_and_resume_hold_the_player_and_tell_the_server() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        await peer.audio(1, 0, 0, bytes(2 * 240_000), 240_000)
        await peer.until(m.Pause)
        await peer.until(m.ResumePlayback)
        await peer.until(m.CloseSession)
        states = [report.state for report in peer.reports()]
        assert ListenerState.PAUSED in states
        assert states[-1] in (ListenerState.PLAYING, ListenerState.PAUSED)

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            utterance = voice.speak("Hello.")
            async for _ in utterance:
                break
            voice.pause()
            before = utterance.counters
            await asyncio.sleep(0.1)
            assert utterance.counters == before
            voice.resume()
            await asyncio.sleep(0.1)
            after = utterance.counters
            assert before is not None
            assert after is not None
            assert after.consumed > before.consumed

    run(case())


def test_ping_takes_the_servers_own_time_off() -> None:
    """Whatever it takes on the way, the server's 200 ms are not in it."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        ping = await peer.until(m.Ping)
        await asyncio.sleep(0.2)
        await peer.send(m.Pong(time=ping.time, received=5000.0, sent=5200.0))
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            began = time.monotonic()
            found = await voice.ping()
            assert -0.001 < found <= time.monotonic() - began - 0.2

    run(case())


def test_failed_utterance_raises_and_the_session_goes_on() -> None:
    async def script(peer: Peer) -> None:
        hello = await peer.greet()
        await peer.started(1)
        await peer.number_and_send(
            m.Failed,
            epoch=1,
            code="overloaded",
            message="full",
            expected="later",
            heard=0,
            heard_text="",
            unheard_text="Hello.",
            retry_after=1500.0,
        )
        await peer.started(2)
        await peer.speak(2, PCM, hello)
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            utterance = voice.speak("Hello.")
            with pytest.raises(api.UtteranceFailed) as caught:
                await utterance.read()
            assert (caught.value.code, caught.value.retry_after) == ("overloaded", 1.5)
            assert caught.value.unheard_text == "Hello."
            assert len(await voice.speak("Again.").read()) == len(PCM)

    run(case())


def test_refused_start_fails_that_utterance_alone() -> None:
    async def script(peer: Peer) -> None:
        hello = await peer.greet()
        await peer.started(1)
        await peer.until(m.Start)
        await peer.send(m.ErrorEvent(code="overloaded", message="full", expected="later"))
        await peer.speak(1, PCM, hello)
        await peer.until(m.CloseSession)

    async def case() -> None:
        events: list[Any] = []
        async with stub(script) as url, connect(url, on_event=events.append) as voice:
            first, second = voice.speak("One."), voice.speak("Two.")
            with pytest.raises(api.ServerError, match="full"):
                await second.done()
            assert len(await first.read()) == len(PCM)
            assert [event.code for event in events] == ["overloaded"]

    run(case())


def test_unknown_voice_is_refused_before_anything_is_sent() -> None:
    async def case() -> None:
        async with stub(serve_one) as url, connect(url) as voice:
            with pytest.raises(api.ServerError, match="one of stub"):
                voice.speak("Hello.", voice="nobody")
            assert len(await voice.speak("Hello.").read()) == len(PCM)

    run(case())


def test_error_and_draining_events_reach_the_caller() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.send(m.ErrorEvent(code="bad_value", message="no", expected="yes"))
        await peer.number_and_send(m.Draining, deadline=5000.0)
        await peer.until(m.CloseSession)

    async def case() -> None:
        events: list[Any] = []
        async with stub(script) as url, connect(url, on_event=events.append, recover=False):
            while len(events) < 2:
                await asyncio.sleep(0.01)
        assert [event.type for event in events] == ["error", "draining"]

    run(case())


# ---------------------------------------------------------------- coming back


def resume_script(first: Any, second: Any) -> Any:
    async def script(peer: Peer) -> None:
        await (first if peer.number == 0 else second)(peer)

    return script


def test_dropped_socket_resumes_without_loss_or_repetition() -> None:
    """The drop loses text in one direction and audio in the other; both come again."""
    position = 1920

    async def first(peer: Peer) -> None:
        hello = await peer.greet()
        await peer.started(1)
        assert (await peer.until(m.Text)).text == "One."
        await peer.audio(1, 0, 0, (PCM[:position] * 32767).astype("<i2").tobytes(), position)
        while (await peer.until(m.PlaybackReport)).received < position:
            pass
        peer.drop()
        assert hello.resume is None

    async def second(peer: Peer) -> None:
        # start and text had arrived: two messages; the report of playing had not
        hello = await peer.greet(token="t2", resumed=True, received=2)
        assert hello.resume == m.ResumeFrom("s1", "t1", 2)
        await peer.until(m.End)
        assert peer.sent_text() == "Two."
        peer.seq = 1
        rest = (PCM[position:] * 32767).astype("<i2").tobytes()
        await peer.audio(1, 0, 0, bytes(2 * position), position)  # seq 2 again: to be dropped
        await peer.audio(1, 1, position, rest, len(PCM) - position, True)
        await peer.done(1, len(PCM))
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(resume_script(first, second)) as url, connect(url) as voice:
            utterance = voice.open()
            utterance.send("One.")
            reading = asyncio.create_task(utterance.read())
            while not voice.resumptions:
                await asyncio.sleep(0.01)
                if utterance.counters and not utterance.script.closed:
                    utterance.send("Two.")
                    utterance.end()
            pcm = await reading
            assert np.abs(pcm - PCM).max() < 1e-4
            await utterance.done()

    run(case())


def test_reports_lost_with_the_socket_are_made_again() -> None:
    """Found in review: the server would have had to guess that all had been played."""
    states = []

    async def first(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        await peer.audio(1, 0, 0, bytes(2 * 480), 480, True)
        peer.drop()

    async def second(peer: Peer) -> None:
        await asyncio.sleep(0.2)  # all has been played, and told to nobody
        await peer.greet(received=3)
        states.append((await peer.until(m.PlaybackReport)).state)
        peer.seq = 2
        await peer.done(1, 480)
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(resume_script(first, second)) as url, connect(url) as voice:
            await voice.speak("Hi.").done()

    run(case())
    assert states == [ListenerState.DRAINED]


def test_keeps_trying_until_the_server_is_back() -> None:
    async def case() -> None:
        drops = 0

        async def script(peer: Peer) -> None:
            nonlocal drops
            if peer.number in (1, 2):
                drops += 1
                peer.drop()
                return
            await peer.greet()
            if peer.number == 0:
                peer.drop()
            await peer.until(m.CloseSession)

        async with stub(script) as url, connect(url) as voice:
            while not voice.resumptions:
                await asyncio.sleep(0.01)
            assert drops == 2

    run(case())


def test_failed_resume_tells_what_was_heard() -> None:
    async def first(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        peer.drop()

    async def second(peer: Peer) -> None:
        await peer.receive()
        await peer.send(
            m.ErrorEvent(
                code="resume_failed",
                message="gone",
                expected="a new session",
                epoch=1,
                recovered=False,
                reason="ended",
                heard=480,
                heard_text="One ",
                unheard_text="two.",
            )
        )
        await peer.socket.close(4001, "resume_failed")

    async def case() -> None:
        async with (
            stub(resume_script(first, second)) as url,
            connect(url, recover=False) as voice,
        ):
            utterance = voice.speak("One two.")
            with pytest.raises(api.ResumeFailed) as caught:
                await utterance.done()
            assert (caught.value.heard, caught.value.heard_text) == (480, "One ")
            assert (caught.value.recovered, caught.value.reason) == (False, "ended")
            assert caught.value.told_by == "server"
            with pytest.raises(api.ResumeFailed):
                voice.speak("More.")
            with pytest.raises(api.ResumeFailed):
                await voice.ping()

    run(case())


def test_what_a_restarted_server_does_not_know_is_told_by_the_player() -> None:
    async def first(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        words = tuple(
            m.SpokenWord(text=text, position=at, char_start=start, char_end=start + len(text))
            for text, at, start in (("One", 0, 0), ("two", 48_000, 4))
        )
        await peer.audio(1, 0, 0, bytes(192_000), 96_000, words=words)
        while (await peer.until(m.PlaybackReport)).heard == 0:
            pass
        peer.drop()

    async def second(peer: Peer) -> None:
        await peer.receive()
        await peer.send(
            m.ErrorEvent(
                code="resume_failed",
                message="gone",
                expected="new",
                recovered=False,
                reason="unknown",
            )
        )
        await peer.socket.close(4001, "resume_failed")

    async def case() -> None:
        async with (
            stub(resume_script(first, second)) as url,
            connect(url, recover=False, start_threshold=0.0) as voice,
        ):
            utterance = voice.speak("One two.")
            behind = voice.speak("Three.")
            with pytest.raises(api.ResumeFailed) as caught:
                await utterance.done()
            lost = caught.value
            assert (lost.recovered, lost.reason, lost.told_by) == (False, "unknown", "client")
            assert (lost.heard_text, lost.unheard_text) == ("One", " two.")
            assert lost.heard is not None
            assert 0 < lost.heard < 48_000
            with pytest.raises(api.ResumeFailed) as caught:
                await behind.done()
            assert (caught.value.heard, caught.value.unheard_text) == (0, "Three.")

    run(case())


def test_gives_up_when_the_grace_time_is_over() -> None:
    async def case() -> None:
        async def script(peer: Peer) -> None:
            if peer.number == 0:
                await peer.greet(grace=100.0)
            peer.drop()

        async with stub(script) as url, connect(url) as voice:
            with pytest.raises(api.ConnectionLost, match="no way back"):
                await voice.speak("Hello.").done()

    run(case())


@pytest.mark.parametrize("code", [1000, 1008, 1012, 4000])
def test_a_final_close_ends_the_session(code: int) -> None:
    async def script(peer: Peer) -> None:
        assert peer.number == 0
        await peer.greet()
        await peer.started(1)
        await peer.socket.close(code, "bye")

    async def case() -> None:
        async with stub(script) as url, connect(url, recover=False) as voice:
            with pytest.raises(api.ConnectionLost, match="bye") as caught:
                await voice.speak("Hello.").done()
            assert caught.value.code == code

    run(case())


def test_a_gap_in_the_numbering_is_not_papered_over() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        peer.seq = 4
        await peer.started(1)
        await peer.socket.wait_closed()

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            with pytest.raises(api.ConnectionLost, match="message 1 is missing"):
                await voice.speak("Hello.").done()

    run(case())


def test_leaving_the_block_ends_the_session_and_its_utterances() -> None:
    closed = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        await peer.until(m.CloseSession)
        closed.append(True)

    async def case() -> None:
        async with stub(script) as url:
            async with connect(url) as voice:
                utterance = voice.speak("Hello.")
                await utterance.opened()
            for ask in (utterance.done, voice.ping, utterance.read):
                with pytest.raises(api.PlayheadError, match="the session was closed"):
                    await ask()
            with pytest.raises(api.PlayheadError, match="the session was closed"):
                voice.open()

    run(case())
    assert closed == [True]


# ---------------------------------------------------------------- no session


def test_nobody_listens() -> None:
    async def case() -> None:
        with pytest.raises(api.ConnectionFailed, match="connection refused"):
            async with connect("ws://127.0.0.1:9/v1/session"):
                pass

    run(case())


def test_hello_refused() -> None:
    async def script(peer: Peer) -> None:
        await peer.receive()
        await peer.send(
            m.ErrorEvent(
                code="bad_value", message="speed is 9", expected="at most 2", field="speed"
            )
        )

    async def case() -> None:
        async with stub(script) as url:
            with pytest.raises(api.ServerError, match="expected: at most 2") as caught:
                async with connect(url, speed=2.0):
                    pass
            assert caught.value.field == "speed"

    run(case())


async def serve_nobody(_: ServerConnection) -> None:
    raise AssertionError("nobody gets this far")


def test_server_full_says_when_to_come_again() -> None:
    def full(connection: ServerConnection, request: Request) -> Response:
        response = connection.respond(503, "full\n")
        response.headers["Retry-After"] = "3"
        return response

    async def case() -> None:
        async with serve(
            lambda _: asyncio.sleep(0), "127.0.0.1", 0, process_request=full
        ) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(api.ConnectionFailed, match="503") as caught:
                async with connect(f"ws://127.0.0.1:{port}/"):
                    pass
            assert (caught.value.status, caught.value.retry_after) == (503, 3.0)

    run(case())


@pytest.mark.parametrize(
    ("asked", "waits"),
    [("1", 0.99), ("9", 1.5)],
    ids=["within the grace time", "beyond it: once more at its end"],
)
def test_who_is_asked_to_come_again_later_does_so(asked: str, waits: float) -> None:
    """And not after its own first pause. The grace time is 2 s."""
    came: list[float] = []

    def busy(connection: ServerConnection, request: Request) -> Response | None:
        came.append(time.monotonic())
        if len(came) != 2:
            return None
        response = connection.respond(503, "starting\n")
        response.headers["Retry-After"] = asked
        return response

    async def first(peer: Peer) -> None:
        await peer.greet()
        peer.drop()

    async def second(peer: Peer) -> None:
        await peer.greet(token="t2", resumed=True)
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(resume_script(first, second), busy) as url, connect(url) as voice:
            while not voice.resumptions:
                await asyncio.sleep(0.01)

    run(case())
    assert len(came) == 3
    assert came[2] - came[1] > waits


def test_bad_url() -> None:
    async def case() -> None:
        with pytest.raises(api.ConnectionFailed, match="no Playhead endpoint") as caught:
            async with connect("gopher://me:hush@127.0.0.1:1/?ticket=hush"):
                pass
        assert "hush" not in str(caught.value)

    run(case())


@pytest.mark.parametrize(
    ("url", "full"),
    [
        ("ws://host:1", "ws://host:1/v1/session"),
        ("http://host:1/", "ws://host:1/v1/session"),
        ("https://host", "wss://host/v1/session"),
        ("wss://host/behind/a/proxy?key=1", "wss://host/behind/a/proxy?key=1"),
    ],
)
def test_url_may_leave_out_what_goes_without_saying(url: str, full: str) -> None:
    assert endpoint(url) == full


def test_no_such_host() -> None:
    async def case() -> None:
        with pytest.raises(api.ConnectionFailed, match=r"cannot connect to ws://\*\*\*@nowhere"):
            async with connect("ws://me:hush@nowhere.invalid?ticket=hush"):
                pass

    run(case())


def test_silent_server_runs_into_the_timeout() -> None:
    async def script(peer: Peer) -> None:
        await peer.socket.wait_closed()

    async def case() -> None:
        async with stub(script) as url:
            with pytest.raises(api.ConnectionFailed, match=r"within 0.1 s"):
                async with connect(url, timeout=0.1):
                    pass

    run(case())


def test_server_that_hangs_up_at_once() -> None:
    async def script(peer: Peer) -> None:
        await peer.socket.close(1013, "try again later")

    async def case() -> None:
        async with stub(script) as url:
            with pytest.raises(api.ConnectionFailed, match="try again later"):
                async with connect(url):
                    pass

    run(case())


def test_server_that_breaks_the_protocol() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.socket.send("not msgpack")
        await peer.socket.wait_closed()

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            with pytest.raises(api.ConnectionLost, match="broke the protocol"):
                await voice.speak("Hello.").done()

    run(case())


def test_audio_that_is_none() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.started(1)
        await peer.audio(1, 0, 0, bytes(3), 2)
        await peer.socket.wait_closed()

    async def case() -> None:
        async with stub(script) as url, connect(url) as voice:
            with pytest.raises(api.ConnectionLost, match="audio that is none"):
                await voice.speak("Hello.").done()

    run(case())


def test_faults_of_the_callers_callback_are_raised() -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.number_and_send(m.Draining, deadline=0.0)
        await peer.until(m.CloseSession)

    def broken(event: Any) -> None:
        raise KeyError(event.type)

    async def converse(url: str) -> None:
        async with connect(url, on_event=broken) as voice:
            with pytest.raises(api.PlayheadError):
                await voice.ping()

    async def case() -> None:
        async with stub(script) as url:
            with pytest.raises(KeyError, match="draining"):
                await converse(url)

    run(case())


def test_events_are_logged_when_nobody_asks_for_them(caplog: pytest.LogCaptureFixture) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.number_and_send(m.Warn, code="x", message="mind the gap", epoch=99)
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url):
            while "mind the gap" not in caplog.text:
                await asyncio.sleep(0.01)

    run(case())


@pytest.mark.parametrize(
    "settings", [{"codec": "mp3"}, {"sample_rate": 11025}, {"codec": "mulaw", "sample_rate": 24000}]
)
def test_what_cannot_be_decoded_is_not_asked_for(settings: Any) -> None:
    async def case() -> None:
        with pytest.raises(ValueError, match=r"mp3|11025|8000"):
            async with connect("ws://127.0.0.1:9", **settings):
                pass

    run(case())


def test_what_is_not_ours_is_left_alone() -> None:
    """An utterance without our id, and the end of one that is unknown."""

    async def script(peer: Peer) -> None:
        hello = await peer.greet()
        await peer.number_and_send(m.Started, epoch=1)
        await peer.audio(1, 0, 0, bytes(2), 1, True)
        await peer.done(1, 1)
        await peer.send(m.Pong(time=1.0, received=0.0, sent=0.0))
        await peer.send(m.ErrorEvent(code="rate_limited", message="slower", expected="less"))
        await peer.started(2)
        await peer.speak(2, PCM, hello)
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url, on_event=lambda _: None) as voice:
            await asyncio.sleep(0.05)
            assert len(await voice.speak("Hello.").read()) == len(PCM)

    run(case())


def test_unknown_messages_are_ignored() -> None:
    async def script(peer: Peer) -> None:
        hello = await peer.receive()
        assert isinstance(hello, m.Hello)
        await peer.send(m.Pong(time=0.0, received=0.0, sent=0.0))
        await peer.socket.send('{"type":"of_the_future","x":1}')
        await peer.send(replace(READY, grace=10.0))
        await peer.socket.send('{"type":"of_the_future","x":1}')
        await peer.started(1)
        await peer.until(m.CloseSession)

    async def case() -> None:
        async with stub(script) as url, connect(url, encoding="json") as voice:
            await voice.speak("Hello.").opened()

    run(case())
