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
from playhead.loadgen.drive import Drive
from playhead.loadgen.foreign import Utterance
from playhead.loadgen.habits import Caller, Reports
from playhead.loadgen.plan import Plan
from playhead.loadgen.reporting import Link
from playhead.loadgen.session import GRACE, OPEN_TIMEOUT, SessionError, in_time
from playhead.loadgen.turn import Turn
from playhead.loadgen.websocket import Message, WebSocket
from websockets.exceptions import ConnectionClosed

PROTOCOL = "nari.speech.v1"
PATH = "/v1/audio/speech/ws"
_REASONS = {"stop": "complete", "length": "length_budget"}


class BadEvent(ValueError):
    """What came is no event of the protocol, or not in its order."""


class NariSession:
    """A connection whose one request is configured and waits for its text."""

    def __init__(self, socket: WebSocket, caller: Caller, number: int) -> None:
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
    def stamped(self) -> bool:
        """See :class:`~playhead.loadgen.session.Session`."""
        return self._socket.stamped

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
        self._send({**start, **{name: value for name, value in named.items() if value}})
        await self._expect("request.configured")

    async def speak(self, turn: Turn, deadline: float) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        self.turns += 1
        drive = Drive(turn, lambda messages: self._send_for(turn, messages), self._socket.poll)
        try:
            async with in_time(turn, deadline):
                drive.start()
                self._socket.listen(_Hearer(self, turn, drive))
                await drive.ended()
        finally:
            self._socket.listen(None)

    async def close(self) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        try:
            async with asyncio.timeout(GRACE):
                await self._socket.close()
        except TimeoutError:
            self._socket.abort()

    def take(self, turn: Turn, frame: Message, at: float) -> None:
        """One frame for ``turn``. Raises :class:`BadEvent`."""
        if isinstance(frame, bytes):
            if not self._started:
                raise BadEvent("audio came before response.started")
            self._received += 1
            audio = self._utterance.audio(frame, False, at)
            if audio is not None:
                turn.take(audio, len(frame), at)
            return
        event = _event(frame)
        match event.get("type"):
            case "response.started":
                self._started = True
                turn.take(self._utterance.started(), 0, at)
            case "response.done":
                self._done(turn, event, at)
            case "error":
                self._failed(turn, event, at)
            case _:
                pass  # acknowledgements, and what later versions may say

    def played(self, turn: Turn, now: float) -> None:
        """The response is over, and so is the turn when its listener has heard all."""
        if self._end and turn.played and not turn.over:
            turn.take(self._utterance.done(self._end), 0, now)

    @property
    def ended(self) -> bool:
        """The response is over: only the listener plays on."""
        return bool(self._end)

    def _send_for(self, turn: Turn, messages: Sequence[ClientMessage]) -> None:
        for message in messages:
            match message:
                case Text(text):
                    self._send_text({"type": "input_text.append", "text": text})
                case End():
                    self._send_text({"type": "input_text.end"})
                case Cancel():
                    self._send({"type": "response.cancel"})
                    turn.take(self._utterance.cancelled(), 0, monotonic())
                case _:
                    pass  # it takes no reports

    def _send_text(self, event: dict[str, Any]) -> None:
        self._send({**event, "sequence": self._sequence})
        self._sequence += 1

    def _send(self, event: Mapping[str, Any]) -> None:
        self._socket.send(json.dumps(event))

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
        turn.take(final, 0, now)

    def _failed(self, turn: Turn, event: Mapping[str, Any], now: float) -> None:
        if not self._started:
            self._started = True
            turn.take(self._utterance.started(), 0, now)
        code, message = _error(event)
        turn.take(self._utterance.failed(code, message, "response.done"), 0, now)

    async def _expect(self, kind: str) -> dict[str, Any]:
        frame, _ = await self._socket.recv()
        event = _event(frame)
        if event.get("type") == "error":
            raise SessionError("hello_refused", ": ".join(_error(event)))
        if event.get("type") != kind:
            raise BadEvent(f"expected {kind}, got {event.get('type')!r}")
        return event


class _Hearer:
    """Gives a turn what its server says."""

    def __init__(self, session: NariSession, turn: Turn, drive: Drive) -> None:
        self._session = session
        self._turn = turn
        self._drive = drive

    def heard(self, message: Message, at: float) -> None:
        """See :class:`~playhead.loadgen.websocket.Hearer`."""
        if self._session.ended:
            return
        try:
            self._session.take(self._turn, message, at)
        except BadEvent as error:
            self._turn.lost(str(error), at, "protocol")

    def settled(self, now: float) -> None:
        """See :class:`~playhead.loadgen.websocket.Hearer`."""
        self._drive.settled(now)
        self._session.played(self._turn, now)
        self._drive.look()

    def closed(self, error: ConnectionClosed) -> None:
        """See :class:`~playhead.loadgen.websocket.Hearer`."""
        if not self._session.ended:
            self._turn.lost(why(error), monotonic())
        self._drive.look()


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
