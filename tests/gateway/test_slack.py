"""What the tightest resource has left."""

from dataclasses import replace

import pytest
from fake_engine import FakeEngine
from playhead.engine.stats import EngineStats, LaneStats
from playhead.engine.types import PLACE_KEPT, Lane
from playhead.gateway.slack import Smoothed, shares, slack


def stats(live: int = 0, utilisation: float = 0.0, urgent: float = 0.0) -> EngineStats:
    lanes = {lane: LaneStats(0, 0, 0.0, 0, 0, urgent) for lane in Lane}
    engine = FakeEngine(lambda events: None).stats()
    return replace(engine, live=live, held=0, max_live=64, utilisation=utilisation, lanes=lanes)


def test_an_idle_process_is_all_slack() -> None:
    assert slack(shares(stats(urgent=9.0), 0, 100, 0.0, 50.0)) == 1.0


@pytest.mark.parametrize(
    ("found", "connections", "lag", "left"),
    [
        (stats(live=15), 0, 0.0, 0.75),
        (stats(live=1, utilisation=0.2), 0, 0.0, 0.6),
        (stats(live=2, utilisation=0.6), 0, 0.0, 0.1),
        (replace(stats(live=2, utilisation=0.6), held=2), 0, 0.0, 0.4),
        (stats(live=1, urgent=0.4), 0, 0.0, 0.2),
        (stats(live=1), 70, 0.0, 0.3),
        (stats(live=1), 0, 0.02, 0.6),
        (stats(live=1, urgent=5.0), 0, 0.0, 0.0),
    ],
)
def test_the_tightest_resource_decides(
    found: EngineStats, connections: int, lag: float, left: float
) -> None:
    assert slack(shares(found, connections, 100, lag, 50.0)) == pytest.approx(left)


def test_an_accelerator_counts_its_slots_only() -> None:
    found = replace(stats(live=15, utilisation=40.0), max_utilisation=float("inf"))
    assert slack(shares(found, 0, 100, 0.0, 50.0)) == 0.75


def test_lag_is_averaged() -> None:
    lag = Smoothed()
    for _ in range(100):
        lag.add(0.05)
    assert lag.value == pytest.approx(0.05, rel=0.01)
    lag.add(0.0)
    assert lag.value == pytest.approx(0.045, rel=0.01)


def test_a_place_that_a_newcomer_can_have_is_no_load() -> None:
    away = tuple(back - PLACE_KEPT for back in (40.0, 45.0, 59.0))
    found = replace(stats(live=16), held=16, away=away)
    assert slack(shares(found, 0, 100, 0.0, 39.9)) == pytest.approx(1 - 17 / 64)
    assert slack(shares(found, 0, 100, 0.0, 50.0)) == pytest.approx(1 - 15 / 64)
