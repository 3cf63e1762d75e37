"""Rows of `playhead top`."""

import json
import math

import pytest
from playhead.engine.picture import Belief
from playhead.gateway.roster import Listener, roster
from playhead.gateway.top_rows import least_slack, parse


def belief(runway: float, *, frozen: bool = False, estimated: bool = False) -> Belief:
    return Belief(runway / 2, runway, 2.0, 0.1, frozen, estimated)


def test_what_a_server_tells_is_read() -> None:
    listeners = [
        Listener("starving-one", "twilio", "mulaw", 8000, 1, "urgent", 2, 0.25),
        Listener("steady-one", "playhead", "opus", 48_000, 2, "background"),
        Listener("paused-one", "playhead", "opus", 48_000, 3, "background"),
        Listener("idle-one", "http"),
    ]
    beliefs = {1: belief(0.05), 2: belief(1.5, estimated=True), 3: belief(1.0, frozen=True)}
    rows = parse("here:8080", roster(listeners, beliefs))
    starving, steady, *rest = rows
    assert (starving.session, starving.dialect, starving.codec) == ("starving", "twilio", "mulaw 8")
    assert (starving.slack, starving.depth, starving.lead) == (0.05, 0.025, 2.0)
    assert (starving.lane, starving.stalls, starving.worst) == ("urgent", 2, 0.25)
    assert (starving.urgent, starving.state) == (True, "speaking")
    assert (steady.urgent, steady.state, steady.server) == (
        False,
        "speaking (estimated)",
        "here:8080",
    )
    idle, paused = sorted(rest, key=lambda row: row.state, reverse=True)
    assert (paused.state, paused.slack) == ("held", math.inf)
    assert (idle.state, idle.codec, idle.urgent) == ("idle", "", False)
    assert math.isnan(idle.depth)


def test_servers_are_put_together() -> None:
    first = parse("a", roster([Listener("aa", "playhead", utterance=1)], {1: belief(0.5)}))
    second = parse(
        "b",
        roster(
            [Listener("bb", "playhead", utterance=1), Listener("cc", "playhead")], {1: belief(0.1)}
        ),
    )
    assert [row.session for row in least_slack([*first, *second], 9)] == ["bb", "aa", "cc"]
    assert [row.server for row in least_slack([*first, *second], 1)] == ["b"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"rows": [{}]}', '{"rows": 7}', json.dumps(7)])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse("a", text)
