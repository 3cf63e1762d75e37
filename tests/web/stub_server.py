"""A scripted server for the page's tests: serves the files of ``web/`` and speaks
``playhead.v1.json`` with a sine for a voice, with the faults that a script asks for."""

import asyncio
import contextlib
import itertools
import json
import math
import re
import threading
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import numpy as np
from machine import PATIENCE
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

RATE = 24_000
HZ = 440.0
AMPLITUDE = 0.5
WEB = Path(__file__).resolve().parents[2] / "web"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

Message = dict[str, Any]


@dataclass
class Script:
    """How utterances are spoken. Times in seconds, ``*_at`` are chunk numbers from 0."""

    samples: int = 36_000
    head: int = 12_000  # samples of the first chunk: what a busy machine may sleep through
    chunk: int = 1_920
    burst: int = 20
    pace: float = 0.03
    hold_at: int | None = None  # this chunk waits until it is ``let_go``
    let_go: bool = False
    drop_at: int | None = None  # the socket dies after this chunk, when the page has it
    drop_inside: bool = False  # … between its message and its sound
    garbage_at: int | None = None
    drain_at: int | None = None  # the server announces that it goes away
    forget: bool = False  # refuse every resume
    refuse: Message | None = None  # answer ``start`` with this error
    refuse_hello: Message | None = None  # answer ``hello`` with this error
    turn_away: bool = False  # refuse the upgrade
    readiness: str = "ready"  # what /readyz tells
    languages: tuple[str, ...] = ()
    instruct: bool = False
    words: bool = True  # False: no word times
    crowd: int = 0  # viewers are let in, and see that many listeners

    def chunks(self) -> list[tuple[int, int]]:
        """Position and length of each chunk."""
        starts = [0, *range(min(self.head, self.samples), self.samples, self.chunk)]
        ends = [*starts[1:], self.samples]
        return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def sine(first: int, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return AMPLITUDE * np.sin(2 * math.pi * HZ * np.arange(first, first + count) / RATE)


def picture(tick: int, listeners: int) -> Message:
    """What a viewer is told of an engine with that many listeners."""
    lanes = {
        name: {
            "workers": 2,
            "running": [[1, 2], [3]],
            "batches": 2,
            "waiting": tick % 7,
            "busy": 40.0 * tick,
            "dispatches": 9 * tick,
            "items": 9 * tick,
            "sojourn": 12.0,
            "slack": 320.0,
        }
        for name in ("urgent", "background", "lm")
    }
    tally = {"spoken": tick, "stalled": 1, "stalls": 1, "silence": 90, "longest": 90}
    tally |= {"ahead": 900, "refused": 0, "failed": 0}
    states = ["playing", "stalled", "idle"]
    return {
        "type": "stats",
        "time": 100.0 * tick,
        "lanes": lanes,
        "utterances": listeners,
        "utilisation": 0.5,
        "promoted": tick,
        "sessions": listeners + 1,
        "own": {
            "utterance": 1,
            "depth": 900.0,
            "runway": 950.0,
            "lead": 2000.0,
            "margin": 100.0,
            "frozen": False,
            "estimated": False,
        },
        "crowd": {
            "listeners": listeners,
            "reports": True,
            "states": {"playing": listeners},
            "members": [
                [states[(i + tick) % 11 % 3], (97 * i + 31 * tick) % 2500, "background"]
                for i in range(listeners)
            ],
            "tallies": {"reported": tally, "estimated": tally},
        },
    }


@dataclass
class Utterance:
    epoch: int
    text: str = ""
    heard: int = 0
    task: asyncio.Task[None] | None = None

    def words(self, samples: int) -> list[Message]:
        found = list(re.finditer(r"\S+", self.text))
        return [
            {
                "text": m.group(),
                "position": i * samples // len(found),
                "char_start": m.start(),
                "char_end": m.end(),
            }
            for i, m in enumerate(found)
        ]


@dataclass
class Session:
    token: str = "t0"
    log: list[list[str | bytes]] = field(default_factory=list)
    socket: ServerConnection | None = None
    received: int = 0
    seen: int = 0  # the highest number that the page has told it has
    utterances: dict[int, Utterance] = field(default_factory=dict)

    async def emit(self, message: Message, data: bytes | None = None, *, cut: bool = False) -> None:
        """Number, keep and send a message; ``cut``: the socket dies before its sound."""
        message = {**message, "seq": len(self.log) + 1}
        frames: list[str | bytes] = [json.dumps(message)]
        if data is not None:
            frames = [json.dumps({**message, "bytes": len(data)}), data]
        self.log.append(frames)
        await self.send(frames[:1] if cut else frames)

    async def send(self, frames: list[str | bytes]) -> None:
        if self.socket is None:
            return
        try:
            for frame in frames:
                await self.socket.send(frame)
        except ConnectionClosed:
            self.socket = None

    def drop(self) -> None:
        if self.socket is not None:
            self.socket.transport.abort()
            self.socket = None


class StubServer:
    """Runs on a thread of its own. Set ``script`` before an utterance; read ``received``."""

    def __init__(self, port: int = 0) -> None:
        self.script = Script()
        self._port = port
        self.received: list[Message] = []
        self.connections = 0
        self._sessions: dict[str, Session] = {}
        self._loop = asyncio.new_event_loop()
        self._server: Server | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "StubServer":
        self._thread.start()
        assert self._started.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def of(self, kind: str) -> list[Message]:
        return [message for message in list(self.received) if message["type"] == kind]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._open())
        self._started.set()
        self._loop.run_forever()

    async def _open(self) -> None:
        self._server = await serve(
            self._serve_socket,
            "127.0.0.1",
            self._port,
            process_request=self._page,
            compression=None,
            subprotocols=["playhead.v1.json", "playhead.observe.v1"],  # type: ignore[list-item]
        )

    async def _close(self) -> None:
        assert self._server is not None
        for session in self._sessions.values():
            session.drop()
        self._server.close()
        await self._server.wait_closed()

    def _page(self, _: ServerConnection, request: Request) -> Response | None:
        path = request.path.partition("?")[0]
        if path == "/v1/session":
            return Response(503, "Busy", Headers(), b"") if self.script.turn_away else None
        if path == "/v1/observe" and request.headers.get("Upgrade"):
            return None
        if path in ("/readyz", "/v1/observe"):
            offer = {"observe": self.script.crowd > 0, "crowd_listeners": 100}
            body = json.dumps({"reason": self.script.readiness, **offer}).encode()
            return Response(HTTPStatus.OK, "OK", Headers({"Content-Length": str(len(body))}), body)
        file = WEB / (path.lstrip("/") or "index.html")
        if file.suffix not in TYPES or not file.is_file():
            return Response(404, "Not Found", Headers(), b"")
        body = file.read_bytes()
        headers = Headers(
            {
                "Content-Type": TYPES[file.suffix],
                "Content-Length": str(len(body)),
                "Content-Security-Policy": POLICY,
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Embedder-Policy": "require-corp",
                "X-Content-Type-Options": "nosniff",
                "Connection": "close",
            }
        )
        return Response(HTTPStatus.OK, "OK", headers, body)

    async def _show(self, socket: ServerConnection) -> None:
        """Pictures of a busy engine, ten a second."""
        for tick in itertools.count(1):
            await socket.send(json.dumps(picture(tick, self.script.crowd)))
            await asyncio.sleep(0.1)

    async def _serve_socket(self, socket: ServerConnection) -> None:
        if socket.subprotocol == "playhead.observe.v1":
            with contextlib.suppress(ConnectionClosed):
                await self._show(socket)
            return
        self.connections += 1
        try:
            hello = json.loads(await socket.recv())
            self.received.append(hello)
            session = await self._greet(socket, hello)
            if session is None:
                return
            async for frame in socket:
                message = json.loads(frame)
                session.received += 1
                session.seen = message.get("seq", session.seen)
                self.received.append(message)
                await self._answer(session, message)
        except ConnectionClosed:
            return

    async def _greet(self, socket: ServerConnection, hello: Message) -> Session | None:
        if self.script.refuse_hello is not None and hello["codec"] != "pcm_s16le":
            await socket.send(json.dumps({"type": "error", **self.script.refuse_hello}))
            return None
        resume = hello.get("resume")
        if resume is None:
            session = self._sessions.setdefault(f"s{len(self._sessions)}", Session())
        else:
            known = self._sessions.get(resume["session"])
            if known is None or known.token != resume["token"] or self.script.forget:
                await socket.send(
                    json.dumps(
                        {
                            "type": "error",
                            "code": "resume_failed",
                            "message": "the session is gone",
                            "expected": "hello without resume",
                        }
                    )
                )
                await socket.close(4001)
                return None
            session = known
            session.token += "+"
        name = next(key for key, value in self._sessions.items() if value is session)
        await socket.send(
            json.dumps(
                {
                    "type": "ready",
                    "session": name,
                    "token": session.token,
                    "resumed": resume is not None,
                    "received": session.received,
                    "codec": hello["codec"],
                    "sample_rate": RATE,
                    "pre_skip": 0,
                    "packet_samples": 0,
                    "voice": "sine",
                    "voices": ["sine"],
                    "language": next(iter(self.script.languages), ""),
                    "languages": self.script.languages,
                    "instruct": self.script.instruct,
                    "formats": [],
                    "limits": {},
                    "grace": 30_000,
                    "epoch": len(session.utterances),
                    "time": 0,
                    "model": "stub",
                    "server": "stub",
                }
            )
        )
        if resume is not None:
            for frames in session.log[resume["seq"] :]:
                for frame in frames:
                    await socket.send(frame)
        session.socket = socket
        return session

    async def _answer(self, session: Session, message: Message) -> None:
        match message["type"]:
            case "start":
                await self._start(session, message)
            case "text" if session.utterances:
                session.utterances[max(session.utterances)].text += message["text"]
            case "end" if session.utterances:
                utterance = session.utterances[max(session.utterances)]
                utterance.task = asyncio.create_task(self._speak(session, utterance))
            case "report":
                await self._report(session, message)
            case "cancel":
                await self._cancel(session, message)
            case "ping":
                now = time.monotonic() * 1000
                await session.send(
                    [
                        json.dumps(
                            {"type": "pong", "time": message["time"], "received": now, "sent": now}
                        )
                    ]
                )
            case "close":
                session.socket = None
            case _:
                pass

    async def _start(self, session: Session, message: Message) -> None:
        if self.script.refuse is not None:
            await session.send([json.dumps({"type": "error", **self.script.refuse})])
            return
        epoch = len(session.utterances) + 1
        session.utterances[epoch] = Utterance(epoch)
        await session.emit({"type": "started", "epoch": epoch, "id": message["id"]})

    async def _speak(self, session: Session, utterance: Utterance) -> None:
        script = self.script
        words = utterance.words(script.samples) if script.words else []
        chunks = script.chunks()
        for index, (first, count) in enumerate(chunks):
            if index >= script.burst:
                await asyncio.sleep(script.pace)
            while index == script.hold_at and not script.let_go:
                await asyncio.sleep(0.01)
            if index == script.garbage_at:
                await session.send(["{not json", json.dumps({"type": "weather", "sun": 1})])
            if index == script.drain_at:
                await session.emit({"type": "draining", "deadline": 10_000})
            data = (sine(first, count) * 32767).round().astype("<i2").tobytes()
            drop = index == script.drop_at
            await session.emit(
                {
                    "type": "audio",
                    "epoch": utterance.epoch,
                    "index": index,
                    "position": first,
                    "samples": count,
                    "slack": None if index == 0 else 40.0 * index,
                    "depth": 80.0,
                    "words": [w for w in words if first <= w["position"] < first + count],
                    "lane": "urgent" if index < 2 else "background",
                    "sent": time.monotonic() * 1000,
                    "final": index == len(chunks) - 1,
                },
                data,
                cut=drop and script.drop_inside,
            )
            if drop:
                script.drop_at = None  # once
                while session.seen < len(session.log) - script.drop_inside:
                    await asyncio.sleep(0.01)  # what is on its way may be lost with the socket
                session.drop()

    async def _report(self, session: Session, report: Message) -> None:
        utterance = session.utterances.get(report["epoch"])
        if utterance is None or utterance.heard < 0:
            return
        utterance.heard = report["heard"]
        if report["state"] == "drained" and report["heard"] == report["consumed"]:
            utterance.heard = -1
            await session.emit(
                {
                    "type": "done",
                    "epoch": utterance.epoch,
                    "samples": report["consumed"],
                    "heard": report["heard"],
                    "estimated": False,
                    "reason": "complete",
                }
            )

    async def _cancel(self, session: Session, message: Message) -> None:
        for utterance in session.utterances.values():
            if utterance.heard < 0:
                continue
            if utterance.task is not None:
                utterance.task.cancel()
            heard = message.get("heard", utterance.heard)
            utterance.heard = -1
            said = [w for w in utterance.words(self.script.samples) if w["position"] < heard]
            end = said[-1]["char_end"] if said else 0
            await session.emit(
                {
                    "type": "cancelled",
                    "epoch": utterance.epoch,
                    "heard": heard,
                    "heard_text": utterance.text[:end],
                    "unheard_text": utterance.text[end:],
                    "estimated": False,
                }
            )


if __name__ == "__main__":  # look at the page without a voice
    with StubServer() as stub:
        print(stub.url, flush=True)
        threading.Event().wait()
