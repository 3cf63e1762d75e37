"""The real scheduler under a virtual clock: scripted listeners, measured costs, one seed.

Everything that decides is the code that serves live traffic (scheduler.py and below); only the
model's work, the network and the listeners are simulated. The same seed gives the same digest.
"""

import hashlib
import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np
from playhead.engine.costs import CostTable
from playhead.engine.plan import Dispatch
from playhead.engine.policy import PolicyConfig
from playhead.engine.scheduler import Scheduler
from playhead.engine.sim_client import Call, Caller, draw_frames, poisson
from playhead.engine.sim_device import Device
from playhead.engine.sim_listener import Mix
from playhead.engine.sim_outcome import Outcome
from playhead.engine.types import AudioChunk, Finished, Lane, StepResult

REPORT_EVERY = 0.250
"""Seconds between two reports of a player whose state does not change, unless told otherwise."""

TURN_DELAY = 0.0005
"""Seconds after which reports are acted upon together: the engine thread's own pace."""

PATIENCE = 60.0
"""Seconds after the window in which utterances may still end. One whose listener says for ever that
it holds all it was sent never does."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One simulated run. Times in seconds."""

    costs: CostTable
    policy: PolicyConfig
    mix: Mix = field(default_factory=Mix)
    rate: float = 10.0  # utterances a second, Poisson
    warmup: float = 5.0
    window: float = 30.0
    per_client: int = 5  # utterances of one client, one after the other
    seed: int = 1
    report_every: float = REPORT_EVERY  # seconds, of a player whose state does not change
    arrivals: tuple[float, ...] = ()  # when utterances begin; none given: Poisson
    rehearsed: bool = False  # the costs are known from the first request


class Simulator:
    """Runs one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._costs = scenario.costs
        self._scheduler = Scheduler(scenario.costs.model, scenario.costs.lanes, scenario.policy)
        if scenario.rehearsed:
            self._scheduler.capacity = scenario.costs.rehearsed()
        self._frame = scenario.costs.model.frame_samples / scenario.costs.model.sample_rate
        self._heap: list[tuple[float, int, Callable[[float], None]]] = []
        self._ids = count()
        self._calls: dict[int, Call] = {}
        self._idle: list[Caller] = []
        self._callers = 0
        self._device = Device(scenario.costs.slows)
        self._next_turn = float("inf")
        self._next_end = float("inf")  # of work on the device
        self._host_free = 0.0  # when the turn that is being taken is over
        self._handled = 0  # steps, chunks and reports since the last turn
        self._end = scenario.warmup + scenario.window
        self._luck = random.Random(f"pieces {scenario.seed}")
        self._hash = hashlib.sha256()
        self._outcome = Outcome()
        self._held = 0.0
        self._held_samples = 0

    def run(self) -> Outcome:
        """Play the scenario to its end and judge it."""
        for number, at in enumerate(self._arrivals()):
            rng = random.Random(f"{self.scenario.seed} {number}")
            self._at(at, partial(self._call, rng))
        while self._heap:
            now, _, event = heapq.heappop(self._heap)
            event(now)
        return self._judge()

    # -- events -----------------------------------------------------------------------------

    def _arrivals(self) -> Iterator[float]:
        given = self.scenario.arrivals
        return iter(given) if given else poisson(self.scenario.seed, self.scenario.rate, self._end)

    def _at(self, when: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._heap, (when, next(self._ids), event))

    def _call(self, rng: random.Random, now: float) -> None:
        """A client asks for an utterance. Its own ``rng`` draws the same for every policy."""
        frames = draw_frames(rng, self._frame)
        caller = self._pick_caller(rng)
        habits = self.scenario.mix.habits(rng, caller.network)
        call = Call(next(self._ids), caller, habits, frames, now)
        counted = self.scenario.warmup <= now
        self._outcome.utterances += counted
        self._scheduler.delay(caller.name, caller.network.one_way)
        if self._scheduler.submit(call.request, now):
            self._outcome.refused += counted
            self._give_back(caller)
            return
        call.counted = counted
        self._calls[call.utterance] = call
        self._scheduler.text(call.utterance, steppable=True)
        self._turn(now)

    def _pick_caller(self, rng: random.Random) -> Caller:
        if self._idle and rng.random() > 1.0 / self.scenario.per_client:
            return self._idle.pop(rng.randrange(len(self._idle)))
        self._callers += 1
        network = self.scenario.mix.network(rng)
        return Caller(f"client-{self._callers}", network, self.scenario.per_client)

    def _give_back(self, caller: Caller) -> None:
        caller.left -= 1
        if caller.left > 0:
            self._idle.append(caller)
        else:
            self._scheduler.forget(caller.name)

    # -- the engine -------------------------------------------------------------------------

    def _turn_at(self, when: float) -> None:
        when = max(when, self._host_free)
        if when < self._next_turn:
            self._next_turn = when
            self._at(when, self._planned_turn)

    def _planned_turn(self, now: float) -> None:
        if now >= self._next_turn:
            self._turn(now)

    def _turn(self, now: float) -> None:
        """Take a turn, or the next one if the last is still being taken."""
        if now < self._host_free:
            self._turn_at(now)
            return
        self._next_turn = float("inf")
        for piece in self._device.take_done(now):
            self._commit(piece.dispatch, now)
        plan = self._scheduler.plan(now)
        self._handled += sum(len(work.utterances) for work in plan.dispatches)
        took = self._costs.turn_fixed + self._costs.turn_each * self._handled
        self._host_free, self._handled = now + took, 0
        for dispatch in sorted(plan.dispatches, key=_lm_first):
            if took:
                self._at(self._host_free, partial(self._start, dispatch))
            else:
                self._start(dispatch, now)
        self._deliver(self._host_free)
        self._await_device(now)
        if plan.wake_at is not None:
            self._turn_at(max(plan.wake_at, now + 1e-6))

    def _start(self, dispatch: Dispatch, now: float) -> None:
        if dispatch.lane is Lane.LM:
            new = [u for u in dispatch.steps if self._calls[u].stepped == 0]
            work = self._costs.step(len(dispatch.steps), len(new))
        else:
            frames = [chunk.frames for chunk in dispatch.chunks]
            audio, sizes = sum(frames) * self._frame, len(set(frames))
            work = self._costs.decode(dispatch.lane, audio, len(frames), sizes)
        work *= self._costs.luck(self._luck)
        self._device.start(dispatch, work, now)
        self._await_device(now)

    def _await_device(self, now: float) -> None:
        end = self._device.next_end()
        if end < float("inf") and end != self._next_end:
            self._next_end = end
            self._at(max(end, now), self._piece_done)

    def _piece_done(self, now: float) -> None:
        if now == self._next_end:
            self._turn(now)

    def _commit(self, dispatch: Dispatch, now: float) -> None:
        self._handled += len(dispatch.utterances)
        if dispatch.lane is Lane.LM:
            frames = self._costs.step_frames(len(dispatch.steps))
            results = [self._step(utterance, frames) for utterance in dispatch.steps]
            self._scheduler.commit_steps(dispatch, results, now - dispatch.started, now)
            return
        samples = self._costs.model.frame_samples
        pcm = [np.broadcast_to(_SILENCE, each.frames * samples) for each in dispatch.chunks]
        self._scheduler.commit_chunks(dispatch, pcm, now - dispatch.started, now)

    def _step(self, utterance: int, frames: int) -> StepResult:
        call = self._calls[utterance]
        if self._costs.ahead_from and call.stepped == 0:
            frames = 1  # what was made ahead comes with the next step
        frames = min(frames, call.frames - call.stepped)
        call.stepped += frames
        ended = call.stepped == call.frames
        return StepResult(utterance, frames, boundary=ended, hungry=False, ended=ended)

    def _deliver(self, now: float) -> None:
        for event in self._scheduler.events():
            if isinstance(event, AudioChunk):
                self._send(event, now)
            elif isinstance(event, Finished):
                self._calls[event.utterance].generated = True
        self._scheduler.closed()

    # -- the network and the listeners ------------------------------------------------------

    def _send(self, chunk: AudioChunk, now: float) -> None:
        call = self._calls[chunk.utterance]
        seconds = len(chunk.pcm) / self._costs.model.sample_rate
        call.sent += seconds
        self._outcome.made += seconds * (self.scenario.warmup <= now < self._end)
        final = call.sent >= call.frames * self._frame - 1e-9
        self._hash.update(f"{chunk.utterance} {chunk.index} {chunk.lane} {now:.6f};".encode())
        chunks = self._outcome.chunks
        chunks[chunk.lane] = chunks.get(chunk.lane, 0) + 1
        self._at(call.arrival(now), lambda t: self._arrive(call, seconds, final, t))

    def _arrive(self, call: Call, seconds: float, final: bool, now: float) -> None:
        first = call.listener.truth.first_audio is None
        call.listener.arrive(seconds, final, now)
        if first:
            self._at(now, lambda t: self._report(call, t, periodic=True))
        else:
            self._report_change(call, now)

    def _watch(self, call: Call) -> None:
        """Be there when the player's state changes by itself."""
        when = call.listener.next_change()
        if when < float("inf") and when != call.watched:
            call.watched = when
            self._at(when, lambda t: self._report_change(call, t))

    def _report_change(self, call: Call, now: float) -> None:
        call.listener.advance(now)
        if call.listener.state is not call.reported_state:
            self._report(call, now, periodic=False)
        else:
            self._watch(call)

    def _report(self, call: Call, now: float, *, periodic: bool) -> None:
        call.listener.advance(now)
        if call.over or now > self._end + PATIENCE:
            return
        self._hold_sample(call)
        call.reported_state = call.listener.state
        report = call.report(now, self._costs.model.sample_rate)
        self._at(call.arrival(now), lambda t: self._reported(call, report, t))
        if call.listener.done:
            call.over = True
            self._give_back(call.caller)
            return
        self._watch(call)
        if periodic:
            due = now + self.scenario.report_every
            self._at(due, lambda t: self._report(call, t, periodic=True))

    def _reported(self, call: Call, report: object, now: float) -> None:
        self._scheduler.report(report, now)  # type: ignore[arg-type]
        self._handled += 1
        if not call.generated:
            self._turn_at(now + TURN_DELAY)

    def _hold_sample(self, call: Call) -> None:
        if call.counted:
            self._held += call.sent - call.listener.consumed
            self._held_samples += 1

    # -- judging ----------------------------------------------------------------------------

    def _judge(self) -> Outcome:
        out = self._outcome
        for call in self._calls.values():
            if call.counted:
                out.add(call.listener.truth, call.asked)
        out.waste = self._held / max(1, self._held_samples)
        meters = self._scheduler.meters
        out.busy = {lane: meters[lane].busy_seconds / self._end for lane in Lane}
        out.promoted = self._scheduler.tally.promoted
        out.clamped = self._scheduler.tally.reports_clamped
        out.digest = self._hash.hexdigest()[:16]
        return out


_SILENCE = np.zeros(1, np.float32)


def _lm_first(dispatch: Dispatch) -> bool:
    """LM before codec: an urgent chunk of the same plan must find the step it delays."""
    return dispatch.lane is not Lane.LM
