"""Figures read back from a report: ``report.json``, and what bench/gpu/serve_rate.py writes. Pure.

Raw records say more; where only the figures were kept, they can still be compared.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from playhead.loadgen.figures import Continuity, Figures, Spread, Waste
from playhead.loadgen.record import RecordError

_SPREADS = ("ttfa", "rtf", "dispatch_lag")
_CONTINUITIES = ("listener", "strict")
_NEWER = "first_wait"  # older files lack it
_REQUIRED = tuple(
    each.name
    for each in fields(Figures)
    if each.default is MISSING and each.default_factory is MISSING and each.name != _NEWER
)


def rows(data: Any, name: str) -> list[Figures]:
    """The figures of a parsed JSON file called ``name``, which stands for their label where
    they have none of their own setting. Raises :class:`RecordError`."""
    given = data.get("rates") if isinstance(data, dict) else None
    if not isinstance(given, list) or not given:
        raise RecordError(f"{name}: expected a report's JSON with a list 'rates'")
    settings = data.get("settings")
    weights = str(settings.get("weights", "")) if isinstance(settings, dict) else ""
    return [_row(row, name, weights) for row in given]


def _row(row: Any, name: str, weights: str) -> Figures:
    try:
        missing = [field for field in _REQUIRED if field not in row]
        if missing:
            raise RecordError(f"{name}: a rate lacks {', '.join(missing)}")
        known: dict[str, Any] = {
            each.name: row[each.name] for each in fields(Figures) if each.name in row
        }
        made = Figures(**{**known, **_parts(row)})
    except (TypeError, KeyError) as fault:
        raise RecordError(f"{name}: a rate has another shape: {fault}") from None
    if weights:
        made.model = made.model or f"weights {weights}"
        made.label = name
        made.name = f"{name}, {made.rate:g}/s"
    return made


def _parts(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is an object of its own in :class:`Figures`."""
    first = row.get(_NEWER)
    waste = row["waste"]
    return {
        **{name: Spread(**row[name]) for name in _SPREADS},
        **{name: Continuity(**row[name]) for name in _CONTINUITIES},
        _NEWER: None if first is None else Spread(**first),
        "waste": Waste(**{**waste, "each": Spread(**waste["each"])}),
    }
