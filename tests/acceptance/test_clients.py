"""Unmodified third-party clients against a server as users start it.

Each: the speech is right (speech recognition), starts before its generation ends, stops when the
client interrupts or leaves, and its word times go up and name the words that were sent.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance_rig import (
    TEXT,
    Result,
    Served,
    certificate,
    right,
    run_client,
    serve,
    streamed,
    timed,
)

pytestmark = [pytest.mark.slow, pytest.mark.acceptance]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serve() as served:
        yield served


def run(server: Served, environment: str, script: str, *args: str, out: Path) -> Result:
    ws = server.sessions.replace("http", "ws", 1)
    return run_client(environment, script, *args, out=out / "speech.wav", ws=ws, http=server.api)


def test_openai_speech(server: Served, tmp_path: Path) -> None:
    result = run(server, "sdk", "openai_speech.py", out=tmp_path)
    right(result)
    streamed(result)
    told = result.told
    assert told["events"] > 1
    assert told["done"]
    assert told["event_bytes"] > 24_000
    assert told["mp3"] > 4_000
    assert "gpt-4o-mini-tts" in told["models"]
    assert told["refused"]["param"] == "voice"
    assert server.idle_within(1.0), "the stream that was left early is over"


def test_deepgram_sdk_v1(server: Served, tmp_path: Path) -> None:
    result = run(server, "sdk", "deepgram_sdk.py", "v1", out=tmp_path)
    right(result)
    streamed(result)
    assert result.told["flushed"] == 0
    assert result.told["after_clear"] == 0
    assert server.idle_within(1.0)


def test_deepgram_sdk_v2_interrupts_with_its_playback_offset(
    server: Served, tmp_path: Path
) -> None:
    result = run(server, "sdk", "deepgram_sdk.py", "v2", out=tmp_path)
    right(result)
    streamed(result)
    told = result.told
    assert told["started"]
    assert abs(told["duration_ms"] - 1_000 * told["seconds"]) <= 1
    assert told["characters"] == len(TEXT) + 1
    assert told["played"] == told["offset"]
    # 0.9 s into the second turn: a few words, and all of the text in two parts.
    assert told["spoken"] + told["remaining"] == TEXT * 8
    assert 1 <= len(told["spoken"].split()) <= 6
    assert told["after_interrupt"] == 0
    assert server.idle_within(1.0)


def test_deepgram_sdk_over_http(server: Served, tmp_path: Path) -> None:
    result = run(server, "sdk", "deepgram_sdk.py", "rest", out=tmp_path)
    right(result)
    streamed(result)
    assert result.told["mp3"] > 2_000
    assert result.told["refused"] == 404
    assert server.idle_within(1.0), "the stream that was left early is over"


def test_openai_realtime_with_truncation(server: Served, tmp_path: Path) -> None:
    result = run(server, "sdk", "openai_realtime.py", out=tmp_path)
    right(result)
    streamed(result)
    told = result.told
    assert told["transcript"] == TEXT
    assert (told["status"], told["late"]) == ("cancelled", 0)
    assert told["audio_end_ms"] == 900
    assert TEXT.startswith(told["kept"])
    assert 1 <= len(told["kept"].split()) <= 6
    assert told["error"] == "audio_end_ms"
    assert server.idle_within(1.0), "the socket was closed in the middle of a response"


def test_cartesia_sdk(server: Served, tmp_path: Path) -> None:
    result = run(server, "sdk", "cartesia_sdk.py", out=tmp_path)
    right(result)
    streamed(result)
    timed(result.told["words"])
    assert server.idle_within(1.0)


def test_elevenlabs_sdk_over_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with serve("--tls-cert", str(cert), "--tls-key", str(key)) as secure:
        result = run_client(
            "sdk",
            "elevenlabs_sdk.py",
            out=tmp_path / "speech.wav",
            tls=secure.sessions,
            SSL_CERT_FILE=str(cert),
        )
    right(result)
    streamed(result)


def test_cartesia_sdk_over_http(server: Served, tmp_path: Path) -> None:
    result = run(server, "sdk", "cartesia_http.py", out=tmp_path)
    right(result)
    streamed(result)
    told = result.told
    timed(told["words"])
    assert told["chunks"] > 3
    assert told["wav"][0] == "RIFF"
    assert told["wav"][1] > 40_000
    assert told["mp3"] > 4_000
    assert told["refused"] == 404
    assert server.idle_within(1.0), "the stream that was left early is over"


def test_elevenlabs_sdk_over_http(server: Served, tmp_path: Path) -> None:
    result = run(server, "sdk", "elevenlabs_http.py", out=tmp_path)
    right(result)
    streamed(result)
    told = result.told
    timed(told["words"])
    assert told["lines"] > 3
    assert told["whole"] > 20_000
    assert told["mp3"] > 4_000
    assert told["refused"] == [404, "voice_id_does_not_exist"]
    assert server.idle_within(1.0), "the stream that was left early is over"


TIMED = ("cartesia", "elevenlabs")


@pytest.mark.parametrize(
    "plugin",
    [
        *("cartesia", "deepgram", "deepgram-flux", "elevenlabs", "openai"),
        *("cartesia-http", "deepgram-http", "elevenlabs-http"),
    ],
)
def test_livekit(server: Served, tmp_path: Path, plugin: str) -> None:
    result = run(server, "sdk", "livekit_tts.py", plugin, out=tmp_path)
    right(result)
    streamed(result)
    if plugin in TIMED:
        timed(result.told["words"])
    assert server.idle_within(1.0), "a stream that was dropped is over"


@pytest.mark.parametrize(
    "service",
    [
        *("cartesia", "deepgram", "deepgram-flux", "elevenlabs", "openai"),
        *("cartesia-http", "elevenlabs-http"),
    ],
)
def test_pipecat(server: Served, tmp_path: Path, service: str) -> None:
    result = run(server, "pipecat", "pipecat_tts.py", service, out=tmp_path)
    if service == "cartesia-http":
        right(result, pieces=2)  # it waits for the end of each sentence's answer before it plays
    else:
        right(result)
        streamed(result, requests=2 if service in ("openai", "elevenlabs-http") else 1)
    assert not result.told["errors"]
    if service in TIMED or service == "elevenlabs-http":
        timed(result.told["words"])
    assert server.idle_within(1.0), "the turn that was interrupted is over"
