"""How many accelerators a crowd of listeners needs: a day of a fleet, simulated. Pure, by seed.

One accelerator is what it was measured to carry (served.py). The day has a quiet and a busy hour,
sudden surges, nodes that fail and take what they were speaking with them, and rollouts that drain
node after node. What is not modelled is named in docs/benchmarks.md.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

DAY = 86_400
STEP = 10
"""Seconds in which demand and fleet are taken as constant."""
_AROUND = 2 * 3600.0
"""Standard deviation of a surge's time of day: a crowd surges while it is awake."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The crowd. Times in seconds."""

    listeners: float  # in conversation in the busiest hour
    every: float = 20.0  # from one utterance of a listener to its next
    speech: float = 5.7  # length of an utterance
    quiet: float = 0.25  # demand of the quietest hour, as a share of the busiest
    busiest: float = 20 * 3600.0  # time of day
    surges: int = 2  # a day, around the busiest hour
    surge: float = 0.2  # share that one adds
    surge_length: float = 600.0

    @property
    def peak(self) -> float:
        """Utterances a second in the busiest hour, without a surge."""
        return self.listeners / self.every

    def rate(self, at: float) -> float:
        """Expected utterances a second at ``at`` seconds of the day, without surges."""
        swing = 0.5 * (1 + math.cos(2 * math.pi * (at - self.busiest) / DAY))
        return self.peak * (self.quiet + (1 - self.quiet) * swing)


@dataclass(frozen=True, slots=True)
class Nodes:
    """The machines and how they are run. Times in seconds."""

    carries: float  # utterances a second of one accelerator within the objective
    accelerators: int = 8  # of one node
    between_failures: float = 30 * DAY  # of one node, mean
    repair: float = 3600.0  # until a failed node serves again
    start: float = 95.0  # of the server, measured
    rollouts: int = 1  # a day
    rollout_share: float = 0.02  # of the nodes, drained at a time
    drain: float = 30.0  # that speech may go on

    @property
    def node_carries(self) -> float:
        """Utterances a second of a whole node."""
        return self.carries * self.accelerators


Wanted = Callable[[float], int]
"""Nodes that are to run at a time of day."""


@dataclass(slots=True)
class Day:
    """What happened. Counts of utterances; ``worst`` is the worst step's refused share."""

    asked: float = 0.0
    refused: float = 0.0
    respoken: float = 0.0  # of those asked: cut off by a failing node, and asked for again
    worst: float = 0.0
    failures: int = 0
    accelerator_hours: float = 0.0
    fewest: int = 0  # nodes that took work, at the worst moment

    @property
    def refused_share(self) -> float:
        """Of all that was asked."""
        return self.refused / self.asked if self.asked else 0.0


class FleetDay:
    """Simulates one day. ``wanted`` nodes run, less those that are down."""

    def __init__(self, demand: Demand, nodes: Nodes, wanted: Wanted, seed: int) -> None:
        self._demand = demand
        self._nodes = nodes
        self._wanted = wanted
        self._rng = np.random.default_rng(seed)
        self._back: list[float] = []  # when nodes that are down serve again
        self._surges = self._rng.normal(demand.busiest, _AROUND, demand.surges)
        self._rollouts = [self._rollout(begin) for begin in self._rollout_times()]
        self.day = Day(fewest=wanted(0.0))

    def run(self) -> Day:
        """The whole day, in steps of ``STEP`` seconds."""
        for at in range(0, DAY, STEP):
            self._step(float(at))
        return self.day

    def _step(self, at: float) -> None:
        day, nodes = self.day, self._nodes
        while self._back and self._back[0] <= at:
            heapq.heappop(self._back)
        wanted = self._wanted(at)
        up = max(0, wanted - len(self._back))
        expected = self._demand.rate(at) * self._surge(at)
        lost = self._fail(up, at)
        serving = max(0, up - lost - self._draining(at, wanted))
        respoken = lost * min(nodes.node_carries, expected / max(1, up)) * self._demand.speech
        asked = float(self._rng.poisson(expected * STEP)) + respoken
        refused = max(0.0, asked - serving * nodes.node_carries * STEP)
        day.asked += asked
        day.refused += refused
        day.respoken += respoken
        day.worst = max(day.worst, refused / asked if asked else 0.0)
        day.fewest = min(day.fewest, serving)
        day.accelerator_hours += wanted * nodes.accelerators * STEP / 3600

    def _fail(self, up: int, at: float) -> int:
        lost = min(up, int(self._rng.poisson(up * STEP / self._nodes.between_failures)))
        for _ in range(lost):
            heapq.heappush(self._back, at + self._nodes.repair + self._nodes.start)
        self.day.failures += lost
        return lost

    def _surge(self, at: float) -> float:
        on = sum(0 <= at - begin < self._demand.surge_length for begin in self._surges)
        return 1.0 + self._demand.surge * float(on)

    def _draining(self, at: float, wanted: int) -> int:
        """Nodes that take nothing new because a rollout is at them."""
        if not any(begin <= at < end for begin, end in self._rollouts):
            return 0
        return math.ceil(wanted * self._nodes.rollout_share)

    def _rollout_times(self) -> list[float]:
        return [float(at) for at in self._rng.uniform(0, DAY, self._nodes.rollouts)]

    def _rollout(self, begin: float) -> tuple[float, float]:
        batches = math.ceil(1 / self._nodes.rollout_share)
        return begin, begin + batches * (self._nodes.drain + self._nodes.start)


@dataclass(frozen=True, slots=True)
class Answer:
    """``bare``: nodes that the busiest hour needs if nothing ever happens; ``nodes``: those with
    which the refused share of every simulated day stays within the bound."""

    bare: int
    nodes: int
    days: tuple[Day, ...]  # with all nodes on all day
    scaled: tuple[Day, ...]  # with as many on as the hour needs

    @property
    def spare(self) -> int:
        """Nodes for failures, drains and surges."""
        return self.nodes - self.bare


def size(demand: Demand, nodes: Nodes, *, refused: float = 1e-4, seeds: int = 3) -> Answer:
    """Bisects the number of nodes. ``refused``: largest share of utterances that may be refused
    on any of the ``seeds`` days."""
    bare = math.ceil(demand.peak / nodes.node_carries)

    def days(wanted: Wanted) -> tuple[Day, ...]:
        return tuple(FleetDay(demand, nodes, wanted, seed).run() for seed in range(seeds))

    def enough(count: int) -> bool:
        return all(day.refused_share <= refused for day in days(lambda _: count))

    low, high = bare - 1, bare
    while not enough(high):
        low, high = high, high + max(1, high // 8)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    spare = high - bare

    def scaled(at: float) -> int:
        # What will be needed when a node that is started now serves.
        ahead = max(demand.rate(at), demand.rate(at + nodes.start))
        surge = 1 + demand.surge * bool(demand.surges)
        need = math.ceil(ahead * surge / nodes.node_carries)
        # One may be drained and one may fail also at night.
        room = max(spare, 1 + math.ceil(nodes.rollout_share * need))
        return min(high, need + room)

    return Answer(bare, high, days(lambda _: high), days(scaled))
