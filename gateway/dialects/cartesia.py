"""Cartesia, ``/tts/websocket``: many contexts on one socket, each one turn of speech.

Every request repeats the whole configuration and adds a piece of transcript; ``continue: false``
ends the context, which is answered with ``done`` once all of its audio has been sent. ``flush``
ends a stretch of it and is answered with ``flush_done``. A context's fault ends that context and
leaves the socket and the others alone. There is no playback feedback.

Source: docs.cartesia.ai, "Text to Speech (WebSocket)" and "Contexts"; cartesia 4.2.0,
types/websocket_response.py.
"""

import base64
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from playhead.gateway.dialects.base import Action, Actions, Dialect, Frame, Native, Opening
from playhead.gateway.dialects.cartesia_request import Generation, read_generation
from playhead.gateway.dialects.cartesia_times import word_times
from playhead.gateway.dialects.turns import Turns
from playhead.gateway.dialects.wire import (
    boolean,
    label,
    read_object,
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
    Hello,
    ServerMessage,
    Start,
    Started,
)
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session import ServerFacts
from playhead.gateway.session_budget import TokenBucket

MOST_CONTEXTS = 32
"""Alive at once on one socket: the vendor speaks of dozens."""
REMEMBERED = 64
"""Names of contexts that have ended: to cancel one of these is a race, not a fault."""

STATUS = {
    **{"overloaded": 429, "rate_limited": 429, "draining": 503, "engine_error": 500},
    **dict.fromkeys(("unknown_voice", "unknown_model", "unknown_context"), 404),
}
BAD_REQUEST, PARTIAL, OK, UNAVAILABLE = 400, 206, 200, 503


@dataclass(slots=True)
class Context:
    """One turn of speech. ``base``: samples of its finished stretches."""

    hello: Hello
    timestamps: bool
    turns: Turns = field(default_factory=Turns)
    closed: bool = False
    base: int = 0
    flushes: int = 1


class Cartesia(Dialect):
    """One socket."""

    def __init__(self, facts: ServerFacts, request_id: str) -> None:
        self._facts = facts
        self._request_id = request_id
        self._contexts: dict[str, Context] = {}
        self._ended: deque[str] = deque(maxlen=REMEMBERED)
        self._openings = TokenBucket(facts.limits.open_rate, facts.limits.open_burst)

    # ------------------------------------------------------------ from the client

    def receive(self, frame: bytes | str, now: float) -> Actions:
        name = ""
        try:
            request = read_object(frame)
            name = label(request, "context_id", "")
            if boolean(request, "cancel"):
                return self._cancel(name)
            return self._generate(name, read_generation(request, self._facts), now)
        except ProtocolError as fault:
            return self._fault(name, fault.code, f"{fault.message}; expected {fault.expected}")

    def _cancel(self, name: str) -> list[Action]:
        if name in self._contexts:
            return [*self._drop(name), self._done(name)]
        if name in self._ended:
            return []
        raise ProtocolError(
            "unknown_context", "there is no such context", "context_id: one that is spoken"
        )

    def _generate(self, name: str, request: Generation, now: float) -> list[Action]:
        actions: list[Action] = []
        context = self._contexts.get(name)
        if context is None:
            context = self._open(name, request, now)
            actions.append(Native(name, context.hello))
        elif context.closed:
            raise ProtocolError(
                "context_closed",
                "no transcript may follow continue: false",
                "a context_id of its own for the next turn",
            )
        elif _form(context.hello) != _form(request.hello):
            raise ProtocolError(
                "bad_value",
                "output_format differs from that of the context",
                "the same output_format, or another context_id",
            )
        context.closed = not request.more
        actions += self._speak(name, context, request.transcript)
        if request.flush or context.closed:
            actions += self._end(name, context, flush=request.flush)
        return actions

    def _open(self, name: str, request: Generation, now: float) -> Context:
        if len(self._contexts) >= MOST_CONTEXTS:
            raise ProtocolError(
                "rate_limited",
                f"{MOST_CONTEXTS} contexts are open on this socket",
                "a new one when one of them is done",
            )
        if not self._openings.take(now):
            rate = self._facts.limits.open_rate
            raise ProtocolError(
                "rate_limited", "too many contexts in a short time", f"at most {rate:g} a second"
            )
        context = self._contexts[name] = Context(request.hello, request.timestamps)
        return context

    def _speak(self, name: str, context: Context, transcript: str) -> list[Action]:
        if not transcript:
            return []
        actions: list[Action] = []
        if context.turns.composing is None:
            context.turns.open()
            actions.append(Native(name, Start()))
        return actions + [Native(name, piece) for piece in texts(transcript)]

    def _end(self, name: str, context: Context, *, flush: bool) -> list[Action]:
        """No more text for the stretch that is composed; ``flush`` asks for an answer to it."""
        actions: list[Action] = []
        turn = context.turns.composing
        if turn is not None:
            actions.append(Native(name, End()))
        elif flush:
            turn = context.turns.open()
            turn.over = True
        if turn is not None:
            turn.closed = True
            turn.name = "flush" if flush else ""
        return actions + self._tell_ends(name, context)

    # ------------------------------------------------------------ from the sessions

    def tell(self, context: str, message: ServerMessage, now: float) -> Actions:
        known = self._contexts.get(context)
        if known is None:
            return []
        match message:
            case Started(epoch=epoch):
                known.turns.started(epoch)
            case Audio():
                return self._audio(context, known, message)
            case Failed() | ErrorEvent():
                text = f"{message.message}; expected {message.expected}"
                return self._fault(context, message.code, text)
        return []

    def _audio(self, name: str, context: Context, message: Audio) -> list[Action]:
        turn = context.turns.find(message.epoch)
        assert turn is not None, "a context is over when one of its turns fails"
        actions: list[Action] = []
        if message.data:
            chunk = {"data": base64.b64encode(message.data).decode("ascii"), "step_time": 0.0}
            actions.append(_frame("chunk", name, chunk | {"flush_id": context.flushes}))
        turn.samples += message.samples
        if context.timestamps and message.words:
            times = word_times(message, context.hello.sample_rate, context.base)
            actions.append(_frame("timestamps", name, {"word_timestamps": times}))
        turn.over = message.final
        return actions + self._tell_ends(name, context)

    def _tell_ends(self, name: str, context: Context) -> list[Action]:
        actions: list[Action] = []
        for turn in context.turns.pop_ended():
            context.base += turn.samples
            if turn.name == "flush":
                flushed = {"flush_done": True, "flush_id": context.flushes}
                actions.append(_frame("flush_done", name, flushed))
                context.flushes += 1
        if context.closed and not len(context.turns):
            actions += [self._done(name), *self._drop(name)]
        return actions

    def ended(self, context: str, code: int, reason: str, now: float) -> Actions:
        """A session that ends by itself costs its context alone, unless the server goes down."""
        if context in self._contexts:
            self._forget(context)
            told = self._error(context, "session_ended", reason, UNAVAILABLE)
            return [told, *super().ended(context, code, reason, now)]
        return super().ended(context, code, reason, now)

    # ------------------------------------------------------------ ends

    def _fault(self, name: str, code: str, text: str) -> list[Action]:
        """Tell a fault; the context that it concerns is over."""
        told = self._error(name, code, text, STATUS.get(code, BAD_REQUEST))
        return [told, *(self._drop(name) if name in self._contexts else [])]

    def _error(self, name: str, code: str, text: str, status: int) -> Frame:
        """The fields of all versions: older ones had ``error``, newer ones have the rest."""
        fields = {
            "error": text,
            "error_code": code,
            "title": code.replace("_", " "),
            "message": text,
            "request_id": self._request_id,
        }
        return _frame("error", name, fields, status=status, done=True)

    def _done(self, name: str) -> Frame:
        return _frame("done", name, {}, status=OK, done=True)

    def _drop(self, name: str) -> list[Action]:
        self._forget(name)
        return [Native(name, Cancel()), Native(name, CloseSession())]

    def _forget(self, name: str) -> None:
        del self._contexts[name]
        self._ended.append(name)


def _form(hello: Hello) -> tuple[str, int]:
    """What must stay the same in a context. Clients end one with another voice than it had."""
    return hello.codec, hello.sample_rate


def _frame(
    kind: str, name: str, fields: dict[str, Any], *, status: int = PARTIAL, done: bool = False
) -> Frame:
    head = {"type": kind, "status_code": status, "done": done, "context_id": name}
    return Frame(write_object(head | fields))


def open_cartesia(opening: Opening, facts: ServerFacts, request_id: str) -> Cartesia:
    """Nothing in the query is needed: all versions of the protocol are answered alike."""
    return Cartesia(facts, request_id)
