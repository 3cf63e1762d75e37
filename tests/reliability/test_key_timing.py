"""The measure of what a wrong key's time tells finds a door that compares by characters.

What the real door does is compared step by step in ``tests/gateway/test_access_compare.py``, which
no busy machine can disturb; the t-test of its times is a script with a recorded result.
"""

import subprocess
import sys
from pathlib import Path

from machine import PATIENCE

SCRIPT = Path(__file__).resolve().parent.parent.parent / "bench" / "reliability" / "key_timing.py"


def test_a_door_that_tells_is_found_out() -> None:
    command = [sys.executable, str(SCRIPT), "--control", "--tries", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(": it tells\n")
