"""The ear that listens to every test of the gateway hears what it should."""

import logging

import pytest
from playhead.gateway.access_keys import new_key
from playhead.gateway.access_tickets import Tickets
from secret_ear import Listening


@pytest.mark.parametrize("kind", ["key", "ticket", "fault"])
def test_a_secret_in_a_line_or_a_fault_is_heard(kind: str) -> None:
    key, ticket = new_key("a client", 0.0)[0], Tickets().give("abcdefgh", 0.0)
    listening, log = Listening(), logging.Logger("apart")
    log.addHandler(listening)
    if kind == "fault":
        log.error("it broke", exc_info=ValueError(key))
    else:
        log.warning("shown: %s", key if kind == "key" else ticket)
    (heard,) = listening.found
    assert "SECRET" in heard
    assert key not in heard
    log.warning("ph_abcdefgh and pht_ are no secrets")
    assert len(listening.found) == 1
