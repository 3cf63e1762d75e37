"""Two settings that were asked for the same, compared utterance by utterance. Pure.

Arrivals, texts and what listeners do are drawn by seed and number, so each utterance has its twin.
Stalls of one session are not independent (its network is its own), so the interval of the ratio
resamples whole sessions.
"""

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from playhead.loadgen.figures import label_of
from playhead.loadgen.frontier import LEARNED
from playhead.loadgen.judge import mean_held
from playhead.loadgen.record import Record, Run

DRAWS = 1_000
_KNOWS = ("reported",)


@dataclass(frozen=True, slots=True)
class Arm:
    """All runs of one setting at one rate."""

    label: str
    signal: str
    lead: str
    records: Sequence[tuple[int, Record]]  # seed and utterance, heard

    @property
    def stalled(self) -> int:
        """Utterances with a stall."""
        return sum(bool(record.stalls) for _, record in self.records)

    @property
    def held(self) -> float:
        """Seconds of audio sent and not heard, on average over the utterances."""
        found = [held for _, each in self.records if (held := mean_held(each)) is not None]
        return sum(found) / len(found) if found else 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """``better`` against ``base``. ``only_base``, ``only_better``: pairs in which only that one
    stalled; ``chance``: two-sided exact McNemar probability of such a split without a
    difference; ``low``, ``high``: 95 % interval of how many times fewer utterances stalled."""

    base: Arm
    better: Arm
    pairs: int
    only_base: int
    only_better: int
    chance: float
    low: float
    high: float

    def told(self) -> str:
        """One line for a terminal."""
        base, better = self.base, self.better
        return (
            f"{better.label} against {base.label}: {better.stalled} of {len(better.records)} "
            f"stalled (held {better.held:.2f} s) against {base.stalled} of {len(base.records)} "
            f"(held {base.held:.2f} s): {_times(self.low)} to {_times(self.high)} times fewer "
            f"(95 %); of {self.pairs} pairs {self.only_base} stalled there alone, "
            f"{self.only_better} here alone: p = {self.chance:.2g}"
        )


def verdicts(runs: Sequence[Run]) -> list[Verdict]:
    """Every setting that knows the playhead against every one that does not, by rate."""
    found = []
    for arms in _arms(runs).values():
        knowing = [arm for arm in arms if arm.signal in _KNOWS]
        guessing = [arm for arm in arms if arm.signal not in _KNOWS]
        fixed = [arm for arm in knowing if not arm.lead.startswith(LEARNED)]
        learned = [arm for arm in knowing if arm.lead.startswith(LEARNED)]
        pairs = [(base, better) for base in guessing for better in knowing]
        pairs += [(base, better) for base in fixed for better in learned]
        found += [compare(base, better) for base, better in pairs]
    return found


def compare(base: Arm, better: Arm) -> Verdict:
    """Both arms with at least one utterance."""
    twins = {(seed, record.number): bool(record.stalls) for seed, record in base.records}
    only_base = only_better = pairs = 0
    for seed, record in better.records:
        there = twins.get((seed, record.number))
        if there is None:
            continue
        pairs += 1
        only_base += there and not record.stalls
        only_better += bool(record.stalls) and not there
    low, high = _interval(base, better)
    chance = mcnemar(only_base, only_better)
    return Verdict(base, better, pairs, only_base, only_better, chance, low, high)


def mcnemar(one: int, other: int) -> float:
    """Two-sided exact probability of a split at least as uneven, were both sides equally likely
    (McNemar's test by the binomial distribution)."""
    count, least = one + other, min(one, other)
    tail: float = sum(math.comb(count, k) for k in range(least + 1)) / 2**count
    return min(1.0, 2 * tail)


def _arms(runs: Sequence[Run]) -> dict[float, list[Arm]]:
    settings: dict[tuple[float, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.plan.get("signal"):
            settings[float(run.plan["rate"]), label_of(run)].append(run)
    found: dict[float, list[Arm]] = defaultdict(list)
    for (rate, label), own in settings.items():
        heard = [
            (int(run.plan["seed"]), record)
            for run in own
            for record in run.counted
            if record.first_playable is not None
        ]
        if heard:
            plan = own[0].plan
            found[rate].append(Arm(label, plan["signal"], str(plan.get("lead", "")), heard))
    return found


def _interval(base: Arm, better: Arm) -> tuple[float, float]:
    """Half a stall is added to each side, so that none at all has a ratio."""
    rng = random.Random(f"{base.label} {better.label}")
    there, here = _sessions(base), _sessions(better)
    ratios = sorted(_share(rng, there) / _share(rng, here) for _ in range(DRAWS))
    return ratios[round(0.025 * DRAWS)], ratios[round(0.975 * DRAWS) - 1]


def _sessions(arm: Arm) -> list[tuple[int, int]]:
    """Utterances and stalled ones of each session."""
    found: dict[tuple[int, int], list[bool]] = defaultdict(list)
    for seed, record in arm.records:
        found[seed, record.session].append(bool(record.stalls))
    return [(len(stalled), sum(stalled)) for stalled in found.values()]


def _share(rng: random.Random, sessions: Sequence[tuple[int, int]]) -> float:
    drawn = rng.choices(sessions, k=len(sessions))
    return (sum(stalled for _, stalled in drawn) + 0.5) / (sum(count for count, _ in drawn) + 1)


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"
