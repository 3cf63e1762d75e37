"""Hears API keys and tickets in what is logged."""

import logging
import re

SECRET = re.compile(r"ph_[a-z2-7]{8}_[A-Za-z0-9_-]{43}|pht_[A-Za-z0-9_-]{32}")
"""An API key, or a ticket."""


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
