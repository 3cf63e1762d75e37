"""Figures as a terminal shows them. Pure."""

import re
from collections.abc import Sequence

from playhead.loadgen.figures import Figures
from playhead.loadgen.judge import percentile
from playhead.loadgen.slo import Objective, stall_bound
from playhead.loadgen.tally import Tally

MOST_TOLD = 160
"""Characters of what a fault told."""
COLUMNS = (
    ("who", 9),  # or as wide as the longest name
    ("rate/s", 7),
    ("heard", 6),
    ("TTFA p50", 9),
    ("p95", 6),
    ("p99 ms", 7),
    ("stalled", 8),
    ("C50", 7),
    ("C100", 7),
    ("C200", 7),
    ("worst ms", 9),
    ("viable", 7),
    ("RTF", 5),
    ("audio s/s", 9),
    ("done/s", 7),
    ("peak", 5),
    ("held s", 6),
    ("waste s", 8),
    ("SLO", 8),
)


def table(rows: Sequence[Figures]) -> str:
    """One line per pooled rate, then what must be known about them."""
    widths = [width for _, width in COLUMNS]
    widths[0] = max([widths[0], *(len(made.label) for made in rows)])
    lines = [_line([name for name, _ in COLUMNS], widths)]
    lines += [_line(cells(made), widths) for made in rows]
    for made in rows:
        lines += notes(made)
    return "\n".join(lines)


def verdict(made: Figures) -> str:
    """The strictest objective that the figures meet; ``invalid`` before all."""
    if made.invalid:
        return "INVALID"
    met = [each.name for each in (Objective(), Objective(strict=False)) if not each.misses(made)]
    return met[0] if met else "missed"


def notes(made: Figures) -> list[str]:
    """Why a row is invalid or misses, what failed, and who was to blame for stalls."""
    lines = [f"{made.name}: INVALID, {doubt}" for doubt in made.invalid]
    if made.model:
        lines.append(f"{made.name}: model {made.model}")
    lines += [f"{made.name}: {miss}" for miss in Objective().misses(made)]
    lines += [
        f"{made.name}: {fault}: {_plain(told.removeprefix(f'{fault}: '))}"
        for fault, told in sorted(made.examples.items())
    ]
    if made.causes:
        blamed = ", ".join(f"{cause} {count}" for cause, count in made.causes.items())
        lines.append(f"{made.name}: stalls by cause: {blamed}")
    if made.first_wait is not None:
        wait = made.first_wait
        lines.append(
            f"{made.name}: text in pieces; first audio after its first byte: p50 "
            f"{_ms(wait.p50)} ms, p95 {_ms(wait.p95)} ms"
        )
    lines += _model(made) + _lanes(made)
    return [*lines, *_confidence(made)]


def _plain(told: str) -> str:
    """A server's words on one line, and nothing in them that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in told)[:MOST_TOLD]


def _confidence(made: Figures) -> list[str]:
    """How little so many utterances prove."""
    heard = made.listener
    if not heard.utterances:
        return []
    bound = stall_bound(heard.utterances, heard.stalled)
    return [
        f"{made.name}: {heard.stalled} of {heard.utterances} stalled; "
        f"true share below {bound:.2%} (95 %); seeds {', '.join(map(str, made.seeds))}"
    ]


def _model(made: Figures) -> list[str]:
    """Which model spoke, where /metrics alone tells it: random weights speak noise."""
    if made.model:
        return []
    said = (series for series in made.server if series.startswith("playhead_build_info{"))
    found = re.search(r'model="([^"]*)"', next(said, ""))
    if found is None:
        return []
    noise = " (random weights: it speaks noise)" if found[1].endswith("-random") else ""
    return [f"{made.name}: model {found[1]}{noise}"]


def _lanes(made: Figures) -> list[str]:
    """How busy the server says that its lanes were, and where its chunks were decoded."""
    busy = _by_lane(made, "playhead_lane_busy_seconds_total")
    chunks = _by_lane(made, "playhead_lane_items_total")
    decoded = chunks.get("urgent", 0.0) + chunks.get("background", 0.0)
    if not busy or not decoded:
        return []
    shares = ", ".join(f"{lane} {share:.0%}" for lane, share in sorted(busy.items()))
    urgent = chunks.get("urgent", 0.0) / decoded
    return [f"{made.name}: server's lanes busy: {shares}; {urgent:.0%} of its chunks were urgent"]


def _by_lane(made: Figures, name: str) -> dict[str, float]:
    head = name + '{lane="'
    return {
        series.removeprefix(head).partition('"')[0]: value
        for series, value in made.server.items()
        if series.startswith(head)
    }


def progress(tally: Tally, elapsed: float, length: float, processes: int) -> str:
    """One line about a run that goes on."""
    p95 = percentile(tally.first_audio, 0.95)
    shown = "-" if p95 is None else f"{1e3 * p95:.0f} ms"
    share = f" (process 1 of {processes})" if processes > 1 else ""
    return (
        f"{max(0.0, elapsed):5.0f} of {length:.0f} s{share}: {tally.started} of {tally.planned} "
        f"started, {tally.in_flight} in flight, "
        f"{tally.stalled} stalled, {tally.faulty} faulty, TTFA p95 {shown}"
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def cells(made: Figures) -> tuple[str, ...]:
    """A row's cells, in the order of ``COLUMNS``."""
    heard = made.listener
    return (
        made.label,
        f"{made.rate:g}",
        str(heard.utterances),
        _ms(made.ttfa.p50),
        _ms(made.ttfa.p95),
        _ms(made.ttfa.p99),
        str(heard.stalled),
        _percent(heard.c50),
        _percent(heard.c100),
        _percent(heard.c200),
        _ms(heard.worst),
        _percent(made.viable_utterances),
        "-" if made.rtf.p50 is None else f"{made.rtf.p50:.2f}",
        f"{made.audio_rate:.1f}",
        f"{made.achieved_rate:.2f}",
        str(made.peak_in_flight),
        "-" if made.held is None else f"{made.held:.2f}",
        f"{made.waste.seconds:.1f}",
        verdict(made),
    )


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.1f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}%"
