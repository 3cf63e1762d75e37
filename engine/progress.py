"""How far the loading of a model has come, for whoever waits for it. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

Tell = Callable[[str, float], None]
"""Told of a stage by name, and which share of it is done, 0 to 1."""


def quiet(stage: str, done: float) -> None:
    """Nobody waits."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What is being done, and which share of it is."""

    name: str
    done: float


class Progress:
    """The latest :class:`Stage`: a :data:`Tell` for one thread, to be read by any."""

    def __init__(self) -> None:
        self.stage = Stage("starting", 0.0)

    def __call__(self, stage: str, done: float) -> None:
        """Remember it."""
        self.stage = Stage(stage, min(1.0, max(0.0, done)))


class Count:
    """Tells ``tell`` how much of ``total`` pieces of a stage is done."""

    def __init__(self, tell: Tell, stage: str, total: int) -> None:
        self._tell, self._stage, self._total = tell, stage, max(1, total)
        self._done = 0
        tell(stage, 0.0)

    def add(self, pieces: int = 1) -> None:
        """So many more are."""
        self._done += pieces
        self._tell(self._stage, self._done / self._total)
