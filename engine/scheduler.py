"""Plan and commit: the only writer of what the engine knows of each utterance.

One turn is ``plan`` (which work starts now, in which lane), the lanes' work, and ``commit`` of each
result. Nothing here blocks, reads a clock or runs a model; the live engine and the simulator drive
the same class.
"""

import math
from collections.abc import Collection, Iterable

from playhead.engine import admission, places
from playhead.engine.barren import Barren
from playhead.engine.capacity import Capacity
from playhead.engine.census import Census
from playhead.engine.clients import Clients
from playhead.engine.events import NONE, Fault, Outbox, Tally, broken, unheard
from playhead.engine.meters import Meters
from playhead.engine.plan import Dispatch, Dispatcher, Plan
from playhead.engine.policy import LaneLimits, PolicyConfig, Refusal
from playhead.engine.shares import Shares
from playhead.engine.spread import spread
from playhead.engine.stream import Stream
from playhead.engine.survey import Survey
from playhead.engine.types import (
    ChunkWork,
    EngineEvent,
    Finish,
    Lane,
    ListenerState,
    ModelInfo,
    Pcm,
    Report,
    Request,
    StepResult,
    Urgency,
)
from playhead.engine.watch import Watch


class Scheduler:
    """Owns every live utterance. Not thread-safe: one thread (or simulator) drives it."""

    def __init__(self, model: ModelInfo, lanes: LaneLimits, config: PolicyConfig) -> None:
        self.model = model
        self.lanes = lanes
        self.config = config
        self.meters = Meters.starting_from(0.020)
        self.capacity = Capacity(lanes)  # a rehearsal may bring a better one
        self.tally = Tally()
        self._frame_seconds = model.frame_samples / model.sample_rate
        self._streams: dict[int, Stream] = {}
        self._clients = Clients(config.lead)
        self._shares = Shares(self._frame_seconds)
        self._census = Census(self._streams, self._shares.accounts)
        self.dispatcher = Dispatcher(lanes)
        self._out = Outbox()
        self._watch = Watch()
        self._barren = Barren(self._watch.touch, self._shares.charge_seconds)
        self.survey = Survey(model, config, self._shares, self.meters, self.tally, self._watch)

    # -- the gateway's side -----------------------------------------------------------------

    def submit(self, request: Request, now: float) -> Refusal | None:
        """Let an utterance in, or say why not (then it never existed here)."""
        refusal = self.admit(request, now)
        if refusal is None:
            self.enter(request, now)
        return refusal

    def admit(self, request: Request, now: float) -> Refusal | None:
        """Make sure that there is a place for an utterance, or say why there is none."""
        if request.utterance in self._streams:
            raise ValueError(f"utterance {request.utterance} is already being spoken")
        refusal = admission.refusal(self._load(request, now), self.lanes.workers, self.config)
        if refusal:
            self.tally.refused += 1
        elif self.live >= self.config.max_live:
            self._displace(self._census.longest_gone(now), places.GIVEN_AWAY)
        return refusal

    def enter(self, request: Request, now: float) -> None:
        """Take the place that ``admit`` has found."""
        listens = self.config.urgency is Urgency.REPORTED
        stream = self._clients.open(request, self.model.sample_rate, now, listens=listens)
        self._streams[request.utterance] = stream
        self._watch.touch(stream)
        self._shares.join(request)
        self._census.enter(stream, now)

    def text(
        self, utterance: int, steppable: bool, delta: str | None = None, *, end: bool = False
    ) -> None:
        """The model has text, all of it if ``end``; ``steppable`` when a step would now yield
        something. Where ``delta`` tells what came, speech that goes on far beyond is ended."""
        if (stream := self._streams.get(utterance)) and not stream.ended:
            if delta is not None:
                stream.expect(delta, self.config.longest, self._frame_seconds)
            stream.steppable = stream.steppable or steppable
            self._barren.told(stream, end=end)
            self._watch.touch(stream)

    def cancel(self, utterance: int, now: float) -> None:
        """End an utterance at once, unless it has ended."""
        if stream := self._live(utterance):
            self._end(stream, Finish.CANCELLED)

    def fail(self, utterance: int, code: str, message: str) -> None:
        """End an utterance that cannot be spoken."""
        if stream := self._live(utterance):
            self._end(stream, Finish.FAILED, Fault(code, message))

    def report(self, report: Report, now: float) -> None:
        """Take a listener's report that arrived at ``now``."""
        if (stream := self._streams.get(report.utterance)) is None:
            self.tally.reports_foreign += 1
            return
        if (error := stream.hear(report, now)) is not None:
            self.tally.reports += 1
            if self.survey.outdated(stream, now):
                self._watch.touch(stream)
            if report.source.confidence:  # else it is an inference of ours, no measurement
                self.tally.believed(error)

    def hold(self, utterance: int, state: ListenerState | None, now: float) -> None:
        """Freeze an utterance's listener, or let it go on with ``None``: if it still can."""
        if (stream := self._live(utterance)) is None:
            return
        if places.gone(stream, now) and state is not ListenerState.SUSPENDED:
            load = self._load(stream.request, now)
            if refusal := admission.crowded_out(load, self.lanes.workers, self.config):
                self._displace(stream, refusal.message)
                return
        self._census.hold(stream, state, now)
        self._watch.touch(stream)

    def delay(self, client: str, one_way: float) -> None:
        """The measured one-way delay to a client, seconds."""
        self._clients.delay(client, one_way)

    def forget(self, client: str) -> None:
        """A client's session is over: drop what was learned of it."""
        self._clients.forget(client)
        self._shares.forget(client)

    # -- one turn ---------------------------------------------------------------------------

    def plan(self, now: float) -> Plan:
        """Choose the work that starts now. Every dispatch must come back through ``commit``."""
        self.meters.pauses.turn(now)
        for stream, why in self._barren.look(now):
            self._end(stream, Finish.FAILED, why)
        turn = self.survey.look(now, self.dispatcher.room())
        turn.wake_at = min(turn.wake_at, self._barren.next_alarm())
        self.meters.pauses.expect(turn.wake_at)
        work = tuple(self.dispatcher.fill(turn, now))
        self.survey.started(self._streams[each] for one in work for each in one.utterances)
        self.dispatcher.behind(self.waiting(Lane.BACKGROUND) > 0, now)
        return Plan(work, None if math.isinf(turn.wake_at) else turn.wake_at)

    def commit_steps(
        self, dispatch: Dispatch, results: Collection[StepResult], service: float, now: float
    ) -> None:
        """Results of an LM dispatch that took ``service`` seconds."""
        self.dispatcher.done(dispatch)
        audio = sum(result.frames for result in results) * self._frame_seconds
        self.meters[Lane.LM].done(service, [service] * len(results), now)
        self.capacity.note(Lane.LM, dispatch.held(service, now), len(dispatch.steps), audio)
        for result in results:
            if stream := self._back(result.utterance, Lane.LM):
                self._commit_step(stream, result, service / len(results), now)

    def commit_chunks(
        self, dispatch: Dispatch, results: Iterable[Pcm | BaseException], service: float, now: float
    ) -> None:
        """Results of a codec dispatch, in its order."""
        self.dispatcher.done(dispatch)
        sojourns = [now - chunk.queued_at for chunk in dispatch.chunks]
        self.meters[dispatch.lane].done(service, sojourns, now)
        audio = sum(chunk.frames for chunk in dispatch.chunks) * self._frame_seconds
        self.capacity.note(dispatch.lane, dispatch.held(service, now), len(sojourns), audio)
        for chunk, pcm in zip(dispatch.chunks, results, strict=True):
            self._commit_chunk(chunk, pcm, now)

    def commit_fault(
        self, dispatch: Dispatch, fault: BaseException, service: float, now: float
    ) -> None:
        """A whole dispatch failed: every utterance in it ends, the others go on."""
        self.dispatcher.done(dispatch)
        self.meters[dispatch.lane].done(service, [], now)
        why = broken(f"{type(fault).__name__}: {fault}")
        for utterance in dispatch.utterances:
            if stream := self._back(utterance, dispatch.lane):
                self._end(stream, Finish.FAILED, why)

    def events(self) -> list[EngineEvent]:
        """Events since the last call, in order."""
        return self._out.drain()

    def closed(self) -> list[int]:
        """Utterances whose resources can be freed, since the last call."""
        return self._out.drain_closed()

    # -- inspection -------------------------------------------------------------------------

    def speaks(self, utterance: int) -> bool:
        """True while an utterance takes text."""
        return bool((stream := self._live(utterance)) and not stream.ended)

    @property
    def live(self) -> int:
        """Utterances that hold a slot."""
        return len(self._streams)

    @property
    def parked(self) -> int:
        """Utterances left alone because their listeners hold enough."""
        return self._watch.parked

    def streams(self) -> Collection[Stream]:
        """Every live utterance, for statistics. Read only."""
        return self._streams.values()

    def busy(self, lane: Lane) -> int:
        """Dispatches running in ``lane``."""
        return self.dispatcher.busy[lane]

    def waiting(self, lane: Lane) -> int:
        """Chunks (or steps) that found no worker in ``lane`` at the last plan."""
        return self.dispatcher.waiting[lane] + self._watch.blocked(lane)

    # -- committing -------------------------------------------------------------------------

    def _back(self, utterance: int, lane: Lane) -> Stream | None:
        """Work has left ``lane``: its stream, unless that is over."""
        stream = self._streams[utterance]
        stream.back_from(lane)
        self._watch.touch(stream)
        if not stream.dead:
            return stream
        self._release(stream)
        return None

    def _commit_step(self, stream: Stream, result: StepResult, took: float, now: float) -> None:
        if (fault := stream.fault(result)) is not None:
            self._end(stream, Finish.FAILED, broken(fault))
            return
        stream.made(result)
        self._out.add(*result.warnings, *unheard(stream))
        self._barren.stepped(stream, result, took, now)
        self._finish_if_spoken(stream)

    def _commit_chunk(self, chunk: ChunkWork, pcm: Pcm | BaseException, now: float) -> None:
        self._shares.charge(self._streams[chunk.utterance].request, chunk.frames)
        if (stream := self._back(chunk.utterance, chunk.lane)) is None:
            return
        if isinstance(pcm, BaseException):
            self._end(stream, Finish.FAILED, broken(str(pcm) or type(pcm).__name__))
            return
        start = stream.playhead.sent
        words = stream.pop_words(math.inf if stream.spoken else start + len(pcm))
        self._out.add_chunk(chunk, start, pcm, words, now)
        stream.playhead.on_sent(len(pcm), now)
        self.tally.chunks[chunk.lane] += 1
        self._finish_if_spoken(stream)

    def _finish_if_spoken(self, stream: Stream) -> None:
        if stream.spoken and not stream.decoding:
            self._end(stream, stream.finish)

    def _end(self, stream: Stream, reason: Finish, why: Fault = NONE) -> None:
        """The one place where an utterance ends for its listener: exactly one terminal event."""
        stream.dead = True
        self.tally.end(reason, stream.playhead.counters)
        self._out.finish(stream, reason, why)
        self._release(stream)

    def _release(self, stream: Stream) -> None:
        """Free a dead stream once no lane works on it."""
        if stream.running:
            return
        del self._streams[stream.request.utterance]
        self._clients.leave(stream)
        self._watch.forget(stream)
        self._barren.forget(stream)
        self._shares.leave(stream, self.capacity)
        self._census.leave(stream)
        self._out.close(stream.request.utterance)

    def _displace(self, stream: Stream | None, why: str) -> None:
        assert stream is not None, "admission counts on it"
        self.tally.displaced += 1
        wait = spread(admission.COME_BACK, stream.request.utterance)
        self._end(stream, Finish.FAILED, Fault("overloaded", why, wait))

    def _load(self, request: Request, now: float) -> admission.Load:
        return self._census.load(self.capacity, self.config, request.payer, now)

    def _live(self, utterance: int) -> Stream | None:
        stream = self._streams.get(utterance)
        return None if stream is None or stream.dead else stream
