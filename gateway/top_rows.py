"""Sessions as `playhead top` shows them, from what servers answer at /v1/sessions. Pure."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One session. Seconds; NaN: not known, infinite: none. ``urgent``: less slack than its next
    chunk needs."""

    server: str
    session: str
    dialect: str
    codec: str
    slack: float
    margin: float
    depth: float
    lead: float
    lane: str
    stalls: int
    worst: float
    state: str  # idle, speaking, held

    @property
    def urgent(self) -> bool:
        """Whether it has less slack than making its next chunk takes."""
        return self.slack < self.margin


def parse(server: str, text: str) -> list[Row]:
    """The rows of one server. Raises ``ValueError`` for anything else."""
    try:
        found = json.loads(text)["rows"]
        return [_row(server, row) for row in found]
    except (KeyError, TypeError) as error:
        raise ValueError(f"these are no sessions: {error}") from None


def least_slack(rows: Iterable[Row], most: int) -> list[Row]:
    """Those nearest to running dry, over all servers."""
    return sorted(rows, key=lambda row: (row.slack, row.state == "idle", row.session))[:most]


def _row(server: str, row: Mapping[str, Any]) -> Row:
    rate = f" {row['sample_rate'] / 1000:g}" if row["sample_rate"] else ""
    speaking = "depth" in row
    state = "held" if row.get("frozen") else "speaking" if speaking else "idle"
    return Row(
        server=server,
        session=str(row["session"]),
        dialect=str(row["dialect"]),
        codec=f"{row['codec']}{rate}",
        slack=_seconds(row.get("slack"), math.inf),
        margin=_seconds(row.get("margin"), math.nan),
        depth=_seconds(row.get("depth"), math.nan),
        lead=_seconds(row.get("lead"), math.nan),
        lane=str(row["lane"]),
        stalls=int(row["stalls"]),
        worst=_seconds(row["worst_stall"], 0.0),
        state=state + (" (estimated)" if row.get("estimated") and state == "speaking" else ""),
    )


def _seconds(milliseconds: float | None, otherwise: float) -> float:
    return otherwise if milliseconds is None else float(milliseconds) / 1000
