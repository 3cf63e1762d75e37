"""Tokens are compared by digest; errors reach the client in milliseconds."""

from playhead.gateway.messages import ErrorEvent
from playhead.gateway.protocol import ProtocolError
from playhead.gateway.session_types import digest, error_event, token_fits


def test_tokens() -> None:
    assert token_fits("secret", digest("secret"))
    assert not token_fits("secret ", digest("secret"))
    assert not token_fits("", digest("secret"))
    assert not token_fits("\ud800", digest("secret"))


def test_error_event() -> None:
    plain = ProtocolError("bad_value", "wrong", "right", "speed")
    assert error_event(plain) == ErrorEvent(
        code="bad_value", message="wrong", expected="right", field="speed"
    )
    waiting = ProtocolError("rate_limited", "wrong", "right", retry_after=0.25)
    assert error_event(waiting).retry_after == 250
