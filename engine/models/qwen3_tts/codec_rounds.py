"""Chunks of many streams as rounds of equal pieces, and what was decoded in the chunks' order.

The ladder of captured chunk sizes is short; a chunk of another size is decoded in pieces, which is
exact. Everything here is arithmetic on arrays with one place per chunk.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from playhead.engine.types import Pcm

Ints = npt.NDArray[np.int64]


class Round(NamedTuple):
    """``size`` frames of each of ``jobs`` (indices, ascending), of which ``done`` came before."""

    size: int
    jobs: Ints
    done: Ints


def rounds(frames: Ints, ladder: Sequence[int], most: int) -> Iterator[Round]:
    """Chunks of ``frames`` (at least one) each as pieces of sizes of ``ladder`` (from 1 on), the
    largest first, at most ``most`` at once. A size comes again only where chunks are twice as long
    as the largest or more, or chunks more than ``most``."""
    done = np.zeros_like(frames)
    for size in sorted(ladder, reverse=True):
        while True:
            jobs = np.flatnonzero(frames - done >= size)[:most]
            if not len(jobs):
                break
            yield Round(size, jobs, done[jobs])
            done[jobs] += size


def passes(found: Iterator[Round]) -> Iterator[list[Round]]:
    """Rounds that can be on their way together: of different sizes, as each size has one place."""
    together: list[Round] = []
    for one in found:
        if any(one.size == other.size for other in together):
            yield together
            together = []
        together.append(one)
    if together:
        yield together


def targets(one: Round, starts: Ints) -> Ints:
    """The rows where these frames belong, when job j's frames begin at ``starts[j]``."""
    begin = starts[one.jobs] + one.done
    rows: Ints = (begin[:, None] + np.arange(one.size)).ravel()
    return rows


def silent_tails(pcm: Pcm, frames: Ints, peak: float) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Of jobs whose ``frames`` (at least one each) lie one after the other in ``pcm`` [sum(frames),
    samples]: samples after the last that reaches ``peak`` (all of them if none does), and whether
    one does."""
    samples = pcm.shape[1]
    ends, tails = np.cumsum(frames), frames * samples
    heard = np.zeros(len(frames), np.bool_)
    left = np.arange(len(frames))  # speech is mostly heard in the last frame: no other is looked at
    for back in range(int(frames.max())):
        left = left[frames[left] > back]
        loud = np.abs(pcm[ends[left] - 1 - back]) >= peak
        found = loud.any(1)
        jobs = left[found]
        tails[jobs] = back * samples + loud[found, ::-1].argmax(1)
        heard[jobs] = True
        if found.all():
            break
        left = left[~found]
    return tails, heard
