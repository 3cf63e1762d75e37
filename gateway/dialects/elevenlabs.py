"""ElevenLabs, ``stream-input`` (one text, then close 1000) and ``multi-stream-input`` (contexts).

A context opens with its first message and takes text until ``close_context``, or until an empty
text on the single socket. To close a context whose text has been flushed lets it be spoken to its
end; to close one in the middle of its text, or a second time, is how this protocol's clients
interrupt, and stops it. ``isFinal`` tells the end either way. Every fault is one message with
``message``, ``error`` and ``code``, and closes the socket, as at the vendor; there is no playback
feedback. A key may come in the first message instead of a header.

Source: elevenlabs.io/docs, "TTS WebSocket", "Multi-Context WebSocket"; elevenlabs 2.78.0.
"""

import base64
from dataclasses import dataclass, replace
from typing import Any

from playhead.codecs.mp3 import Mp3Writer
from playhead.gateway.access import Denied
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
)
from playhead.gateway.dialects.elevenlabs_alignment import Alignment
from playhead.gateway.dialects.elevenlabs_key import shown_in
from playhead.gateway.dialects.elevenlabs_query import Query, read_query
from playhead.gateway.dialects.refusals import ELEVENLABS_CODES
from playhead.gateway.dialects.wire import (
    boolean,
    label,
    mapping,
    number,
    read_object,
    string,
    texts,
    write_object,
)
from playhead.gateway.messages import (
    Audio,
    Cancel,
    CloseSession,
    End,
    ErrorEvent,
    Failed,
    Flush,
    ServerMessage,
    Start,
)
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session import ServerFacts
from playhead.gateway.session_budget import TokenBucket

MOST_CONTEXTS = 5
"""Open at once, as at the vendor."""
MOST_SPEAKING = 16
"""Those that are closed and still spoken included."""
MOST_REASON = 120  # bytes of a close frame's reason (RFC 6455, 5.5)


@dataclass(slots=True)
class Context:
    """``begun``: an utterance is open. ``flushed``: no text has come since the last flush."""

    alignment: Alignment
    mp3: Mp3Writer | None
    begun: bool = False
    flushed: bool = False
    closed: bool = False


class ElevenLabs(Dialect):
    """One socket. ``query`` is the fault of one whose URL cannot be served."""

    def __init__(self, query: Query | ProtocolError, facts: ServerFacts, *, multi: bool) -> None:
        self._query = query
        self._facts = facts
        self._multi = multi
        self._contexts: dict[str, Context] = {}
        self._openings = TokenBucket(facts.limits.open_rate, facts.limits.open_burst)
        self._closing = False
        self._heard_at = 0.0  # when the client last sent anything

    def opened(self, now: float) -> Actions:
        self._heard_at = now
        return self._fault(self._query) if isinstance(self._query, ProtocolError) else ()

    # ------------------------------------------------------------ from the client

    def receive(self, frame: bytes | str, now: float) -> Actions:
        self._heard_at = now
        try:
            message = read_object(frame)
            if shown := shown_in(message):
                return [shown, *self._heed(message, now)]
            return self._heed(message, now)
        except ProtocolError as fault:
            return self._fault(fault)

    def _heed(self, message: dict[str, Any], now: float) -> list[Action]:
        if boolean(message, "close_socket"):
            return self._close_socket()
        name = label(message, "context_id", "") if self._multi else ""
        if boolean(message, "close_context"):
            return self._close_context(name)
        return self._text(name, message, now)

    def denied(self, denied: Denied, now: float) -> Actions:
        return self._fault(ProtocolError(denied.code, denied.message, denied.expected))

    def _text(self, name: str, message: dict[str, Any], now: float) -> list[Action]:
        flush = boolean(message, "flush") or boolean(message, "trigger_generation")
        text = string(message, "text", "" if flush or self._multi else None)
        actions: list[Action] = []
        if name not in self._contexts:
            if not text:
                return self._nothing()
            actions = self._open(name, message, now)
        context = self._contexts[name]
        if context.closed and text.strip():
            raise ProtocolError("bad_value", "the context is closed", "another context_id")
        actions += self._speak(name, context, text)
        if flush and context.begun:
            context.flushed = True
            actions.append(Native(name, Flush()))
        if not text and not self._multi and not flush:
            actions += self._end(name, context)
        return actions

    def _nothing(self) -> list[Action]:
        """An empty text where nothing is open: the end of a single socket, else a sign of life."""
        return [] if self._multi else [_final(None), Hangup(NORMAL)]

    def _open(self, name: str, message: dict[str, Any], now: float) -> list[Action]:
        open_now = sum(not context.closed for context in self._contexts.values())
        if open_now >= MOST_CONTEXTS or len(self._contexts) >= MOST_SPEAKING:
            raise ProtocolError(
                "max_active_conversations",
                "Maximum simultaneous contexts per WebSocket connection exceeded "
                f"({MOST_CONTEXTS})",
                "an existing context to be closed first",
            )
        if not self._openings.take(now):
            rate = self._facts.limits.open_rate
            raise ProtocolError(
                "rate_limited", "too many contexts in a short time", f"at most {rate:g} a second"
            )
        query = self._checked
        speed = number(mapping(message, "voice_settings"), "speed", 0.5, 2.0, 1.0)
        form = query.format
        self._contexts[name] = Context(
            Alignment(form.sample_rate, absolute=query.absolute),
            None if form.bit_rate is None else Mp3Writer(form.sample_rate, form.bit_rate),
        )
        return [Native(name, replace(query.hello, speed=speed))]

    @property
    def _checked(self) -> Query:
        assert not isinstance(self._query, ProtocolError), "such a socket is closed when it opens"
        return self._query

    def _speak(self, name: str, context: Context, text: str) -> list[Action]:
        if not (context.begun or text.strip()):
            return []  # the space that opens a context is no text
        actions: list[Action] = []
        if not context.begun:
            context.begun = True
            actions.append(Native(name, Start()))
        if text:
            context.flushed = False
            context.alignment.add_text(text)
        return actions + [Native(name, piece) for piece in texts(text)]

    def _end(self, name: str, context: Context) -> list[Action]:
        """No more text will come."""
        if context.closed:
            return []
        context.closed = True
        if context.begun:
            return [Native(name, End())]
        return self._finish(name)

    def _close_context(self, name: str) -> list[Action]:
        context = self._contexts.get(name)
        if context is None:
            return []  # it has just ended by itself, or never was: there is nothing to free
        if context.begun and (context.closed or not context.flushed):
            return [Native(name, Cancel()), *self._finish(name)]
        return self._end(name, context)

    def _close_socket(self) -> list[Action]:
        self._closing = True
        actions: list[Action] = []
        for name, context in list(self._contexts.items()):
            actions += self._end(name, context)
        return actions if self._contexts or actions else [Hangup(NORMAL)]

    # ------------------------------------------------------------ from the sessions

    def tell(self, context: str, message: ServerMessage, now: float) -> Actions:
        known = self._contexts.get(context)
        if known is None:
            return []
        match message:
            case Audio():
                return self._audio(context, known, message)
            case Failed() | ErrorEvent():
                return self._fault(ProtocolError(message.code, message.message, message.expected))
        return []

    def _audio(self, name: str, context: Context, message: Audio) -> list[Action]:
        end = message.position + message.samples
        aligned = context.alignment.align(message.words, end, final=message.final)
        data = message.data
        if context.mp3 is not None:
            data = context.mp3.write(data) + (context.mp3.finish() if message.final else b"")
        actions: list[Action] = []
        if data or aligned is not None:
            told = {
                "audio": base64.b64encode(data).decode("ascii"),
                "isFinal": None,
                "normalizedAlignment": aligned,
                "alignment": aligned,
            }
            actions.append(Frame(write_object(told | self._named(name))))
        return actions + (self._finish(name) if message.final else [])

    def _finish(self, name: str) -> list[Action]:
        """Tell the end of a context, and forget it."""
        del self._contexts[name]
        actions: list[Action] = [Native(name, CloseSession()), _final(self._named(name))]
        if not self._multi or (self._closing and not self._contexts):
            actions.append(Hangup(NORMAL))
        return actions

    def _named(self, name: str) -> dict[str, Any]:
        return {"contextId": name} if self._multi else {}

    # ------------------------------------------------------------ time and faults

    def get_timer(self) -> float | None:
        """A client that has text to send must send something now and then."""
        waiting = not self._contexts or not all(c.closed for c in self._contexts.values())
        return self._heard_at + self._checked.timeout if waiting else None

    def handle_timer(self, now: float) -> Actions:
        due = self.get_timer()
        if due is None or now < due:
            return ()
        wait = f"{self._checked.timeout:g} seconds"
        return self._fault(
            ProtocolError(
                "input_timeout_exceeded",
                f"Have not received a new text input within the timeout of {wait}",
                "input in time, or an empty text at the end of it",
            )
        )

    def _fault(self, fault: ProtocolError) -> list[Action]:
        text = f"{fault.message}; expected {fault.expected}"
        told = {
            "message": text,
            "error": ELEVENLABS_CODES.get(fault.code, fault.code),
            "code": POLICY,
        }
        reason = text.encode("ascii", "replace")[:MOST_REASON].decode()
        return [Frame(write_object(told)), Hangup(POLICY, reason)]


def _final(named: dict[str, Any] | None) -> Frame:
    return Frame(write_object({"audio": None, "isFinal": True, **(named or {})}))


def _open(opening: Opening, facts: ServerFacts, *, multi: bool) -> ElevenLabs:
    """A bad URL is told in a message, as at the vendor: clients do not read a refused upgrade."""
    try:
        query: Query | ProtocolError = read_query(opening.query, facts)
    except ProtocolError as fault:
        query = fault.with_traceback(None)  # kept: its frames would hold the connection
    return ElevenLabs(query, facts, multi=multi)


def open_stream_input(opening: Opening, facts: ServerFacts, request_id: str) -> ElevenLabs:
    """``/v1/text-to-speech/{voice_id}/stream-input``."""
    return _open(opening, facts, multi=False)


def open_multi_stream_input(opening: Opening, facts: ServerFacts, request_id: str) -> ElevenLabs:
    """``/v1/text-to-speech/{voice_id}/multi-stream-input``."""
    return _open(opening, facts, multi=True)
