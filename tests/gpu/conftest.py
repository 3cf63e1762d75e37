"""Tests on a CUDA device: ``python -m pytest tests/gpu -q``, two to three minutes on one H200.

Nothing needs to be installed but torch for CUDA and pytest: the source tree is linked. Without a
device everything here is skipped. What was measured is listed at the end, and written to
``$OUT/gpu_tests.json`` where OUT is set.
"""

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Before the test files are imported, which import the project.
if importlib.util.find_spec("playhead") is None:
    sys.path.insert(0, str(ROOT / "bench" / "gpu"))
    import source_tree

    source_tree.link()

_MEASURED = pytest.StashKey[dict[str, float]]()


def usable() -> bool:
    """Whether there is a device."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


if not usable():
    collect_ignore_glob = ["test_*.py"]
    if os.environ.get("TRITON_INTERPRET") == "1":
        # The kernels' logic runs on the CPU too, and nothing else does.
        collect_ignore_glob = ["test_*_gpu.py", "test_device_fault.py"]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_MEASURED] = {}


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str, float], None]:
    """Takes what a test has measured, by name."""

    def note(name: str, value: float) -> None:
        request.config.stash[_MEASURED][f"{request.node.name}: {name}"] = value

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    measured = terminalreporter.config.stash[_MEASURED]
    for name, value in measured.items():
        terminalreporter.write_line(f"{name} = {value:.3g}")
    if measured and "OUT" in os.environ:
        path = Path(os.environ["OUT"]) / "gpu_tests.json"
        path.write_text(json.dumps(measured, indent=1) + "\n")
