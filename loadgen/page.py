"""``report.html``: one file that opens anywhere, without a network. Pure."""

from collections.abc import Sequence
from html import escape

from playhead.loadgen.charts import charts
from playhead.loadgen.figures import Figures
from playhead.loadgen.judge import playhead, worst
from playhead.loadgen.record import Record, Run
from playhead.loadgen.svg import draw, timeline
from playhead.loadgen.table import COLUMNS, cells, notes, verdict

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --soft: #4a5560; --page: #fff; --box: #f4f6f8;
        --rule: #8895a1; --thin: #e3e8ec; --good: #2f6b39; --fair: #8a5a00; --bad: #a3182b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaee; --soft: #a9b4be; --page: #14181c; --box: #1e242a; --rule: #6b7781;
          --thin: #2c343b; --good: #7cc98a; --fair: #e0b050; --bad: #ff8592; }
  polyline, circle, .key span { filter: brightness(1.55); } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 88rem; padding: 0 1rem;
       color: var(--ink); background: var(--page); }
pre { overflow-x: auto; font-size: 12.5px; line-height: 1.45; background: var(--box);
      padding: 1rem; }
.plots { display: grid; gap: 1.5rem;
         grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
figure { margin: 0; max-width: 44rem; }
figcaption { font-weight: 600; }
.key { margin: 0; font-size: 13px; } .key span { margin-right: 0.8em; white-space: nowrap; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.4rem; text-align: right; white-space: nowrap; }
th { border-bottom: 2px solid var(--rule); } td { border-bottom: 1px solid var(--thin); }
th:first-child, td:first-child { text-align: left; }
td:last-child { font-weight: 600; } .strict td:last-child { color: var(--good); }
.lenient td:last-child { color: var(--fair); }
.missed td:last-child, .INVALID td:last-child { color: var(--bad); }
details { margin: 0.8rem 0 1.5rem; } summary { cursor: pointer; }
svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.axes path { stroke: var(--rule); } .axes .grid { stroke: var(--thin); }
@media (max-width: 34rem) { svg text { font-size: 17px; } }
.invalid { color: var(--bad); font-weight: 600; }
"""


def page(rows: Sequence[Figures], runs: Sequence[Run]) -> str:
    """The whole document."""
    doubts = [f"{made.name}: {doubt}" for made in rows for doubt in made.invalid]
    warning = "".join(f'<p class="invalid">Invalid: {escape(doubt)}</p>' for doubt in doubts)
    drawn = "".join(map(draw, charts(rows)))
    targets = ", ".join(dict.fromkeys(str(run.plan.get("url", "")) for run in runs))
    told = "".join(f"{line}\n" for made in rows for line in notes(made))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Playhead load report</title><style>{_STYLE}</style>"
        f"<h1>Load report</h1><p>{_heading(rows, targets)} TTFA counts from the intended start; a "
        "listener that ran dry inside its utterance stalled.</p>"
        f'{warning}<div class="wide">{_table(rows)}</div>'
        f"<details><summary>Notes on each row</summary><pre>{escape(told)}</pre></details>"
        f'<div class="plots">{drawn}{_timeline(runs)}</div></html>\n'
    )


def _heading(rows: Sequence[Figures], targets: str) -> str:
    models = ", ".join(dict.fromkeys(made.model for made in rows if made.model))
    parts = [f"Target {targets}."] if targets else []
    parts += [f"Model {models}."] if models else []
    return escape(" ".join(parts))


def _table(rows: Sequence[Figures]) -> str:
    head = "".join(f"<th>{escape(name)}" for name, _ in COLUMNS)
    body = "".join(
        f'<tr class="{verdict(made)}">' + "".join(f"<td>{escape(cell)}" for cell in cells(made))
        for made in rows
    )
    return f"<table><thead><tr>{head}</thead><tbody>{body}</tbody></table>"


def _timeline(runs: Sequence[Run]) -> str:
    """The utterance with the worst stall, else, of those whose playhead is known throughout, the
    one that waited longest for its start."""
    heard = [r for run in runs for r in run.counted if r.first_playable is not None]
    return timeline(max(heard, key=_misery)) if heard else ""


def _misery(record: Record) -> tuple[float, bool, float]:
    return (
        worst(record.stalls),
        bool(playhead(record)),
        (record.first_playable or 0.0) - record.asked,
    )
