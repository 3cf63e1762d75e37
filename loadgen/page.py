"""``report.html``: one file that opens anywhere, without a network. Pure."""

from collections.abc import Callable, Sequence
from html import escape

from playhead.loadgen.figures import Figures
from playhead.loadgen.frontier import curves
from playhead.loadgen.judge import worst
from playhead.loadgen.record import Record, Run
from playhead.loadgen.svg import Series, chart, timeline
from playhead.loadgen.table import table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 88rem; padding: 0 1rem;
       color: #1d2329; background: #fff; }
pre { overflow-x: auto; font-size: 12.5px; line-height: 1.45; background: #f4f6f8; padding: 1rem; }
figure { display: inline-block; width: min(100%, 40rem); margin: 0 1rem 1.5rem 0;
         vertical-align: top; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: #4a5560; }
svg .key { font-weight: 600; }
.axes path { stroke: #8895a1; } .axes .grid { stroke: #e3e8ec; }
.invalid { color: #a3182b; font-weight: 600; }
"""


_RATE = "utterances a second"


def page(rows: Sequence[Figures], runs: Sequence[Run]) -> str:
    """The whole document."""
    doubts = [f"{made.name}: {doubt}" for made in rows for doubt in made.invalid]
    warning = "".join(f'<p class="invalid">Invalid: {escape(doubt)}</p>' for doubt in doubts)
    target = escape(str(runs[0].plan.get("url", "")))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Playhead load report</title><style>{_STYLE}</style>"
        f"<h1>Load report</h1><p>Target {target}. TTFA counts from the intended start; a listener "
        "that ran dry inside its utterance stalled.</p>"
        f"{warning}<pre>{escape(table(rows))}</pre>{_charts(rows)}{_timeline(runs)}</html>\n"
    )


def _charts(rows: Sequence[Figures]) -> str:
    """One setting is shown in detail; several are compared in the figures that matter most."""
    if frontiers := _frontiers(rows):
        return frontiers
    labels = sorted({made.label for made in rows})
    if len(labels) > 1:
        ttfa = [_series(rows, label, _p95, label) for label in labels]
        stalls = [_series(rows, label, _stalled, label) for label in labels]
        held = [_series(rows, label, lambda made: made.held, label) for label in labels]
        last = chart("Audio held by listeners", _RATE, "s", held)
    else:
        ttfa = [
            _series(rows, "p50", lambda made: _times(made.ttfa.p50, 1e3)),
            _series(rows, "p95", _p95),
            _series(rows, "p99", lambda made: _times(made.ttfa.p99, 1e3)),
        ]
        stalls = [
            _series(rows, "any stall", _stalled),
            _series(rows, "> 100 ms", lambda made: _lack(made.listener.c100)),
        ]
        load = [
            _series(rows, "received", lambda made: made.audio_rate),
            _series(rows, "in flight", lambda made: float(made.peak_in_flight)),
        ]
        last = chart("Load", _RATE, "audio s/s, utterances", load)
    title = "Time to first audio" + (", p95" if len(labels) > 1 else "")
    return (
        chart(title, _RATE, "ms", ttfa)
        + chart("Stalled utterances", _RATE, "% of utterances", stalls)
        + last
    )


def _frontiers(rows: Sequence[Figures]) -> str:
    """An urgency experiment: one figure for each rate, a line for each signal over its leads."""
    return "".join(
        chart(
            f"Stalls against barge-in waste, {rate:g} utterances a second",
            "seconds of audio held by listeners",
            "% of utterances stalled",
            [
                Series(signal, [(point.held, 100 * point.stalled) for point in points])
                for signal, points in signals.items()
            ],
        )
        for rate, signals in curves(rows).items()
    )


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


def _timeline(runs: Sequence[Run]) -> str:
    """The utterance with the worst stall, else the one that waited longest for its start."""
    heard = [r for run in runs for r in run.counted if r.first_playable is not None]
    return timeline(max(heard, key=_misery)) if heard else ""


def _misery(record: Record) -> tuple[float, float]:
    return worst(record.stalls), (record.first_playable or 0.0) - record.asked
