"""The host's side of the CUDA lanes: chunks in pieces, lengths for random weights."""

import random

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.cuda_codec import Job, _shared_out, pieces, rounds
from playhead.engine.models.qwen3_tts.cuda_runner import (
    FEWEST_FRAMES,
    LADDER,
    MOST_FRAMES,
    Buckets,
    random_frames,
)
from playhead.engine.types import Lane, Request


@pytest.mark.parametrize("frames", range(1, 60))
def test_pieces_are_of_the_ladder_and_make_up_the_chunk(frames: int) -> None:
    found = pieces(frames, LADDER)
    assert sum(found) == frames
    assert set(found) <= set(LADDER)
    assert found == sorted(found, reverse=True)


def test_every_job_is_decoded_in_order_and_once() -> None:
    draw = random.Random(4)
    jobs = [Job(slot, draw.randrange(50), draw.randrange(1, 40)) for slot in range(30)]
    seen: dict[int, int] = {}
    for size, group in rounds(jobs, LADDER, 8):
        assert len(group) <= 8
        assert len({piece.job for piece in group}) == len(group)
        for piece in group:
            job = jobs[piece.job]
            assert piece.slot == job.slot
            assert piece.first == job.first + seen.get(piece.job, 0)
            seen[piece.job] = seen.get(piece.job, 0) + size
    assert [seen[index] for index in range(30)] == [job.frames for job in jobs]


def test_pieces_come_back_joined() -> None:
    jobs = [Job(0, 5, 3), Job(1, 0, 2), Job(2, 7, 1)]
    batches = rounds(jobs, (1, 2), 2)
    parts, starts, end = [], [], 0
    for size, group in batches:
        starts.append(end)
        for piece in group:
            frames = np.arange(piece.first, piece.first + size) + 100 * piece.slot
            parts.append(np.repeat(frames.astype(np.float32), 4))
            end += size * 4
    found = _shared_out(np.concatenate(parts), batches, starts, 3, 4)
    for job, pcm in zip(jobs, found, strict=True):
        wanted = np.arange(job.first, job.first + job.frames) + 100 * job.slot
        assert pcm.tolist() == np.repeat(wanted, 4).tolist()


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
