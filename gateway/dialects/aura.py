"""Deepgram Aura, ``/v1/speak``: text in with Speak, Flush, Clear, Close; audio as binary frames.

A Flush ends an utterance, and is answered with Flushed once all of its audio has been sent. Clear
cancels everything. There is no playback feedback. A frame that is no message of this protocol
closes the socket, as at the vendor; what is wrong with a text is a Warning and the socket lives.

Source: developers.deepgram.com, "Text-to-Speech Streaming" and its troubleshooting page;
deepgram-sdk 7.17.0, speak/v1.
"""

import re
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from playhead.gateway.dialects.base import (
    POLICY,
    Action,
    Actions,
    Dialect,
    Frame,
    Hangup,
    Native,
    Opening,
)
from playhead.gateway.dialects.deepgram import Query, read_query
from playhead.gateway.dialects.turns import Turns
from playhead.gateway.dialects.wire import read_object, string, texts, write_object
from playhead.gateway.messages import (
    Audio,
    Cancel,
    End,
    ErrorEvent,
    Failed,
    ServerMessage,
    Start,
    Started,
    Warn,
)
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session import ServerFacts

MODELS = re.compile(r"aura(-2)?-[a-z]+-[a-z]{2}")
DEFAULT_MODEL = "aura-asteria-en"

MOST_CHARACTERS = 2_000
"""Of one Speak, as at the vendor."""
FLUSHES, FLUSH_WINDOW = 20, 60.0
"""Flushes in so many seconds, as at the vendor: a later one is answered with a Warning."""
UNSUPPORTED_DATA = 1003
CONTEXT = ""


class Aura(Dialect):
    """One socket, one session, one utterance per Flush."""

    subprotocol = "token"  # browsers send their secret behind it

    def __init__(self, query: Query, facts: ServerFacts, request_id: str) -> None:
        self._query = query
        self._facts = facts
        self._request_id = request_id
        self._turns = Turns()
        self._flushes: deque[float] = deque(maxlen=FLUSHES)  # when
        self._sequence = 0

    def opened(self, now: float) -> Actions:
        metadata = {
            "type": "Metadata",
            "request_id": self._request_id,
            "model_name": self._query.model,
            "model_version": self._facts.server,
            "model_uuid": self._facts.model,
        }
        return [Native(CONTEXT, self._query.hello), Frame(write_object(metadata))]

    # ------------------------------------------------------------ from the client

    def receive(self, frame: bytes | str, now: float) -> Actions:
        if isinstance(frame, bytes):
            return [Hangup(UNSUPPORTED_DATA, "MESSAGE-0000: only text frames are taken")]
        try:
            message = read_object(frame)
            act = self._ACTS.get(string(message, "type"))
            if act is None:
                expected = "Speak, Flush, Clear or Close"
                raise ProtocolError("unknown_type", "unknown message type", expected, "type")  # noqa: TRY301
            return act(self, message, now)
        except ProtocolError as fault:
            return [Hangup(POLICY, f"DATA-0000: {fault.message}"[:123])]

    def _speak(self, message: dict[str, Any], now: float) -> list[Action]:
        text = string(message, "text")
        if not text:
            return [_warning("DATA-0001", "text is empty and was ignored")]
        if len(text) > MOST_CHARACTERS:
            given = f"text has {len(text)} characters and was ignored"
            return [_warning("DATA-0001", f"{given}; expected at most {MOST_CHARACTERS}")]
        actions: list[Action] = []
        if self._turns.composing is None:
            self._turns.open()
            actions.append(Native(CONTEXT, Start()))
        return actions + [Native(CONTEXT, piece) for piece in texts(text)]

    def _flush(self, message: dict[str, Any], now: float) -> list[Action]:
        if len(self._flushes) == FLUSHES and now - self._flushes[0] < FLUSH_WINDOW:
            most = f"{FLUSHES} flushes in {FLUSH_WINDOW:g} s"
            return [_warning("EXCESSIVE_FLUSH", f"at most {most}; this one was ignored")]
        self._flushes.append(now)
        turn = self._turns.composing
        if turn is None:
            # Nothing to speak: the answer comes behind those that are still due.
            turn = self._turns.open()
            turn.closed = turn.over = True
            return self._tell_ends()
        turn.closed = True
        return [Native(CONTEXT, End()), *self._tell_ends()]

    def _clear(self, message: dict[str, Any], now: float) -> list[Action]:
        self._turns.clear()
        return [Native(CONTEXT, Cancel()), self._numbered("Cleared")]

    # ------------------------------------------------------------ from the session

    def tell(self, context: str, message: ServerMessage, now: float) -> Actions:
        match message:
            case Started(epoch=epoch):
                self._turns.started(epoch)
            case Audio():
                return self._audio(message)
            case Failed():
                return self._failed(message)
            case ErrorEvent():
                return self._refused(message)
            case Warn(code=code, message=text):
                return [_warning(code, text)]
        return []

    def _audio(self, message: Audio) -> list[Action]:
        turn = self._turns.find(message.epoch)
        if turn is None:
            return []
        actions: list[Action] = [Frame(message.data)] if message.data else []
        turn.over = message.final
        return actions + self._tell_ends()

    def _failed(self, message: Failed) -> list[Action]:
        turn = self._turns.find(message.epoch)
        if turn is not None:
            turn.over = True
        fault = _warning(message.code, f"{message.message}; expected {message.expected}")
        return [fault, *self._tell_ends()]

    def _refused(self, message: ErrorEvent) -> list[Action]:
        turn = self._turns.opening
        if turn is not None:
            turn.over = True  # the rest of its text is dropped by the session
        return [_warning(message.code, f"{message.message}; expected {message.expected}")]

    def _tell_ends(self) -> list[Action]:
        return [self._numbered("Flushed") for _ in self._turns.pop_ended()]

    def _numbered(self, kind: str) -> Frame:
        frame = Frame(write_object({"type": kind, "sequence_id": self._sequence}))
        self._sequence += 1
        return frame

    _ACTS: ClassVar[dict[str, Callable[["Aura", dict[str, Any], float], list[Action]]]] = {
        "Speak": _speak,
        "Flush": _flush,
        "Clear": _clear,
        "Close": lambda self, message, now: [Hangup(1000, "")],
    }


def _warning(code: str, description: str) -> Frame:
    """Both spellings of the fields are in use among this protocol's clients."""
    return Frame(
        write_object(
            {
                "type": "Warning",
                "code": code,
                "description": description,
                "warn_code": code,
                "warn_msg": description,
            }
        )
    )


def open_aura(opening: Opening, facts: ServerFacts, request_id: str) -> Aura:
    """Raises ``Refused`` for a query that cannot be served."""
    return Aura(read_query(opening, facts, MODELS, DEFAULT_MODEL), facts, request_id)
