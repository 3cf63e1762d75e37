"""What a report plots, as data: drawn as SVG in the page and as PNG for documents. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from playhead.loadgen.figures import Figures
from playhead.loadgen.frontier import curves
from playhead.loadgen.judge import Point

_RATE = "utterances a second"


@dataclass(frozen=True, slots=True)
class Series:
    """A named line. Points in any order of x."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines in one frame. ``name`` is fit for a file's."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]


def charts(rows: Sequence[Figures]) -> list[Chart]:
    """One setting is shown in detail; several are compared in the figures that matter most, and
    those of an urgency experiment as frontiers."""
    made = _frontiers(rows) or _by_rate(rows)
    return [each for each in made if any(series.points for series in each.series)]


def _by_rate(rows: Sequence[Figures]) -> list[Chart]:
    labels = sorted({made.label for made in rows})
    if len(labels) > 1:
        return _compared(rows, labels)
    ttfa = [
        _series(rows, "p50", lambda made: _times(made.ttfa.p50, 1e3)),
        _series(rows, "p95", _p95),
        _series(rows, "p99", lambda made: _times(made.ttfa.p99, 1e3)),
    ]
    stalls = [
        _series(rows, "any stall", _stalled),
        _series(rows, "> 100 ms", lambda made: _lack(made.listener.c100)),
    ]
    audio = [_series(rows, "received", lambda made: made.audio_rate or None)]
    flight = [_series(rows, "most", lambda made: float(made.peak_in_flight) or None)]
    return [
        Chart("ttfa", "Time to first audio", _RATE, "ms", ttfa),
        Chart("stalls", "Stalled utterances", _RATE, "% of utterances", stalls),
        Chart("audio", "Audio received", _RATE, "seconds of audio a second", audio),
        Chart("flight", "Utterances at one time", _RATE, "utterances", flight),
    ]


def _compared(rows: Sequence[Figures], labels: Sequence[str]) -> list[Chart]:
    ttfa = [_series(rows, label, _p95, label) for label in labels]
    stalls = [_series(rows, label, _stalled, label) for label in labels]
    held = [_series(rows, label, lambda made: made.held, label) for label in labels]
    return [
        Chart("ttfa", "Time to first audio, p95", _RATE, "ms", ttfa),
        Chart("stalls", "Stalled utterances", _RATE, "% of utterances", stalls),
        Chart("held", "Audio held by listeners", _RATE, "s", held),
    ]


def _frontiers(rows: Sequence[Figures]) -> list[Chart]:
    """One figure for each rate, a line for each signal over its leads."""
    return [
        Chart(
            f"frontier-{rate:g}",
            f"Stalls against barge-in waste, {rate:g} utterances a second",
            "seconds of audio held by listeners",
            "% of utterances stalled",
            [
                Series(signal, [(point.held, 100 * point.stalled) for point in points])
                for signal, points in signals.items()
            ],
        )
        for rate, signals in curves(rows).items()
    ]


def _series(
    rows: Sequence[Figures],
    name: str,
    figure: Callable[[Figures], float | None],
    label: str | None = None,
) -> Series:
    found = [(made.rate, figure(made)) for made in rows if label in (None, made.label)]
    return Series(name, [(rate, value) for rate, value in found if value is not None])


def _p95(made: Figures) -> float | None:
    return _times(made.ttfa.p95, 1e3)


def _stalled(made: Figures) -> float | None:
    return _lack(made.listener.c0)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def _lack(share: float | None) -> float | None:
    return None if share is None else 100 * (1 - share)
