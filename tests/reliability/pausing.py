"""A machine that stands still now and then, in the simulator: it takes no turn, and so nothing that
its lanes have made, while listeners play."""

import random
from collections.abc import Iterable

from playhead.engine import survey
from playhead.engine.costs import CostTable
from playhead.engine.policy import PolicyConfig
from playhead.engine.sim_listener import Mix
from playhead.engine.sim_outcome import Outcome
from playhead.engine.simulator import Scenario, Simulator

STEADY = Mix(blocked=0.0, pauses=0.0, shaky=0.0)


class Pausing(Simulator):
    """``pauses``: when each begins and how long it lasts, seconds."""

    def __init__(self, scenario: Scenario, pauses: Iterable[tuple[float, float]]) -> None:
        super().__init__(scenario)
        self._pauses = list(pauses)

    def _over(self, now: float) -> float | None:
        """When the pause of ``now`` is over."""
        ends = (begin + length for begin, length in self._pauses if begin <= now < begin + length)
        return next(ends, None)

    def _turn(self, now: float) -> None:
        if (over := self._over(now)) is None:
            super()._turn(now)
        else:
            self._at(over, self._turn)


def drawn(seconds: float, a_minute: float, seed: int) -> list[tuple[float, float]]:
    """Pauses of 0.2 to 0.8 s, so many a minute on average."""
    rng = random.Random(seed)
    found, now = [], rng.expovariate(a_minute / 60.0)
    while now < seconds:
        found.append((now, rng.uniform(0.2, 0.8)))
        now += 0.8 + rng.expovariate(a_minute / 60.0)
    return found


def play(table: CostTable, rate: float, seconds: float, a_minute: float, seed: int = 1) -> Outcome:
    """Steady networks, a machine that pauses, leads that are learned."""
    policy = PolicyConfig(max_live=10_000, max_utilisation=float("inf"))
    scenario = Scenario(
        table, policy, STEADY, rate, warmup=20.0, window=seconds, per_client=30, seed=seed
    )
    return Pausing(scenario, drawn(20.0 + seconds, a_minute, seed)).run()


def without_floor(
    table: CostTable, rate: float, seconds: float, a_minute: float, seed: int = 1
) -> Outcome:
    """The same where leads are what listeners' networks need, and no more."""
    kept, survey.PAUSES_AGAIN = survey.PAUSES_AGAIN, 0.0
    try:
        return play(table, rate, seconds, a_minute, seed)
    finally:
        survey.PAUSES_AGAIN = kept
