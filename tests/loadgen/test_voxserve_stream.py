"""VoxServe's endpoints for text in pieces, against a stub written from their public source."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import Record, load
from playhead.loadgen.session import SessionError
from playhead.loadgen.targets import endpoint
from playhead.loadgen.typist import Piece
from playhead.loadgen.workers import execute
from stub_kit import elsewhere, speak
from test_voxserve import END, OK, SOUND, chunk, head

ENOUGH = 20  # characters, at which it begins to speak
PIECES = (Piece(0.0, "Good morning"), Piece(0.1, " to all of"), Piece(0.2, " you."))


def answer(body: object, status: str = "200 OK") -> bytes:
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(said)}\r\n\r\n".encode() + said


class Stub:
    """Speaks when it holds enough; ``instead`` gives other answers to a step. ``drop``: the step
    at which it hangs up."""

    def __init__(
        self, instead: Mapping[str, bytes] | None = None, drop: str = "", sound: bytes = SOUND
    ) -> None:
        self.asked: list[tuple[str, str, dict[str, list[str]]]] = []
        self._instead = instead or {}
        self._drop = drop
        self._sound = sound
        self._text = ""
        self._enough = asyncio.Event()
        self._complete = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            yield endpoint(f"http://127.0.0.1:{port}", "voxserve-stream")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, one after the other."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                told = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = told.lower().partition("content-length: ")[2].partition("\r\n")[0]
                body = (await reader.readexactly(int(length or 0))).decode()
                method, path, _ = told.split(" ", 2)
                step = path.rpartition("/")[2]
                self.asked.append((method, path, parse_qs(body)))
                if step == self._drop:
                    break
                await self._answer(step, parse_qs(body), writer)
        writer.close()

    async def _answer(
        self, step: str, form: Mapping[str, list[str]], writer: asyncio.StreamWriter
    ) -> None:
        if step in self._instead:
            writer.write(self._instead[step])
        elif step == "start":
            writer.write(answer({"request_id": "r1"}))
        elif step == "audio":
            writer.write(OK + chunk(head()))
            await self._enough.wait()
            writer.write(chunk(self._sound))
            await self._complete.wait()
            writer.write(chunk(self._sound) + END)
        else:
            self._take(step, "".join(form.get("text", [])))
            writer.write(answer({"status": "accepted", "request_id": "r1"}))

    def _take(self, step: str, text: str) -> None:
        self._text += text
        if step == "end" or len(self._text) >= ENOUGH:
            self._enough.set()
        if step == "end":
            self._complete.set()


def spoken(
    stub: Stub,
    pieces: tuple[Piece, ...] = PIECES,
    plan: Mapping[str, Any] | None = None,
    **habits: Any,
) -> Record:
    async def talk() -> Record:
        async with stub.running() as url:
            made = Plan(url, 1.0, target="voxserve-stream", turns=1, pace=50.0, **(plan or {}))
            return await speak(made, pieces=pieces, **habits)

    return asyncio.run(talk())


def test_pieces_go_one_way_while_audio_comes_the_other() -> None:
    stub = Stub()
    kept = spoken(stub, plan={"voice": "ryan"})
    base = "/generate/stream"
    steps = [(method, path.removeprefix(base)) for method, path, _ in stub.asked]
    assert steps[0] == ("POST", "/start")
    assert ("GET", "/r1/audio") in steps[1:3], "asked for as soon as there is an id"
    assert [step for step in steps if step[0] == "POST"][1:] == [("POST", "/r1/text")] * 3 + [
        ("POST", "/r1/end")
    ]
    assert stub.asked[0][2] == {"speaker": ["ryan"]}
    texts = [form["text"][0] for _, path, form in stub.asked if path.endswith("text")]
    assert texts == [piece.text for piece in PIECES]
    assert (kept.finish, kept.fault, kept.samples, kept.heard) == ("complete", "", 4_800, 4_800)
    assert kept.first_playable is not None
    assert kept.first_playable >= 0.1, "not before it holds enough"


def test_a_text_that_comes_at_once_is_one_piece() -> None:
    stub = Stub()
    kept = spoken(stub, pieces=(), plan={"label": "x"})
    assert [path.rpartition("/")[2] for _, path, _ in stub.asked if "audio" not in path] == [
        "start", "text", "end",
    ]  # fmt: skip
    assert stub.asked[0][2] == {}, "no voice was named"
    assert kept.fault == ""


def test_a_listener_who_cuts_in_hangs_up() -> None:
    long = (*PIECES[:2], Piece(1.0, " you."))
    kept = spoken(Stub(), pieces=long, barge_in=0.05)
    assert (kept.finish, kept.fault) == ("cancelled", "")
    assert kept.cancel_sent is not None


@pytest.mark.parametrize(
    ("instead", "fault", "says"),
    [
        ({"start": answer({}, "429 Busy")}, "overloaded", "HTTP status 429"),
        ({"start": answer({}, "401 Who")}, "refused_key", "HTTP status 401"),
        ({"start": answer({"id": "r1"})}, "protocol", "names no request_id"),
        ({"start": answer(["r1"])}, "protocol", "names no request_id"),
        ({"start": answer(b"soon")}, "protocol", "b'soon' names no request_id"),
        ({"start": b"SSH-2.0-x\r\n\r\n"}, "protocol", "is no status line"),
        ({"text": answer({}, "404 Gone")}, "failed", "http_404"),
        ({"end": answer({}, "500 Oh")}, "failed", "http_500"),
        ({"audio": answer({}, "404 Gone")}, "failed", "http_404"),
        ({"audio": OK + chunk(head(16_000) + SOUND) + END}, "wrong_format", "got 16000 Hz"),
        ({"audio": OK + chunk(head()) + END}, "no_audio", "done without any audio"),
    ],
)
def test_bad_answers_are_named(instead: Mapping[str, bytes], fault: str, says: str) -> None:
    kept = spoken(Stub(instead))
    assert kept.fault == fault
    assert says in kept.message


@pytest.mark.parametrize("step", ["start", "text", "audio"])
def test_a_connection_that_is_closed_is_named(step: str) -> None:
    assert spoken(Stub(drop=step)).fault == "connection_lost"


def test_silence_is_named() -> None:
    assert spoken(Stub(sound=bytes(4_800))).fault == "silence"


def test_a_text_refused_after_the_last_sound_changes_nothing() -> None:
    """Its model may end before it has read all."""
    whole = OK + chunk(head() + SOUND) + END
    kept = spoken(Stub({"audio": whole, "text": answer({"status": "accepted"})}), PIECES[:1])
    assert kept.fault == ""
    late = (PIECES[0], Piece(0.3, " and"))
    kept = spoken(Stub({"audio": whole, "end": answer({}, "404 Gone")}), late)
    assert (kept.finish, kept.fault) == ("complete", "")


def test_nobody_there_is_told() -> None:
    plan = Plan("http://127.0.0.1:9/x", 1.0, target="voxserve-stream", turns=1)
    with pytest.raises(SessionError) as told:
        asyncio.run(speak(plan))
    assert told.value.fault == "unreachable"


def test_a_whole_run_against_it(tmp_path: Path) -> None:
    stub = Stub()
    with elsewhere(stub.running()) as url:
        plan = Plan(
            url, 1.0, arrivals="constant", warmup=0.0, window=1.0, target="voxserve-stream",
            turns=1, pace=50.0,
        )  # fmt: skip
        assert execute(plan, tmp_path / "run.jsonl", lambda tally, at: None)
    records = load(tmp_path / "run.jsonl").records
    assert [(record.finish, record.fault) for record in records] == [("complete", "")]
