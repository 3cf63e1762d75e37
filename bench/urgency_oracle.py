"""What knowing a listener's network could be worth at most: leads given by an oracle.

    python bench/urgency_oracle.py [--seconds 80] [--rate 3] [--shaky 0.5]

The same arrivals and listeners as ``playhead simulate``, with leads from: open loop (one lead for
all), reports (one lead), reports (learned), an oracle that knows from the first word which networks
stand still (a short lead for the steady, a long one for the others), and one that knows the moment
of every standstill and its length and is far ahead then alone. Compare at equal seconds held (sent
and not yet heard, on average), as bench/urgency_frontier.py does.
"""

import argparse
import random
from dataclasses import replace

from playhead.engine import clients, costs
from playhead.engine.lead import STEADY, LeadLearner, LeadLimits
from playhead.engine.policy import PolicyConfig
from playhead.engine.sim_client import Call
from playhead.engine.sim_listener import Mix
from playhead.engine.sim_outcome import Outcome
from playhead.engine.simulator import Scenario, Simulator
from playhead.engine.types import Report, Urgency

AHEAD = 2.0
"""Seconds before a standstill in which an oracle that knows its moment fills up."""


class Oracle(LeadLearner):
    """A lead that is known, not learned."""

    def __init__(self, sim: "Informed", call: Call) -> None:
        super().__init__(LeadLimits())
        self._sim, self._call = sim, call

    def observe(self, report: Report, late: float, now: float) -> None:
        """It has nothing to learn."""

    @property
    def limit(self) -> float:
        """The lead now."""
        sim, call = self._sim, self._call
        if not sim.moments:
            return sim.bad if call.caller.network.shaky else sim.good
        habits = call.habits
        if habits.cut_at is None:
            return sim.good
        begin = (sim.now if call.first_sent is None else call.first_sent) + habits.cut_at
        due = begin - AHEAD <= sim.now < begin + habits.cut_for
        return sim.good + habits.cut_for if due else sim.good


class Stepped(LeadLearner):
    """The lead of the unknown in full until ``after`` seconds of playing were observed."""

    after = 5.0

    @property
    def limit(self) -> float:
        """The lead now."""
        known = self._observed >= self.after
        return super().limit if self._worst > STEADY else self._limits_of(known)

    def _limits_of(self, known: bool) -> float:
        return self._limits.least if known else self._limits.unknown


class Informed(Simulator):
    """Gives every stream the lead that an oracle would."""

    def __init__(self, scenario: Scenario, good: float, bad: float, moments: bool) -> None:
        super().__init__(scenario)
        self.good, self.bad, self.moments = good, bad, moments
        self.now = 0.0

    def _call(self, rng: random.Random, now: float) -> None:
        self.now = now
        super()._call(rng, now)

    def _turn(self, now: float) -> None:
        self.now = now
        for stream in self._scheduler.streams():
            if not isinstance(stream.learner, Oracle):
                stream.learner = Oracle(self, self._calls[stream.request.utterance])
        super()._turn(now)


def show(name: str, out: Outcome) -> None:
    print(
        f"{name:<36} {out.waste:>6.2f} {out.stalled:>5} of {out.utterances} "
        f"({out.share(out.stalled):.1%}) {out.worst_stall:>6.2f}",
        flush=True,
    )


def stepped(base: Scenario, after: float) -> None:
    """Learners that trust all at once."""
    Stepped.after, clients.LeadLearner = after, Stepped  # type: ignore[misc]
    for least, unknown in ((0.4, 1.2), (0.4, 1.6), (0.6, 1.6)):
        lead = LeadLimits(least=least, unknown=unknown)
        policy = replace(base.policy, lead=lead)
        show(f"step, {least:g} / {unknown:g}", Simulator(replace(base, policy=policy)).run())


def main() -> None:
    """Run all settings."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=80.0)
    parser.add_argument("--rate", type=float, default=3.0)
    parser.add_argument("--shaky", type=float, default=0.5)
    parser.add_argument("--step", type=float, help="only a learner that trusts after so many s")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    policy = PolicyConfig(max_live=100_000, max_utilisation=float("inf"))
    base = Scenario(
        costs.cpu(2), policy, Mix(shaky=args.shaky), args.rate, window=args.seconds, seed=args.seed
    )
    print(f"shaky {args.shaky:g}, {args.rate:g}/s: held s, stalled, worst s")
    if args.step:
        stepped(base, args.step)
        return
    for urgency, leads in ((Urgency.ESTIMATED, (0.3, 0.6, 1.0)), (Urgency.REPORTED, (0.6, 1.0))):
        for lead in leads:
            fixed = replace(policy, urgency=urgency, lead=LeadLimits(fixed=lead))
            show(f"{urgency}, {lead:g} for all", Simulator(replace(base, policy=fixed)).run())
    for unknown in (0.8, 1.5):
        learned = replace(policy, lead=LeadLimits(unknown=unknown))
        show(f"learned, {unknown:g} for unknown", Simulator(replace(base, policy=learned)).run())
    for good, bad in ((0.3, 1.2), (0.3, 1.6), (0.3, 2.0), (0.6, 2.0)):
        show(f"oracle of networks, {good:g} / {bad:g}", Informed(base, good, bad, False).run())
    for good in (0.3, 0.6):
        show(f"oracle of moments, {good:g}", Informed(base, good, 0.0, True).run())


if __name__ == "__main__":
    main()
