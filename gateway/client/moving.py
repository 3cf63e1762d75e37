"""Epochs across servers: each server counts its own, the client's go on counting."""

from dataclasses import dataclass, replace

from playhead.gateway.messages import (
    Audio,
    Cancel,
    Cancelled,
    ClientMessage,
    Done,
    Failed,
    PlaybackReport,
    ServerMessage,
    Started,
    Warn,
)


@dataclass(frozen=True, slots=True)
class Moved:
    """The session goes on at another server, as another session.

    What had arrived is still played; each utterance of which sound was missing is spoken again
    from the last word that had begun to arrive.
    """

    session: str
    utterances: int  # spoken again, or for the first time
    recovered: bool = False  # never: what the former server held is lost
    reason: str | None = None  # what it said of the session, as in ``ResumeFailed``; None: nothing
    type: str = "moved"


class Epochs:
    """Translates between a server's epochs and the client's, which never repeat."""

    def __init__(self) -> None:
        self._before = 0  # epochs of former servers
        self._latest = 0

    def moved(self) -> None:
        """From now on another server speaks."""
        self._before = self._latest

    def incoming(self, message: ServerMessage) -> ServerMessage:
        """``message`` with the client's epoch."""
        if isinstance(message, Started):
            self._latest = self._before + message.epoch
        if not self._before:
            return message
        if isinstance(message, Started | Audio | Done | Cancelled | Failed):
            return replace(message, epoch=self._before + message.epoch)
        if isinstance(message, Warn) and message.epoch is not None:
            return replace(message, epoch=self._before + message.epoch)
        return message

    def outgoing(self, message: ClientMessage) -> ClientMessage | None:
        """``message`` with the server's epoch; None when it is about a former server's."""
        if not self._before or not isinstance(message, PlaybackReport | Cancel):
            return message
        if message.epoch is None:
            return message
        if message.epoch <= self._before:
            return None
        return replace(message, epoch=message.epoch - self._before)
