"""Hears API keys, tickets and tokens in what is logged, at every level; and other secrets that it
is told to listen for."""

import contextlib
import logging
import re
from collections.abc import Collection, Iterator
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


PART: Final = 10
"""Characters of a secret that are too many to be shown."""
_FORMATTER: Final = logging.Formatter()


def parts_of(secret: str, text: str) -> list[str]:
    """Which parts of ``secret`` ``text`` shows."""
    parts = {secret[at : at + PART] for at in range(len(secret) - PART + 1)}
    return sorted(part for part in parts if part in text)


class Listening(logging.Handler):
    """Hears all that is logged: messages, what is told with them, tracebacks with their causes.
    ``secrets``: what else than keys, tickets and tokens of ours nobody must say, not in part
    either."""

    def __init__(self, secrets: Collection[str] = ()) -> None:
        super().__init__()
        self.found: list[str] = []
        self._secrets = secrets

    def emit(self, record: logging.LogRecord) -> None:
        told = record.getMessage()
        if record.exc_info:
            told = f"{told} {record.exc_info[1]!r}"
        if SECRET.search(told):
            self.found.append(f"{record.name} ({record.levelname}): {SECRET.sub('SECRET', told)}")
        elif self._secrets:
            trace = _FORMATTER.formatException(record.exc_info) if record.exc_info else ""
            everything = f"{told} {trace} {vars(record)}"
            if any(parts_of(secret, everything) for secret in self._secrets):
                self.found.append(f"{record.name} ({record.levelname}): {told}")


@contextlib.contextmanager
def all_ears(secrets: Collection[str]) -> Iterator[Listening]:
    """The same to every library, below DEBUG too, and whatever it has been told of its level."""
    loggers = [
        log for log in logging.root.manager.loggerDict.values() if isinstance(log, logging.Logger)
    ]
    before = [(log, log.level, log.propagate) for log in loggers]
    with listening(secrets) as ear:
        logging.root.setLevel(1)
        for log in loggers:
            log.setLevel(1)
            log.propagate = True
        try:
            yield ear
        finally:
            for log, level, propagate in before:
                log.setLevel(level)
                log.propagate = propagate


@contextlib.contextmanager
def listening(secrets: Collection[str] = ()) -> Iterator[Listening]:
    """To all loggers of this process, at every level, while the block runs; nobody else does."""
    ear, root, server = Listening(secrets), logging.getLogger(), logging.getLogger(SERVER)
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
