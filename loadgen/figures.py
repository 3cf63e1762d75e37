"""The figures of one or several runs, from their raw records: pure.

Runs that are given together are pooled (seeds of one rate). Only utterances of the window count.
Times are seconds unless a name says ``ms``; shares are 0..1.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from playhead.loadgen.judge import (
    Cause,
    attribute,
    mean_held,
    percentile,
    strict_stalls,
    viable_chunks,
    worst,
)
from playhead.loadgen.metrics import inside, server_figures
from playhead.loadgen.record import Record, Run

LAG_LIMIT = 0.020
LAG_SHARE = 0.01
"""A run whose generator dispatched more than this share of utterances later than LAG_LIMIT, or
whose loop was late for more than this share of the time, has measured the generator."""
GROWTH_SHARE = 0.10
GROWTH_LEAST = 2.0
"""More utterances than this, and than this share of those in flight, waiting for their first
audio at the end of the window than at its start: the backlog grows."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Nearest-rank percentiles of a figure; ``None`` without any value."""

    p50: float | None
    p95: float | None
    p99: float | None
    most: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of any number of values."""
        p50, p95, p99, most = (percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0))
        return cls(p50, p95, p99, most)


@dataclass(frozen=True, slots=True)
class Continuity:
    """Share of utterances without a stall (``c0``) or with none above 50, 100, 200 ms."""

    utterances: int
    stalled: int
    c0: float | None
    c50: float | None
    c100: float | None
    c200: float | None
    worst: float

    @classmethod
    def of(cls, worsts: Sequence[float]) -> "Continuity":
        """From each utterance's worst stall in seconds."""
        c0, c50, c100, c200 = (
            _share(value <= most for value in worsts) for most in (0.0, 0.05, 0.1, 0.2)
        )
        stalled = sum(value > 0 for value in worsts)
        return cls(len(worsts), stalled, c0, c50, c100, c200, max(worsts, default=0.0))


@dataclass(frozen=True, slots=True)
class Waste:
    """Audio that was made for listeners who cut in and never heard it."""

    barge_ins: int
    seconds: float
    each: Spread
    share: float | None  # of all audio received


@dataclass(slots=True)
class Figures:
    """What a report shows."""

    name: str
    label: str  # of the setting that is compared, else the mix
    rate: float
    seeds: list[int]
    window: float  # all seeds together
    utterances: int
    faults: dict[str, int]
    ttfa: Spread
    first_wait: Spread | None  # from the first byte of a text that came in pieces
    listener: Continuity
    strict: Continuity
    viable_chunks: float | None
    viable_utterances: float | None
    causes: dict[str, int]
    rtf: Spread
    audio_rate: float  # seconds of audio a second
    intended_rate: float
    achieved_rate: float  # utterances that ended without a fault, a second
    peak_in_flight: int
    backlog_growth: float
    held: float | None  # seconds of audio a listener held on average
    waste: Waste
    dispatch_lag: Spread
    loop_late_share: float
    model: str = ""  # as the server names it, and whether its weights are random
    signal: str = ""  # of an urgency experiment, else empty
    lead: str = ""
    server: dict[str, float] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)  # what was told with each fault first
    invalid: list[str] = field(default_factory=list)

    @property
    def backlog_grows(self) -> bool:
        """Whether more and more utterances wait for their first audio."""
        return self.backlog_growth > max(GROWTH_LEAST, GROWTH_SHARE * self.peak_in_flight)


def figures(runs: Sequence[Run]) -> Figures:
    """Pool ``runs``, at least one, all of one rate and mix."""
    first = runs[0].plan
    records = [record for run in runs for record in run.counted]
    heard = [record for record in records if record.first_playable is not None]
    window = sum(float(run.plan["window"]) for run in runs)
    chunks = [verdict for record in heard for verdict in viable_chunks(record)]
    many = [verdicts for record in heard if (verdicts := viable_chunks(record))]
    made = Figures(
        name=f"{label_of(runs[0])}, {first['rate']:g}/s",
        label=label_of(runs[0]),
        rate=float(first["rate"]),
        seeds=[int(run.plan["seed"]) for run in runs],
        window=window,
        utterances=len(records),
        faults=dict(Counter(record.fault for record in records if record.fault)),
        ttfa=Spread.of([_ttfa(record) for record in heard]),
        first_wait=_first_wait(heard),
        listener=Continuity.of([worst(record.stalls) for record in heard]),
        strict=Continuity.of([worst(strict_stalls(record)) for record in heard]),
        viable_chunks=_share(chunks),
        viable_utterances=_share(all(verdicts) for verdicts in many),
        causes=_causes(runs),
        rtf=Spread.of([_rtf(record) for record in heard if record.samples]),
        audio_rate=_ratio(sum(_audio_in_window(run) for run in runs), window),
        intended_rate=_ratio(len(records), window),
        achieved_rate=_ratio(sum(not record.fault for record in records), window),
        peak_in_flight=max(peak_in_flight(run.records) for run in runs),
        backlog_growth=max(backlog_growth(run) for run in runs),
        held=_mean([held for record in heard if (held := mean_held(record)) is not None]),
        waste=_waste(heard),
        dispatch_lag=Spread.of(_dispatch_lags(records)),
        loop_late_share=_ratio(sum(_late(run) for run in runs), _elapsed(runs)),
        model=runs[0].model,
        signal=str(first.get("signal", "")),
        lead=str(first.get("lead", "")),
        server=server_figures([inside(run.metrics, *run.window) for run in runs]),
        examples={r.fault: r.message for r in reversed(records) if r.fault and r.message},
    )
    made.invalid = _doubts(made, runs)
    return made


def label_of(run: Run) -> str:
    """By what a run is told apart from others at its rate."""
    return str(run.plan.get("label") or run.plan["mix"])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ttfa(record: Record) -> float:
    """From when it was meant to be possible: what a late dispatch or a slow handshake cost is in
    it."""
    return (record.first_playable or 0.0) - record.asked


def _first_wait(heard: Sequence[Record]) -> Spread | None:
    waits = [(r.first_playable or 0.0) - r.intended for r in heard if r.possible is not None]
    return Spread.of(waits) if waits else None


def _rtf(record: Record) -> float:
    """Real-time factor: time from the text to the last audio, over the audio's length."""
    sent = record.text_sent if record.possible is None else record.possible
    asked = record.intended if sent is None else sent
    return (record.chunks[-1].at - asked) * record.sample_rate / record.samples


def _causes(runs: Sequence[Run]) -> dict[str, int]:
    found: Counter[Cause] = Counter(
        attribute(stall, record, run).cause
        for run in runs
        for record in run.counted
        for stall in record.stalls
    )
    return {cause.value: found[cause] for cause in Cause if found[cause]}


def _audio_in_window(run: Run) -> float:
    begin, end = run.window
    return sum(
        chunk.samples / record.sample_rate
        for record in run.records
        for chunk in record.chunks
        if begin <= chunk.at < end
    )


def peak_in_flight(records: Iterable[Record]) -> int:
    """Most utterances between dispatch and end at one time."""
    changes = []
    for record in records:
        if record.dispatched is not None and record.ended is not None:
            changes += [(record.dispatched, 1), (record.ended, -1)]
    flying = most = 0
    for _, change in sorted(changes):
        flying += change
        most = max(most, flying)
    return most


def backlog_growth(run: Run) -> float:
    """Mean number of utterances that wait for their first audio, in the window's last third less
    that in its first."""
    begin = float(run.plan["warmup"])
    third = float(run.plan["window"]) / 3
    if third <= 0:
        return 0.0
    return _waiting(run, begin + 2 * third, third) - _waiting(run, begin, third)


def _waiting(run: Run, begin: float, length: float) -> float:
    total = 0.0
    for record in run.records:
        until = record.first_playable if record.first_playable is not None else record.ended
        if until is not None:
            overlap = min(until, begin + length) - max(record.asked, begin)
            total += max(0.0, overlap)
    return total / length


def _waste(heard: Sequence[Record]) -> Waste:
    cut = [record for record in heard if record.cancel_sent is not None]
    unheard = [(record.samples - (record.heard or 0)) / record.sample_rate for record in cut]
    total = sum(record.samples / record.sample_rate for record in heard)
    wasted = sum(unheard)
    return Waste(len(cut), wasted, Spread.of(unheard), wasted / total if total else None)


def _dispatch_lags(records: Sequence[Record]) -> list[float]:
    """Lateness of the generator alone: an utterance whose session was late could not start."""
    return [
        record.dispatched - max(record.intended, record.ready)
        for record in records
        if record.dispatched is not None and record.ready is not None
    ]


def _late(run: Run) -> float:
    return sum(lag.lag for lag in run.lags if lag.lag > LAG_LIMIT)


def _elapsed(runs: Sequence[Run]) -> float:
    """Of all processes together: each has a loop of its own."""
    return sum(
        (float(run.plan["warmup"]) + float(run.plan["window"])) * int(run.plan.get("processes", 1))
        for run in runs
    )


def _doubts(made: Figures, runs: Sequence[Run]) -> list[str]:
    """Why the figures must not be quoted."""
    doubts = [f"{run.name} is partial" for run in runs if not run.complete]
    late = made.dispatch_lag.p99
    if late is not None and late > LAG_LIMIT:
        doubts.append(f"the generator dispatched 1 % later than {1e3 * late:.0f} ms")
    if made.loop_late_share > LAG_SHARE:
        doubts.append(f"the generator's loop was late {made.loop_late_share:.1%} of the time")
    if not made.utterances:
        doubts.append("no utterance was meant to start in the window")
    early = sum(_ttfa(record) < 0 for run in runs for record in run.counted if record.samples)
    if early:
        doubts.append(
            f"{early} utterances spoke before the text that --speaks-after says they need: "
            "this server has another rule"
        )
    return doubts


def _share(verdicts: Iterable[bool]) -> float | None:
    given = list(verdicts)
    return sum(given) / len(given) if given else None


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
