"""A library's logger tells warnings, and nothing of what it sees go by, whatever the levels say."""

import logging

import pytest
from playhead.gateway.hush import hushed


@pytest.mark.parametrize("level", [logging.NOTSET + 1, logging.DEBUG, logging.INFO])
def test_only_warnings_pass(level: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(level), caplog.at_level(level, logger="a.library"):
        given = hushed("a.library")
        # As the WebSocket library wraps what it was given.
        log = logging.LoggerAdapter(given, {"connection": "one"})
        assert not log.isEnabledFor(logging.DEBUG)
        log.debug("< Authorization: %s", "Bearer key")
        log.info("connection open")
        given.log(logging.INFO, "as well")
        log.warning("it %s", "broke")
    assert caplog.messages == ["it broke"]


def test_a_logger_that_is_off_stays_off(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, logger="a.library"):
        hushed("a.library").warning("it broke")
    assert caplog.messages == []
