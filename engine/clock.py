"""The one place that reads a clock.

Every core function takes ``now`` as an argument (seconds, monotonic). Adapters call
:func:`monotonic` once per event; the simulator passes its own numbers.
"""

import sys
import time


def monotonic() -> float:
    """Seconds on the machine's monotonic clock, at nanosecond resolution; time in which the machine
    was suspended counts.

    Listeners go on playing meanwhile: to a clock that stood still as well (CLOCK_MONOTONIC on
    Linux) they would seem to hold what they have long played, and a ticket would be good for as
    long as the machine slept. Not ``loop.time()``: uvloop rounds that to whole milliseconds.
    """
    if sys.platform == "linux":
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) / 1e9
    return time.monotonic_ns() / 1e9


def wall() -> float:
    """Seconds since the Unix epoch: for log lines, file names, and dates that people set."""
    return time.time()


def thread_cpu() -> float:
    """Seconds of processor time that the calling thread has used."""
    return time.thread_time()


def process_cpu() -> float:
    """Seconds of processor time that this process has used, all its threads together."""
    return time.process_time()


def pause(seconds: float) -> None:
    """Block the calling thread: for what is asked again until it is there."""
    time.sleep(seconds)
