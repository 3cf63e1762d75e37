"""Plots as inline SVG: text in, text out, nothing to load. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from playhead.loadgen.charts import Chart
from playhead.loadgen.judge import Point, playhead
from playhead.loadgen.listener import Stall
from playhead.loadgen.record import Record

WIDTH, HEIGHT = 640, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 14, 46
COLOURS = ("#1b6ca8", "#d1495b", "#3a7d44", "#8a5a9e", "#b07d12")
_LANES = {"urgent": "#d1495b", "background": "#1b6ca8"}


_TITLE = 60
Key = tuple[str, str]
"""A name and its colour."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Axes: data coordinates to pixels. Both ranges are wider than nothing."""

    x_low: float
    x_high: float
    y_high: float  # the axis starts at 0

    def x(self, value: float) -> float:
        """Pixels from the left."""
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        return HEIGHT - _BOTTOM - value / self.y_high * (HEIGHT - _TOP - _BOTTOM)

    def path(self, points: Sequence[Point]) -> str:
        """The points as a polyline's ``points``."""
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)


def draw(chart: Chart) -> str:
    """Lines with a marker at each point, all in one frame; at least one point."""
    points = [point for each in chart.series for point in each.points]
    frame = _frame([x for x, _ in points], max(y for _, y in points))
    parts = [_axes(frame, chart.x_label, chart.y_label)]
    keys: list[Key] = []
    for number, each in enumerate(chart.series):
        colour = COLOURS[number % len(COLOURS)]
        ordered = sorted(each.points)
        parts.append(
            f'<polyline points="{frame.path(ordered)}" fill="none" stroke="{colour}" '
            'stroke-width="2"/>'
        )
        parts += [
            f'<circle cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="3.5" fill="{colour}">'
            f"<title>{escape(each.name)}: {x:g}, {y:.4g}</title></circle>"
            for x, y in ordered
        ]
        keys.append((each.name, colour))
    return _svg(chart.title, parts, keys)


def timeline(record: Record) -> str:
    """One utterance: what had arrived, what had been played, and where it stood still."""
    chunks = [chunk for chunk in record.chunks if chunk.samples]
    if not chunks:
        return ""
    rate, shift = record.sample_rate, record.intended
    played = playhead(record)
    end = max([chunks[-1].at, *(at for at, _ in played)])
    frame = _frame([0.0, end - shift], record.samples / rate)
    arrived: list[Point] = []
    for chunk in chunks:
        arrived += [
            (chunk.at - shift, chunk.position / rate),
            (chunk.at - shift, (chunk.position + chunk.samples) / rate),
        ]
    parts = [_stall(frame, stall, shift) for stall in record.stalls]
    parts.append(_axes(frame, "seconds since the utterance was due", "seconds of audio"))
    parts.append(_line(frame, arrived, COLOURS[0]))
    keys: list[Key] = [("arrived", COLOURS[0])]
    if played:
        parts.append(_line(frame, [(x - shift, y) for x, y in played], COLOURS[2]))
        keys.append(("played", COLOURS[2]))
    for chunk in chunks:
        top = (chunk.position + chunk.samples) / rate
        colour = _LANES.get(chunk.lane, "#777")
        parts.append(
            f'<circle cx="{frame.x(chunk.at - shift):.1f}" cy="{frame.y(top):.1f}" r="3" '
            f'fill="{colour}"><title>{escape(chunk.lane)}, slack {chunk.slack} ms, '
            f"{1e3 * chunk.samples / rate:.0f} ms of audio</title></circle>"
        )
    keys.append(("urgent lane", _LANES["urgent"]))
    return _svg(f"Utterance {record.number}: {_shortened(record.text)}", parts, keys)


def _shortened(text: str) -> str:
    return text if len(text) <= _TITLE else text[:_TITLE].rpartition(" ")[0] + " …"


def _frame(xs: Sequence[float], y_most: float) -> Frame:
    low, high = min(xs), max(xs)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    margin = 0.03 * (high - low)
    return Frame(low - margin, high + margin, 1.1 * y_most or 1.0)


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers inside the range."""
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def _axes(frame: Frame, x_label: str, y_label: str) -> str:
    floor = HEIGHT - _BOTTOM
    parts = [f'<g class="axes"><path d="M{_LEFT} {_TOP}V{floor}H{WIDTH - _RIGHT}" fill="none"/>']
    for value in _ticks(frame.x_low, frame.x_high):
        x = frame.x(value)
        parts.append(f'<text x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{value:g}</text>')
    for value in _ticks(0.0, frame.y_high):
        y = frame.y(value)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" class="grid"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) // 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text x="14" y="{HEIGHT // 2}" text-anchor="middle" '
        f'transform="rotate(-90 14 {HEIGHT // 2})">{escape(y_label)}</text></g>'
    )
    return "".join(parts)


def _line(frame: Frame, points: Sequence[Point], colour: str) -> str:
    path = frame.path(points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _stall(frame: Frame, stall: Stall, shift: float) -> str:
    x = frame.x(stall.start - shift)
    width = frame.x(stall.start + stall.length - shift) - x
    return (
        f'<rect x="{x:.1f}" y="{_TOP}" width="{max(1.0, width):.1f}" '
        f'height="{HEIGHT - _TOP - _BOTTOM}" fill="#d1495b" opacity="0.2">'
        f"<title>stall of {1e3 * stall.length:.0f} ms</title></rect>"
    )


def _svg(title: str, parts: Sequence[str], keys: Sequence[Key]) -> str:
    """Keys are text of the page: they wrap, however many there are."""
    named = "".join(
        f'<span style="color:{colour}">● {escape(name)}</span> ' for name, colour in keys
    )
    return (
        f'<figure><figcaption>{escape(title)}<p class="key">{named}</p></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{escape(title)}">{"".join(parts)}</svg></figure>'
    )
