"""A town of clients under a virtual clock, a fault every second, and what must always be true.

One seed gives one run. ``Town.run`` raises ``AssertionError`` at the first broken promise.
"""

import asyncio
import hashlib
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from live import FRAME, FRAMES_PER_CHARACTER, RATE, WaveRunner, wave
from playhead.client.player import Player
from playhead.client.track import PlayerConfig
from playhead.codecs import registry as codecs
from playhead.engine.lanes import cpu_limits
from playhead.engine.loop import EngineConfig
from playhead.engine.plan import Dispatch
from playhead.engine.policy import PolicyConfig
from playhead.engine.types import (
    ChunkWork,
    EngineEvent,
    Finish,
    Finished,
    Lane,
    ListenerState,
    Pcm,
    Request,
    StepResult,
)
from playhead.gateway import messages as m
from playhead.gateway.access import unmetered
from playhead.gateway.host import SessionHost
from playhead.gateway.hub import Hub
from playhead.gateway.limits import Limits
from playhead.gateway.metrics import Metrics
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.registry import new_secret
from playhead.gateway.session import ServerFacts
from playhead.gateway.session_resume import refuse_resume
from virtual import VirtualEngine

GRACE = 20.0
PACE = 20.0  # seconds of sound per second of a lane
SENTENCES = (
    "Good morning, this is the first thing to be said.",
    "And another one, a little longer than the first one was, so that it lasts.",
    "Short.",
    "Numbers, names and all the rest of it come by and go, one after the other.",
)
ENGINE_FAULTS = ("oom", "text", "step", "decode", "batch", "nan", "inf", "loud", "slow", "stall")
ACCOUNTS = ("", "", "", "ann", "bob")


class SoakRunner(WaveRunner):
    """Breaks once for every fault it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()

    def strikes(self, fault: str) -> bool:
        if not self.faults[fault]:
            return False
        self.faults[fault] -= 1
        self.struck[fault] += 1
        return True

    def open(self, request: Request) -> None:
        if self.strikes("oom"):
            raise MemoryError("no room")
        super().open(request)

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        if self.strikes("text"):
            raise ZeroDivisionError("the front end broke")
        return super().push_text(utterance, delta, flush=flush, end=end)

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        results = super().step(utterances)
        if self.strikes("step"):
            results[0] = StepResult(utterances[0], 0, False, False, False, error="it broke")
        return results

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        if self.strikes("batch"):
            raise RuntimeError("the batch broke")
        made: list[Pcm | BaseException] = [
            wave(self._texts[c.utterance].text, c.first * FRAME, c.frames * FRAME) for c in chunks
        ]
        if self.strikes("decode"):
            made[0] = ArithmeticError("it broke")
        for fault, value in (("nan", math.nan), ("inf", math.inf), ("loud", 1e6)):
            if not isinstance(made[-1], BaseException) and self.strikes(fault):
                made[-1][len(made[-1]) // 2] = value
        return made

    @property
    def open_texts(self) -> int:
        return len(self._texts)


class Wire:
    """One connection of a guest: what the server sends arrives a little later, or never."""

    def __init__(self, guest: "Guest", delay: float) -> None:
        self._guest = guest
        self._delay = delay
        self._ready_at = 0.0
        self.cut = False
        self.closed: int | None = None

    def send(self, message: m.ServerMessage) -> None:
        self._later(lambda: self._guest.take(message))

    def close(self, code: int, reason: str) -> None:
        self.closed = code

    def _later(self, act: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        # Timers of the same time have no order.
        self._ready_at = max(self._ready_at + 1e-7, loop.time() + self._delay)
        loop.call_at(self._ready_at, lambda: None if self.cut else act())


class Guest:
    """One client: speaks a few texts, reports (or lies), drops out, comes back, and checks."""

    def __init__(self, town: "Town", rng: random.Random) -> None:
        self._town = town
        self._rng = rng
        self._owner = rng.choice(ACCOUNTS)
        self._liar = rng.random() < 0.1
        self._delay = rng.uniform(0.001, 0.08)
        self._texts: dict[int, str] = {}
        self._samples: Counter[int] = Counter()
        self._player = Player(PlayerConfig(start_threshold=rng.choice((0.0, 0.1, 0.4))))
        self._seq = 0
        self._ready: m.Ready | None = None
        self._wire = Wire(self, self._delay)
        self._host: SessionHost | None = None
        self._changed = asyncio.Event()
        self.endings: dict[int, m.Done | m.Cancelled | m.Failed] = {}
        self.refusal: m.ErrorEvent | None = None

    # -- what it does -----------------------------------------------------------------------

    async def live(self) -> None:
        reporter = asyncio.create_task(self._report())
        try:
            self._host = self._town.hub.open(self._wire, unmetered(self._owner), self._now)
            self._say(m.Hello(codec="pcm_f32le"))
            for _ in range(self._rng.choice((1, 1, 2, 3))):
                await self._speak()
                if self._gone:
                    break
            self._leave()
        finally:
            reporter.cancel()
            self._town.note(f"{sorted(self._samples.items())}{len(self.endings)}{self._seq}")

    async def _speak(self) -> None:
        epoch = len(self._texts) + 1
        text = self._texts[epoch] = self._rng.choice(SENTENCES)
        self._say(m.Start())
        size = self._rng.choice((5, 20, 100))
        for start in range(0, len(text), size):
            self._say(m.Text(text[start : start + size]))
            await asyncio.sleep(self._rng.uniform(0.0, 0.2))
        if self._host is None or self._gone:
            return
        self._say(m.End())
        whim = self._rng.random()
        if whim < 0.15:
            await self._barge_in(epoch)
        elif whim < 0.25:
            await self._pause()
        elif whim < 0.55:
            await self._drop_out()
        elif whim < 0.6:
            self._garbage()
        await self._until_over(epoch)

    async def _barge_in(self, epoch: int) -> None:
        await asyncio.sleep(self._rng.uniform(0.0, 3.0))
        self._player.clear(self._now, epoch)
        self._say(m.Cancel(epoch=epoch))

    async def _pause(self) -> None:
        await asyncio.sleep(self._rng.uniform(0.0, 2.0))
        self._player.pause(self._now)
        self._say(m.Pause())
        await asyncio.sleep(self._rng.uniform(0.1, 5.0))
        self._player.resume(self._now)
        self._say(m.ResumePlayback())

    def _garbage(self) -> None:
        if self._host is not None and not self._gone:
            self._host.refuse(ProtocolError("bad_message", "noise", "a map"), self._now)

    async def _drop_out(self) -> None:
        """The connection is cut; the server may notice now, late, or only by the new one."""
        await asyncio.sleep(self._rng.uniform(0.0, 3.0))
        if self._host is None or self._gone or self._ready is None:
            return
        host, wire = self._host, self._wire
        wire.cut, self._host = True, None
        if self._rng.random() < 0.7:
            host.detach(wire, self._now)
        away = self._rng.choice((0.05, 1.0, 5.0, GRACE * 0.8, GRACE * 1.5))
        await asyncio.sleep(away)
        await self._come_back(away, host)

    async def _come_back(self, away: float, old: SessionHost) -> None:
        assert self._ready is not None
        origin = m.ResumeFrom(self._ready.session, self._ready.token, self._seq)
        self._wire = Wire(self, self._delay)
        hub = self._town.hub
        host = hub.find(origin.session, self._owner)
        if host is not None and host.resume(origin, new_secret(), self._wire, self._now):
            self._host = host
            self._town.counts["resumed"] += 1
            return
        if host is None:
            stone = hub.registry.tombstone(origin.session, self._owner, self._now)
            assert stone is not None, "an ended session is remembered"
            refuse_resume(origin, stone, self._now)
        assert away > GRACE or old.session.ended, "within the grace the session is there"
        self._town.counts["too late"] += 1
        self._wire.closed = 4001

    def _leave(self) -> None:
        if self._host is None or self._gone:
            return
        if self._rng.random() < 0.7:
            self._say(m.CloseSession())
        else:
            self._host.detach(self._wire, self._now)

    async def _until_over(self, epoch: int) -> None:
        limit = self._now + 120.0
        while epoch not in self.endings and not self._gone:
            if self._liar and self._now > limit - 60.0:
                self._say(m.Cancel(epoch=epoch))  # its last word may have been that it is paused
            assert self._now < limit, f"epoch {epoch} of {self._texts[epoch]!r} never ends"
            self._changed.clear()
            waiting = asyncio.create_task(self._changed.wait())
            await asyncio.wait([waiting], timeout=5.0)
            waiting.cancel()

    async def _report(self) -> None:
        while True:
            due = self._player.next_report(self._now)
            await asyncio.sleep(0.1 if due is None else max(0.001, due - self._now))
            for counters in self._player.reports(self._now):
                self._say(self._lie(counters) if self._liar else self._truth(counters))

    def _truth(self, counters: Any) -> m.PlaybackReport:
        return m.PlaybackReport(
            epoch=counters.epoch,
            received=counters.received,
            consumed=counters.consumed,
            heard=counters.heard,
            buffered=counters.buffered,
            discarded=counters.discarded,
            state=counters.state,
            underruns=counters.underruns,
            starved=counters.starved * 1000,
            time=self._now * 1000,
            seq=self._seq,
        )

    def _lie(self, counters: Any) -> m.PlaybackReport:
        most = self._rng.choice((0, counters.received, 10**9))
        return m.PlaybackReport(
            epoch=counters.epoch,
            received=most,
            consumed=most,
            heard=most,
            buffered=0,
            state=self._rng.choice(list(ListenerState)),
            time=self._now * 1000,
            seq=self._seq,
        )

    def _say(self, message: m.ClientMessage) -> None:
        if self._host is not None and not self._gone:
            self._host.receive(message, self._now)

    @property
    def _gone(self) -> bool:
        return self._wire.closed is not None

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # -- what it must see -------------------------------------------------------------------

    def take(self, message: m.ServerMessage) -> None:
        self._changed.set()
        if isinstance(message, m.Ready):
            assert message.resumed is (self._ready is not None)
            self._ready = message
            self._player.report_again()
            return
        if isinstance(message, m.ErrorEvent):
            self.refusal = message
            self._town.counts[message.code] += 1
            return
        if isinstance(message, m.Pong):
            return
        assert message.seq == self._seq + 1, "no message is missing, none comes twice"
        self._seq = message.seq
        if isinstance(message, m.Started):
            self._player.begin(message.epoch, self._now)
        elif isinstance(message, m.Audio):
            self._hear(message)
        elif isinstance(message, m.Done | m.Cancelled | m.Failed):
            self._end(message)

    def _hear(self, message: m.Audio) -> None:
        epoch = message.epoch
        assert epoch not in self.endings, "nothing follows the end"
        assert message.position == self._samples[epoch], "sound has no gaps"
        heard = np.frombuffer(message.data, "<f4")
        wanted = wave(self._texts[epoch], message.position, message.samples)
        assert np.array_equal(heard, wanted), "every sample is the right one"
        self._samples[epoch] += message.samples
        self._player.add(epoch, message.samples, message.final, self._now)

    def _end(self, message: m.Done | m.Cancelled | m.Failed) -> None:
        epoch = message.epoch
        assert epoch not in self.endings, "one end each"
        self.endings[epoch] = message
        self._town.counts[type(message).__name__] += 1
        if isinstance(message, m.Done):
            place = FRAME * FRAMES_PER_CHARACTER
            assert message.samples == self._samples[epoch] == len(self._texts[epoch]) * place
        else:
            self._player.clear(self._now, epoch, epoch)


class Town:
    """Guests come at ``rate`` a second; every second something breaks."""

    def __init__(self, seed: int, rate: float) -> None:
        self._rng = random.Random(seed)
        self._rate = rate
        self._digest = hashlib.sha256()
        self._slow_until = 0.0
        self._stall = 0.0
        self.counts: Counter[str] = Counter()
        self.submitted = 0
        self.finished: Counter[Finish] = Counter()
        self.runner = SoakRunner()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._broken)
        self._tasks: set[asyncio.Task[None]] = set()
        facts = ServerFacts(
            model="soak",
            server="soak",
            voices=self.runner.info.voices,
            default_voice=self.runner.info.voices[0],
            model_rate=RATE,
            formats=tuple(dict(found) for found in codecs.formats()),
            open_format=codecs.open_format,
            new_utterance=count(1).__next__,
            limits=Limits(grace=GRACE, tombstone=60.0),
        )
        self.hub = Hub(facts, Metrics(), self._open_engine, encoder_threads=1)

    def _open_engine(self, deliver: Callable[[list[EngineEvent]], None]) -> VirtualEngine:
        def deliver_counted(events: list[EngineEvent]) -> None:
            for event in events:
                self.finished.update([event.reason] if isinstance(event, Finished) else [])
            deliver(events)

        config = EngineConfig(cpu_limits(2), PolicyConfig(max_live=24))
        self.engine = VirtualEngine(self.runner, config, deliver_counted, self._cost)
        submit = self.engine.submit

        def submit_counted(request: Request) -> None:
            self.submitted += 1
            submit(request)

        self.engine.submit = submit_counted  # type: ignore[method-assign]
        return self.engine

    def _cost(self, work: Dispatch) -> float:
        if work.lane is Lane.LM:
            cost = 0.002
        else:
            cost = 0.002 + sum(chunk.frames for chunk in work.chunks) * FRAME / RATE / PACE
        if self._loop.time() < self._slow_until:
            cost *= 10
        stall, self._stall = self._stall, 0.0
        return cost + stall

    def note(self, what: str) -> None:
        """Into the digest of the run."""
        self._digest.update(what.encode())

    async def run(self, seconds: float, *, hour: float = 3600.0) -> str:
        """Live for so many seconds; once an hour all go home, and nothing may be left. The digest
        of the run."""
        end = self._loop.time() + seconds
        while self._loop.time() < end:
            await self._hour(min(hour, end - self._loop.time()))
            await self._empty()
        return self._digest.hexdigest()[:16]

    async def _hour(self, seconds: float) -> None:
        end = self._loop.time() + seconds
        second = self._loop.time()
        while self._loop.time() < end:
            await asyncio.sleep(self._rng.expovariate(self._rate))
            self._arrive()
            while second < self._loop.time():
                second += 1.0
                self._break_something()
                self._check()

    def _arrive(self) -> None:
        self.counts["guests"] += 1
        guest = Guest(self, random.Random(self._rng.random()))
        task = asyncio.create_task(guest.live())
        self._tasks.add(task)
        task.add_done_callback(self._gone)

    def _gone(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            self.fault = fault

    def _broken(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.fault = context.get("exception") or RuntimeError(context["message"])

    fault: BaseException | None = None

    def _break_something(self) -> None:
        fault = self._rng.choice(ENGINE_FAULTS)
        if fault == "slow":
            self._slow_until = self._loop.time() + self._rng.uniform(0.1, 1.0)
            self.runner.struck["slow"] += 1
        elif fault == "stall":
            self._stall = self._rng.uniform(0.5, 3.0)
            self.runner.struck["stall"] += 1
        elif not self.runner.faults[fault]:
            self.runner.faults[fault] += 1

    def _check(self) -> None:
        """What is true at any moment."""
        if self.fault is not None:
            raise self.fault
        assert self.engine.dead is None
        scheduler = self.engine.scheduler
        assert scheduler.live <= 24
        # Between two callbacks of the loop nothing is on its way from the engine to the hub.
        assert self.submitted - sum(self.finished.values()) == self.hub.routes
        assert self.runner.open_texts >= scheduler.live

    async def _empty(self) -> None:
        """All have gone home: nothing is left of them anywhere."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.sleep(GRACE + 2.0)
        self._check()
        scheduler = self.engine.scheduler
        left = {
            "sessions": len(self.hub.registry),
            "routes": self.hub.routes,
            "streams": scheduler.live,
            "texts": self.runner.open_texts,
            "learners": len(scheduler._clients._learners),
            "delays": len(scheduler._clients._delays),
            "accounts": len(scheduler._shares.accounts._live)
            + len(scheduler._shares.accounts._served),
            "shares": len(scheduler._shares._within) + len(scheduler._shares._payers),
            "commands": len(self.engine._inbox) + len(self.engine._completions),
        }
        assert not any(left.values()), f"left over: {left}"
        assert self.submitted == sum(self.finished.values())
