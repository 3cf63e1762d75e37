"""Refusing to return to a session, with what its owner may still know."""

from playhead.gateway.effects import Close, Effect, Send
from playhead.gateway.messages import ErrorEvent, ResumeFrom
from playhead.gateway.session_types import Outcome, Tombstone, token_fits

RESUME_FAILED = 4001

UNKNOWN = "unknown"
"""No session of that id and token: the process was restarted, or somebody guesses."""
ENDED = "ended"
REPLAY_LOST = "replay_lost"
"""It lives, and no longer keeps all that its client missed."""


def refusal(outcome: Outcome | None, reason: str) -> list[Effect]:
    """``outcome``: only for the owner of the session. Without one the reason is :data:`UNKNOWN`."""
    error = ErrorEvent(
        code="resume_failed",
        message="the session is gone or cannot be continued",
        expected="hello without resume opens a new session",
        recovered=False,
        reason=reason if outcome else UNKNOWN,
        epoch=outcome.epoch if outcome else None,
        heard=outcome.heard if outcome else None,
        heard_text=outcome.heard_text if outcome else None,
        unheard_text=outcome.unheard_text if outcome else None,
    )
    return [Send(error), Close(RESUME_FAILED, "resume failed")]


def refuse_resume(request: ResumeFrom, stone: Tombstone | None, now: float) -> list[Effect]:
    """For a session that is not alive; ``stone`` is what is kept of it, if anything.

    An unknown session and a wrong token look the same.
    """
    owner = (
        stone is not None
        and now < stone.expires
        and stone.session == request.session
        and token_fits(request.token, stone.token_digest)
    )
    return refusal(stone.outcome if stone is not None and owner else None, ENDED)
