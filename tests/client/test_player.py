"""The player model: queueing, holding, reports; scripted cases and properties."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playhead.client.player import Player
from playhead.client.track import Counters, PlayerConfig
from playhead.engine.types import ListenerState

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "player.json").read_text())["cases"]


def apply(player: Player, step: dict[str, Any]) -> None:
    now = step["t"]
    match step["do"]:
        case "begin":
            player.begin(step["epoch"], now)
        case "audio":
            player.add(step["epoch"], step["samples"], step["final"], now)
        case "clear":
            player.clear(now, step.get("epoch", 0))
        case "look":
            player.advance(now)
        case "pause":
            player.pause(now)
        case "resume":
            player.resume(now)
        case "suspend":
            player.suspend(now)
        case "wake":
            player.wake(now)
        case other:
            raise ValueError(other)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vectors(case: dict[str, Any]) -> None:
    player = Player(PlayerConfig(**case["player"]))
    for step in case["steps"]:
        apply(player, step)
        expected = step.get("expect")
        if expected is not None:
            counters = player.counters(expected["epoch"], step["t"])
            assert counters is not None
            for name, value in expected.items():
                got = {**_fields(counters)}[name]
                assert got == pytest.approx(value, abs=1e-9), (step, name)
        if "reports" in step:
            due = [[c.epoch, str(c.state)] for c in player.reports(step["t"])]
            assert due == step["reports"], step


def _fields(counters: Counters) -> dict[str, Any]:
    return {name: getattr(counters, name) for name in Counters.__dataclass_fields__}


def test_wakes_itself_exactly_at_each_change_and_report() -> None:
    """Following next_report alone, one sees every change at its very moment, and then rest."""
    player = Player(PlayerConfig(start_threshold=0.0, output_latency=0.1))
    player.add(1, 7200, False, 10.0)
    seen = []
    now: float | None = 10.0
    while now is not None:
        seen += [(now, c.state, c.consumed) for c in player.reports(now)]
        if len(seen) == 3:
            player.add(1, 2400, True, now)
        now = player.next_report(now)
        assert len(seen) < 20
    assert [(round(at, 9), str(state), consumed) for at, state, consumed in seen] == [
        (10.0, "playing", 0),
        (10.25, "playing", 6000),
        (10.3, "stalled", 7200),
        (10.3, "playing", 7200),
        (10.4, "drained", 9600),
        (10.5, "drained", 9600),
    ]


def test_next_change_is_the_moment_the_buffer_runs_dry() -> None:
    player = Player(PlayerConfig(start_threshold=0.1))
    player.add(1, 1200, False, 0.0)
    assert player.next_change(0.0) is None
    player.add(1, 1200, False, 1.0)
    assert player.next_change(1.05) == pytest.approx(1.1)
    player.pause(1.05)
    assert player.next_change(1.05) is None


def test_reports_name_the_waiting_utterance_only_when_it_changes() -> None:
    player = Player(PlayerConfig(start_threshold=0.0))
    player.add(1, 240000, True, 0.0)
    player.add(2, 2400, True, 0.0)
    assert [c.epoch for c in player.reports(0.0)] == [1, 2]
    assert [c.epoch for c in player.reports(0.25)] == [1]
    assert player.next_report(0.25) == pytest.approx(0.5)


def test_every_state_is_due_again_when_reports_may_be_lost() -> None:
    player = Player(PlayerConfig(start_threshold=0.0))
    player.add(1, 240000, True, 0.0)
    player.add(2, 2400, True, 0.0)
    player.reports(0.0)
    assert player.reports(0.1) == []
    player.report_again()
    assert [c.epoch for c in player.reports(0.1)] == [1, 2]


def test_a_device_that_tells_when_it_starts_is_believed_whatever_is_buffered() -> None:
    player = Player(PlayerConfig(sample_rate=1_000, start_threshold=86_400.0))
    player.begin(1, 0.0)
    player.add(1, 500, False, 0.2)
    player.add(2, 500, False, 0.2)
    assert player.counters(1, 5.0) == player.counters(1, 9.0)
    player.start(10.0)
    counters = player.counters(1, 10.1)
    assert counters is not None
    assert (counters.heard, counters.state) == (100, ListenerState.PLAYING)
    player.add(1, 100, True, 10.2)
    after = player.counters(2, 10.7)  # the first has ended at 10.6
    assert after is not None
    assert (after.heard, after.state) == (100, ListenerState.PLAYING)


def test_a_device_that_is_playing_takes_what_comes() -> None:
    player = Player(PlayerConfig(sample_rate=1_000, start_threshold=86_400.0))
    player.begin(1, 0.0)
    player.start(0.1)
    player.add(1, 500, False, 0.2)
    counters = player.counters(1, 0.3)
    assert counters is not None
    assert (counters.heard, counters.state) == (100, ListenerState.PLAYING)


def test_a_device_that_has_stopped_is_waited_for_again() -> None:
    player = Player(PlayerConfig(sample_rate=1_000, start_threshold=86_400.0))
    player.add(1, 100, True, 0.0)
    player.start(0.0)
    player.stop(0.2)
    player.add(2, 100, False, 0.3)
    waiting = player.counters(2, 9.0)
    assert waiting is not None
    assert (waiting.heard, waiting.state) == (0, ListenerState.PREBUFFER)


def test_a_start_after_the_end_changes_nothing() -> None:
    player = Player(PlayerConfig(sample_rate=1_000))
    player.start(0.0)
    player.add(1, 100, True, 0.0)
    player.start(5.0)
    counters = player.counters(1, 5.0)
    assert counters is not None
    assert counters.state is ListenerState.DRAINED


def test_nothing_to_report_without_audio() -> None:
    player = Player()
    assert player.next_report(0.0) is None
    player.begin(1, 0.0)
    assert player.next_report(5.0) is None
    assert player.reports(5.0) == []


def test_forgets_utterances_long_over() -> None:
    player = Player(PlayerConfig(start_threshold=0.0))
    for epoch in range(1, 21):
        player.add(epoch, 240, True, float(epoch))
        player.reports(float(epoch))
    assert player.counters(1, 21.0) is None
    last = player.counters(20, 21.0)
    assert last is not None
    assert last.state is ListenerState.DRAINED


def test_repeated_begin_changes_nothing() -> None:
    player = Player(PlayerConfig(start_threshold=0.0))
    player.add(3, 480, False, 0.0)
    player.begin(3, 0.01)
    player.begin(2, 0.01)
    assert player.counters(2, 0.01) is None
    counters = player.counters(3, 0.01)
    assert counters is not None
    assert counters.consumed == 240


def test_a_clear_of_later_utterances_does_not_shorten_the_wait_for_the_first() -> None:
    """Found in review: the turn was taken from the last cleared track, not from the latest end."""
    player = Player(PlayerConfig(start_threshold=0.0))
    player.add(1, 24000, True, 0.0)
    player.add(2, 2400, True, 0.1)
    player.clear(0.2, 2)
    player.add(3, 2400, True, 0.3)
    counters = player.counters(3, 1.05)
    assert counters is not None
    assert counters.consumed == 1200


steps = st.lists(
    st.tuples(
        st.floats(0.0, 0.4),
        st.one_of(
            st.tuples(st.just("audio"), st.integers(1, 4), st.integers(0, 5000), st.booleans()),
            st.tuples(st.just("clear"), st.integers(0, 4)),
            st.sampled_from([(n,) for n in ("pause", "resume", "suspend", "wake", "look")]),
            st.tuples(st.just("begin"), st.integers(1, 4)),
        ),
    ),
    max_size=40,
)

configs = st.builds(
    PlayerConfig,
    sample_rate=st.sampled_from([8000, 16000, 24000, 48000]),
    start_threshold=st.sampled_from([0.0, 0.05, 0.1, 2.0]),
    playback_rate=st.sampled_from([0.5, 0.9, 1.0, 1.1, 2.0]),
    output_latency=st.sampled_from([0.0, 0.02, 0.3]),
)


def as_step(now: float, action: tuple[Any, ...]) -> dict[str, Any]:
    names = {"audio": ("epoch", "samples", "final"), "clear": ("epoch",), "begin": ("epoch",)}
    return {
        "t": now,
        "do": action[0],
        **dict(zip(names.get(action[0], ()), action[1:], strict=True)),
    }


@settings(deadline=None, max_examples=150)
@given(configs, steps)
def test_counters_stay_consistent(config: PlayerConfig, script: list[tuple[float, Any]]) -> None:
    """The balance is exact, counters only grow, nothing plays faster than the rate allows, and
    two utterances are never audible at once."""
    player, now = Player(config), 100.0
    before: dict[int, Counters] = {}
    for wait, action in script:
        now += wait
        apply(player, as_step(now, action))
        after = {e: c for e in range(1, 5) if (c := player.counters(e, now)) is not None}
        for epoch, c in after.items():
            assert c.received == c.consumed + c.discarded + c.buffered
            assert 0 <= c.heard <= c.consumed
            assert c.buffered >= 0
            assert c.starved >= 0.0
            old = before.get(epoch)
            if old is not None:
                assert c.received >= old.received
                assert c.consumed >= old.consumed
                assert c.heard >= old.heard
                assert c.discarded >= old.discarded
                assert c.underruns >= old.underruns
                assert c.starved >= old.starved - 1e-9
        played = sum(c.consumed for c in after.values())
        played -= sum(c.consumed for c in before.values())
        assert played <= math.ceil(wait * config.speed) + len(after)
        playing = [c for c in after.values() if c.state is ListenerState.PLAYING]
        assert len(playing) <= 1
        before = after


@settings(deadline=None, max_examples=100)
@given(configs, steps)
def test_watching_does_not_change_playback(
    config: PlayerConfig, script: list[tuple[float, Any]]
) -> None:
    """Advancing at arbitrary times in between leaves the same counters."""
    sparse, dense, now = Player(config), Player(config), 100.0
    for wait, action in script:
        for part in range(1, 4):
            at = now + wait * part / 4
            dense.advance(at)
            dense.reports(at)
            dense.next_report(at)
        now += wait
        apply(sparse, as_step(now, action))
        apply(dense, as_step(now, action))
    for epoch in range(1, 5):
        one, two = sparse.counters(epoch, now), dense.counters(epoch, now)
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            assert _fields(one) | {"starved": 0} == _fields(two) | {"starved": 0}
            assert one.starved == pytest.approx(two.starved, abs=1e-6)
