"""The other kind of target, against a stub that answers as the public API is described."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from machine import PATIENCE, undisturbed
from playhead.loadgen.habits import Caller
from playhead.loadgen.openai import open_speech
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import Record, load
from playhead.loadgen.session import SessionError
from playhead.loadgen.targets import endpoint
from playhead.loadgen.workers import execute
from stub_kit import elsewhere, speak

OK = b"HTTP/1.1 200 OK\r\nContent-Type: audio/pcm\r\nTransfer-Encoding: chunked\r\n\r\n"
SOUND = b"\1\2" * 2_400  # 100 ms


class Stub:
    """Answers every request with the given pieces, each after its seconds; ``None`` hangs."""

    def __init__(self, *pieces: tuple[float, bytes | None]) -> None:
        self.pieces: Sequence[tuple[float, bytes | None]] = pieces
        self.asked: list[dict[str, Any]] = []
        self.heads: list[bytes] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            yield endpoint(f"http://127.0.0.1:{port}", "openai")

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        assert head.startswith(b"POST /v1/audio/speech HTTP/1.1\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        self.asked.append(json.loads(await reader.readexactly(length)))
        for after, piece in self.pieces:
            await asyncio.sleep(after)
            if piece is None:
                await asyncio.sleep(60)
            writer.write(piece or b"")
        writer.close()


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def spoken(stub: Stub, timeout: float = 5.0, **habits: Any) -> Record:
    async def talk() -> Record:
        async with stub.running() as url:
            plan = Plan(url, 1.0, target="openai", turns=1, voice="ryan", model="qwen3-tts")
            return await speak(plan, timeout, **habits)

    return asyncio.run(talk())


def test_a_streamed_answer_is_heard_to_its_end() -> None:
    odd = chunk(SOUND[:-1]), chunk(SOUND[-1:]) + b"0\r\n\r\n"

    asked = {
        "model": "qwen3-tts",
        "input": "Hello there.",
        "voice": "ryan",
        "response_format": "pcm",
        "stream": True,
    }

    def silent() -> float:
        """Seconds in which nothing was heard."""
        stub = Stub((0.02, OK + chunk(SOUND)), (0.05, odd[0]), (0.01, odd[1]))
        kept = spoken(stub)
        assert stub.asked == [asked]
        assert (kept.finish, kept.fault, kept.samples, kept.heard) == ("complete", "", 4_800, 4_800)
        assert kept.first_playable is not None
        assert kept.first_playable >= 0.02
        assert kept.ended is not None
        assert kept.ended >= kept.first_playable + 0.2
        return kept.first_playable + sum(stall.length for stall in kept.stalls)

    undisturbed(silent, below=0.1)


def test_a_gap_in_the_stream_is_a_stall() -> None:
    def stalled() -> float:
        kept = spoken(Stub((0.0, OK + chunk(SOUND)), (0.4, chunk(SOUND)), (0.0, b"0\r\n\r\n")))
        (stall,) = kept.stalls
        return stall.length

    assert undisturbed(stalled, below=0.4) == pytest.approx(0.3, abs=0.1)


def test_a_barge_in_hangs_up() -> None:
    def listened() -> float:
        kept = spoken(Stub((0.0, OK + chunk(SOUND * 10)), (0.0, None)), barge_in=0.1)
        assert (kept.finish, kept.fault, kept.samples) == ("cancelled", "", 24_000)
        return kept.heard / 24_000

    assert undisturbed(listened, below=0.16) == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize(
    ("pieces", "finish", "fault"),
    [
        ([(0.0, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")], "failed", "overloaded"),
        ([(0.0, b"HTTP/1.1 404 Not Found\r\n\r\n")], "failed", "failed"),
        ([(0.0, b"HTTP/1.1 401 Who\r\n\r\n")], "failed", "refused_key"),
        ([(0.0, OK.replace(b"audio/pcm", b"text/html") + chunk(SOUND))], "lost", "protocol"),
        ([(0.0, OK[:-2] + b"X-Sample-Rate: 8000\r\n\r\n" + chunk(SOUND))], "lost", "wrong_format"),
        ([(0.0, OK + chunk(SOUND))], "lost", "connection_lost"),
        ([(0.0, b"nonsense\r\n\r\n")], "lost", "protocol"),
        ([(0.0, OK), (0.0, None)], "timeout", "timeout"),
        ([(0.0, OK + b"0\r\n\r\n")], "complete", "no_audio"),
        ([(0.0, OK + chunk(bytes(2_000))), (0.0, b"0\r\n\r\n")], "complete", "silence"),
    ],
)
def test_bad_answers_are_named(
    pieces: list[tuple[float, bytes | None]], finish: str, fault: str
) -> None:
    kept = spoken(Stub(*pieces), timeout=0.5 if fault == "timeout" else PATIENCE)
    assert (kept.finish, kept.fault) == (finish, fault)


def test_nobody_there_is_named() -> None:
    plan = Plan("http://127.0.0.1:9/", 1.0, target="openai", turns=1)
    with pytest.raises(SessionError) as caught:
        asyncio.run(open_speech(plan.url, plan, Caller(), 0))
    assert caught.value.fault == "unreachable"


def test_such_a_target_has_one_utterance_a_session() -> None:
    with pytest.raises(ValueError, match="turns must be 1"):
        Plan("http://h/", 1.0, target="openai", turns=2)


@pytest.mark.parametrize("given", ["ws://h:1", "h"])
def test_its_addresses_are_http(given: str) -> None:
    assert endpoint("https://h", "openai") == "https://h/v1/audio/speech"
    with pytest.raises(ValueError, match="expected one such as http://host:8080"):
        endpoint(given, "openai")


def test_a_whole_run_against_it(tmp_path: Path) -> None:
    stub = Stub((0.01, OK + chunk(SOUND)), (0.0, b"0\r\n\r\n"))
    with elsewhere(stub.running()) as url:
        plan = Plan(url, 4.0, arrivals="constant", warmup=0.0, window=1.0, target="openai", turns=1)
        assert execute(plan, tmp_path / "run.jsonl", lambda tally, at: None)
    made = load(tmp_path / "run.jsonl")
    assert [record.finish for record in made.records] == ["complete"] * 4
    assert made.metrics == []


def test_a_key_is_sent_and_stands_in_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_KEY", "sesame")
    stub = Stub((0.0, OK + chunk(SOUND) + b"0\r\n\r\n"))
    with elsewhere(stub.running()) as url:
        plan = Plan(
            url, 4.0, arrivals="constant", warmup=0.0, window=0.2, target="openai", turns=1,
            key_from="THEIR_KEY",
        )  # fmt: skip
        assert execute(plan, tmp_path / "run.jsonl", lambda tally, at: None)
    assert b"Authorization: Bearer sesame\r\n" in stub.heads[0]
    assert "sesame" not in (tmp_path / "run.jsonl").read_text()
