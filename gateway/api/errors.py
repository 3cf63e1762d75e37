"""Faults of the HTTP API, in the shape that OpenAI's clients read.

``{"error": {"message", "type", "param", "code"}}``: platform.openai.com/docs/guides/error-codes.
"""

import math
from http import HTTPStatus
from typing import Any, Final

from playhead.gateway.access import Denied
from playhead.gateway.protocol_parse import ProtocolError

INVALID: Final = "invalid_request_error"
RATE_LIMIT: Final = "rate_limit_error"
SERVER: Final = "server_error"
NOT_FOUND: Final = "not_found_error"
AUTHENTICATION: Final = "authentication_error"
RETRY_AFTER: Final = 5.0
"""Seconds to wait when the fault does not say."""


class ApiError(Exception):
    """What the client is told. ``retry_after`` in seconds."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        type: str = INVALID,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.param = param
        self.code = code
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """The JSON object of the response."""
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }

    def headers(self) -> dict[str, str]:
        """Whole seconds, rounded up: an earlier retry would be refused again."""
        if self.retry_after is None:
            return {}
        return {"Retry-After": str(max(1, math.ceil(self.retry_after)))}


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """A request that cannot be served as it is, whoever sends it again."""
    return ApiError(HTTPStatus.BAD_REQUEST, message, INVALID, param, code)


def from_door(denied: Denied) -> ApiError:
    """Why the door did not let a request in."""
    kinds = {401: AUTHENTICATION, 403: "permission_error", 429: RATE_LIMIT, 503: SERVER}
    return ApiError(
        HTTPStatus(denied.status),
        f"{denied.message}: expected {denied.expected}",
        kinds.get(denied.status, INVALID),
        code=denied.code,
        retry_after=denied.retry_after,
    )


def from_protocol(fault: ProtocolError) -> ApiError:
    """A field that a vendor's request may not have like that."""
    unknown = fault.code in ("unknown_voice", "unknown_model")
    return ApiError(
        HTTPStatus.NOT_FOUND if unknown else HTTPStatus.BAD_REQUEST,
        f"{fault.message}; expected {fault.expected}",
        INVALID,
        fault.field,
        fault.code,
    )


# Codes of ``playhead.v1`` (docs/protocol.md) that are not the server's fault.
_OF_SESSION: Final = {
    "unspeakable_text": (HTTPStatus.BAD_REQUEST, INVALID, "input"),
    "text_too_long": (HTTPStatus.BAD_REQUEST, INVALID, "input"),
    "unknown_voice": (HTTPStatus.BAD_REQUEST, INVALID, "voice"),
    "unsupported_codec": (HTTPStatus.BAD_REQUEST, INVALID, "response_format"),
    "unsupported_rate": (HTTPStatus.BAD_REQUEST, INVALID, "response_format"),
    "bad_value": (HTTPStatus.BAD_REQUEST, INVALID, None),
    "rate_limited": (HTTPStatus.TOO_MANY_REQUESTS, RATE_LIMIT, None),
    "overloaded": (HTTPStatus.SERVICE_UNAVAILABLE, SERVER, None),
    "draining": (HTTPStatus.SERVICE_UNAVAILABLE, SERVER, None),
}
_PASSING: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def from_session(
    code: str, message: str, expected: str, retry_after: float | None = None
) -> ApiError:
    """What the session refused or could not speak. ``retry_after`` in seconds."""
    unknown = (HTTPStatus.INTERNAL_SERVER_ERROR, SERVER, None)
    status, kind, param = _OF_SESSION.get(code, unknown)
    if status in _PASSING and retry_after is None:
        retry_after = RETRY_AFTER
    return ApiError(status, f"{message}; expected {expected}", kind, param, code, retry_after)
