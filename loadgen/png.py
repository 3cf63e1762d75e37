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
            axes.plot(xs, ys, marker="o", markersize=4, color=colour, label=series.name)
        axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
        axes.set_ylim(bottom=0)
        axes.grid(color="#e3e8ec")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        paths.append(folder / f"{chart.name}.png")
        figure.savefig(paths[-1], dpi=_DOTS)
    return paths
