"""How the reliability scripts keep their figures."""

import json
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Where and when figures were made."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": [round(found, 2) for found in os.getloadavg()],
    }


def command() -> str:
    """How this script was called, as a shell takes it, but for where its figures go."""
    words = ["bench/reliability/" + Path(sys.argv[0]).name]
    given = iter(sys.argv[1:])
    for word in given:
        if word == "--out":
            next(given, None)
        elif not word.startswith("--out="):
            words.append(word)
    return shlex.join(words)


def save(path: str | None, figures: dict[str, Any]) -> None:
    """Print the figures, and keep them with their machine when a file is named."""
    print(json.dumps(figures, indent=1))
    if path is not None:
        Path(path).write_text(
            json.dumps({"machine": machine(), "command": command(), **figures}, indent=1) + "\n"
        )
