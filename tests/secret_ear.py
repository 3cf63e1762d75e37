"""Hears API keys, tickets and tokens in what is logged, at every level."""

import contextlib
import logging
import re
from collections.abc import Iterator
from typing import Final

import pytest

SECRET: Final = re.compile(
    r"ph_[a-z2-7]{8}_[A-Za-z0-9_-]{43}|pht_[A-Za-z0-9_-]{32}"
    r"""|(?<=token)["']?\s*[=:]\s*["']?(?:[\w-]+\.)?[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])"""
)
"""An API key, a ticket, or a token that a message with its name shows."""
SERVER: Final = "websockets.server"
"""Where the WebSocket library writes what a server reads and sends. (``websockets.client`` is for
tests that connect by themselves; our own client uses another name.)"""


class Listening(logging.Handler):
    """Hears all that is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        told = f"{line} {record.exc_info[1]!r}" if record.exc_info else line
        if SECRET.search(told):
            self.found.append(f"{record.name} ({record.levelname}): {SECRET.sub('SECRET', told)}")


@contextlib.contextmanager
def listening() -> Iterator[Listening]:
    """To all loggers of this process, at every level, while the block runs; nobody else does."""
    ear, root, server = Listening(), logging.getLogger(), logging.getLogger(SERVER)
    levels = [(log, log.level) for log in (root, server)]
    others = [handler for handler in root.handlers if isinstance(handler, Listening)]
    for other in others:
        root.removeHandler(other)
    root.addHandler(ear)
    for log, _ in levels:
        log.setLevel(logging.DEBUG)
    quiet = logging.getLogger("websockets.client")
    levels.append((quiet, quiet.level))
    quiet.setLevel(logging.WARNING)
    try:
        yield ear
    finally:
        root.removeHandler(ear)
        for other in others:
            root.addHandler(other)
        for log, level in levels:
            log.setLevel(level)


@pytest.fixture(autouse=True)
def no_secret_is_logged() -> Iterator[None]:
    """By no test, at no level, whatever goes wrong in it. For the ``conftest.py`` of a folder."""
    with listening() as ear:
        yield
    assert ear.found == []
