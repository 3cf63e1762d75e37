"""The accelerator's kernels on the CPU: tests/gpu under triton's interpreter, in float32."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("triton", reason="triton is not installed (make torch)")

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.slow
def test_every_kernel_says_what_plain_torch_says() -> None:
    """In a process of its own: whether kernels are interpreted is settled at their import."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/gpu"],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
    assert "failed" not in done.stdout
