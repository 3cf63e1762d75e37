"""What can go wrong between a client and the server, as exceptions."""

from typing import Literal

from playhead.gateway.messages import ErrorEvent, Failed
from playhead.gateway.redact import redact


class PlayheadError(Exception):
    """Anything this client raises on purpose."""


class ConnectionFailed(PlayheadError):
    """No session could be opened: refused, unreachable, or turned away before it began.

    ``status`` is the HTTP status when there was one, ``retry_after`` seconds when it was given.
    """

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(redact(message))  # its URL may hold a ticket or a password
        self.status = status
        self.retry_after = retry_after


class ConnectionLost(PlayheadError):
    """The session was open and is gone. ``code`` is the close code, None without a close."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class ServerError(PlayheadError):
    """The server did not do what it was asked (docs/protocol.md, "Error codes").

    ``message`` says what was wrong, ``expected`` what would be right, ``retry_after`` (seconds)
    when it may work. ``field`` names the message's field that was at fault.
    """

    def __init__(
        self,
        code: str,
        message: str,
        expected: str,
        *,
        retry_after: float | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message} (expected: {expected})" if expected else message)
        self.code = code
        self.message = message
        self.expected = expected
        self.retry_after = retry_after
        self.field = field


class UtteranceFailed(ServerError):
    """One utterance could not be (fully) spoken; the session goes on.

    ``heard`` counts samples; ``heard_text + unheard_text`` is the text as sent.
    """

    def __init__(self, failed: Failed) -> None:
        super().__init__(
            failed.code, failed.message, failed.expected, retry_after=_seconds(failed.retry_after)
        )
        self.heard = failed.heard
        self.heard_text = failed.heard_text
        self.unheard_text = failed.unheard_text


class ResumeFailed(ServerError):
    """The socket dropped and the session could not be taken up again: ``recovered`` is False.

    ``reason`` says what the server knows: ``ended`` (later than its grace time, with what was
    heard), ``replay_lost`` (it lives, but no longer keeps all that was missed), or ``unknown``: it
    has never heard of the session, so it was restarted, or the token is wrong. ``heard`` (samples
    of utterance ``epoch``), ``heard_text`` and ``unheard_text`` are the server's knowledge where
    ``told_by`` is ``server``. From an utterance's ``done`` they are that utterance's; what the
    server does not know of it is then the player's own count (``client``).
    """

    recovered = False

    def __init__(self, event: ErrorEvent) -> None:
        super().__init__(event.code, event.message, event.expected)
        self.reason = event.reason
        self.epoch = event.epoch
        self.heard = event.heard
        self.heard_text = event.heard_text
        self.unheard_text = event.unheard_text
        self.told_by: Literal["server", "client"] = "server"
        self._event = event

    def completed(self, epoch: int | None, heard: int, texts: tuple[str, str]) -> "ResumeFailed":
        """The same about one utterance, of which the caller's own player knows this much."""
        if self.heard is not None and epoch == self.epoch:
            return self
        own = ResumeFailed(self._event)
        own.epoch, own.heard, (own.heard_text, own.unheard_text) = epoch, heard, texts
        own.told_by = "client"
        return own


def server_error(event: ErrorEvent) -> ServerError:
    """The exception for an ``error`` event."""
    if event.code == "resume_failed":
        return ResumeFailed(event)
    return ServerError(
        event.code,
        event.message,
        event.expected,
        retry_after=_seconds(event.retry_after),
        field=event.field,
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
