"""Loggers for libraries that would tell secrets: handshakes with their keys, frames with their
texts. Pure.

The level of such a logger is the choice of whoever embeds us, and a program that sets the root
logger to DEBUG while it is being written means its own lines. So what is below a warning is not
passed on at all, whatever the levels say.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Adapter = logging.LoggerAdapter[logging.Logger]
else:
    Adapter = logging.LoggerAdapter


class Hushed(Adapter):
    """Passes warnings and what is worse."""

    def isEnabledFor(self, level: int) -> bool:
        """Whether a line of ``level`` is passed on."""
        return level >= logging.WARNING and self.logger.isEnabledFor(level)


def hushed(name: str) -> Hushed:
    """The logger ``name``, for a library to write to."""
    return Hushed(logging.getLogger(name))
