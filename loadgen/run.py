"""One process's share of a run: utterances start at their intended times, whatever is in flight.

The loop's own lateness is measured all along, because a generator that is late measures itself.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from playhead.engine.clock import monotonic
from playhead.loadgen.alarm import Alarm
from playhead.loadgen.keys import key_headers
from playhead.loadgen.namespace import moved
from playhead.loadgen.network import Proxy
from playhead.loadgen.plan import Job, Plan, jobs
from playhead.loadgen.pool import Pool, networks
from playhead.loadgen.record import KERNEL, READ, MetricsSample, Record
from playhead.loadgen.scrape import load, watch
from playhead.loadgen.session import Session, SessionError
from playhead.loadgen.shaping import DIRECT, NETWORKS
from playhead.loadgen.tally import Tally
from playhead.loadgen.turn import Turn
from playhead.loadgen.typist import possible, typed

AHEAD = 1.0
"""Seconds before its intended start at which an utterance's session is made ready."""
PROBE = 0.01
LAG_WORTH_KEEPING = 0.005

Sink = Callable[[Mapping[str, Any]], None]


class Generator:
    """Runs the share of ``process``. ``origin``: the run's start on :func:`monotonic`, in the
    future; ``sink`` takes the lines of the raw record, those of an interrupted run too."""

    def __init__(self, plan: Plan, process: int, origin: float, sink: Sink) -> None:
        self.tally = Tally()
        self._plan = replace(plan, url=(plan.url, *plan.also)[process % (1 + len(plan.also))])
        self._process = process
        self._origin = origin
        self._sink = sink
        self._alarm = Alarm()

    async def run(self) -> None:
        """Until every utterance has ended. Raises ``ValueError`` for a plan that cannot run."""
        share = jobs(self._plan, self._process)
        self.tally.planned = len(share)
        async with self._paths() as urls, self._watching(), self._alarm.running():
            pool = Pool(self._plan, self._process, urls)
            try:
                await self._dispatch(share, pool)
            finally:
                await pool.close()

    async def _dispatch(self, share: list[Job], pool: Pool) -> None:
        async with asyncio.TaskGroup() as group:
            for job in share:
                await _sleep_until(self._origin + job.at - AHEAD)
                group.create_task(self._utterance(job, pool))

    async def _utterance(self, job: Job, pool: Pool) -> None:
        record = Record(job.number, job.at, job.text, counted=job.counted)
        record.codec, record.sample_rate = self._plan.codec, self._plan.sample_rate
        session: Session | None = None
        try:
            session = await pool.take()
            record.ready = self._now()
            await self._alarm.wait_until(self._origin + job.at)
            self.tally.start()
            await self._speak(record, session)
        except SessionError as error:
            record.finish, record.fault, record.message = "no_session", error.fault, error.message
            record.ended = self._now()
        except asyncio.CancelledError:
            # Before it was due it is no utterance; an interrupted run does not tell of it.
            if not record.finish and self._now() < job.at:
                raise
            record.finish = record.fault = record.finish or "interrupted"
            self._keep(record)
            raise
        self._keep(record)
        if session is not None:
            pool.give(session, record.finish)

    async def _speak(self, record: Record, session: Session) -> None:
        plan, caller = self._plan, session.caller
        habits = plan.listeners.habits(plan.seed, record.number, caller)
        record.session, record.network = session.number, caller.network
        record.reports, record.threshold, record.rate = (
            caller.reports.value,
            caller.threshold,
            caller.rate,
        )
        record.stamps = KERNEL if session.stamped else READ
        record.held = sum(hold.end - hold.start for hold in habits.holds)
        record.round_trip = session.round_trip
        if session.offset is not None:
            record.offset = session.offset + self._origin
        deadline = self._origin + record.intended + plan.timeout
        pieces = typed(record.text, plan.pace, random.Random(f"pace {plan.seed} {record.number}"))
        if plan.pace:
            record.possible = record.intended + possible(pieces, plan.speaks_after)
        turn = Turn(
            record, habits, session.link, origin=self._origin, deadline=deadline, pieces=pieces
        )
        try:
            await session.speak(turn, deadline)
        except asyncio.CancelledError:
            turn.abandon(monotonic())
            raise

    def _keep(self, record: Record) -> None:
        self.tally.add(record)
        self._sink(record.as_line())

    def _now(self) -> float:
        return monotonic() - self._origin

    # ------------------------------------------------------------ around it

    @contextlib.asynccontextmanager
    async def _paths(self) -> AsyncIterator[dict[str, str]]:
        """Where to dial for each network of the mix; proxies running where they are wanted."""
        urls = {DIRECT: self._plan.url}
        if self._plan.network == "namespace":
            yield urls | {name: moved(self._plan.url, name) for name in networks(self._plan)}
            return
        async with contextlib.AsyncExitStack() as stack:
            for name in networks(self._plan):
                proxy = Proxy(self._plan.url, NETWORKS[name], self._plan.seed)
                urls[name] = (await stack.enter_async_context(proxy.running())).url
            yield urls

    @contextlib.asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._probe())]
        if self._process == 0 and self._plan.target == "playhead":
            tasks.append(asyncio.create_task(self._read_server()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _probe(self) -> None:
        while True:
            due = monotonic() + PROBE
            await asyncio.sleep(PROBE)
            late = monotonic() - due
            if late >= LAG_WORTH_KEEPING:
                self._sink({"kind": "lag", "at": self._now(), "lag": late})

    async def _read_server(self) -> None:
        url, headers = self._plan.url, key_headers(self._plan)
        self._sink({"kind": "server", "load": await load(url, headers)})
        await watch((url, *self._plan.also), headers, self._keep_metrics, self._now)

    def _keep_metrics(self, sample: MetricsSample) -> None:
        self._sink({"kind": "metrics", "at": sample.at, "values": sample.values})


async def _sleep_until(at: float) -> None:
    await asyncio.sleep(max(0.0, at - monotonic()))
