"""Large blocks go back to the system however large the ones before were."""

import ctypes
import subprocess
import sys

import pytest
from playhead.gateway import allocator

PROGRAM = """
import ctypes, sys
from playhead.gateway.allocator import keep_thresholds

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd".split()]
    _fields_ += [(name, ctypes.c_size_t) for name in "usmblks fsmblks used free keep".split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info
assert sys.argv[1] == "no" or keep_thresholds()
large = bytes(8 << 20)
del large
before = mallinfo().hblkhd
kept = bytes(2 << 20)
print(mallinfo().hblkhd - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own")
@pytest.mark.parametrize(("told", "mapped"), [("no", False), ("yes", True)])
def test_a_large_block_is_mapped_after_a_larger_one_was_freed(told: str, mapped: bool) -> None:
    command = [sys.executable, "-c", PROGRAM, told]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (int(printed) >= 2 << 20) is mapped


def test_another_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not allocator.keep_thresholds()
