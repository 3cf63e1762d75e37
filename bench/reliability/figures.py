"""How the reliability scripts keep their figures."""

import json
import os
import platform
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
    """How this script was called, but for where its figures go."""
    words = ["bench/reliability/" + Path(sys.argv[0]).name, *sys.argv[1:]]
    if "--out" in words:
        at = words.index("--out")
        del words[at : at + 2]
    return " ".join(words)


def save(path: str | None, figures: dict[str, Any]) -> None:
    """Print the figures, and keep them with their machine when a file is named."""
    print(json.dumps(figures, indent=1))
    if path is not None:
        Path(path).write_text(
            json.dumps({"machine": machine(), "command": command(), **figures}, indent=1) + "\n"
        )
