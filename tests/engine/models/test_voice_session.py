"""The library that runs the voice tells nobody about it."""

import os
import subprocess
import sys


def test_no_telemetry_is_prepared() -> None:
    """Where its cache cannot be written, the library says that it would have kept an id there."""
    code = "import os, playhead.engine.models.hibari.session as _\nprint(os.environ[NAME])".replace(
        "NAME", repr("ORT_DISABLE_TELEMETRY")
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ORT_")}
    environ |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    environ |= {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
    )
    assert done.stdout == "1\n"
    assert "elemetry" not in done.stderr
