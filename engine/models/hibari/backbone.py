"""The voice's backbone: phoneme ids of a piece to latents, all frames in one run."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from playhead.engine.models.hibari.frontend import frames_before
from playhead.engine.models.hibari.graphs import BACKBONE_OUTPUTS
from playhead.engine.models.hibari.session import open_session


@dataclass(frozen=True, slots=True)
class Latents:
    """``latents`` float32 [F, 130], ``f0`` float32 [F] Hz, ``first_frame`` int64 [L + 1] per id."""

    latents: npt.NDArray[np.float32]
    f0: npt.NDArray[np.float32]
    first_frame: npt.NDArray[np.int64]


class Backbone:
    """Not autoregressive: there is no state between runs. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._session = open_session(path)

    def run(self, ids: npt.NDArray[np.int64], speed: float) -> Latents:
        """``ids`` [L] with the silence token at both ends; ``speed`` 0.5 slow to 2.0 fast."""
        inputs = {"ids": ids[np.newaxis], "speed": np.array([speed], np.float32)}
        latents, f0, durations = self._session.run(BACKBONE_OUTPUTS, inputs)
        return Latents(
            np.ascontiguousarray(latents[0].T), f0[0], frames_before(durations.reshape(-1))
        )
