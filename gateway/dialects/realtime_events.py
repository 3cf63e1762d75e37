"""The events that OpenAI's Realtime protocol sends, with their ids."""

from collections.abc import Iterator
from typing import Any

from playhead.gateway.dialects.base import Frame
from playhead.gateway.dialects.realtime_parts import Response
from playhead.gateway.dialects.wire import write_object


class Events:
    """Writes one connection's events."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def name(self, kind: str) -> str:
        """A fresh id."""
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return f"{kind}_{self._numbers[kind]:012d}"

    def plain(self, kind: str, **fields: Any) -> Frame:
        """Any event."""
        return Frame(write_object({"type": kind, "event_id": self.name("event"), **fields}))

    def of(self, response: Response, kind: str, **fields: Any) -> Frame:
        """An event that belongs to a response's one output."""
        place = {"response_id": response.id, "output_index": 0}
        if not kind.startswith("response.output_item"):
            place |= {"item_id": response.item.id, "content_index": 0}
        return self.plain(kind, **place, **fields)

    def announce(self, response: Response) -> Iterator[Frame]:
        """A response begins."""
        item = response.item.plain()
        part = {"type": "audio", "transcript": ""}
        yield self.plain("response.created", response=response.plain("in_progress"))
        yield self.of(response, "response.output_item.added", item=item)
        yield self.plain("conversation.item.added", previous_item_id=None, item=item)
        yield self.of(response, "response.content_part.added", part=part)

    def complete(
        self, response: Response, status: str, details: dict[str, Any] | None
    ) -> Iterator[Frame]:
        """No more of it comes: everything that was opened is closed."""
        item = response.item
        item.status = "completed" if status == "completed" else "incomplete"
        part = {"type": "audio", "transcript": item.spoken}
        transcript = "response.output_audio_transcript.done"
        yield self.of(response, "response.output_audio.done")
        yield self.of(response, transcript, transcript=item.spoken)
        yield self.of(response, "response.content_part.done", part=part)
        yield self.of(response, "response.output_item.done", item=item.plain())
        yield self.plain("conversation.item.done", previous_item_id=None, item=item.plain())
        yield self.plain("response.done", response=response.plain(status, details))
