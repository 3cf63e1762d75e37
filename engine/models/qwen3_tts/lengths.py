"""How long utterances are where no model says so: with random weights, for measurements."""

import math
import random
from collections.abc import Callable

from playhead.engine.types import Request

MEAN_FRAMES, FEWEST_FRAMES, MOST_FRAMES, SPREAD = 71, 12, 190, 0.5


def random_frames(seed: int) -> Callable[[Request], int]:
    """Lengths for models with random weights, which never end by themselves: lognormal, mean 71
    frames (5.7 s), from 12 to 190; the same for the same number of an utterance."""
    middle = math.log(MEAN_FRAMES) - SPREAD**2 / 2

    def frames(request: Request) -> int:
        drawn = random.Random(f"{seed}/{request.utterance}").lognormvariate(middle, SPREAD)
        return min(MOST_FRAMES, max(FEWEST_FRAMES, round(drawn)))

    return frames
