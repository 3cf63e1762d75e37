"""Sessions over real sockets: good clients, killed ones, deaf ones, noisy ones."""

import asyncio
import logging
import random
import time
from typing import Any

import numpy as np
import pytest
import uvloop
from fake_engine import CHUNK, RATE, wave
from harness import Client, Gateway, eventually, gateway
from machine import AT_ONCE
from playhead.codecs import registry as codecs
from playhead.engine.types import ListenerState
from playhead.gateway import flood
from playhead.gateway.limits import Limits
from playhead.gateway.messages import (
    Audio,
    Cancel,
    Cancelled,
    CloseSession,
    Done,
    End,
    ErrorEvent,
    Failed,
    Ping,
    PlaybackReport,
    Pong,
    Ready,
    ResumeFrom,
    Started,
    Text,
)
from playhead.gateway.settings import Settings
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliet "


def pcm16(words: int) -> bytes:
    """What a session of 16-bit PCM at the engine's rate hears of ``words`` words."""
    wire = codecs.open_format("pcm_s16le", RATE)
    encoder = codecs.encoder(wire, RATE)
    return encoder.encode(wave(0, words * CHUNK)).data + encoder.flush().data


def metric(running: Gateway, name: str, **labels: str) -> float:
    found = running.server.metrics.registry.get_sample_value(name, labels)
    assert found is not None, name
    return found


def played(epoch: int, samples: int) -> PlaybackReport:
    """All of an utterance has left the speaker."""
    return PlaybackReport(
        epoch=epoch,
        received=samples,
        consumed=samples,
        heard=samples,
        buffered=0,
        state=ListenerState.DRAINED,
        time=1.0,
    )


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
@pytest.mark.parametrize("binary_audio", [False, True])
def test_text_becomes_audio(encoding: str, binary_audio: bool) -> None:
    async def main() -> None:
        async with gateway() as running:
            client = await running.greeted(encoding, binary_audio=binary_audio)
            assert client.ready.codec == "pcm_s16le"
            assert client.ready.voices == ("alto", "tenor")
            await client.say("hello big world")
            while not any(isinstance(m, Audio) and m.final for m in client.received):
                await client.receive()
            await client.send(played(1, 3 * CHUNK))
            done = await client.until(Done)
            assert client.audio() == pcm16(3)
            assert (done.samples, done.heard, done.estimated) == (3 * CHUNK, 3 * CHUNK, False)
            words = [w.text for m in client.received if isinstance(m, Audio) for w in m.words]
            assert words == ["hello", "big", "world"]
            assert isinstance(client.received[1], Started)
            assert running.engine.requests[0].client == client.ready.session
            assert metric(running, "playhead_ttfa_seconds_count") == 1
            assert metric(running, "playhead_utterances_total", outcome="done") == 1

    uvloop.run(main())


@pytest.mark.parametrize(
    ("codec", "rate"),
    [("opus", 24_000), ("opus", 48_000), ("pcm_f32le", 48_000), ("mulaw", 8_000)],
)
def test_encoders_on_threads(codec: str, rate: int) -> None:
    known = {found["codec"] for found in codecs.formats()}
    if codec not in known:
        pytest.skip(f"{codec} is not available on this machine")

    async def main() -> None:
        async with gateway() as running:
            client = await running.greeted(codec=codec, sample_rate=rate)
            await client.say(WORDS)
            while not any(isinstance(m, Audio) and m.final for m in client.received):
                await client.receive()
            audio = [m for m in client.received if isinstance(m, Audio)]
            total = 10 * CHUNK * rate // RATE
            assert sum(m.samples for m in audio) == total
            assert [m.index for m in audio] == list(range(len(audio)))
            positions = np.cumsum([0, *(m.samples for m in audio)])
            assert [m.position for m in audio] == positions[:-1].tolist()

    uvloop.run(main())


class CountingLoop:
    """The loop, with its thread-safe calls counted."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.hops = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_soon_threadsafe(self, callback: Any, *args: Any) -> Any:
        self.hops += 1
        return self._loop.call_soon_threadsafe(callback, *args)


def test_one_hop_per_engine_step() -> None:
    async def main() -> None:
        async with gateway() as running:
            hub = running.server.hub
            loop = CountingLoop(hub.loop)
            hub.loop = loop  # type: ignore[assignment]
            clients = [await running.greeted() for _ in range(4)]
            await asyncio.gather(*(client.say(WORDS) for client in clients))
            await asyncio.gather(*(client.ending() for client in clients))
            assert loop.hops == running.engine.deliveries
            assert all(client.audio() == pcm16(10) for client in clients)

    uvloop.run(main())


def test_killed_client_frees_its_utterance_and_hurts_nobody() -> None:
    async def main() -> None:
        async with gateway(interval=0.002, grace=0.0) as running:
            neighbour = await running.greeted()
            victim = await running.greeted()
            await victim.send(Text("!endless "))
            await victim.until(Audio)
            await neighbour.say(WORDS * 3)
            utterance = next(iter(running.engine.live))
            victim.reset()
            await eventually(lambda: utterance in running.engine.cancelled)
            while not any(isinstance(m, Audio) and m.final for m in neighbour.received):
                await neighbour.receive()
            assert neighbour.audio() == pcm16(30)

    uvloop.run(main())


def test_a_cut_session_holds_its_utterance() -> None:
    async def main() -> None:
        async with gateway(interval=0.002, grace=30.0) as running:
            client = await running.greeted()
            await client.send(Text("!endless "))
            await client.until(Audio)
            client.reset()
            await eventually(lambda: bool(running.engine.holds), AT_ONCE)
            assert running.engine.holds[-1][1] is ListenerState.SUSPENDED
            (speech,) = running.engine.live.values()
            chunks = speech.chunks
            await asyncio.sleep(0.05)
            assert speech.chunks == chunks

    uvloop.run(main())


def test_dropped_clients_leave_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with gateway(grace=0.0) as running:
            for _ in range(10):
                client = await running.greeted()
                await client.send(Text(WORDS))
                client.reset()
            early = await running.client()
            early.reset()
            await eventually(lambda: running.server.readiness().load["connections"] == 0)

    with caplog.at_level(logging.INFO):
        uvloop.run(main())
    assert "Traceback" not in caplog.text
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_deaf_client_is_held_then_closed() -> None:
    async def main() -> None:
        # Small blocks on both sides, so that the test needs little audio.
        async with gateway(slow_hold=0.1, slow_close=0.5, close_timeout=0.2) as running:
            client = await running.client()
            await client.hello()
            client.socket.transport.pause_reading()
            await client.send(Text("!endless "))
            (connection,) = running.server.hub.registry
            await eventually(
                lambda: ListenerState.SUSPENDED in [state for _, state in running.engine.holds]
            )
            made = sum(running.engine.made.values())
            await asyncio.sleep(0.1)
            assert sum(running.engine.made.values()) - made <= 4 * CHUNK
            assert metric(running, "playhead_slow_reader_holds_total") == 1
            await eventually(lambda: connection.outlet is None)
            assert metric(running, "playhead_refusals_total", reason="slow_consumer") == 1
            await eventually(lambda: running.server.readiness().load["connections"] == 0)

    uvloop.run(main())


def test_a_reader_that_wakes_up_is_served_on() -> None:
    async def main() -> None:
        async with gateway(slow_hold=0.05, slow_close=20.0) as running:
            client = await running.greeted()
            client.socket.transport.pause_reading()
            await client.send(Text(WORDS * 30), End())
            await eventually(
                lambda: ListenerState.SUSPENDED in [state for _, state in running.engine.holds]
            )
            client.socket.transport.resume_reading()
            while not any(isinstance(m, Audio) and m.final for m in client.received):
                await client.receive()
            assert client.audio() == pcm16(300)
            await eventually(lambda: running.engine.holds[-1][1] is None)

    uvloop.run(main())


GARBAGE: list[bytes | str] = [
    b"",
    b"\xc1",
    b"\x80",
    b"\x81\xa4type\xa5hello",
    b"\xdf\xff\xff\xff\xff",
    b"\x81\xa4type\xc0",
    "not binary",
    b"\x91" * 5000,
    b"\x82\xa4type\xa4text\xa4text\x01",
]


def test_garbage_is_answered_and_survived() -> None:
    async def main() -> None:
        async with gateway() as running:
            neighbour = await running.greeted()
            await neighbour.say(WORDS)
            client = await running.greeted()
            for frame in GARBAGE:
                await client.socket.send(frame)
                error = await client.until(ErrorEvent)
                assert error.expected
                await asyncio.sleep(0.02)
            await client.send(Ping(5.0))
            assert (await client.until(Pong)).time == 5.0
            while not any(isinstance(m, Audio) and m.final for m in neighbour.received):
                await neighbour.receive()
            assert neighbour.audio() == pcm16(10)
            assert metric(running, "playhead_invalid_messages_total") >= len(GARBAGE)

    uvloop.run(main())


def test_a_flood_of_garbage_is_closed_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A busy machine takes in no more than an honest client may send a second.
    monkeypatch.setattr(flood, "_LIMITS", Limits(frame_rate=0.01))

    async def main() -> None:
        async with gateway() as running:
            noisy = await running.greeted()
            neighbour = await running.greeted()

            async def flood() -> None:
                while True:
                    for _ in range(50):
                        await noisy.socket.send(b"\xc1")
                    await asyncio.sleep(0)  # client and server share this loop

            flooding = asyncio.create_task(flood())
            reading = asyncio.create_task(noisy.closed())
            await neighbour.say(WORDS)
            while not any(isinstance(m, Audio) and m.final for m in neighbour.received):
                await neighbour.receive()
            assert neighbour.audio() == pcm16(10)
            assert await reading == 1008
            flooding.cancel()

    uvloop.run(main())


def test_a_flood_of_pings_is_closed() -> None:
    async def main() -> None:
        async with gateway() as running:
            client = await running.greeted()
            for _ in range(200):
                client.socket.protocol.send_ping(b"")
            client.socket.send_data()
            assert await client.closed() == 1008

    uvloop.run(main())


def test_too_big_a_message() -> None:
    async def main() -> None:
        async with gateway(max_message=4096) as running:
            client = await running.greeted()
            await client.socket.send(b"\x00" * 4097)
            assert await client.closed() == 1009

    uvloop.run(main())


def test_silence_instead_of_hello() -> None:
    async def main() -> None:
        async with gateway(hello_timeout=0.1) as running:
            client = await running.client()
            assert await client.closed() == 1008
            await eventually(lambda: len(running.server.hub.registry) == 0)

    uvloop.run(main())


def test_barge_in() -> None:
    async def main() -> None:
        async with gateway(interval=0.005) as running:
            client = await running.greeted()
            await client.send(Text("!endless "))
            await client.until(Audio)
            await client.send(Cancel(heard=960))
            cancelled = await client.until(Cancelled)
            assert cancelled.heard == 960
            await client.say("next")
            while not any(isinstance(m, Audio) and m.final for m in client.received):
                await client.receive()
            after = client.received[client.received.index(cancelled) :]
            assert {m.epoch for m in after if isinstance(m, Audio)} == {2}
            assert running.engine.live == {}
            assert metric(running, "playhead_audio_wasted_seconds_total") > 0

    uvloop.run(main())


def test_failures_reach_their_own_client() -> None:
    async def main() -> None:
        async with gateway() as running:
            client, other = await running.greeted(), await running.greeted()
            await client.say("so far !fail never")
            await other.say(WORDS)
            failed = await client.until(Failed)
            assert failed.code == "engine_error"
            await client.say("!refuse")
            refused = await client.until(Failed)
            assert (refused.code, refused.retry_after) == ("overloaded", 250.0)
            while not any(isinstance(m, Audio) and m.final for m in other.received):
                await other.receive()
            assert other.audio() == pcm16(10)

    uvloop.run(main())


def test_a_broken_encoder_fails_one_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        pre_skip = 0
        repaired = 0

        def encode(self, pcm: object) -> object:
            raise RuntimeError("no more bits")

        def flush(self) -> object:
            raise AssertionError("never reached")

    async def main() -> None:
        async with gateway() as running:
            client, other = await running.greeted(), await running.greeted()
            with monkeypatch.context() as patched:
                patched.setattr(codecs, "encoder", lambda *_: Broken())
                await client.say("one two !endless")
                failed = await client.until(Failed)
            assert failed.code == "internal_error"
            await eventually(lambda: running.engine.live == {})
            await other.say("fine")
            while not any(isinstance(m, Audio) and m.final for m in other.received):
                await other.receive()
            assert other.audio() == pcm16(1)
            assert metric(running, "playhead_encoder_failures_total") == 1

    uvloop.run(main())


async def resume(running: Gateway, old: Client, seq: int, encoding: str) -> Client:
    client = await running.client(encoding)
    ready = await client.hello(resume=ResumeFrom(old.ready.session, old.ready.token, seq))
    assert isinstance(ready, Ready), ready
    assert ready.resumed
    assert ready.token != old.ready.token
    return client


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
@pytest.mark.parametrize("seed", range(4))
def test_resume_is_byte_identical(encoding: str, seed: int) -> None:
    """Cut at random points, the frames put together equal those of an uncut session."""
    dice = random.Random(seed)

    async def main() -> None:
        async with gateway(interval=0.001) as running:
            client = await running.greeted(encoding)
            await client.say(WORDS * 2)
            whole: dict[int, bytes | str] = {}
            cuts = 0
            while True:
                if cuts < 3 and dice.random() < 0.15:
                    client.reset()
                    client = await resume(running, client, max(whole, default=0), encoding)
                    cuts += 1
                message = await client.receive()
                if isinstance(message, Ready | ErrorEvent | Pong):
                    continue
                assert message.seq not in whole
                whole[message.seq] = client.frames[-1]
                if isinstance(message, Audio) and message.final:
                    break
            assert sorted(whole) == list(range(1, len(whole) + 1))
            decoded = [client.wire.decode_server(whole[seq]) for seq in sorted(whole)]
            assert b"".join(m.data for m in decoded if isinstance(m, Audio)) == pcm16(20)

    uvloop.run(main())


def test_frames_are_replayed_as_they_were_first_sent() -> None:
    async def main() -> None:
        async with gateway() as running:
            client = await running.greeted()
            await client.say(WORDS)
            while not any(isinstance(m, Audio) and m.final for m in client.received):
                await client.receive()
            first = client.frames[1:]
            client.reset()
            again = await resume(running, client, 0, "msgpack")
            for frame in first:
                await again.receive()
                assert again.frames[-1] == frame

    uvloop.run(main())


def test_a_deaf_old_connection_does_not_hold_the_new_one() -> None:
    async def main() -> None:
        within = {"slow_hold": 0.05, "slow_close": 0.4, "close_timeout": 0.5}
        async with gateway(**within) as running:
            deaf = await running.greeted()
            deaf.socket.transport.pause_reading()
            await deaf.send(Text("!endless "))
            await eventually(
                lambda: ListenerState.SUSPENDED in [state for _, state in running.engine.holds]
            )
            newer = await resume(running, deaf, 0, "msgpack")
            reading = asyncio.create_task(newer.closed())
            await asyncio.sleep(0.8)
            await eventually(lambda: running.engine.holds[-1][1] is None)
            (host,) = running.server.hub.registry
            assert host.outlet is not None
            await eventually(lambda: len(newer.audio()) > 2 * CHUNK * 100)
            reading.cancel()

    uvloop.run(main())


def test_newest_connection_wins() -> None:
    async def main() -> None:
        async with gateway() as running:
            client = await running.greeted()
            newer = await resume(running, client, 0, "msgpack")
            assert await client.closed() == 4000
            await newer.say("still here")
            while not any(isinstance(m, Audio) and m.final for m in newer.received):
                await newer.receive()
            assert newer.audio() == pcm16(2)
            assert len(running.server.hub.registry) == 1
            assert metric(running, "playhead_resumes_total", outcome="resumed") == 1

    uvloop.run(main())


def test_wrong_and_unknown_keys_look_the_same() -> None:
    async def main() -> None:
        async with gateway() as running:
            owner = await running.greeted()
            attempts = [
                ResumeFrom(owner.ready.session, "A" * 22, 0),
                ResumeFrom("B" * 22, owner.ready.token, 0),
                ResumeFrom("B" * 22, "A" * 22, 0),
            ]
            answers = []
            for attempt in attempts:
                client = await running.client()
                answers.append(await client.hello(resume=attempt))
                assert await client.closed() == 4001
            assert isinstance(answers[0], ErrorEvent)
            assert answers[0].code == "resume_failed"
            assert answers[0] == answers[1] == answers[2]
            assert metric(running, "playhead_resumes_total", outcome="token") == 1
            assert metric(running, "playhead_resumes_total", outcome="unknown") == 2
            await owner.say("mine")
            assert isinstance(await owner.until(Audio), Audio)

    uvloop.run(main())


def test_too_late_to_resume_tells_what_was_heard() -> None:
    async def main() -> None:
        async with gateway(grace=0.05) as running:
            client = await running.greeted()
            await client.send(Text("one two !endless "))
            while len(client.audio()) < 4 * CHUNK * 2:
                await client.receive()
            await client.send(
                PlaybackReport(
                    epoch=1,
                    received=4 * CHUNK,
                    consumed=CHUNK + 10,
                    heard=CHUNK + 10,
                    buffered=3 * CHUNK - 10,
                    state=ListenerState.PLAYING,
                    time=5.0,
                )
            )
            await eventually(lambda: bool(running.engine.reports))
            client.reset()
            await eventually(lambda: len(running.server.hub.registry) == 0)
            await eventually(lambda: running.engine.live == {})
            again = await running.client()
            error = await again.hello(
                resume=ResumeFrom(client.ready.session, client.ready.token, 0)
            )
            assert isinstance(error, ErrorEvent)
            assert error.code == "resume_failed"
            assert error.heard is not None
            assert error.heard >= CHUNK
            assert error.heard_text is not None
            assert error.heard_text.startswith("one two")
            assert await again.closed() == 4001

    uvloop.run(main())


def test_close_ends_the_session_for_good() -> None:
    async def main() -> None:
        async with gateway() as running:
            client = await running.greeted()
            await client.send(Text("!endless "))
            await client.until(Audio)
            await client.send(CloseSession())
            assert await client.closed() == 1000
            await eventually(lambda: running.engine.live == {})
            await eventually(lambda: client.ready.session in running.engine.forgotten)
            assert len(running.server.hub.registry) == 0

    uvloop.run(main())


def test_delay_is_measured_with_fine_stamps() -> None:
    async def main() -> None:
        async with gateway() as running:
            began = time.monotonic()
            client = await running.greeted()
            reading = asyncio.create_task(client.closed())
            await eventually(lambda: bool(running.engine.delays))
            elapsed = time.monotonic() - began
            name, one_way = running.engine.delays[0]
            assert name == client.ready.session
            assert 0.0 < one_way < elapsed, "seconds, of a round trip that took place meanwhile"
            reading.cancel()

    uvloop.run(main())


def test_a_peer_that_answers_no_pings_is_closed() -> None:
    async def main() -> None:
        async with gateway(ping_timeout=0.1, close_timeout=0.1) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(
                b"GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                b"Sec-WebSocket-Protocol: playhead.v1.json\r\n\r\n"
            )
            # By default it would come after 20 s and more.
            seen = await asyncio.wait_for(reader.read(), AT_ONCE - 1.0)
            assert b"keepalive ping timeout" in seen
            writer.close()
            await eventually(lambda: running.server.readiness().load["connections"] == 0)

    uvloop.run(main())


def test_nothing_is_left_after_many_connections() -> None:
    async def main() -> None:
        async with gateway(grace=0.0) as running:
            dice = random.Random(1)
            for _ in range(60):
                client = await running.greeted()
                await client.send(Text(WORDS))
                if dice.random() < 0.5:
                    client.reset()
                else:
                    await client.socket.close()
            hub = running.server.hub
            await eventually(lambda: running.server.readiness().load["connections"] == 0)
            await eventually(lambda: running.engine.live == {} and len(hub.registry) == 0)
            await eventually(lambda: hub.routes == 0)

    uvloop.run(main())


def test_a_second_subprotocol_on_resume_is_fine() -> None:
    async def main() -> None:
        async with gateway() as running:
            client = await running.greeted("json")
            await client.say("one two")
            while not any(isinstance(m, Audio) and m.final for m in client.received):
                await client.receive()
            client.reset()
            again = await resume(running, client, 0, "msgpack")
            while not any(isinstance(m, Audio) and m.final for m in again.received):
                await again.receive()
            assert again.audio() == pcm16(2)

    uvloop.run(main())


def test_permessage_deflate_is_declined() -> None:
    async def main() -> None:
        async with (
            gateway() as running,
            connect(
                running.url,
                subprotocols=[Subprotocol("playhead.v1.json")],
                compression="deflate",
            ) as socket,
        ):
            assert socket.response is not None
            assert "Sec-WebSocket-Extensions" not in socket.response.headers

    uvloop.run(main())


def test_a_fault_in_one_session_is_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """Engine events, encoder threads and timers all enter a session from outside its task."""

    async def main() -> None:
        async with gateway(interval=0.005) as running:
            inline = await running.greeted()
            threaded = await running.greeted(codec="mulaw", sample_rate=8_000)
            victims = [inline, threaded]
            other = await running.greeted()
            for victim in victims:
                host = running.server.hub.registry.get(victim.ready.session)
                assert host is not None
                host.session.audio = broken  # type: ignore[method-assign]
                await victim.send(Text("!endless "))
            timed = await running.greeted()
            host = running.server.hub.registry.get(timed.ready.session)
            assert host is not None
            host.session.handle_timer = broken  # type: ignore[method-assign]
            await timed.say("a word whose end is known by time")
            await other.say(WORDS * 3)
            for victim in [*victims, timed]:
                assert await victim.closed() == 1011
            while not any(isinstance(m, Audio) and m.final for m in other.received):
                await other.receive()
            assert other.audio() == pcm16(30)
            await eventually(lambda: running.engine.live == {})
            assert len(running.server.hub.registry) == 1

    def broken(*args: object) -> None:
        raise RuntimeError("a bug")

    uvloop.run(main())
    assert caplog.text.count("RuntimeError: a bug") == 3


def test_a_fault_of_the_writer_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with gateway() as running:
            client = await running.greeted()
            (peer,) = running.server.peers
            peer.write = broken  # type: ignore[method-assign]
            await client.send(Ping(1.0))
            assert await client.closed() == 1011

    def broken(*args: object) -> None:
        raise RuntimeError("a bug")

    uvloop.run(main())
    assert caplog.text.count("RuntimeError: a bug") == 1


def test_unread_answers_are_bounded() -> None:
    """Pongs that nobody reads do not pile up: the library writes them without asking."""

    async def main() -> None:
        async with gateway(max_unsent=4096) as running:
            client = await running.client("json")
            client.socket.transport.pause_reading()
            (peer,) = running.server.peers
            peer.max_unsent = 4096
            for _ in range(30):
                client.socket.protocol.send_ping(b"x" * 125)
            client.socket.send_data()
            await asyncio.sleep(0.05)
            assert peer.unsent <= 4096
            # The kernel took those few; what it does not take ends the connection.
            peer.transport.write(b"\x00" * (1 << 20))
            client.socket.protocol.send_ping(b"x")
            client.socket.send_data()
            await eventually(lambda: running.server.peers == [])

    uvloop.run(main())


def test_replay_may_exceed_the_bound() -> None:
    """A resumed session sends all it kept at once; that is no slow reader."""

    async def main() -> None:
        async with gateway(max_unsent=Settings().max_unsent) as running:
            client = await running.greeted(codec="pcm_f32le", sample_rate=48_000)
            await client.say(WORDS * 2)
            while not any(isinstance(m, Audio) and m.final for m in client.received):
                await client.receive()
            client.reset()
            again = await resume(running, client, 0, "msgpack")
            while not any(isinstance(m, Audio) and m.final for m in again.received):
                await again.receive()
            assert again.audio() == client.audio()
            assert len(again.audio()) > Settings().max_unsent

    uvloop.run(main())
