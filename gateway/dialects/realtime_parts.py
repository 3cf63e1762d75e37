"""What OpenAI's Realtime protocol is made of: the session's settings, items, responses, errors."""

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from playhead.gateway.api.voices import find_voice
from playhead.gateway.dialects.base import Opening, Refused
from playhead.gateway.dialects.turns import Turn
from playhead.gateway.dialects.wire import (
    PCM,
    bad_value,
    choice,
    mapping,
    number,
    string,
    write_object,
)
from playhead.gateway.messages import Hello
from playhead.gateway.protocol_parse import ProtocolError, shorten
from playhead.gateway.session import ServerFacts

MODELS = re.compile(r"gpt-[a-z0-9.-]*(realtime|audio|tts)[a-z0-9.-]*|tts-1(-hd)?")
MOST_ITEMS = 64
MOST_ID = 64
ECHOED = ("instructions", "max_output_tokens", "output_modalities", "tool_choice", "tools")
"""Settings that mean nothing here and are told back as they were given."""
FORMATS = {
    "audio/pcm": (PCM, 24_000),
    "audio/pcmu": ("mulaw", 8_000),
    "audio/pcma": ("alaw", 8_000),
}
SLOWEST, FASTEST = 0.5, 1.5
"""The vendor goes down to 0.25, the voices here do not."""
TEXT_PARTS = ("input_text", "output_text", "text")
OUTPUT = "session.audio.output"


@dataclass(frozen=True, slots=True)
class Voicing:
    """How responses sound. ``shown`` is the voice as the client calls it."""

    format: str = "audio/pcm"
    voice: str | None = None
    shown: str = "alloy"
    speed: float = 1.0

    @property
    def rate(self) -> int:
        """Samples a second on the wire."""
        return FORMATS[self.format][1]

    def hello(self) -> Hello:
        """A session of that sound."""
        codec, rate = FORMATS[self.format]
        return Hello(
            voice=self.voice,
            codec=codec,
            sample_rate=rate,
            speed=self.speed,
            start_threshold=0.0,
            reports=False,
        )


def read_voicing(output: dict[str, Any], now: Voicing, facts: ServerFacts) -> Voicing:
    """``now``, changed as an ``audio.output`` object asks. Raises ``ProtocolError``."""
    fmt = mapping(output, "format")
    kind = choice(fmt, "type", tuple(FORMATS), now.format)
    rate = FORMATS[kind][1]
    if number(fmt, "rate", 0, 1e6, rate) != rate:
        raise bad_value(f"{OUTPUT}.format.rate", fmt["rate"], f"{rate} for {kind}")
    changed = replace(now, format=kind, speed=number(output, "speed", SLOWEST, FASTEST, now.speed))
    given = output.get("voice")
    if given is None:
        return changed
    name = string(
        given if isinstance(given, dict) else output, "id" if isinstance(given, dict) else "voice"
    )
    voice = find_voice(name, facts.voices)
    if voice is None:
        known = ", ".join(facts.voices)
        raise ProtocolError(
            "unknown_voice",
            lambda: f"unknown voice {shorten(name)}",
            f"one of {known}, or an OpenAI voice, which stands for one of them",
            f"{OUTPUT}.voice",
        )
    return replace(changed, voice=voice, shown=name)


@dataclass(slots=True)
class Item:
    """A message of the conversation. Of spoken ones ``turn`` keeps how far they were heard."""

    id: str
    role: str
    text: str
    turn: Turn | None = None
    rate: int = 0  # of what was spoken, Hz
    status: str = "completed"
    spoken: str = ""  # the transcript as told so far, or up to where it was truncated

    def settle(self) -> None:
        """Its session is gone, and nothing plays any more that could be cut."""
        if self.turn is not None:
            self.turn.done = True

    def plain(self) -> dict[str, Any]:
        """The item as events show it."""
        part: dict[str, Any] = {"type": "input_text", "text": self.text}
        if self.turn is not None:
            part = {"type": "output_audio", "transcript": self.spoken}
        elif self.role == "assistant":
            part = {"type": "output_text", "text": self.text}
        return {
            "id": self.id,
            "object": "realtime.item",
            "type": "message",
            "status": self.status,
            "role": self.role,
            "content": [] if self.status == "in_progress" else [part],
        }


class Items:
    """The conversation. Of too many the oldest go first."""

    def __init__(self) -> None:
        self._items: OrderedDict[str, Item] = OrderedDict()
        self._unspoken: list[Item] = []

    def __iter__(self) -> Iterator[Item]:
        return iter(tuple(self._items.values()))

    def keep(self, item: Item) -> Item:
        """A new item; one with text of the client's waits to be spoken.

        Raises ``ProtocolError`` for an id that is taken or too long."""
        if item.id in self._items or len(item.id) > MOST_ID:
            raise bad_value("item.id", item.id, f"a new id of at most {MOST_ID} characters")
        self._items[item.id] = item
        if item.turn is None:
            self._unspoken.append(item)
        while len(self._items) > MOST_ITEMS:
            self.drop(next(iter(self._items.values())))
        return item

    def find(self, name: str) -> Item:
        """Raises ``ProtocolError`` (``item_not_found``)."""
        if name not in self._items:
            raise ProtocolError(
                "item_not_found",
                lambda: f"there is no item {shorten(name)}",
                "a known id",
                "item_id",
            )
        return self._items[name]

    def drop(self, item: Item) -> None:
        """Forget an item."""
        del self._items[item.id]
        self._unspoken = [waiting for waiting in self._unspoken if waiting is not item]

    def unspoken(self) -> str:
        """The text of the client's items since the last call."""
        text = " ".join(filter(None, (item.text for item in self._unspoken)))
        self._unspoken.clear()
        return text


def read_model(opening: Opening, facts: ServerFacts) -> str:
    """Raises ``Refused`` for a model that is neither ours nor one of the vendor's speaking ones."""
    model = opening.query.get("model") or facts.model
    if model == facts.model or MODELS.fullmatch(model):
        return model
    error = {
        "message": f"no model {shorten(model)}; expected {facts.model} or gpt-realtime",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
    raise Refused(HTTPStatus.NOT_FOUND, write_object({"error": error}))


def check_modalities(given: dict[str, Any]) -> None:
    """Raises ``ProtocolError`` for an answer without sound."""
    wanted = given.get("output_modalities")
    if wanted is not None and wanted != ["audio"]:
        raise bad_value("output_modalities", wanted, '["audio"]: this server only speaks')


def read_text(items: Any) -> str:
    """The text of a response's input items or of one item. Raises ``ProtocolError``."""
    if isinstance(items, dict):
        items = [items]
    if not isinstance(items, list):
        raise bad_value("input", items, "input: a list of message items")
    return " ".join(filter(None, map(_item_text, items)))


def _item_text(item: Any) -> str:
    if not isinstance(item, dict) or item.get("type", "message") != "message":
        raise bad_value("item", item, "an item of type message")
    content = item.get("content", [])
    if not isinstance(content, list):
        raise bad_value("item.content", content, "item.content: a list")
    return " ".join(filter(None, map(_part_text, content)))


def _part_text(part: Any) -> str:
    if not isinstance(part, dict) or part.get("type") not in TEXT_PARTS:
        given = part.get("type") if isinstance(part, dict) else part
        kinds = ", ".join(TEXT_PARTS)
        raise bad_value("item.content.type", given, f"one of {kinds}: this server only speaks")
    return string(part, "text")


@dataclass(slots=True)
class Response:
    """One spoken answer."""

    id: str
    item: Item
    voicing: Voicing
    metadata: dict[str, Any] | None = None

    @property
    def turn(self) -> Turn:
        """The utterance that is spoken."""
        assert self.item.turn is not None, "responses are spoken"
        return self.item.turn

    def plain(self, status: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
        """The response as events show it."""
        done = status != "in_progress"
        return {
            "id": self.id,
            "object": "realtime.response",
            "status": status,
            "status_details": details,
            "output": [self.item.plain()] if done else [],
            "output_modalities": ["audio"],
            "audio": {"output": shown(self.voicing)},
            "metadata": self.metadata,
            "usage": None,
        }


def shown(voicing: Voicing) -> dict[str, Any]:
    """The ``audio.output`` object of a voicing."""
    fmt: dict[str, Any] = {"type": voicing.format}
    if voicing.format == "audio/pcm":
        fmt["rate"] = voicing.rate
    return {"format": fmt, "voice": voicing.shown, "speed": voicing.speed}


def error_of(fault: ProtocolError, event_id: Any) -> dict[str, Any]:
    """An error event's ``error`` object. ``event_id``: of the client's event at fault."""
    kind = (
        "server_error"
        if fault.code in ("internal_error", "engine_error")
        else "invalid_request_error"
    )
    return {
        "type": kind,
        "code": fault.code,
        "message": f"{fault.message}; expected {fault.expected}",
        "param": fault.field,
        "event_id": event_id if isinstance(event_id, str) and len(event_id) <= MOST_ID else None,
    }
