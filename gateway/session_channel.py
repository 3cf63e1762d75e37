"""A session's numbered messages: given out without gaps, sent if a socket is there, kept."""

from playhead.gateway.effects import Effect, Send
from playhead.gateway.limits import Limits
from playhead.gateway.messages import NumberedMessage
from playhead.gateway.outbox import Outbox


class Channel:
    """``attached`` is written by the session alone."""

    def __init__(self, limits: Limits) -> None:
        self.attached = True
        self.outbox = Outbox(most_bytes=limits.outbox_bytes, most_seconds=limits.outbox_seconds)

    @property
    def next_seq(self) -> int:
        return self.outbox.last + 1

    def post(self, message: NumberedMessage, seconds: float = 0.0) -> list[Effect]:
        """``message.seq`` is ``next_seq``; ``seconds`` of audio are in it."""
        self.outbox.add(message, seconds)
        return [Send(message)] if self.attached else []
