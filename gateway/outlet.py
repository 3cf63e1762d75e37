"""What a session speaks into: a connection of any protocol."""

from typing import Protocol

from playhead.gateway.messages import ServerMessage


class Outlet(Protocol):
    """Where messages to the client go."""

    def send(self, message: ServerMessage) -> None:
        """Queue a message."""

    def close(self, code: int, reason: str) -> None:
        """Close after everything queued."""
