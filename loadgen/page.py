"""``report.html``: one file that opens anywhere, without a network. Pure."""

from collections.abc import Sequence
from html import escape

from playhead.loadgen.charts import charts
from playhead.loadgen.figures import Figures
from playhead.loadgen.judge import worst
from playhead.loadgen.record import Record, Run
from playhead.loadgen.svg import draw, timeline
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


def page(rows: Sequence[Figures], runs: Sequence[Run]) -> str:
    """The whole document."""
    doubts = [f"{made.name}: {doubt}" for made in rows for doubt in made.invalid]
    warning = "".join(f'<p class="invalid">Invalid: {escape(doubt)}</p>' for doubt in doubts)
    drawn = "".join(map(draw, charts(rows)))
    target = escape(", ".join(dict.fromkeys(str(run.plan.get("url", "")) for run in runs)))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Playhead load report</title><style>{_STYLE}</style>"
        f"<h1>Load report</h1><p>Target {target}. TTFA counts from the intended start; a listener "
        "that ran dry inside its utterance stalled.</p>"
        f"{warning}<pre>{escape(table(rows))}</pre>{drawn}{_timeline(runs)}</html>\n"
    )


def _timeline(runs: Sequence[Run]) -> str:
    """The utterance with the worst stall, else the one that waited longest for its start."""
    heard = [r for run in runs for r in run.counted if r.first_playable is not None]
    return timeline(max(heard, key=_misery)) if heard else ""


def _misery(record: Record) -> tuple[float, float]:
    return worst(record.stalls), (record.first_playable or 0.0) - record.asked
