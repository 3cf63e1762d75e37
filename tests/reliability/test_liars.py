"""Quick form of bench/reliability/liars.py: what a client gains by lying, among honest ones."""

import pytest
from market import CONDUCTS, Market, Result

NEIGHBOURS, SECONDS = 5, 20.0


def play(conduct: str, supply: float) -> Result:
    return Market(CONDUCTS[conduct], supply=supply, neighbours=NEIGHBOURS).run(SECONDS)


@pytest.fixture(scope="module", params=[0.8, 1.2])
def honest(request: pytest.FixtureRequest) -> tuple[float, Result]:
    return request.param, play("honest", request.param)


@pytest.mark.parametrize("conduct", [name for name in CONDUCTS if name != "honest"])
def test_no_lie_pays_and_none_hurts(honest: tuple[float, Result], conduct: str) -> None:
    supply, truth = honest
    lied = play(conduct, supply)
    if supply < 1.0 or conduct not in ("ten sessions", "reconnects", "reconnects, empty"):
        # Ten sessions may hear ten times as much, and a returning one has its lead anew, while
        # there is enough for all.
        assert lied.service["liar"] <= 1.02 * truth.service["liar"]
    worst, before = max(lied.others(lied.starved)), max(truth.others(truth.starved))
    assert worst <= before + 0.01 * SECONDS


def test_honest_listeners_get_the_same() -> None:
    shares = play("honest", 0.8).service.values()
    assert max(shares) <= 1.05 * min(shares)
