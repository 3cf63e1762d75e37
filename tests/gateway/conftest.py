"""What holds for every test of the gateway, whatever else it is about."""

import logging
from collections.abc import Iterator

import pytest
from secret_ear import Listening


@pytest.fixture(autouse=True)
def no_secret_is_logged() -> Iterator[None]:
    """By no test, whatever goes wrong in it."""
    listening = Listening()
    root = logging.getLogger()
    root.addHandler(listening)
    try:
        yield
    finally:
        root.removeHandler(listening)
    assert listening.found == []
