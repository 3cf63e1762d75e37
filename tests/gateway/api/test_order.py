"""Plain bodies."""

from http import HTTPStatus

from order_kit import audio, ready
from playhead.gateway.api.body import PcmBody
from playhead.gateway.api.errors import ApiError
from playhead.gateway.api.order import PlainWriter


def test_a_plain_body_is_nothing_but_the_body() -> None:
    writer = PlainWriter(PcmBody(ready()))
    assert writer.begin() + writer.add(audio(b"abcd", 2)) + writer.end() == b"abcd"
    fault = ApiError(HTTPStatus.SERVICE_UNAVAILABLE, "no")
    assert writer.fault(fault) is None, "a body that is cut short says it"
