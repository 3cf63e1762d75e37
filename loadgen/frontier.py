"""Signals compared at equal barge-in waste: pure, from the figures of an urgency experiment.

A lead protects against the network and is what a barge-in throws away, so an equal setting says
little: signals are compared at equal seconds of audio held by the listener, over a range of leads.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from playhead.loadgen.figures import Figures
from playhead.loadgen.slo import Objective

LEARNED = "learned"
STEP = 0.1  # seconds held between two rows of the comparison


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of a signal at one rate. ``held`` in seconds, ``stalled`` a share of
    ``utterances``."""

    lead: str
    held: float
    stalled: float
    utterances: int


Curves = Mapping[str, Sequence[Point]]
"""By signal, by rising seconds held."""


def signal_of(made: Figures) -> str:
    """The signal as comparisons name it: reports with learned leads are one of their own."""
    return LEARNED if made.lead.startswith(LEARNED) else made.signal


def curves(rows: Sequence[Figures]) -> dict[float, dict[str, list[Point]]]:
    """For each rate. Rows that are invalid, or lack a signal or listeners, do not count."""
    found: dict[float, dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for made in rows:
        heard = made.listener
        if not made.signal or made.invalid:
            continue
        if made.held is not None and heard.c0 is not None:
            point = Point(made.lead, made.held, 1 - heard.c0, heard.utterances)
            found[made.rate][signal_of(made)].append(point)
    return {
        rate: {signal: sorted(points, key=lambda p: p.held) for signal, points in signals.items()}
        for rate, signals in sorted(found.items())
    }


def at_held(points: Sequence[Point], held: float) -> float | None:
    """Share of stalled utterances at ``held`` seconds, on the line between the settings around it;
    ``None`` outside of what was measured."""
    for low, high in pairwise(points):
        if low.held <= held <= high.held:
            width = high.held - low.held
            part = (held - low.held) / width if width else 0.0
            return low.stalled + part * (high.stalled - low.stalled)
    return None


def grid(signals: Curves) -> list[float]:
    """Seconds held at which at least two signals can be compared, in steps of ``STEP``."""
    spans = [(points[0].held, points[-1].held) for points in signals.values() if len(points) > 1]
    if not spans:
        return []
    first = math.ceil(min(low for low, _ in spans) / STEP - 1e-9)
    last = math.floor(max(high for _, high in spans) / STEP + 1e-9)
    steps = [round(STEP * number, 6) for number in range(first, last + 1)]
    return [held for held in steps if sum(low <= held <= high for low, high in spans) > 1]


def comparison(rows: Sequence[Figures]) -> str:
    """What a terminal shows: stalls at equal seconds held for each rate, then the highest clean
    rate of each setting. Empty without an experiment."""
    lines: list[str] = []
    for rate, signals in curves(rows).items():
        lines += _at_equal_waste(rate, signals)
    return "\n".join([*lines, *_clean_rates(rows)])


def _at_equal_waste(rate: float, signals: Curves) -> list[str]:
    steps = grid(signals)
    if not steps:
        return [f"{rate:g}/s: no two signals held the same; give more --leads"]
    lines = [f"{rate:g}/s: stalled utterances by seconds held (what a barge-in wastes)"]
    lines.append("   held s" + "".join(f"{signal:>12}" for signal in signals))
    for held in steps:
        cells = [at_held(points, held) for points in signals.values()]
        told = ["-" if cell is None else f"{cell:.2%}" for cell in cells]
        lines.append(f"{held:>9.1f}" + "".join(f"{cell:>12}" for cell in told))
    return lines


def _clean_rates(rows: Sequence[Figures]) -> list[str]:
    """A rate counts when every lower one that was measured is clean as well."""
    settings: dict[str, list[Figures]] = defaultdict(list)
    for made in rows:
        if made.signal:
            settings[made.label].append(made)
    return [
        f"{label}: highest clean rate: strict {_highest(found, Objective())}, "
        f"lenient {_highest(found, Objective(strict=False))}"
        for label, found in settings.items()
    ]


def _highest(rows: Sequence[Figures], objective: Objective) -> str:
    best = "none"
    for made in sorted(rows, key=lambda made: made.rate):
        if made.invalid or objective.misses(made):
            break
        best = f"{made.rate:g}/s"
    return best
