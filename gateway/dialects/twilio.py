"""Twilio Media Streams, ``/v1/twilio``: a call's audio socket, whose marks say what was played.

Twilio connects here (TwiML ``<Connect><Stream url="wss://HOST/v1/twilio">``) and plays what it is
sent: µ-law at 8 kHz, base64. What to say comes as ``<Parameter name="text">`` (with ``voice`` and
``speed``), which is spoken once, after which the socket is closed and the call's next verb runs.
Software between a call and an agent may instead send ``speak`` events on the same socket
(``{"event": "speak", "text": …, "end": true}``) and ``clear`` to interrupt; these two are ours, and
only who uses them is told of faults (``error`` events): Twilio takes no events it does not know.
A pressed key interrupts where ``<Parameter name="interrupt" value="dtmf">`` says so.

Twilio can send no headers of ours. Where keys are asked for, a ticket (``POST /v1/tickets``) stands
at the end of the path (``/v1/twilio/TICKET``) or in ``<Parameter name="ticket">``.

Every piece of sound is followed by a ``mark``. One that comes back says that everything before it
was played: a playback report. After a ``clear`` Twilio gives back all marks it still holds, so a
mark of an utterance that has been cleared means that its sound was thrown away, and is not counted.

Source: twilio.com/docs/voice/media-streams/websocket-messages.
"""

import base64
from collections.abc import Callable
from typing import Any, ClassVar

from playhead.engine.types import Source
from playhead.gateway.access_keys import KEY_PREFIX
from playhead.gateway.access_offer import Offer
from playhead.gateway.dialects.base import (
    NORMAL,
    POLICY,
    Action,
    Actions,
    Dialect,
    Frame,
    Hangup,
    Native,
    Opening,
    Show,
)
from playhead.gateway.dialects.turns import Turns
from playhead.gateway.dialects.wire import (
    boolean,
    label,
    mapping,
    number,
    read_object,
    string,
    texts,
    voice_of,
    write_object,
)
from playhead.gateway.messages import (
    Audio,
    Cancel,
    Cancelled,
    Done,
    End,
    ErrorEvent,
    Failed,
    Hello,
    ServerMessage,
    Start,
    Started,
)
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session import ServerFacts

CONTEXT = ""
RATE = 8_000
MARK_EVERY = RATE // 5
"""Samples between marks: 200 ms, as densely as an honest listener reports."""
SLOWEST, FASTEST = 0.5, 2.0


class Twilio(Dialect):
    """One call. Nothing is said before its ``start``."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._stream = ""  # the call's streamSid, once started
        self._once = False  # the text came with the call: close when it has been played
        self._spoken_to = False  # the peer uses our own events, and may be told of faults
        self._keys_interrupt = False
        self._turns = Turns()

    # ------------------------------------------------------------ from the call

    def receive(self, frame: bytes | str, now: float) -> Actions:
        try:
            message = read_object(frame)
            act = self._ACTS.get(string(message, "event"))
            return [] if act is None else act(self, message, now)  # media, connected, what may come
        except ProtocolError as fault:
            if not self._spoken_to:
                return [Hangup(POLICY, f"{fault.message}; expected {fault.expected}"[:120])]
            return [self._error(fault.code, fault.message, fault.expected)]

    def _start(self, message: dict[str, Any], now: float) -> list[Action]:
        start = mapping(message, "start")
        given = mapping(start, "customParameters")
        self._stream = label(message, "streamSid", label(start, "streamSid", ""))
        self._keys_interrupt = string(given, "interrupt", "") == "dtmf"
        hello = Hello(
            voice=voice_of(string(given, "voice", self._facts.default_voice), self._facts),
            speed=number(given, "speed", SLOWEST, FASTEST, 1.0),
            codec="mulaw",
            sample_rate=RATE,
            start_threshold=0.0,
        )
        text = string(given, "text", "")
        self._once = bool(text.strip())
        actions: list[Action] = [Native(CONTEXT, hello)]
        if ticket := string(given, "ticket", ""):
            actions.insert(0, _show(ticket))
        return actions + (self._say(text, end=True) if self._once else [])

    def _mark(self, message: dict[str, Any], now: float) -> list[Action]:
        """``EPOCH:SAMPLES``, as we named it; of an utterance that was cleared it means nothing."""
        epoch, _, position = string(mapping(message, "mark"), "name").partition(":")
        turn = self._turns.find(int(epoch)) if epoch.isdecimal() and position.isdecimal() else None
        if turn is None:
            return []
        heard = min(int(position), turn.samples)
        # The sound is the clock: how late a mark is shows how unevenly the call plays.
        report = turn.report(heard, Source.MARK, heard / RATE)
        return [Native(CONTEXT, report)]

    def _dtmf(self, message: dict[str, Any], now: float) -> list[Action]:
        return self._interrupt() if self._keys_interrupt else []

    def _speak(self, message: dict[str, Any], now: float) -> list[Action]:
        self._spoken_to = True
        if not self._stream:
            raise ProtocolError("invalid_state", "the stream has not started", "start first")
        return self._say(string(message, "text", ""), end=boolean(message, "end"))

    def _clear(self, message: dict[str, Any], now: float) -> list[Action]:
        self._spoken_to = True
        return self._interrupt()

    def _say(self, text: str, *, end: bool) -> list[Action]:
        actions: list[Action] = []
        turn = self._turns.composing
        if turn is None:
            if not text:
                return []
            turn = self._turns.open()
            actions.append(Native(CONTEXT, Start()))
        actions += [Native(CONTEXT, piece) for piece in texts(text)]
        if end:
            turn.closed = True
            actions.append(Native(CONTEXT, End()))
            if turn.done:  # it failed; this was the rest of it
                self._turns.drop(turn)
        return actions

    def _interrupt(self) -> list[Action]:
        self._turns.clear()
        over = [Hangup(NORMAL, "")] if self._once else []
        return [Native(CONTEXT, Cancel()), self._event("clear"), *over]

    # ------------------------------------------------------------ from the session

    def tell(self, context: str, message: ServerMessage, now: float) -> Actions:
        match message:
            case Started(epoch=epoch):
                self._turns.started(epoch)
            case Audio():
                return self._audio(message)
            case Done(epoch=epoch):
                return self._played(epoch)
            case Cancelled() if self._spoken_to:
                heard = {"heardText": message.heard_text, "unheardText": message.unheard_text}
                position = {"heardMs": message.heard * 1_000 // RATE, **heard}
                return [self._event("cleared", cleared=position | {"estimated": message.estimated})]
            case Failed() | ErrorEvent():
                return self._failed(message)
        return []

    def _audio(self, message: Audio) -> list[Action]:
        turn = self._turns.find(message.epoch)
        if turn is None:
            return []
        actions: list[Action] = []
        for at in range(0, len(message.data), MARK_EVERY):
            piece = message.data[at : at + MARK_EVERY]
            turn.samples += len(piece)
            payload = base64.b64encode(piece).decode("ascii")
            actions.append(self._event("media", media={"payload": payload}))
            name = f"{turn.epoch}:{turn.samples}"
            actions.append(self._event("mark", mark={"name": name}))
        if message.final:
            turn.over = True
            if not message.data:
                name = f"{turn.epoch}:{turn.samples}"  # the end, told once more
                actions.append(self._event("mark", mark={"name": name}))
        return actions

    def _played(self, epoch: int) -> list[Action]:
        """The session's word for it, also when the last mark never came back."""
        turn = self._turns.find(epoch)
        if turn is not None:
            self._turns.drop(turn)
        return [Hangup(NORMAL, "")] if self._once else []

    def _failed(self, message: Failed | ErrorEvent) -> list[Action]:
        if self._once:
            return [Hangup(POLICY, f"{message.code}: {message.message}"[:120])]
        turn = self._turns.opening
        if isinstance(message, Failed):
            turn = self._turns.find(message.epoch)
        if turn is not None:
            turn.over = turn.done = True
            if turn.closed:
                self._turns.drop(turn)
        return [self._error(message.code, message.message, message.expected)]

    # ------------------------------------------------------------ to the call

    def _event(self, kind: str, **fields: Any) -> Frame:
        return Frame(write_object({"event": kind, "streamSid": self._stream, **fields}))

    def _error(self, code: str, message: str, expected: str) -> Frame:
        told = {"code": code, "message": message, "expected": expected}
        return self._event("error", error=told)

    _ACTS: ClassVar[dict[str, Callable[["Twilio", dict[str, Any], float], list[Action]]]] = {
        "start": _start,
        "mark": _mark,
        "dtmf": _dtmf,
        "stop": lambda self, message, now: [Hangup(NORMAL, "")],
        "speak": _speak,
        "clear": _clear,
    }


def _show(ticket: str) -> Show:
    """Raises ``ProtocolError`` for a key: Twilio keeps what an application answers it."""
    if ticket.startswith(KEY_PREFIX):
        raise ProtocolError(
            "bad_value",
            "an API key must not stand in TwiML",
            "ticket: one from POST /v1/tickets",
            "ticket",
        )
    return Show(Offer(ticket=ticket))


def open_twilio(opening: Opening, facts: ServerFacts, request_id: str) -> Twilio:
    """Twilio names no parameters in its request: they come with ``start``."""
    return Twilio(facts)
