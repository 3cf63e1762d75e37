"""Rows of sessions, those that run dry first on top."""

import json
import math

from playhead.engine.picture import Belief
from playhead.gateway.roster import MOST_ROWS, Listener, roster, slack


def belief(runway: float, *, frozen: bool = False, lead: float = 2.0) -> Belief:
    return Belief(
        depth=runway / 2, runway=runway, lead=lead, margin=0.1, frozen=frozen, estimated=False
    )


def test_slack_is_what_is_sent_and_not_yet_played() -> None:
    assert slack(belief(1.5)) == 1.5
    assert slack(belief(1.5, frozen=True)) == math.inf
    assert slack(None) == math.inf


def test_the_least_slack_comes_first() -> None:
    listeners = [
        Listener("idle" * 6, "playhead"),
        Listener("paused" * 4, "twilio", "mulaw", 8000, 3, "background", 0, 0.0),
        Listener("steady" * 4, "playhead", "opus", 48_000, 2, "background", 0, 0.0),
        Listener("starving" * 3, "http", "mp3", 24_000, 1, "urgent", 2, 0.25),
    ]
    beliefs = {1: belief(0.05), 2: belief(1.25), 3: belief(0.4, frozen=True)}
    found = json.loads(roster(listeners, beliefs))
    assert found["sessions"] == 4
    rows = found["rows"]
    assert [row["session"] for row in rows] == ["starving", "steadyst", "idleidle", "pausedpa"]
    assert rows[0] == {
        "session": "starving",
        "dialect": "http",
        "codec": "mp3",
        "sample_rate": 24_000,
        "utterance": 1,
        "lane": "urgent",
        "stalls": 2,
        "worst_stall": 250.0,
        "slack": 50.0,
        "margin": 100.0,
        "depth": 25.0,
        "lead": 2000.0,
        "frozen": False,
        "estimated": False,
    }
    assert "depth" not in rows[2]
    assert (rows[3]["slack"], rows[3]["frozen"]) == (None, True)


def test_what_is_endless_is_not_told() -> None:
    (row,) = json.loads(roster([Listener("a", "b", utterance=1)], {1: belief(1.0, lead=math.inf)}))[
        "rows"
    ]
    assert row["lead"] is None


def test_there_are_only_so_many_rows() -> None:
    found = json.loads(roster([Listener(str(n), "playhead") for n in range(MOST_ROWS + 5)], {}))
    assert found["sessions"] == MOST_ROWS + 5
    assert len(found["rows"]) == MOST_ROWS
