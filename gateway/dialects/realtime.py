"""OpenAI's Realtime protocol, ``/v1/realtime``, as far as it speaks text.

``response.create`` speaks the text of its ``input``, else of the items created since the last
response, else its ``instructions``; audio comes as base64 in ``response.output_audio.delta``, with
the transcript as its words begin. ``conversation.item.truncate`` says how far the client had
played: a playback report, and the end of what is still to come of that item. It may follow
``response.cancel`` or stand alone, also when all audio has been sent. The answer carries the
transcript that was heard (``transcript``, which the vendor does not have).

Nothing is heard or thought here: events that need ears or a language model are answered with an
error, and the socket lives, as it does after every error. Source: openai 3.57.0, types/realtime.
"""

import base64
from collections.abc import Callable
from typing import Any, ClassVar

from playhead.engine.types import Source
from playhead.gateway.dialects import realtime_parts as parts
from playhead.gateway.dialects.base import (
    Action,
    Actions,
    Dialect,
    Native,
    Opening,
)
from playhead.gateway.dialects.realtime_events import Events
from playhead.gateway.dialects.turns import Turn
from playhead.gateway.dialects.wire import (
    bad_value,
    label,
    mapping,
    number,
    read_object,
    string,
    texts,
)
from playhead.gateway.messages import (
    Audio,
    Cancel,
    ClientMessage,
    CloseSession,
    End,
    ErrorEvent,
    Failed,
    ServerMessage,
    Start,
    Started,
)
from playhead.gateway.protocol_parse import ProtocolError, shorten
from playhead.gateway.session import ServerFacts

CANCELLED = {"type": "cancelled", "reason": "client_cancelled"}


class Realtime(Dialect):
    """One socket; one native session per output format, of which the latest is in use."""

    def __init__(self, model: str, facts: ServerFacts, session_id: str) -> None:
        self.subprotocol = "realtime"
        self._model = model
        self._facts = facts
        self._session_id = session_id
        self._voicing = parts.Voicing()
        self._settings: dict[str, Any] = {}  # what else the client set, told back
        self._context = ""  # name of the session in use; empty: none yet
        self._contexts = 0
        self._events = Events()
        self._items = parts.Items()
        self._active: parts.Response | None = None

    def opened(self, now: float) -> Actions:
        return [self._events.plain("session.created", session=self._session())]

    # ------------------------------------------------------------ from the client

    def receive(self, frame: bytes | str, now: float) -> Actions:
        event_id: Any = None
        try:
            message = read_object(frame)
            event_id = message.get("event_id")
            kind = string(message, "type")
            act = self._ACTS.get(kind)
            if act is None:
                known = ", ".join(self._ACTS)
                raise ProtocolError("unknown_type", f"{shorten(kind)} is not served", known, "type")  # noqa: TRY301
            return act(self, message, now)
        except ProtocolError as fault:
            return [self._events.plain("error", error=parts.error_of(fault, event_id))]

    def _update(self, message: dict[str, Any], now: float) -> list[Action]:
        session = mapping(message, "session")
        output = mapping(mapping(session, "audio"), "output")
        changed = parts.read_voicing(output, self._voicing, self._facts)
        parts.check_modalities(session)
        actions: list[Action] = []
        if changed.format != self._voicing.format and self._context:
            if self._active is not None:
                expected = "the format between responses"
                raise ProtocolError("invalid_state", "a response is in progress", expected)
            actions.append(Native(self._context, CloseSession()))
            self._context = ""
            for item in self._items:
                item.settle()
        self._voicing = changed
        self._settings |= {key: session[key] for key in parts.ECHOED if key in session}
        return [*actions, self._events.plain("session.updated", session=self._session())]

    def _create_item(self, message: dict[str, Any], now: float) -> list[Action]:
        given = mapping(message, "item")
        text = parts.read_text(given)
        role = label(given, "role", "user")
        item = self._items.keep(
            parts.Item(string(given, "id", self._events.name("item")), role, text)
        )
        before = label(message, "previous_item_id", "") or None
        told = {"previous_item_id": before, "item": item.plain()}
        kinds = ("conversation.item.added", "conversation.item.done")
        return [self._events.plain(kind, **told) for kind in kinds]

    def _retrieve(self, message: dict[str, Any], now: float) -> list[Action]:
        return [
            self._events.plain(
                "conversation.item.retrieved",
                item=self._items.find(string(message, "item_id")).plain(),
            )
        ]

    def _delete(self, message: dict[str, Any], now: float) -> list[Action]:
        item = self._items.find(string(message, "item_id"))
        self._items.drop(item)
        return [self._events.plain("conversation.item.deleted", item_id=item.id)]

    def _respond(self, message: dict[str, Any], now: float) -> list[Action]:
        asked = mapping(message, "response")
        parts.check_modalities(asked)
        if self._active is not None:
            raise ProtocolError(
                "conversation_already_has_active_response",
                f"response {self._active.id} is in progress",
                "response.cancel, or response.create after its response.done",
            )
        output = mapping(mapping(asked, "audio"), "output")
        voicing = parts.read_voicing(output, self._voicing, self._facts)
        if voicing.format != self._voicing.format:
            raise bad_value("audio.output.format", voicing.format, "the session's format")
        text = self._text(asked)
        turn = Turn(closed=True)
        turn.script.add_text(text)
        item = parts.Item(
            self._events.name("item"), "assistant", text, turn, voicing.rate, status="in_progress"
        )
        metadata = mapping(asked, "metadata") or None
        response = parts.Response(
            self._events.name("resp"), self._items.keep(item), voicing, metadata
        )
        self._active = response
        start = Start(voice=voicing.voice, speed=voicing.speed, id=response.id)
        speak: list[ClientMessage] = [start, *texts(text), End()]
        return [
            *self._events.announce(response),
            *self._open(),
            *(Native(self._context, piece) for piece in speak),
        ]

    def _text(self, asked: dict[str, Any]) -> str:
        """What a response shall say."""
        text = parts.read_text(asked["input"]) if asked.get("input") is not None else ""
        if not text:
            text = self._items.unspoken()
        text = text or string(asked, "instructions", "")
        if not text.strip():
            expected = "text in response.input, in an item created before, or in instructions"
            raise ProtocolError("missing_field", "there is nothing to say", expected, "input")
        return text

    def _open(self) -> list[Action]:
        if self._context:
            return []
        self._contexts += 1
        self._context = str(self._contexts)
        return [Native(self._context, self._voicing.hello())]

    def _cancel(self, message: dict[str, Any], now: float) -> list[Action]:
        response, named = self._active, message.get("response_id")
        if response is None or named not in (None, response.id):
            raise ProtocolError(
                "response_cancel_not_active", "no such response is in progress", "an active one"
            )
        return self._stop(response)

    def _complete(
        self, response: parts.Response, status: str, details: dict[str, Any] | None
    ) -> list[Action]:
        self._active = None
        return [*self._events.complete(response, status, details)]

    def _stop(self, response: parts.Response) -> list[Action]:
        epoch = response.turn.epoch
        cut = [Native(self._context, Cancel(epoch=epoch))] if epoch else []
        return [*cut, *self._complete(response, "cancelled", CANCELLED)]

    def _truncate(self, message: dict[str, Any], now: float) -> list[Action]:
        item = self._items.find(string(message, "item_id"))
        if item.turn is None:
            raise bad_value("item_id", item.id, "an item that was spoken")
        number(message, "content_index", 0, 0)
        most = item.turn.samples * 1_000 // item.rate
        end = int(number(message, "audio_end_ms", 0, most))
        heard = round(end * item.rate / 1_000)
        actions = self._report_cut(item.turn, heard, now)
        if self._active is not None and self._active.item is item:
            actions += self._complete(self._active, "cancelled", CANCELLED)
        item.spoken = item.turn.heard_text(heard)[0]
        told = {"item_id": item.id, "content_index": 0, "audio_end_ms": end}
        truncated = self._events.plain(
            "conversation.item.truncated", **told, transcript=item.spoken
        )
        return [*actions, truncated]

    def _report_cut(self, turn: Turn, heard: int, now: float) -> list[Action]:
        """The listener heard so much of that turn and will hear no more of it."""
        if turn.done or not turn.epoch:
            return []
        turn.done = True
        if any(i.turn.epoch > turn.epoch for i in self._items if i.turn is not None):
            # A later one is being spoken already: it must not end with this one.
            return [Native(self._context, turn.report(heard, Source.OFFSET, now, dropped=True))]
        report = turn.report(heard, Source.OFFSET, now)
        return [Native(self._context, report), Native(self._context, Cancel(epoch=turn.epoch))]

    # ------------------------------------------------------------ from the session

    def tell(self, context: str, message: ServerMessage, now: float) -> Actions:
        response = self._active
        if response is None or context != self._context:
            return []
        turn = response.turn
        match message:
            case Started(epoch=epoch):
                turn.epoch = epoch
            case Audio(epoch=turn.epoch):
                return self._audio(response, message)
            case Failed() | ErrorEvent():
                return self._failed(response, message)
        return []

    def _audio(self, response: parts.Response, message: Audio) -> list[Action]:
        item, turn = response.item, response.turn
        turn.samples += message.samples
        turn.script.add_words(message.words)
        turn.over = message.final
        actions: list[Action] = []
        covered = turn.script.covered if not turn.over else turn.script.length
        if covered > len(item.spoken):
            delta = item.text[len(item.spoken) : covered]
            item.spoken = item.text[:covered]
            actions.append(
                self._events.of(response, "response.output_audio_transcript.delta", delta=delta)
            )
        if message.data:
            audio = base64.b64encode(message.data).decode("ascii")
            actions.append(self._events.of(response, "response.output_audio.delta", delta=audio))
        if turn.over:
            actions += self._complete(response, "completed", None)
        return actions

    def _failed(self, response: parts.Response, message: Failed | ErrorEvent) -> list[Action]:
        fault = ProtocolError(message.code, message.message, message.expected)
        error = parts.error_of(fault, None)
        done = self._complete(response, "failed", {"type": "failed", "error": error})
        return [self._events.plain("error", error=error), *done]

    # ------------------------------------------------------------ what is kept

    def _session(self) -> dict[str, Any]:
        return {
            "type": "realtime",
            "object": "realtime.session",
            "id": self._session_id,
            "model": self._model,
            "output_modalities": ["audio"],
            **self._settings,
            "audio": {"output": parts.shown(self._voicing)},
        }

    _ACTS: ClassVar[dict[str, Callable[["Realtime", dict[str, Any], float], list[Action]]]] = {
        "session.update": _update,
        "conversation.item.create": _create_item,
        "conversation.item.retrieve": _retrieve,
        "conversation.item.delete": _delete,
        "conversation.item.truncate": _truncate,
        "response.create": _respond,
        "response.cancel": _cancel,
    }


def open_realtime(opening: Opening, facts: ServerFacts, request_id: str) -> Realtime:
    """Raises ``Refused`` for a model that is not served."""
    return Realtime(parts.read_model(opening, facts), facts, f"sess_{request_id}")
