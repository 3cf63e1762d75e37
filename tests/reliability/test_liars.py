"""Quick form of bench/reliability/liars.py: what a client gains by lying, among honest ones."""

import pytest
from conducts import CONDUCTS, PLENTY
from market import Market, Result

NEIGHBOURS, SETTLED, SECONDS = 4, 6.0, 12.0


def play(conduct: str, supply: float) -> Result:
    return Market(CONDUCTS[conduct], supply=supply, neighbours=NEIGHBOURS).run(SECONDS, SETTLED)


@pytest.fixture(scope="module", params=[0.8, 1.2])
def honest(request: pytest.FixtureRequest) -> tuple[float, Result]:
    return request.param, play("honest", request.param)


@pytest.mark.parametrize("conduct", [name for name in CONDUCTS if name != "honest"])
def test_no_lie_pays_and_none_hurts(honest: tuple[float, Result], conduct: str) -> None:
    supply, truth = honest
    lied = play(conduct, supply)
    if supply < 1.0 or conduct not in PLENTY:
        # Ten sessions may hear ten times as much, and a returning one has its lead anew, while
        # there is enough for all.
        allowed = 1.02 + 0.3 / SECONDS  # the head start of the floor, once
        # Where all get what they play, a short window begins and ends anywhere between two chunks.
        fair = max(truth.service.values()) if supply > 1.0 else truth.service["liar"]
        assert lied.service["liar"] <= allowed * fair
    worst, before = max(lied.others(lied.starved)), max(truth.others(truth.starved))
    assert worst <= before + 0.03 * (SETTLED + SECONDS)  # a chunk more or less


@pytest.mark.parametrize("conduct", ["reconnects", "reconnects fast"])
def test_work_that_is_thrown_away_counts_as_served(conduct: str) -> None:
    """Who leaves in the middle, again and again, has no more of the lanes' time than who stays."""
    worked = Market(CONDUCTS[conduct], supply=0.8, neighbours=NEIGHBOURS).run(30.0, SETTLED).worked
    liar = worked.pop("liar")
    assert liar <= 1.02 * sum(worked.values()) / len(worked)


def test_honest_listeners_get_the_same() -> None:
    shares = play("honest", 0.8).service.values()
    assert max(shares) <= 1.05 * min(shares)
