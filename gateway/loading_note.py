"""How far an engine's loading is, as its gateways in other processes can read it: a small file
beside its socket."""

import contextlib
import json
import os
from pathlib import Path
from typing import Final

from playhead.engine.progress import Stage

WAITING: Final = Stage("waiting for the engine", 0.0)


class LoadingNote:
    """A :data:`~playhead.engine.progress.Tell` that writes it down. What cannot be written is left
    out: readers then know less."""

    def __init__(self, socket: str) -> None:
        self._path = note_of(socket)

    def __call__(self, stage: str, done: float) -> None:
        """Write it, whole or not at all."""
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps({"stage": stage, "done": done}), "utf-8")
            os.replace(draft, self._path)

    def remove(self) -> None:
        """It is loaded, or never will be."""
        with contextlib.suppress(OSError):
            self._path.unlink()


def note_of(socket: str) -> Path:
    """Where the note of the engine at ``socket`` is."""
    return Path(f"{socket}.loading")


def read_note(socket: str) -> Stage:
    """What it says, or that the engine is waited for."""
    try:
        found = json.loads(note_of(socket).read_text("utf-8"))
        return Stage(str(found["stage"]), float(found["done"]))
    except (OSError, ValueError, KeyError, TypeError):
        return WAITING
