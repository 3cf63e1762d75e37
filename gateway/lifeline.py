"""Processes that end when those that need them are gone, however these went.

A pipe says it: the child watches one end, the others hold the other, and when the last of them is
dead, by SIGKILL for example, the system closes it. Works on every POSIX system, for any depth of
processes, and cannot be missed by a child that starts late.
"""

import os
import signal
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

VARIABLE: Final = "PLAYHEAD_LIFELINE"
"""Tells a child which of its descriptors to watch. No setting of the user's."""


class Lifeline:
    """Held by whoever must live; closed when left as a context."""

    def __init__(self) -> None:
        self.watched, self.held = os.pipe()  # descriptors; a child gets only what it is handed

    @property
    def environ(self) -> Mapping[str, str]:
        """For a child that is handed ``watched``."""
        return {VARIABLE: str(self.watched)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.watched)
        os.close(self.held)


def follow(environ: Mapping[str, str]) -> threading.Thread | None:
    """Send SIGTERM to this process when the lifeline that ``environ`` names is let go. None: it
    names none, this process stands alone."""
    text = environ.get(VARIABLE, "")
    if not text.isdigit():
        return None
    watcher = threading.Thread(target=_watch, args=(int(text),), name="playhead-lifeline")
    watcher.daemon = True
    watcher.start()
    return watcher


def _watch(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1):
            pass  # nobody writes
    except OSError:
        return  # the variable was inherited from elsewhere: this is no pipe of ours
    os.kill(os.getpid(), signal.SIGTERM)
