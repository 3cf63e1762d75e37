"""Faults in OpenAI's shape."""

import pytest
from playhead.gateway.access import Denied
from playhead.gateway.api.errors import (
    ApiError,
    from_door,
    from_protocol,
    from_session,
    invalid,
)
from playhead.gateway.protocol_parse import ProtocolError


def test_the_body_has_the_four_fields_that_clients_read() -> None:
    fault = invalid("no", "input", "too_long")
    shown = {"message": "no", "type": "invalid_request_error", "param": "input", "code": "too_long"}
    assert fault.body() == {"error": shown}
    assert (fault.status, fault.headers()) == (400, {})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "authentication_error"),
        (403, "permission_error"),
        (429, "rate_limit_error"),
        (503, "server_error"),
        (400, "invalid_request_error"),
    ],
)
def test_who_is_not_let_in_learns_why(status: int, kind: str) -> None:
    fault = from_door(Denied(status, "some_code", "no", "a key", 3.0))
    assert (fault.status, fault.type, fault.code) == (status, kind, "some_code")
    assert fault.message == "no: expected a key"
    assert fault.headers() == {"Retry-After": "3"}


@pytest.mark.parametrize(("seconds", "header"), [(0.2, "1"), (1.0, "1"), (1.2, "2"), (30, "30")])
def test_a_wait_is_told_in_whole_seconds(seconds: float, header: str) -> None:
    fault = from_session("overloaded", "full", "later", seconds)
    assert fault.headers() == {"Retry-After": header}


@pytest.mark.parametrize(
    ("code", "status", "kind", "param", "waits"),
    [
        ("unspeakable_text", 400, "invalid_request_error", "input", False),
        ("text_too_long", 400, "invalid_request_error", "input", False),
        ("unknown_voice", 400, "invalid_request_error", "voice", False),
        ("rate_limited", 429, "rate_limit_error", None, True),
        ("overloaded", 503, "server_error", None, True),
        ("draining", 503, "server_error", None, True),
        ("engine_error", 500, "server_error", None, False),
    ],
)
def test_what_a_session_refuses_has_a_status(
    code: str, status: int, kind: str, param: str | None, waits: bool
) -> None:
    fault = from_session(code, "it is so", "it were not")
    assert isinstance(fault, ApiError)
    assert (fault.status, fault.type, fault.param, fault.code) == (status, kind, param, code)
    assert fault.message == "it is so; expected it were not"
    assert bool(fault.headers()) == waits


@pytest.mark.parametrize(
    ("code", "status"), [("unknown_voice", 404), ("unknown_model", 404), ("bad_value", 400)]
)
def test_a_field_of_a_vendors_request(code: str, status: int) -> None:
    fault = from_protocol(ProtocolError(code, "no such thing", "another", "voice"))
    assert (fault.status, fault.code, fault.param) == (status, code, "voice")
    assert fault.message == "no such thing; expected another"
