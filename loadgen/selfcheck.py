"""Does the generator see what there is to see? Checked against a server with planted faults.

Three claims: the time to first audio is right within a millisecond, every planted stall is found
with its length, and a server that freezes is seen by the utterances that should have started then
(no coordinated omission).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop
from playhead.engine.clock import monotonic
from playhead.loadgen.figures import figures
from playhead.loadgen.judge import percentile
from playhead.loadgen.plan import Plan
from playhead.loadgen.record import FORMAT, Lag, Record, Run, decode, encode
from playhead.loadgen.run import AHEAD, PROBE, Generator
from playhead.loadgen.scripted import RATE, Script, ScriptedServer, Spoken

TOLERANCE = 0.001
FREEZE = 2.0
LATE = 0.015
"""Seconds of its own lag by which the generator may miss the shortest gap, or hear one more."""
_START = AHEAD + 0.2

Chunks = tuple[tuple[float, int], ...]
#: 100 ms of audio, a gap of 250 ms, 200 ms of audio, a gap of 40 ms, and the rest.
GAPS: Chunks = ((0.05, 2_400), (0.40, 4_800), (0.64, 9_600))
PLAIN: Chunks = ((0.05, 4_800),)


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim and how it fared."""

    claim: str
    good: bool
    detail: str


def check(rate: float = 10.0, seconds: float = 5.0) -> list[Finding]:
    """All claims, over loopback, in this process. Takes twice ``seconds`` and a little."""
    run, spoken, origin = uvloop.run(_measure(rate, seconds, GAPS))
    frozen, _, _ = uvloop.run(_measure(rate, seconds, PLAIN, freeze_at=1.0))
    pairs = list(zip(run.counted, spoken, strict=True))
    return [
        _not_late(run),
        first_audio(pairs, origin),
        planted_stalls(pairs, origin, run.lags),
        omission(frozen.counted),
    ]


async def _measure(
    rate: float, seconds: float, chunks: Chunks, freeze_at: float | None = None
) -> tuple[Run, list[Spoken], float]:
    origin = monotonic() + _START
    begin = math.inf if freeze_at is None else origin + freeze_at
    server = ScriptedServer(Script(chunks, freeze=(begin, begin + FREEZE)))
    lines: list[Mapping[str, Any]] = []
    async with server.running() as url:
        plan = Plan(url, rate, arrivals="constant", warmup=0.0, window=seconds, timeout=30.0)
        lines.append({"kind": "run", "format": FORMAT, "plan": plan.as_json()})
        await Generator(plan, 0, origin, lines.append).run()
    lines.append({"kind": "end", "complete": True})
    return decode(map(encode, lines), "selfcheck"), server.spoken, origin


def _not_late(run: Run) -> Finding:
    doubts = figures([run]).invalid
    return Finding("the generator is not late itself", not doubts, "; ".join(doubts) or "it is not")


def first_audio(pairs: Sequence[tuple[Record, Spoken]], origin: float) -> Finding:
    """Compares the first playable sample with the moment at which it was really sent."""
    errors = [
        abs(record.first_playable - (spoken.left[0] - origin))
        for record, spoken in pairs
        if record.first_playable is not None
    ]
    return Finding(
        f"TTFA within {1e3 * TOLERANCE:g} ms",
        bool(pairs) and len(errors) == len(pairs) and _small(errors),
        f"{len(errors)} of {len(pairs)} utterances; errors {_told(errors)}",
    )


def planted_stalls(
    pairs: Sequence[tuple[Record, Spoken]], origin: float, lags: Sequence[Lag] = ()
) -> Finding:
    """Compares each listener's stalls with the gaps between what was really sent. ``lags``: of the
    loop that both share; where it stood still, what was sent is not what was heard."""
    wrong = excused = 0
    errors: list[float] = []
    for record, spoken in pairs:
        expected = _gaps(spoken, origin)
        if len(expected) != len(record.stalls):
            late = _late_meanwhile(record, lags)
            wrong, excused = wrong + (not late), excused + late
            continue
        for (start, length), stall in zip(expected, record.stalls, strict=True):
            errors += [abs(stall.start - start), abs(stall.length - length)]
    more = f", and {excused} while the generator was late" if excused else ""
    return Finding(
        "every planted stall, with its start and length",
        bool(errors) and not wrong + excused and _small(errors),
        f"{wrong} of {len(pairs)} utterances have others{more}; errors {_told(errors)}",
    )


def _late_meanwhile(record: Record, lags: Sequence[Lag]) -> bool:
    begin, end = record.intended, record.intended + GAPS[-1][0] + PROBE
    return any(lag.lag > LATE and begin <= lag.at <= end + lag.lag for lag in lags)


def _small(errors: Sequence[float]) -> bool:
    """95 % of them: on a machine that does other things as well, single ones are its own."""
    return (percentile(errors, 0.95) or 0.0) <= TOLERANCE


def _told(errors: Sequence[float]) -> str:
    named = {"p50": 0.5, "p95": 0.95, "most": 1.0}
    found = {name: percentile(errors, share) for name, share in named.items()}
    told = [f"{name} {1e3 * value:.2f} ms" for name, value in found.items() if value is not None]
    return ", ".join(told) or "unknown"


def _gaps(spoken: Spoken, origin: float) -> list[tuple[float, float]]:
    """By the server's own record: start and length, from the start of the run."""
    gaps = []
    dry = spoken.left[0]
    for (_, samples), left in zip(GAPS, spoken.left, strict=True):
        if left > dry:
            gaps.append((dry - origin, left - dry))
        dry = max(dry, left) + samples / RATE
    return gaps


def omission(records: Sequence[Record]) -> Finding:
    """Utterances that should have started during the freeze must show what was left of it."""
    frozen = [record for record in records if 1.05 <= record.intended < 1.0 + FREEZE - 0.05]
    seen = [
        record
        for record in frozen
        if record.first_playable is not None and record.first_playable >= 1.0 + FREEZE
    ]
    return Finding(
        f"a freeze of {FREEZE:g} s is seen by those who were to start in it",
        bool(frozen) and len(seen) == len(frozen),
        f"{len(seen)} of {len(frozen)} waited to its end",
    )
