"""From raw files to a report: table, ``report.json``, ``report.html``."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from playhead.loadgen.figures import Figures, figures, label_of
from playhead.loadgen.frontier import curves
from playhead.loadgen.page import page
from playhead.loadgen.record import RecordError, Run, load
from playhead.loadgen.rows import rows as rows_of
from playhead.loadgen.slo import Objective, stall_bound
from playhead.loadgen.table import verdict

_FIGURES = ".json"


def collect(paths: Sequence[Path]) -> list[Run]:
    """Runs of files and of the ``.jsonl`` and ``.jsonl.gz`` files in folders; ``.json`` is passed
    over. Raises :class:`RecordError` when there are none, or one is no raw record, and
    ``OSError``."""
    files: list[Path] = []
    for path in paths:
        files += _records(path) if path.is_dir() else [path]
    if not files:
        raise RecordError(f"no .jsonl file in {', '.join(map(str, paths))}")
    return [load(file) for file in files if file.suffix != _FIGURES]


def _records(folder: Path) -> list[Path]:
    """The raw records in a folder, each once: it may lie there as it is and compressed."""
    found = {path.name.removesuffix(".gz"): path for path in folder.glob("*.jsonl.gz")}
    found |= {path.name: path for path in folder.glob("*.jsonl")}
    return [found[name] for name in sorted(found)]


def kept(paths: Sequence[Path]) -> list[Figures]:
    """Figures of the ``.json`` files among ``paths``, of which no raw record may be left. Raises
    :class:`RecordError` and ``OSError``."""
    found: list[Figures] = []
    for path in paths:
        if path.suffix == _FIGURES:
            try:
                data = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as fault:
                raise RecordError(f"{path.name}: {fault}") from None
            found += rows_of(data, path.stem)
    return found


def pool(runs: Sequence[Run]) -> list[Figures]:
    """Figures for each label and rate, the seeds of which belong together, by rising rate."""
    groups: dict[tuple[str, float], list[Run]] = defaultdict(list)
    for run in runs:
        groups[label_of(run), float(run.plan["rate"])].append(run)
    return [figures(group) for _, group in sorted(groups.items())]


def as_json(rows: Sequence[Figures], runs: Sequence[Run]) -> dict[str, Any]:
    """Everything that the report says, for machines."""
    return {
        "format": 1,
        "plans": [run.plan for run in runs],
        "rates": [_row(made) for made in rows],
        "frontier": {
            f"{rate:g}": {
                signal: [asdict(point) for point in points] for signal, points in found.items()
            }
            for rate, found in curves(rows).items()
        },
    }


def write(rows: Sequence[Figures], runs: Sequence[Run], folder: Path) -> tuple[Path, Path]:
    """Both files. Raises ``OSError``."""
    machine, human = folder / "report.json", folder / "report.html"
    machine.write_text(json.dumps(as_json(rows, runs), indent=1) + "\n", encoding="utf-8")
    human.write_text(page(rows, runs), encoding="utf-8")
    return machine, human


def _row(made: Figures) -> dict[str, Any]:
    heard = made.listener
    return {
        **asdict(made),
        "backlog_grows": made.backlog_grows,
        "stall_bound_95": stall_bound(heard.utterances, heard.stalled),
        "verdict": verdict(made),
        "misses": {each.name: each.misses(made) for each in (Objective(), Objective(strict=False))},
    }
