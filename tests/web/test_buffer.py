"""Runs the browser client's own tests, which need nothing but Node."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_the_browser_client_passes_its_own_tests() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("THE BROWSER CLIENT IS NOT TESTED: install Node 20 or newer")
    files = sorted(HERE.glob("*.test.mjs"))
    assert len(files) >= 5
    run = subprocess.run(
        [node, "--test", *map(str, files)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr
    assert "# fail 0" in run.stdout
