"""The clock that everything goes by."""

import sys
import time

import pytest
from playhead.engine import clock


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the only monotonic clock there is")
def test_time_in_which_the_machine_was_suspended_counts() -> None:
    """CLOCK_MONOTONIC stands still meanwhile; how far the two are apart depends on the machine."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = clock.monotonic()
    assert before <= now <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_where_there_is_no_such_clock_it_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delattr(time, "clock_gettime_ns")
    before = time.monotonic()
    assert before <= clock.monotonic() <= time.monotonic()
