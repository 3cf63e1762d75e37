"""Refused upgrades in each vendor's words."""

import json
from typing import Any

import pytest
from playhead.gateway.dialects import refusals
from playhead.gateway.dialects.refusals import Shape


def openai_fault(kind: str, code: str) -> dict[str, Any]:
    return {"error": {"message": "no", "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("shape", "status", "code", "told"),
    [
        (
            refusals.deepgram,
            401,
            "unauthorized",
            {"err_code": "INVALID_AUTH", "err_msg": "no", "request_id": "r"},
        ),
        (
            refusals.deepgram,
            400,
            "subprotocol",
            {"err_code": "SUBPROTOCOL", "err_msg": "no", "request_id": "r"},
        ),
        (
            refusals.openai,
            401,
            "unauthorized",
            openai_fault("invalid_request_error", "invalid_api_key"),
        ),
        (refusals.openai, 503, "draining", openai_fault("server_error", "draining")),
        (
            refusals.elevenlabs,
            401,
            "unauthorized",
            {"detail": {"status": "invalid_api_key", "message": "no"}},
        ),
        (
            refusals.elevenlabs,
            429,
            "connections_per_address",
            {"detail": {"status": "too_many_concurrent_requests", "message": "no"}},
        ),
        (
            refusals.elevenlabs,
            503,
            "draining",
            {"detail": {"status": "draining", "message": "no"}},
        ),
        (
            refusals.cartesia,
            429,
            "connections",
            {
                "error_code": "concurrency_limited",
                "title": "Too many concurrent requests",
                "message": "no",
                "request_id": "r",
            },
        ),
        (
            refusals.cartesia,
            400,
            "misplaced_key",
            {
                "error_code": "misplaced_key",
                "title": "Invalid request",
                "message": "no",
                "request_id": "r",
            },
        ),
        (refusals.kyutai, 503, "draining", {"code": "draining", "message": "no"}),
    ],
)
def test_shapes(shape: Shape, status: int, code: str, told: dict[str, Any]) -> None:
    body, headers = shape(status, code, "no", "r")
    assert json.loads(body) == told
    assert dict(headers) == ({"dg-error": "no"} if shape is refusals.deepgram else {})


def test_kyutai_says_nothing_with_401() -> None:
    assert refusals.kyutai(401, "unauthorized", "no", "r") == ("", {})


def test_what_a_client_sent_cannot_end_a_header() -> None:
    _, headers = refusals.deepgram(400, "bad_value", "model is a\r\nX: \u00e9\u4f60 ~", "r")
    assert headers == {"dg-error": "model is a??X: ?? ~"}
