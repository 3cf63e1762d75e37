"""How each vendor's HTTP answer to a refused upgrade looks: no key, a wrong one, too many.

Sources: developers.deepgram.com, "Errors"; platform.openai.com, error codes; elevenlabs.io, API
errors; docs.cartesia.ai, "API Errors"; kyutai-labs/moshi, rust/moshi-server. Codes that a vendor
does not publish are ours.
"""

from collections.abc import Callable, Mapping
from typing import Any

from playhead.gateway.dialects.wire import write_object

Shape = Callable[[int, str, str, str], tuple[str, Mapping[str, str]]]
"""HTTP status, our code, what to tell, and the request's id; the body (JSON or nothing) and
headers of its own."""

DEEPGRAM_CODES = {
    401: "INVALID_AUTH",
    403: "INSUFFICIENT_PERMISSIONS",
    429: "TOO_MANY_REQUESTS",
    503: "SERVICE_UNAVAILABLE",
}
OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
CARTESIA_CODES = {429: "concurrency_limited"}
CARTESIA_TITLES = {
    401: "Unauthorized",
    403: "Forbidden",
    429: "Too many concurrent requests",
    503: "Service unavailable",
}
ELEVENLABS_CODES = {
    "bad_message": "invalid_input_message",
    "missing_field": "invalid_input_message",
    "bad_value": "invalid_input_message",
    "unknown_voice": "voice_id_does_not_exist",
    "unknown_model": "model_not_found",
    "unsupported_codec": "output_format_not_allowed",
    "unknown_language": "unsupported_language",
    "text_too_long": "max_character_limit_exceeded",
    "overloaded": "system_busy",
    "rate_limited": "too_many_concurrent_requests",
    "unauthorized": "invalid_api_key",
    "connections_per_key": "too_many_concurrent_requests",
    "connections_per_address": "too_many_concurrent_requests",
    "accept_rate": "too_many_concurrent_requests",
    "connections": "system_busy",
}


def header_text(text: str) -> str:
    """``text`` as a header's value may be (RFC 9110, 5.5): what a client sent may stand in it."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)


def deepgram(status: int, code: str, text: str, request_id: str) -> tuple[str, Mapping[str, str]]:
    """``err_code`` and ``err_msg``; the header says it to who cannot read the body."""
    told = {
        "err_code": DEEPGRAM_CODES.get(status, code.upper()),
        "err_msg": text,
        "request_id": request_id,
    }
    return write_object(told), {"dg-error": header_text(text)}


def openai(status: int, code: str, text: str, request_id: str) -> tuple[str, Mapping[str, str]]:
    """One ``error`` object."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    named = OPENAI_CODES.get(status, code)
    error: dict[str, Any] = {"message": text, "type": kind, "param": None, "code": named}
    return write_object({"error": error}), {}


def elevenlabs(status: int, code: str, text: str, request_id: str) -> tuple[str, Mapping[str, str]]:
    """A ``detail`` object."""
    detail = {"status": ELEVENLABS_CODES.get(code, code), "message": text}
    return write_object({"detail": detail}), {}


def cartesia(status: int, code: str, text: str, request_id: str) -> tuple[str, Mapping[str, str]]:
    """The object of its versions since 2026-03-01, which older clients get too: theirs was plain
    text of no fixed form."""
    told = {
        "error_code": CARTESIA_CODES.get(status, code),
        "title": CARTESIA_TITLES.get(status, "Invalid request"),
        "message": text,
        "request_id": request_id,
    }
    return write_object(told), {}


def kyutai(status: int, code: str, text: str, request_id: str) -> tuple[str, Mapping[str, str]]:
    """Nothing with 401, as moshi-server. It has no other refusals: it tells a full server in a
    message. So the rest is ours."""
    return "" if status == 401 else write_object({"code": code, "message": text}), {}
