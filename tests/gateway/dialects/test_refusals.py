"""Refused upgrades in each vendor's words."""

import json
from typing import Any

import pytest
from playhead.gateway.dialects import refusals
from playhead.gateway.dialects.refusals import Shape


@pytest.mark.parametrize(
    ("shape", "status", "told"),
    [
        (refusals.deepgram, 401, {"err_code": "INVALID_AUTH", "err_msg": "no"}),
        (refusals.deepgram, 400, {"err_code": "ORIGIN", "err_msg": "no"}),
        (
            refusals.openai,
            401,
            {
                "error": {
                    "message": "no",
                    "type": "invalid_request_error",
                    "param": None,
                    "code": "invalid_api_key",
                }
            },
        ),
        (
            refusals.openai,
            503,
            {"error": {"message": "no", "type": "server_error", "param": None, "code": "origin"}},
        ),
        (refusals.elevenlabs, 401, {"detail": {"status": "invalid_api_key", "message": "no"}}),
        (refusals.elevenlabs, 503, {"detail": {"status": "origin", "message": "no"}}),
    ],
)
def test_shapes(shape: Shape, status: int, told: dict[str, Any]) -> None:
    body, headers = shape(status, "origin", "no")
    assert json.loads(body) == told
    assert dict(headers) == ({"dg-error": "no"} if shape is refusals.deepgram else {})
