"""``POST /v1/audio/speech`` over real sockets: formats, streaming, faults, and who leaves."""

import asyncio
import base64
import io
import json
import wave as wave_file
from typing import Any

import h11
import numpy as np
import pytest
from api_kit import SPEECH, Asked, api, error
from fake_engine import CHUNK, wave
from harness import eventually
from playhead.codecs import opus
from playhead.codecs.pcm import unpack_s16le

TEXT = "one two three four"


def samples(pcm: bytes) -> np.ndarray:
    return unpack_s16le(pcm)


def is_wave(pcm: np.ndarray, words: int) -> bool:
    return len(pcm) == words * CHUNK and bool(np.allclose(pcm, wave(0, len(pcm)), atol=1e-4))


async def spoken(text: str = TEXT, **fields: Any) -> Asked:
    async with api() as client:
        asked = await client.speak(text, **fields)
        await asked.rest()
        assert asked.response.status_code == 200
        await eventually(
            lambda: not client.engine.live and not len(client.gateway.server.hub.registry)
        )
        return asked


def test_pcm_is_the_speech_and_nothing_else() -> None:
    asked = asyncio.run(spoken())
    assert is_wave(samples(asked.body), 4)
    assert asked.header["content-type"] == "audio/pcm"


def test_wav_has_one_header_that_leaves_the_length_open() -> None:
    """A header per chunk is played as noise (roryeckel/wyoming_openai#73)."""
    asked = asyncio.run(spoken(response_format="wav"))
    assert asked.header["content-type"] == "audio/wav"
    assert asked.body.count(b"RIFF") == 1
    assert asked.body.startswith(b"RIFF")
    with wave_file.open(io.BytesIO(asked.body)) as read:
        assert (read.getnchannels(), read.getsampwidth(), read.getframerate()) == (1, 2, 24_000)
    assert is_wave(samples(asked.body[44:]), 4)


@pytest.mark.skipif(opus.unavailable() is not None, reason="libopus is not installed")
def test_opus_comes_in_ogg_and_decodes_to_the_exact_length() -> None:
    av = pytest.importorskip("av")
    asked = asyncio.run(spoken(response_format="opus"))
    assert asked.header["content-type"] == "audio/ogg"
    with av.open(io.BytesIO(asked.body)) as container:
        stream = container.streams.audio[0]
        assert stream.codec_context.name in ("opus", "libopus")
        frames = sum(frame.samples for frame in container.decode(stream))
    assert abs(frames - 4 * CHUNK * 2) <= 2 * 480  # FFmpeg trims the end by the granule position


def test_mp3_is_the_default() -> None:
    av = pytest.importorskip("av")
    asked = asyncio.run(spoken(response_format=None))
    assert asked.header["content-type"] == "audio/mpeg"
    with av.open(io.BytesIO(asked.body), format="mp3") as container:
        decoded = sum(frame.samples for frame in container.decode(audio=0))
    assert 4 * CHUNK <= decoded <= 4 * CHUNK + 3_000  # LAME's delay and padding


def test_events_carry_the_same_audio() -> None:
    asked = asyncio.run(spoken(stream_format="sse"))
    assert asked.header["content-type"] == "text/event-stream"
    events = [json.loads(part[6:]) for part in asked.body.decode().split("\n\n") if part]
    *deltas, done = events
    assert {event["type"] for event in deltas} == {"speech.audio.delta"}
    assert is_wave(samples(b"".join(base64.b64decode(e["audio"]) for e in deltas)), 4)
    assert done["type"] == "speech.audio.done"
    assert done["usage"] == {"input_tokens": 18, "output_tokens": 7, "total_tokens": 25}


def test_speech_starts_before_it_is_all_made() -> None:
    async def check() -> None:
        async with api() as client:
            asked = await client.speak("one !endless")
            assert await asked.piece()
            assert client.engine.live
            asked.leave()

    asyncio.run(check())


@pytest.mark.parametrize("way", ["leave", "reset"])
def test_who_leaves_frees_the_engine_within_a_step(way: str) -> None:
    async def check() -> None:
        async with api() as client:
            asked = await client.speak("one !endless")
            await asked.piece()
            (utterance,) = client.engine.live
            asked.leave() if way == "leave" else asked.reset()
            await eventually(lambda: utterance in client.engine.cancelled)
            turn = client.engine.turns
            await eventually(lambda: not client.engine.live)
            assert client.engine.turns <= turn + 1
            assert not len(client.gateway.server.hub.registry)

    asyncio.run(check())


def test_who_leaves_before_the_first_audio_frees_the_engine_too() -> None:
    async def check() -> None:
        async with api(interval=0.3) as client:
            asked = await client.connect()
            body = json.dumps({"model": "tts-1", "voice": "alloy", "input": "!endless"}).encode()
            starting = asyncio.create_task(asked.begin("POST", SPEECH, body))
            hub = client.gateway.server.hub
            await eventually(lambda: len(hub.registry) == 1)
            asked.leave()
            await eventually(lambda: not len(hub.registry))
            starting.cancel()
            await eventually(lambda: bool(client.engine.cancelled))

    asyncio.run(check())


def test_a_client_that_does_not_read_is_held_then_cut() -> None:
    async def check() -> None:
        bounds = {"slow_hold": 0.05, "slow_close": 0.4, "send_buffer": 4096, "write_limit": 4096}
        async with api(**bounds) as client:
            asked = await client.connect(limit=2048)
            asked.writer.get_extra_info("socket").setsockopt(1, 8, 4096)  # SO_RCVBUF
            body = json.dumps(
                {"model": "tts-1", "voice": "a", "input": "!endless", "response_format": "pcm"}
            ).replace('"a"', '"alloy"')
            await asked.begin("POST", SPEECH, body.encode())
            await eventually(lambda: bool(client.engine.holds))
            made = sum(client.engine.made.values())
            assert made < 30 * 24_000
            await eventually(lambda: not client.engine.live)
            asked.leave()

    asyncio.run(check())


def test_a_fault_in_the_middle_cuts_the_body_short() -> None:
    """A clean end would make half a sentence look like all of it (smallest-python-sdk#115)."""

    async def check() -> None:
        async with api() as client:
            asked = await client.speak("one two !fail")
            with pytest.raises(h11.RemoteProtocolError):
                await asked.rest()
            events = await client.speak("one two !fail", stream_format="sse")
            last = json.loads((await events.rest()).decode().strip().split("\n\n")[-1][6:])
            assert (last["type"], last["error"]["code"]) == ("error", "engine_error")

    asyncio.run(check())


def test_faults_before_the_first_audio_have_a_status() -> None:
    async def check() -> None:
        async with api() as client:
            status, fault = await error(await client.speak("!fail"))
            assert (status, fault["type"], fault["code"]) == (500, "server_error", "engine_error")
            asked = await client.speak("!refuse")
            assert asked.header["retry-after"] == "1"
            status, fault = await error(asked)
            assert (status, fault["code"]) == (503, "overloaded")

    asyncio.run(check())


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": "whisper-9"}, 404, "model"),
        ({"voice": "nobody"}, 400, "voice"),
        ({"input": "x" * 4097}, 400, "input"),
        ({"response_format": "flac"}, 400, "response_format"),
        ({"speed": 9}, 400, "speed"),
    ],
)
def test_bad_requests_name_the_field(fields: dict[str, Any], status: int, param: str) -> None:
    async def check() -> None:
        async with api() as client:
            asked = await client.speak("hello", **fields)
            assert asked.header["content-type"] == "application/json"
            got, fault = await error(asked)
            assert (got, fault["param"], fault["type"]) == (status, param, "invalid_request_error")
            assert "expected" in fault["message"]
            assert not client.engine.requests

    asyncio.run(check())


def test_voice_and_speed_reach_the_engine() -> None:
    async def check() -> None:
        async with api() as client:
            for voice in ("alloy", "ash", "tenor"):
                await (await client.speak("hi", voice=voice, speed=1.5)).rest()
            assert [r.voice for r in client.engine.requests] == ["alto", "tenor", "tenor"]
            assert {r.speed for r in client.engine.requests} == {1.5}
            assert not any(r.reports for r in client.engine.requests)

    asyncio.run(check())


def test_a_connection_serves_one_request_after_another() -> None:
    async def check() -> None:
        async with api() as client:
            asked = await client.connect()
            for _ in range(2):
                await asked.begin("GET", "/v1/models")
                await asked.rest()
                asked.http.start_next_cycle()
            asked.leave()

    asyncio.run(check())


def test_many_speak_at_once_and_nobody_hears_another() -> None:
    async def check() -> None:
        async with api() as client:
            asked = await asyncio.gather(*(client.speak("a " * n) for n in range(1, 13)))
            bodies = await asyncio.gather(*(each.rest() for each in asked))
            assert all(is_wave(samples(body), n) for n, body in enumerate(bodies, 1))

    asyncio.run(check())


def test_a_drain_lets_speech_end_and_takes_no_more() -> None:
    async def check() -> None:
        async with api(interval=0.02, drain_timeout=60.0) as client:
            asked = await client.speak("one two three four five six")
            hub = client.gateway.server.hub
            draining = asyncio.create_task(client.gateway.server.drain())
            await eventually(lambda: hub.drain_deadline is not None)
            status, fault = await error(await client.speak("more"))
            assert (status, fault["code"]) == (503, "draining")
            assert is_wave(samples(await asked.rest()), 6)
            await draining

    asyncio.run(check())


def test_a_stop_cuts_the_body_short() -> None:
    async def check() -> None:
        async with api() as client:
            asked = await client.speak("one !endless")
            client.gateway.server.hurry()
            await client.gateway.server.drain()
            with pytest.raises(h11.RemoteProtocolError):
                await asked.rest()

    asyncio.run(check())
