"""How each vendor's HTTP answer to a refused upgrade looks: no key, a wrong one, too many.

Sources: developers.deepgram.com, "Errors"; platform.openai.com, error codes; elevenlabs.io, API
errors.
"""

from collections.abc import Callable, Mapping
from typing import Any

from playhead.gateway.dialects.wire import write_object

Shape = Callable[[int, str, str], tuple[str, Mapping[str, str]]]
"""HTTP status, our code and what to tell; the body (JSON) and headers of its own."""

DEEPGRAM_CODES = {
    401: "INVALID_AUTH",
    403: "INSUFFICIENT_PERMISSIONS",
    429: "TOO_MANY_REQUESTS",
    503: "SERVICE_UNAVAILABLE",
}
OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
ELEVENLABS_CODES = {401: "invalid_api_key", 429: "too_many_concurrent_requests"}


def deepgram(status: int, code: str, text: str) -> tuple[str, Mapping[str, str]]:
    """``err_code`` and ``err_msg``; the header says it to who cannot read the body."""
    told = {"err_code": DEEPGRAM_CODES.get(status, code.upper()), "err_msg": text}
    return write_object(told), {"dg-error": text}


def openai(status: int, code: str, text: str) -> tuple[str, Mapping[str, str]]:
    """One ``error`` object."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    named = OPENAI_CODES.get(status, code)
    error: dict[str, Any] = {"message": text, "type": kind, "param": None, "code": named}
    return write_object({"error": error}), {}


def elevenlabs(status: int, code: str, text: str) -> tuple[str, Mapping[str, str]]:
    """A ``detail`` object."""
    detail = {"status": ELEVENLABS_CODES.get(status, code), "message": text}
    return write_object({"detail": detail}), {}
