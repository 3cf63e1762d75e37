"""Who lies about its buffer gets no more of an overload than the honest, and harms none of them.

Half a minute of a scheduler alone; tests/reliability/test_liars.py has more ways to lie.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from doubles import FRAME, MODEL, machine, report, request
from playhead.engine.lead import LeadLimits
from playhead.engine.policy import PolicyConfig
from playhead.engine.scheduler import Scheduler
from playhead.engine.types import Lane, ListenerState, Report, StepResult


class Market:
    """Twenty endless listeners and one worker that makes ``supply`` times what they play.

    The listeners are ideal but for what they say: audio and reports arrive at once.
    """

    CLIENTS = 20
    SECONDS = 30.0
    AUDIO = 0.5  # seconds of one frame, and of every chunk
    REPORT_EVERY = 0.5

    def __init__(self, supply: float, lie: str | None) -> None:
        model = replace(MODEL, sample_rate=160, chunk_frames=(1,))
        assert model.frame_samples / model.sample_rate == self.AUDIO
        policy = PolicyConfig(lead=LeadLimits(fixed=2.0), max_live=99, max_utilisation=math.inf)
        self.scheduler = Scheduler(model, machine(workers=1), policy)
        self.cost = self.AUDIO / (supply * self.CLIENTS)
        self.lie = lie
        self.got = np.zeros(self.CLIENTS)
        self.played = np.zeros(self.CLIENTS)
        self.dry = np.zeros(self.CLIENTS)
        self.worst = np.zeros(self.CLIENTS)
        self.now = 0.0

    def run(self) -> "Market":
        for number in range(self.CLIENTS):
            self.scheduler.submit(request(number), 0.0)
            self.scheduler.text(number, steppable=True)
        reports = 0
        while self.now < self.SECONDS:
            self._turn()
            if self.now >= reports * self.REPORT_EVERY:
                reports += 1
                for number in range(self.CLIENTS):
                    self.scheduler.report(self._report(number, reports), self.now)
        assert self.scheduler.tally.reports >= reports * (self.CLIENTS - 1), "the honest are heard"
        return self

    def _turn(self) -> None:
        plan = self.scheduler.plan(self.now)
        if not plan.dispatches:
            assert plan.wake_at is not None
            self._pass(min(plan.wake_at, self.now + 0.05) - self.now)
        for work in plan.dispatches:
            if work.lane is Lane.LM:
                steps = [StepResult(n, 50, False, False, False) for n in work.steps]
                self.scheduler.commit_steps(work, steps, 1e-6, self.now)
                continue
            self._pass(self.cost)
            pcm = np.zeros(FRAME, np.float32)
            self.scheduler.commit_chunks(work, [pcm], self.cost, self.now)
            self.got[work.utterances[0]] += self.AUDIO
        self.scheduler.events()

    def _pass(self, seconds: float) -> None:
        self.now += seconds
        held = self.got - self.played
        self.played += np.minimum(held, seconds)
        self.dry = np.where(held > 0.0, 0.0, self.dry) + np.maximum(0.0, seconds - held)
        self.worst = np.maximum(self.worst, self.dry)

    def _report(self, number: int, turn: int) -> Report:
        received = round(self.got[number] * 160)
        consumed = round(self.played[number] * 160)
        lie = self.lie if number == 0 else None
        if lie == "flip":
            lie = "empty" if turn % 2 else "full"
        if lie == "empty":
            consumed = received
        if lie == "full":
            consumed = 0
        state = ListenerState.PLAYING if received > consumed else ListenerState.STALLED
        return report(number, received, received - consumed, state, at=self.now)


@pytest.mark.parametrize("supply", [0.8, 1.1])
def test_lying_about_the_buffer_gains_nothing_and_hurts_nobody(supply: float) -> None:
    """Reliability of the neighbours (Savage et al. 1999 showed what trusting receivers costs)."""
    fair = Market(supply, None).run()
    assert min(fair.got) >= 0.95 * max(fair.got)
    honest_worst = max(fair.worst[1:])
    for lie in ("empty", "full", "flip"):
        market = Market(supply, lie).run()
        average = sum(market.got[1:]) / (market.CLIENTS - 1)
        assert market.got[0] <= 1.1 * average + market.AUDIO, lie
        assert max(market.worst[1:]) <= honest_worst + market.AUDIO, lie
        assert min(market.got[1:]) >= 0.95 * average, lie
