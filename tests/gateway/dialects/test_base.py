"""What every dialect inherits."""

from http import HTTPStatus

import pytest
from playhead.gateway.access import Denied
from playhead.gateway.dialects.base import Dialect, Hangup, Refused
from playhead.gateway.messages import Pong


def test_a_dialect_that_overrides_nothing() -> None:
    dialect = Dialect()
    assert dialect.opened(0.0) == ()
    assert dialect.get_timer() is None
    assert dialect.handle_timer(0.0) == ()
    assert dialect.subprotocol is None
    assert dialect.denied(Denied(401, "unauthorized", "no", "a key"), 0.0) == (Hangup(1008, "no"),)
    with pytest.raises(NotImplementedError):
        dialect.receive("", 0.0)
    with pytest.raises(NotImplementedError):
        dialect.tell("", Pong(time=0, received=0, sent=0), 0.0)


def test_a_session_that_ends_ends_the_socket_unless_it_was_asked_to() -> None:
    assert Dialect().ended("", 1000, "closed", 0.0) == ()
    assert Dialect().ended("", 1012, "bye", 0.0) == (Hangup(1012, "bye"),)


def test_a_refusal_carries_its_response() -> None:
    refused = Refused(HTTPStatus.BAD_REQUEST, "{}", {"x": "y"})
    assert (refused.status, refused.body, refused.headers) == (400, "{}", {"x": "y"})
    assert Refused(HTTPStatus.CONFLICT, "").headers == {}
