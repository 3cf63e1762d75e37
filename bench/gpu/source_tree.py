"""Import the project from its source tree where it is not installed.

The folders carry other names than the packages they become (pyproject.toml, package-dir).
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def link() -> None:
    """Make ``playhead`` importable, unless it is."""
    if importlib.util.find_spec("playhead") is not None:
        return
    tree = Path(tempfile.mkdtemp(prefix="playhead-tree-"))
    package = tree / "playhead"
    package.mkdir()
    for folder in ("codecs", "engine", "gateway", "loadgen"):
        (package / folder).symlink_to(ROOT / folder)
    (package / "client").symlink_to(ROOT / "gateway" / "client")
    sys.path.insert(0, str(tree))
