"""Charts as PNG files for documents, drawn by matplotlib (extra ``plots``)."""

from collections.abc import Sequence
from pathlib import Path

from playhead.loadgen.charts import Chart
from playhead.loadgen.svg import COLOURS

_INCHES = (6.4, 3.6)
_DOTS = 150  # per inch


class NoPlots(RuntimeError):
    """The drawing library is not installed; the message says how to get it."""


def write_png(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """One file for each chart. Raises :class:`NoPlots` and ``OSError``."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPlots("--png needs matplotlib: pip install 'playhead[plots]'") from None
    paths = []
    for chart in charts:
        figure = Figure(figsize=_INCHES, layout="constrained")
        axes = figure.subplots()
        for number, series in enumerate(chart.series):
            xs, ys = zip(*sorted(series.points), strict=True) if series.points else ((), ())
            colour = COLOURS[number % len(COLOURS)]
            (line,) = axes.plot(xs, ys, color=colour, label=series.name, clip_on=False, zorder=3)
            line.set(marker="o", markersize=4)
        axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
        if not any(y for series in chart.series for _, y in series.points):
            axes.set_ylim(top=1)  # as the page draws it; by itself the axis would end at 0.05
        axes.set_ylim(bottom=0)
        axes.grid(color="#e3e8ec")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        paths.append(folder / f"{chart.name}.png")
        figure.savefig(paths[-1], dpi=_DOTS)
    return paths
