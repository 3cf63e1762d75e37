"""Import the project from its source tree where it is not installed.

The folders carry other names than the packages they become (pyproject.toml, package-dir).
"""

import importlib.util
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def link() -> None:
    """Make ``playhead`` importable, unless it is."""
    if importlib.util.find_spec("playhead") is None:
        sys.path.insert(0, str(tree()))


def tree() -> Path:
    """A folder for ``PYTHONPATH``: the package, and its version for importlib.metadata."""
    path = Path(tempfile.mkdtemp(prefix="playhead-tree-"))
    package = path / "playhead"
    package.mkdir()
    for folder in ("codecs", "engine", "gateway", "loadgen", "web"):
        (package / folder).symlink_to(ROOT / folder)
    (package / "client").symlink_to(ROOT / "gateway" / "client")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    facts = path / f"playhead-{project['version']}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: playhead\nVersion: {project['version']}\n", encoding="utf-8"
    )
    return path
