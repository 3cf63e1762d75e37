"""SIGTERM and SIGINT, from when a process serves until it is gone.

A loop takes its own handlers away when it closes. Whatever comes later kills, and a process that
lets go of an accelerator takes seconds to end: a second signal, sent because it has not ended yet,
would make a good end look like a death. What is set here stays.
"""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


def hear(stop: Callable[[int], None]) -> None:
    """Have ``stop`` called with the number of each signal, on the running loop, which is the main
    thread's. Once that is closed, signals do nothing."""
    loop = asyncio.get_running_loop()

    def pass_on(number: int, frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop, number)

    for number in STOPPING:
        signal.signal(number, pass_on)


def ignore() -> None:
    """The process is ending and its status is known. Python takes its own handlers away before it
    lets go of modules and what they hold; that a signal is ignored remains."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
