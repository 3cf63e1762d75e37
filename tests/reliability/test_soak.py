"""Quick form of bench/reliability/soak.py: two virtual minutes, a fault every second."""

import logging
from collections import Counter

import pytest
from soak import ENGINE_FAULTS, Town
from virtual import run_virtually


def live(seed: int, seconds: float) -> tuple[str, Counter[str], Counter[str]]:
    async def main() -> tuple[str, Counter[str], Counter[str]]:
        town = Town(seed, rate=1.0)
        digest = await town.run(seconds, hour=60.0)
        return digest, town.counts, town.runner.struck

    return run_virtually(main())


@pytest.fixture(autouse=True)
def _silence() -> object:
    """The faults are many, and each of them is logged."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_every_promise_is_kept_whatever_breaks() -> None:
    _, counts, struck = live(1, 120.0)
    assert set(struck) == set(ENGINE_FAULTS)
    assert min(counts[kind] for kind in ("Done", "Failed", "Cancelled", "resumed")) > 3


def test_a_seed_can_be_played_again() -> None:
    assert live(2, 20.0)[0] == live(2, 20.0)[0] != live(3, 20.0)[0]
