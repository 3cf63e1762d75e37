"""Chunks in rounds of equal pieces."""

import random

import numpy as np
import pytest
from playhead.engine.models.qwen3_tts.codec_rounds import (
    Round,
    passes,
    rounds,
    silent_tails,
    targets,
)

LADDER = (1, 2, 4, 8, 16)


def ints(*values: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, np.int64)


@pytest.mark.parametrize("frames", range(1, 60))
def test_pieces_are_of_the_ladder_and_make_up_the_chunk(frames: int) -> None:
    found = [one.size for one in rounds(ints(frames), LADDER, 8)]
    assert sum(found) == frames
    assert set(found) <= set(LADDER)
    assert found == sorted(found, reverse=True)


def test_every_job_is_decoded_in_order_and_once() -> None:
    draw = random.Random(4)
    frames = ints(*(draw.randrange(1, 40) for _ in range(30)))
    seen = np.zeros(30, np.int64)
    for size, jobs, done in rounds(frames, LADDER, 8):
        assert len(jobs) <= 8
        assert len(set(jobs.tolist())) == len(jobs)
        assert (done == seen[jobs]).all()
        seen[jobs] += size
    assert (seen == frames).all()


def test_usual_chunks_take_one_round_per_size() -> None:
    frames = ints(1, 3, 4, 4, 7, 16, 31)
    found = list(rounds(frames, LADDER, 8))
    assert [one.size for one in found] == [16, 8, 4, 2, 1]
    assert [len(one.jobs) for one in found] == [2, 1, 4, 3, 4]
    assert list(passes(iter(found))) == [found]


def test_a_size_that_comes_again_waits_for_the_next_pass() -> None:
    found = list(passes(rounds(ints(5, 2, 1), (1, 2), 2)))
    assert [[one.size for one in together] for together in found] == [[2], [2, 1]]
    assert list(passes(iter(()))) == []


def test_frames_go_where_they_belong() -> None:
    """Pieces of several rounds, put together in the order of the jobs."""
    frames = ints(3, 2, 1, 5)
    starts = np.cumsum(frames) - frames
    out = np.full(frames.sum(), -1)
    for one in rounds(frames, (1, 2), 3):
        made = (100 * one.jobs + one.done)[:, None] + np.arange(one.size)
        out[targets(one, starts)] = made.ravel()
    assert out.tolist() == [100 * job + frame for job in range(4) for frame in range(frames[job])]
    assert targets(Round(2, ints(1), ints(0)), starts).tolist() == [3, 4]


def test_silence_is_counted_to_the_sample() -> None:
    draw = np.random.default_rng(2)
    frames = ints(1, 3, 2, 4, 1, 2)
    pcm = (draw.random((frames.sum(), 5)) * (draw.random((frames.sum(), 5)) > 0.8)).astype("f4")
    pcm[-2:] = 0.0
    pcm[3] *= -1
    tails, heard = silent_tails(pcm, frames, 0.1)
    flat, end = pcm.reshape(-1), 0
    for job, count in enumerate(frames):
        part = flat[end : end + 5 * count]
        end += 5 * count
        loud = np.flatnonzero(np.abs(part) >= 0.1)
        assert heard[job] == bool(len(loud))
        assert tails[job] == (len(part) - 1 - loud[-1] if len(loud) else len(part))
    assert heard.tolist()[-1] is False


def test_silence_everywhere() -> None:
    tails, heard = silent_tails(np.zeros((3, 4), np.float32), ints(1, 2), 0.1)
    assert (tails.tolist(), heard.tolist()) == ([4, 8], [False, False])
