"""`playhead top`: figures from two looks, and what is drawn of them."""

import asyncio
import math
import socket
import sys

import pytest
from harness import gateway
from playhead.engine.picture import Belief
from playhead.gateway import cli
from playhead.gateway.roster import Listener, roster
from playhead.gateway.top import Screen, address, number, sessions_table
from playhead.gateway.top_figures import Look, figures, look
from playhead.gateway.top_rows import parse
from rich.text import Text

BEFORE = """# TYPE playhead_ttfa_seconds histogram
playhead_ttfa_seconds_bucket{le="0.1"} 5
playhead_ttfa_seconds_bucket{le="0.5"} 5
playhead_ttfa_seconds_bucket{le="+Inf"} 5
playhead_ttfa_seconds_count 5
playhead_ttfa_seconds_sum 1
# TYPE playhead_stalls counter
playhead_stalls_total{cause="engine"} 2
# TYPE playhead_utterances counter
playhead_utterances_total{outcome="done"} 4
# TYPE playhead_lane_busy_seconds counter
playhead_lane_busy_seconds_total{lane="urgent"} 1
"""
AFTER = """# TYPE playhead_ttfa_seconds histogram
playhead_ttfa_seconds_bucket{le="0.1"} 13
playhead_ttfa_seconds_bucket{le="0.5"} 14
playhead_ttfa_seconds_bucket{le="+Inf"} 15
playhead_ttfa_seconds_count 15
playhead_ttfa_seconds_sum 9
# TYPE playhead_stalls counter
playhead_stalls_total{cause="engine"} 5
# TYPE playhead_utterances counter
playhead_utterances_total{outcome="done"} 8
# TYPE playhead_lane_busy_seconds counter
playhead_lane_busy_seconds_total{lane="urgent"} 2
# TYPE playhead_lane_batch histogram
playhead_lane_batch_bucket{lane="urgent",le="+Inf"} 4
playhead_lane_batch_count{lane="urgent"} 4
playhead_lane_batch_sum{lane="urgent"} 10
# TYPE playhead_lane_running gauge
playhead_lane_running{lane="lm"} 1
playhead_lane_running{lane="urgent"} 0
playhead_lane_running{lane="background"} 0
# TYPE playhead_engine_utterances gauge
playhead_engine_utterances 2
# TYPE playhead_sessions gauge
playhead_sessions 3
"""


def test_a_gateway_whose_mate_tells_of_their_engine_has_no_lanes() -> None:
    found = figures(look(BEFORE, 10.0), look("playhead_sessions 3\n", 12.0))
    assert (found.sessions, found.lanes) == (3, ())
    assert number(found.utterances) == number(found.parked) == number(found.held) == "-"


def test_figures_are_those_between_two_looks() -> None:
    found = figures(look(BEFORE, 10.0), look(AFTER, 12.0))
    assert found.sessions == 3
    assert found.started == 2.0
    assert (found.ttfa_p50, found.ttfa_p95) == (0.1, math.inf)
    assert found.stalls == {"engine": 3.0}
    assert found.stalls_total == {"engine": 5.0}
    assert found.utterances == 2
    urgent = found.lanes[1]
    assert (urgent.name, urgent.busy, urgent.batch) == ("urgent", 0.5, 2.5)
    assert math.isnan(found.lanes[0].batch)
    assert math.isnan(found.depth_p50)


def test_a_restarted_server_has_done_nothing_backwards() -> None:
    found = figures(look(AFTER, 10.0), look(BEFORE, 10.0))
    assert found.stalls == {"engine": 0.0}
    assert found.started == 0.0


def test_samples_that_are_not_there_are_nothing() -> None:
    assert Look(0.0).get("playhead_sessions") == 0.0
    assert Look(0.0).by("playhead_stalls_total", "cause") == {}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/metrics"),
        ("ws://h:1/v1/session", "http://h:1/metrics"),
        ("https://voice.example/", "https://voice.example/metrics"),
    ],
)
def test_any_address_of_a_server_will_do(given: str, url: str) -> None:
    assert address(given, "/metrics") == url


def test_numbers() -> None:
    assert number(0.25, " ms", 1000) == "250 ms"
    assert number(math.nan) == "-"
    assert number(math.inf) == "> all"


def test_a_running_server_is_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "220")

    async def main() -> int:
        async with gateway() as running:
            client = await running.greeted()
            await client.say("one two three")
            running.server.metrics.refused("overloaded")
            return await asyncio.to_thread(
                cli.main, ["top", "--once", f"127.0.0.1:{running.port}", "127.0.0.1:1"], {}
            )

    assert asyncio.run(main()) == 0
    out = capsys.readouterr().out
    for word in (
        "Servers",
        "Lanes",
        "urgent",
        "stalls: engine",
        "does not",
        "Sessions",
        "pcm_s16le",
    ):
        assert word in out


def test_a_server_that_shows_no_sessions_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "220")

    async def main(*flags: str) -> int:
        async with gateway(demo="off") as running:
            server = f"127.0.0.1:{running.port}"
            return await asyncio.to_thread(cli.main, ["top", "--once", server, *flags], {})

    assert asyncio.run(main()) == 0
    assert "shows no sessions: HTTP Error 403" in capsys.readouterr().out
    assert asyncio.run(main("--sessions", "0")) == 0
    assert "Sessions" not in capsys.readouterr().out
    assert asyncio.run(main("--sessions", "-1")) == 2
    assert "--sessions must be from 0" in capsys.readouterr().err


def test_sessions_that_run_dry_are_marked() -> None:
    listeners = [
        Listener("dry", "playhead", "opus", 48_000, 1, "urgent", 3, 0.5),
        Listener("close", "playhead", "opus", 48_000, 2, "background"),
        Listener("well", "playhead", "opus", 48_000, 3, "background"),
    ]
    beliefs = {
        number: Belief(runway, runway, 2.0, 0.1, False, False)
        for number, runway in ((1, 0.0), (2, 0.05), (3, 1.0))
    }
    table = sessions_table(parse("here", roster(listeners, beliefs)), [])
    (slack,) = [column for column in table.columns if column.header == "slack"]
    cells = [cell for cell in slack.cells if isinstance(cell, Text)]
    assert [(cell.plain, str(cell.style)) for cell in cells] == [
        ("0.00 s", "bold red"),
        ("0.05 s", "yellow"),
        ("1.00 s", ""),
    ]


def test_a_server_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert cli.main(["top", f"127.0.0.1:{port}"], {}) == 1
    assert "does not answer: [Errno 111] Connection refused" in capsys.readouterr().err
    assert cli.main(["top", "--interval", "0"], {}) == 2
    assert isinstance(Screen(["127.0.0.1:1"]).look()["127.0.0.1:1"], str)


def test_without_the_package_that_draws(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "playhead.gateway.top")
    monkeypatch.delattr("playhead.gateway.top")
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert cli.main(["top"], {}) == 2
    assert "pip install 'playhead[top]'" in capsys.readouterr().err
