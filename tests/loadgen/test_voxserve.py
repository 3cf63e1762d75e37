"""VoxServe's own endpoint, against a stub written from its public description."""

import asyncio
import contextlib
import io
import wave
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import Record, load
from playhead.loadgen.targets import endpoint
from playhead.loadgen.workers import execute
from stub_kit import elsewhere, speak

OK = b"HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ntransfer-encoding: chunked\r\n\r\n"
SOUND = b"\1\2" * 2_400  # 100 ms
END = b"0\r\n\r\n"


def head(rate: int = 24_000) -> bytes:
    """As the standard library writes it before any frame, which is what the server sends."""
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(rate)
        made.writeframes(b"")
    return file.getvalue()


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


class Stub:
    """Answers ``POST /generate`` with the given pieces, each after its seconds."""

    def __init__(self, *pieces: tuple[float, bytes]) -> None:
        self.pieces: Sequence[tuple[float, bytes]] = pieces
        self.asked: list[dict[str, list[str]]] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._answer, "127.0.0.1", 0) as server:
            yield endpoint(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "voxserve")

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert asked.startswith("post /generate http/1.1\r\n")
        assert "content-type: application/x-www-form-urlencoded\r\n" in asked
        length = int(asked.partition("content-length: ")[2].partition("\r\n")[0])
        self.asked.append(parse_qs((await reader.readexactly(length)).decode()))
        for after, piece in self.pieces:
            await asyncio.sleep(after)
            writer.write(piece)
        writer.close()


def spoken(stub: Stub, **plan: Any) -> Record:
    async def talk() -> Record:
        async with stub.running() as url:
            return await speak(Plan(url, 1.0, target="voxserve", turns=1, **plan))

    return asyncio.run(talk())


def test_a_form_is_answered_with_a_wav_stream() -> None:
    whole = head()
    stub = Stub(
        (0.0, OK + chunk(whole[:20])), (0.05, chunk(whole[20:])), (0.05, chunk(SOUND)), (0.0, END)
    )
    kept = spoken(stub, voice="ryan")
    assert stub.asked == [{"text": ["Hello there."], "streaming": ["true"], "speaker": ["ryan"]}]
    assert (kept.finish, kept.fault, kept.samples, kept.heard) == ("complete", "", 2_400, 2_400)
    assert kept.first_playable is not None
    assert kept.first_playable >= 0.1, "a head is no sound"


def test_without_a_voice_none_is_named() -> None:
    stub = Stub((0.0, OK + chunk(head() + SOUND) + END))
    assert spoken(stub).fault == ""
    assert "speaker" not in stub.asked[0]


@pytest.mark.parametrize(
    ("answer", "fault", "says"),
    [
        (OK + chunk(head(16_000) + SOUND) + END, "wrong_format", "expected 24000 Hz, got 16000 Hz"),
        (OK + chunk(SOUND) + END, "protocol", "does not begin a WAV stream"),
        (OK + chunk(head() + SOUND), "connection_lost", "the answer broke off"),
        (OK + chunk(head()) + END, "no_audio", "done without any audio"),
        (b"HTTP/1.1 429 Busy\r\n\r\n", "overloaded", "HTTP status 429"),
        (b"HTTP/1.1 500 Oh\r\n\r\n", "failed", "HTTP status 500"),
        (
            b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"detail":"no"}',
            "protocol",
            "it answers with application/json",
        ),
    ],
)
def test_bad_answers_are_named(answer: bytes, fault: str, says: str) -> None:
    kept = spoken(Stub((0.0, answer)))
    assert kept.fault == fault
    assert says in kept.message


def test_it_takes_its_text_at_once() -> None:
    with pytest.raises(ValueError, match="takes a text at once: pace must be 0"):
        Plan("http://h/", 1.0, target="voxserve", turns=1, pace=50.0)


def test_a_whole_run_against_it(tmp_path: Path) -> None:
    stub = Stub((0.01, OK + chunk(head() + SOUND) + END))
    with elsewhere(stub.running()) as url:
        plan = Plan(
            url, 4.0, arrivals="constant", warmup=0.0, window=1.0, target="voxserve", turns=1
        )
        assert execute(plan, tmp_path / "run.jsonl", lambda tally, at: None)
    records = load(tmp_path / "run.jsonl").records
    assert [(record.finish, record.fault) for record in records] == [("complete", "")] * 4
