"""Who is being spoken to and how close each is to running dry, one row per session. Pure.

Durations on the wire are milliseconds, as everywhere in the protocol.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from playhead.engine.picture import Belief

MOST_ROWS: Final = 200
SHOWN: Final = 8
"""Characters of a session's id: enough to find it in a log, too few to return to it."""


@dataclass(frozen=True, slots=True)
class Listener:
    """What the gateway knows of one session. ``utterance``: the one that the engine works on."""

    session: str
    dialect: str
    codec: str = ""
    sample_rate: int = 0
    utterance: int | None = None
    lane: str = ""  # of the last chunk
    stalls: int = 0
    worst: float = 0.0  # seconds


def slack(belief: Belief | None) -> float:
    """Seconds until the listener runs dry if nothing more is sent; never for one whose playback
    stands still, or for whom nothing is left to be made."""
    return math.inf if belief is None or belief.frozen else belief.runway


def roster(listeners: Iterable[Listener], beliefs: Mapping[int, Belief]) -> str:
    """JSON with a row per listener, those with the least slack first, at most ``MOST_ROWS``."""
    known = [(each, beliefs.get(each.utterance or 0)) for each in listeners]
    known.sort(key=lambda pair: (slack(pair[1]), pair[0].session))
    rows = [_row(listener, belief) for listener, belief in known[:MOST_ROWS]]
    return json.dumps({"sessions": len(known), "rows": rows}) + "\n"


def _row(listener: Listener, belief: Belief | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "session": listener.session[:SHOWN],
        "dialect": listener.dialect,
        "codec": listener.codec,
        "sample_rate": listener.sample_rate,
        "utterance": listener.utterance,
        "lane": listener.lane,
        "stalls": listener.stalls,
        "worst_stall": _ms(listener.worst),
    }
    if belief is not None:
        left = slack(belief)
        row |= {
            "slack": None if math.isinf(left) else _ms(left),
            "margin": _ms(belief.margin),
            "depth": _ms(belief.depth),
            "lead": _ms(belief.lead),
            "frozen": belief.frozen,
            "estimated": belief.estimated,
        }
    return row


def _ms(seconds: float) -> float | None:
    return round(1000 * seconds, 1) if math.isfinite(seconds) else None
