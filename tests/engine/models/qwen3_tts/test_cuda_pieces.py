"""The host's side of the CUDA lanes: batch sizes, lengths for random weights."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.cuda_runner import Buckets
from playhead.engine.models.qwen3_tts.lengths import FEWEST_FRAMES, MOST_FRAMES, random_frames
from playhead.engine.types import Lane, Request


def test_lengths_are_repeatable_and_as_stated() -> None:
    frames = random_frames(0)
    lengths = [frames(Request(number, "a", "ryan")) for number in range(4000)]
    assert lengths == [frames(Request(number, "b", "ryan")) for number in range(4000)]
    assert min(lengths) >= FEWEST_FRAMES
    assert max(lengths) <= MOST_FRAMES
    assert 68 < np.mean(lengths) < 73


def test_lanes_take_up_to_their_largest_bucket() -> None:
    limits = Buckets().limits()
    assert limits.workers == 3
    assert limits.batch[Lane.LM] == max(Buckets().lm.steps)
    assert all(limits.free(lane, dict.fromkeys(Lane, 0)) == 1 for lane in Lane)
