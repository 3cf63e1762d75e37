"""A WebSocket target that speaks ``nari.speech.v1``: text in pieces, bare PCM out.

By its public description (nari-labs/nari-qwen3-tts, docs/websocket.md and the request schemas;
nari-labs/benchmarks, the client's side), 2026-08: one request a connection. The client sends
``request.start``, ``input_text.append`` and ``input_text.end`` with a sequence, and
``response.cancel``; the server ``session.created``, ``request.configured``, ``input_text.ack``,
``response.started``, binary PCM, ``response.done``, and ``error``.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from playhead.engine.clock import monotonic
from playhead.gateway.messages import Cancel, ClientMessage, End, Text
from playhead.loadgen.dial import dial, explain, why
from playhead.loadgen.foreign import Utterance
from playhead.loadgen.habits import Caller, Reports
from playhead.loadgen.plan import Plan
from playhead.loadgen.reporting import Link
from playhead.loadgen.session import GRACE, OPEN_TIMEOUT, SessionError, in_time
from playhead.loadgen.turn import Turn
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

PROTOCOL = "nari.speech.v1"
PATH = "/v1/audio/speech/ws"
_REASONS = {"stop": "complete", "length": "length_budget"}


class BadEvent(ValueError):
    """What came is no event of the protocol, or not in its order."""


class NariSession:
    """A connection whose one request is configured and waits for its text."""

    def __init__(self, socket: ClientConnection, caller: Caller, number: int) -> None:
        self.caller = replace(caller, reports=Reports.OFF)
        self.number = number
        self.turns = 0
        self.offset: float | None = None
        self.round_trip: float | None = None
        self._socket = socket
        self._link = Link()
        self._utterance = Utterance()
        self._sequence = 0
        self._started = False
        self._received = 0  # audio messages
        self._end = ""  # why the response is over

    @property
    def link(self) -> Link:
        """See :class:`~playhead.loadgen.session.Session`."""
        return self._link

    async def configure(self, plan: Plan) -> None:
        """Up to the point at which text may be sent. Raises :class:`SessionError` and others."""
        created = await self._expect("session.created")
        wanted = {"encoding": "pcm_s16le", "sample_rate": plan.sample_rate, "channels": 1}
        if created.get("audio") != wanted:
            raise SessionError("wrong_format", f"expected {wanted}, got {created.get('audio')}")
        start = {"type": "request.start", "response_format": "pcm"}
        named = {"model": plan.model, "voice": plan.voice}
        await self._send({**start, **{name: value for name, value in named.items() if value}})
        await self._expect("request.configured")

    async def speak(self, turn: Turn, deadline: float) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        self.turns += 1
        try:
            async with in_time(turn, deadline):
                await self._speak(turn)
        except ConnectionClosed as closed:
            turn.lost(why(closed), monotonic())
        except BadEvent as error:
            turn.lost(str(error), monotonic(), "protocol")

    async def close(self) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        try:
            async with asyncio.timeout(GRACE):
                await self._socket.close()
        except TimeoutError:
            self._socket.transport.abort()

    async def _speak(self, turn: Turn) -> None:
        await self._send_for(turn, turn.start(monotonic()))
        while not turn.over:
            try:
                async with asyncio.timeout(max(0.0, turn.due() - monotonic())):
                    frame = await self._receive()
            except TimeoutError:
                await self._send_for(turn, turn.tick(monotonic()))
            else:
                self._take(turn, frame, monotonic())
            if self._end and turn.played and not turn.over:
                turn.receive(self._utterance.done(self._end), 0, monotonic())

    async def _receive(self) -> str | bytes:
        if self._end:
            await asyncio.Event().wait()  # nothing more comes; only the listener plays on
        return await self._socket.recv()

    async def _send_for(self, turn: Turn, messages: Sequence[ClientMessage]) -> None:
        for message in messages:
            match message:
                case Text(text):
                    await self._send_text({"type": "input_text.append", "text": text})
                case End():
                    await self._send_text({"type": "input_text.end"})
                case Cancel():
                    await self._send({"type": "response.cancel"})
                    if not turn.over:
                        turn.receive(self._utterance.cancelled(), 0, monotonic())
                case _:
                    pass  # it takes no reports
        turn.sent(monotonic())

    async def _send_text(self, event: dict[str, Any]) -> None:
        await self._send({**event, "sequence": self._sequence})
        self._sequence += 1

    async def _send(self, event: Mapping[str, Any]) -> None:
        await self._socket.send(json.dumps(event))

    def _take(self, turn: Turn, frame: str | bytes, now: float) -> None:
        if isinstance(frame, bytes):
            if not self._started:
                raise BadEvent("audio came before response.started")
            self._received += 1
            audio = self._utterance.audio(frame, False, now)
            if audio is not None:
                turn.receive(audio, len(frame), now)
            return
        event = _event(frame)
        match event.get("type"):
            case "response.started":
                self._started = True
                turn.receive(self._utterance.started(), 0, now)
            case "response.done":
                self._done(turn, event, now)
            case "error":
                self._failed(turn, event, now)
            case _:
                pass  # acknowledgements, and what later versions may say

    def _done(self, turn: Turn, event: Mapping[str, Any], now: float) -> None:
        count = event.get("audio_chunks", self._received)
        if count != self._received:
            told = f"{self._received} of {count} audio messages came"
            turn.lost(told, now, "truncated")
            return
        reason = str(event.get("stop_reason", "stop"))
        if not self._started or reason not in _REASONS:
            raise BadEvent(f"response.done with stop_reason {reason!r}")
        self._end = _REASONS[reason]
        final = self._utterance.audio(b"", True, now)
        assert final is not None
        turn.receive(final, 0, now)

    def _failed(self, turn: Turn, event: Mapping[str, Any], now: float) -> None:
        if not self._started:
            self._started = True
            turn.receive(self._utterance.started(), 0, now)
        code, message = _error(event)
        turn.receive(self._utterance.failed(code, message, "response.done"), 0, now)

    async def _expect(self, kind: str) -> dict[str, Any]:
        frame = await self._socket.recv()
        event = _event(frame)
        if event.get("type") == "error":
            raise SessionError("hello_refused", ": ".join(_error(event)))
        if event.get("type") != kind:
            raise BadEvent(f"expected {kind}, got {event.get('type')!r}")
        return event


def _event(frame: str | bytes) -> dict[str, Any]:
    """Raises :class:`BadEvent`."""
    try:
        event = json.loads(frame) if isinstance(frame, str) else None
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise BadEvent(f"{frame[:40]!r} is no event")
    return cast(dict[str, Any], event)


def _error(event: Mapping[str, Any]) -> tuple[str, str]:
    """Code and message, whether they come in a map, bare, or not at all."""
    error = event.get("error")
    if isinstance(error, dict):
        return str(error.get("code", "error")), str(error.get("message", ""))
    return str(event.get("code", "error")), str(error or event.get("message", ""))


async def open_nari(url: str, plan: Plan, caller: Caller, number: int) -> NariSession:
    """Dial and configure. Raises :class:`SessionError`, and nothing else."""
    session: NariSession | None = None
    try:
        async with asyncio.timeout(OPEN_TIMEOUT):
            socket = await dial(url, plan, PROTOCOL)
            session = NariSession(socket, caller, number)
            await session.configure(plan)
    except (SessionError, ConnectionClosed, BadEvent, TimeoutError) as error:
        if session is not None:
            await session.close()
        raise explain(error, url, PROTOCOL) from None
    return session
