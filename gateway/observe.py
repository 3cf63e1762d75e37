"""What a viewer of the lanes may ask for, and what it is told (docs/protocol.md, "Watching").

Pure: orders come as text, pictures leave as text, and ``now`` is an argument. Durations on the
wire are milliseconds, as everywhere in the protocol.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from playhead.engine.picture import Belief, EnginePicture
from playhead.engine.types import Lane
from playhead.gateway.protocol_parse import Bounds, ProtocolError, parse_json
from playhead.gateway.protocol_schema import Kind, Unfit, describe, flag, integer, string

SUBPROTOCOL: Final = "playhead.observe.v1"
MOST_LISTENERS: Final = 100
"""Synthetic listeners at a time: more than the bundled voice can speak to on a small machine."""
HZ: Final = 10.0
"""Pictures a second: the eye sees motion, the engine's thread does not notice."""
SHOWN: Final = 32
"""Batches named per lane, and utterances per batch: what a lane's row can show."""
_BOUNDS: Final = Bounds(4096, 4, 16)


@dataclass(frozen=True, slots=True)
class Watch:
    """Tell what is believed about the listener of ``session`` (None: of nobody)."""

    session: str | None = None


@dataclass(frozen=True, slots=True)
class CrowdOrder:
    """Let ``listeners`` synthetic listeners speak and listen; 0 ends them.

    ``reports`` False: they are silent about their playback, so the server estimates it.
    """

    listeners: int
    reports: bool = True


Order = Watch | CrowdOrder
_KINDS: Final[Mapping[str, Mapping[str, Kind]]] = {
    "watch": {"session": string(128)},
    "crowd": {"listeners": integer(0, MOST_LISTENERS), "reports": flag},
}


def parse(text: str | bytes) -> Order:
    """An order from one frame. Raises ``ProtocolError`` naming what was wrong."""
    if isinstance(text, bytes):
        raise ProtocolError("bad_message", "a binary frame", "one JSON object as text")
    given = parse_json(text, _BOUNDS)
    kind = given.pop("type", None)
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise ProtocolError(
            "unknown_type", f"type is {describe(kind)}", "one of " + ", ".join(_KINDS), "type"
        )
    fields = {name: _checked(name, value, known) for name, value in given.items()}
    if kind == "watch":
        return Watch(**fields)
    if "listeners" not in fields:
        raise ProtocolError("missing_field", "listeners is missing", "a number", "listeners")
    return CrowdOrder(**fields)


def _checked(name: str, value: Any, known: Mapping[str, Kind]) -> Any:
    if name not in known:
        expected = "one of " + ", ".join(known)
        raise ProtocolError("unknown_field", f"unknown field {describe(name)}", expected)
    try:
        return known[name](value)
    except Unfit as fault:
        raise ProtocolError(
            fault.code, f"{name} is {describe(value)}", f"{name}: {fault.expected}", name
        ) from None


class Throttle:
    """When the next picture is due: at most ``HZ`` a second, and none while one is on its way."""

    def __init__(self, now: float) -> None:
        self._next = now
        self._asked = False

    def wait(self, now: float) -> float:
        """Seconds until the next picture may be asked for."""
        return max(0.0, self._next - now)

    def ask(self, now: float) -> bool:
        """Whether to ask for a picture now; if so, the answer must come through ``answered``."""
        if now < self._next:
            return False
        self._next = now + 1 / HZ
        free, self._asked = not self._asked, True
        return free

    def answered(self) -> None:
        """The picture came."""
        self._asked = False


def offer(permitted: bool) -> str:
    """What a plain GET of the endpoint is told."""
    reason = "" if permitted else "this server shows its lanes to nobody (see --demo)"
    most = MOST_LISTENERS if permitted else 0
    return json.dumps({"observe": permitted, "crowd_listeners": most, "reason": reason}) + "\n"


def error(fault: ProtocolError) -> str:
    """The answer to a bad order."""
    return _dumps(
        {
            "type": "error",
            "code": fault.code,
            "message": fault.message,
            "expected": fault.expected,
        }
    )


def stats(
    picture: EnginePicture, utterance: int | None, sessions: int, crowd: Mapping[str, Any]
) -> str:
    """One picture for a viewer whose own utterance is ``utterance``."""
    engine = picture.stats
    belief = None if utterance is None else picture.beliefs.get(utterance)
    return _dumps(
        {
            "type": "stats",
            "time": _ms(engine.at),
            "lanes": {lane.value: _lane(picture, lane) for lane in Lane},
            "utterances": engine.live,
            "utilisation": round(engine.utilisation, 3),
            "promoted": engine.promoted,
            "sessions": sessions,
            "own": None if belief is None else _belief(belief, utterance),
            "crowd": crowd,
        }
    )


def _lane(picture: EnginePicture, lane: Lane) -> dict[str, Any]:
    counted, running = picture.stats.lanes[lane], picture.running.get(lane, ())
    slack = picture.slack.get(lane)
    return {
        "running": [list(batch[:SHOWN]) for batch in running[:SHOWN]],
        "workers": counted.workers,
        "batches": counted.running,
        "waiting": counted.waiting,
        "busy": _ms(counted.busy_seconds),
        "dispatches": counted.dispatches,
        "items": counted.items,
        "sojourn": _ms(counted.sojourn_p95),
        "slack": None if slack is None else _ms(slack),
    }


def _belief(belief: Belief, utterance: int | None) -> dict[str, Any]:
    return {
        "utterance": utterance,
        "depth": _ms(belief.depth),
        "runway": _ms(belief.runway),
        "lead": _ms(belief.lead),
        "margin": _ms(belief.margin),
        "frozen": belief.frozen,
        "estimated": belief.estimated,
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _dumps(message: Mapping[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"), allow_nan=False)
