"""A target that speaks ``nari.speech.v1``, against a stub written from its public description."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from machine import PATIENCE, undisturbed
from playhead.loadgen.nari import PROTOCOL
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import Record, load
from playhead.loadgen.session import SessionError
from playhead.loadgen.targets import endpoint
from playhead.loadgen.typist import Piece, SpeaksAfter
from playhead.loadgen.workers import execute
from stub_kit import elsewhere, speak
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

AUDIO = {"encoding": "pcm_s16le", "sample_rate": 24_000, "channels": 1}
SOUND = b"\1\2" * 2_400  # 100 ms
STARTED = {"type": "response.started", "request_id": "r1", "audio": AUDIO}
CREATED = {"type": "session.created", "protocol": PROTOCOL, "audio": AUDIO}
CONFIGURED = {"type": "request.configured"}


def done(chunks: int, reason: str = "stop") -> dict[str, Any]:
    return {
        "type": "response.done", "request_id": "r1", "stop_reason": reason, "audio_chunks": chunks
    }  # fmt: skip


Frame = dict[str, Any] | bytes | str | float
"""An event, PCM, raw text, or seconds to wait."""


class Stub:
    """Greets, takes the text (acknowledging each piece), answers with ``frames``, closes."""

    def __init__(
        self,
        *frames: Frame,
        created: Frame = CREATED,
        configured: Frame = CONFIGURED,
        protocol: str | None = PROTOCOL,
    ) -> None:
        self.frames = frames
        self.created = created
        self.configured = configured
        self.protocol = protocol
        self.got: list[dict[str, Any]] = []

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        def choose(server: ServerConnection, offered: Any) -> Subprotocol | None:
            assert list(offered) == [PROTOCOL]
            return None if self.protocol is None else Subprotocol(self.protocol)

        async with serve(self._talk, "127.0.0.1", 0, select_subprotocol=choose) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            yield endpoint(f"http://127.0.0.1:{port}", "nari")

    async def _talk(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        assert socket.request.path == "/v1/audio/speech/ws"
        with contextlib.suppress(ConnectionClosed):
            await self._put(socket, self.created)
            await self._get(socket)
            await self._put(socket, self.configured)
            while (await self._get(socket))["type"] != "input_text.end":
                pass
            for frame in self.frames:
                await self._put(socket, frame)

    async def _get(self, socket: ServerConnection) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(await socket.recv())
        self.got.append(event)
        kind, _, verb = event["type"].partition(".")
        if kind == "input_text":
            ack = {"type": "input_text.ack", "event": verb, "sequence": event["sequence"]}
            await self._put(socket, ack)
        return event

    async def _put(self, socket: ServerConnection, frame: Frame) -> None:
        if isinstance(frame, float):
            await asyncio.sleep(frame)
        else:
            await socket.send(json.dumps(frame) if isinstance(frame, dict) else frame)


def spoken(stub: Stub, **values: Any) -> Record:
    async def talk() -> Record:
        async with stub.running() as url:
            plan = Plan(url, 1.0, target="nari", turns=1, voice="ryan", model="qwen3-tts")
            return await speak(plan, **values)

    return asyncio.run(talk())


def test_an_utterance_from_its_text_to_its_end() -> None:
    told = [
        {"type": "request.start", "response_format": "pcm", "model": "qwen3-tts", "voice": "ryan"},
        {"type": "input_text.append", "text": "Hello there.", "sequence": 0},
        {"type": "input_text.end", "sequence": 1},
    ]

    def silent() -> float:
        """Seconds in which nothing was heard."""
        stub = Stub(0.05, STARTED, SOUND, 0.02, SOUND[:-1], SOUND[-1:], done(3))
        kept = spoken(stub)
        assert stub.got == told
        assert (kept.finish, kept.fault, kept.samples, kept.heard) == ("complete", "", 4_800, 4_800)
        assert kept.first_playable is not None
        assert kept.first_playable >= 0.05
        assert kept.ended is not None
        assert kept.ended >= kept.first_playable + 0.2, "it plays on after the server's end"
        return kept.first_playable + sum(stall.length for stall in kept.stalls)

    undisturbed(silent, below=0.13)


def test_its_text_comes_in_pieces() -> None:
    stub = Stub(STARTED, SOUND, done(1))
    kept = spoken(stub, pieces=(Piece(0.0, "Hello"), Piece(0.05, " there.")))
    appended = [(e["sequence"], e.get("text")) for e in stub.got if "sequence" in e]
    assert appended == [(0, "Hello"), (1, " there."), (2, None)]
    assert kept.text_sent is not None
    assert kept.text_sent >= 0.05


def test_a_gap_is_a_stall() -> None:
    def stalled() -> float:
        (stall,) = spoken(Stub(STARTED, SOUND, 0.3, SOUND, done(2))).stalls
        return stall.length

    assert undisturbed(stalled, below=0.3) == pytest.approx(0.2, abs=0.1)


def test_a_barge_in_is_told() -> None:
    async def talk() -> Record:
        async with Stub(STARTED, SOUND * 10, 1.0).running() as url:
            plan = Plan(url, 1.0, target="nari", turns=1)
            return await speak(plan, barge_in=0.1)

    def listened() -> float:
        kept = asyncio.run(talk())
        assert (kept.finish, kept.fault) == ("cancelled", "")
        return kept.heard / 24_000

    assert undisturbed(listened, below=0.16) == pytest.approx(0.1, abs=0.06)


def test_a_length_that_ran_out_is_an_end() -> None:
    kept = spoken(Stub(STARTED, SOUND, done(1, "length")))
    assert (kept.finish, kept.fault) == ("length_budget", "")


@pytest.mark.parametrize(
    ("frames", "fault", "says"),
    [
        ([SOUND], "protocol", "audio came before response.started"),
        ([done(0)], "protocol", "response.done with stop_reason 'stop'"),
        ([STARTED, SOUND, done(1, "abort")], "protocol", "stop_reason 'abort'"),
        ([STARTED, SOUND, done(2)], "truncated", "1 of 2 audio messages came"),
        ([STARTED, done(0)], "no_audio", "done without any audio"),
        ([STARTED, bytes(4_800), done(1)], "silence", "every sample is zero"),
        ([STARTED, SOUND], "connection_lost", "closed by the server: 1000"),
        ([STARTED, "nonsense"], "protocol", "'nonsense' is no event"),
        ([{"type": "error", "error": {"code": "busy", "message": "no"}}], "failed", "busy: no"),
        ([STARTED, {"type": "error", "message": "no"}], "failed", "error: no"),
        ([1.0], "timeout", ""),
    ],
)
def test_bad_answers_are_named(frames: list[Frame], fault: str, says: str) -> None:
    kept = spoken(Stub(*frames), timeout=0.5 if fault == "timeout" else PATIENCE)
    assert kept.fault == fault
    assert says in kept.message


@pytest.mark.parametrize(
    ("values", "fault", "says"),
    [
        (
            {"created": CREATED | {"audio": AUDIO | {"sample_rate": 16_000}}},
            "wrong_format",
            "16000",
        ),
        ({"created": {"type": "hello"}}, "protocol", "expected session.created, got 'hello'"),
        ({"created": b"\0\1"}, "protocol", "is no event"),
        (
            {"configured": {"type": "error", "error": {"code": "bad_voice", "message": "ryan?"}}},
            "hello_refused",
            "bad_voice: ryan?",
        ),
        ({"protocol": None}, "protocol", "it did not choose it"),
    ],
)
def test_a_session_that_does_not_come_about_is_named(
    values: dict[str, Any], fault: str, says: str
) -> None:
    with pytest.raises(SessionError) as caught:
        spoken(Stub(**values))
    assert caught.value.fault == fault
    assert says in caught.value.message


def test_a_server_that_leaves_or_says_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for created, fault, timeout in (("", "protocol", 10.0), (1.0, "no_answer", 0.1)):
        monkeypatch.setattr("playhead.loadgen.nari.OPEN_TIMEOUT", timeout)
        with pytest.raises(SessionError) as caught:
            spoken(Stub(created=created))
        assert caught.value.fault == fault


def test_a_whole_run_against_it(tmp_path: Path) -> None:
    stub = Stub(0.01, STARTED, SOUND, done(1))
    with elsewhere(stub.running()) as url:
        plan = Plan(
            url, 4.0, arrivals="constant", warmup=0.0, window=1.0, target="nari", turns=1,
            pace=100.0, speaks_after=SpeaksAfter.PIECE,
        )  # fmt: skip
        assert execute(plan, tmp_path / "run.jsonl", lambda tally, at: None)
    records = load(tmp_path / "run.jsonl").records
    assert [(record.finish, record.fault) for record in records] == [("complete", "")] * 4
    assert all(record.possible == record.intended for record in records)
