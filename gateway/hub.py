"""Where sessions meet the engine: routes events to sessions, and opens encoders for them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from playhead.codecs import registry as codecs
from playhead.engine import clock
from playhead.engine.types import EngineEvent, Finished
from playhead.gateway.access import Grant
from playhead.gateway.door import EngineDoor
from playhead.gateway.encoder_threads import EncoderThreads
from playhead.gateway.encoding import EncoderPipe, PipeOutput
from playhead.gateway.host import Outlet, SessionHost
from playhead.gateway.metered import MeteredEncoder
from playhead.gateway.metrics import Metrics
from playhead.gateway.pace import report_interval
from playhead.gateway.registry import Registry, new_secret
from playhead.gateway.roster import Listener
from playhead.gateway.session import ServerFacts, Session
from playhead.gateway.session_queue import Fault

POLICY_VIOLATION: Final = 1008
REVOKED: Final = Fault("revoked", "the API key of this session is no longer valid")


class Hub:
    """All sessions of the process. Event loop only, except :meth:`deliver`."""

    def __init__(
        self,
        facts: ServerFacts,
        metrics: Metrics,
        open_engine: Callable[[Callable[[list[EngineEvent]], None]], EngineDoor],
        *,
        encoder_threads: int,
    ) -> None:
        self.facts = replace(facts, report_interval=self._report_interval)
        self.metrics = metrics
        self.loop = asyncio.get_running_loop()
        self.registry: Registry[SessionHost] = Registry()
        self.counters: Counter[str] = Counter()  # of sessions that have ended
        self.drain_deadline: float | None = None
        self._routes: dict[int, SessionHost] = {}
        self._threads = EncoderThreads(encoder_threads)
        self.engine = open_engine(self.deliver)

    # -- engine to sessions -----------------------------------------------------------------

    def deliver(self, events: list[EngineEvent]) -> None:
        """Called on the engine's thread once per step: one hop onto the loop for all events."""
        if events:
            self.loop.call_soon_threadsafe(self._dispatch, events)

    def _dispatch(self, events: Sequence[EngineEvent]) -> None:
        now = clock.monotonic()
        for event in events:
            host = self._routes.get(event.utterance)
            if host is None:
                continue
            if isinstance(event, Finished):
                del self._routes[event.utterance]
            host.engine_event(event, now)

    def route(self, utterance: int, host: SessionHost) -> None:
        """Events of ``utterance`` go to ``host`` until it has finished."""
        self._routes[utterance] = host

    def _report_interval(self) -> float:
        return report_interval(len(self.registry))

    @property
    def routes(self) -> int:
        """Utterances that the engine has not finished."""
        return len(self._routes)

    # -- sessions ---------------------------------------------------------------------------

    def open(
        self,
        outlet: Outlet,
        grant: Grant,
        now: float,
        facts: ServerFacts | None = None,
        *,
        dialect: str = "playhead",
    ) -> SessionHost:
        """A fresh session for a client that has been let in. ``facts`` other than all's;
        ``dialect``: what its connection speaks."""
        identity = new_secret()
        # What is learned of a listener's network is kept by session: those behind one address,
        # or with one key, do not share it.
        session = Session(
            facts or self.facts,
            session=identity,
            token=new_secret(),
            client=identity,
            now=now,
            allowance=grant.allowance(),
        )
        host = SessionHost(session, self, outlet, grant.owner, dialect)
        self.registry.add(host)
        self.metrics.sessions.set(len(self.registry))
        host.open(now)
        if self.drain_deadline is not None:  # the handshake began before the drain did
            host.drain(self.drain_deadline, now)
        return host

    def find(self, session: str, owner: str) -> SessionHost | None:
        """The living session of that id, if it belongs to ``owner``. Another's does not exist."""
        host = self.registry.get(session)
        return host if host is not None and host.owner == owner else None

    def expel(self, valid: Callable[[str], bool], now: float) -> int:
        """End all sessions whose owner is no longer ``valid``; how many there were."""
        expelled = [host for host in self.registry if not valid(host.owner)]
        for host in expelled:
            host.stop(POLICY_VIOLATION, REVOKED.message, now, REVOKED)
        return len(expelled)

    def abandon(self, host: SessionHost) -> None:
        """Forget a fresh session whose connection returns to an older one."""
        host.close()
        self.registry.discard(host.id)
        self.metrics.sessions.set(len(self.registry))

    def bury(self, host: SessionHost, now: float) -> None:
        """A session has ended."""
        if self.registry.get(host.id) is not host:
            return
        self.counters.update(host.session.counters)
        self.registry.bury(host.session.tombstone(), host.owner, now)
        self.engine.forget(host.id)
        self.metrics.sessions.set(len(self.registry))

    def utterance_of(self, session: str | None) -> int | None:
        """The utterance that the engine works on for a session."""
        return next((u for u, host in self._routes.items() if host.id == session), None)

    def open_pipe(
        self,
        utterance: int,
        wire_format: codecs.Format,
        emit: Callable[[int, Sequence[PipeOutput]], None],
    ) -> EncoderPipe:
        """An encoder of its own for an utterance, inline when that is cheap enough."""
        rate = self.facts.model_rate
        threads = None if codecs.is_cheap(wire_format, rate) else self._threads
        codec = wire_format.codec
        encoder = MeteredEncoder(
            codecs.encoder(wire_format, rate),
            rate,
            self.metrics.encoder_cpu.labels(codec),
            self.metrics.encoded.labels(codec),
            # A thread's own time costs a system call: many times what a cheap encoder takes.
            clock.monotonic if threads is None else clock.thread_cpu,
        )
        return EncoderPipe(utterance, encoder, emit, threads=threads)

    def drain(self, deadline: float, now: float) -> None:
        """Sessions take nothing new from now on, and speak until ``deadline``."""
        self.drain_deadline = deadline
        for host in self.registry:
            host.drain(deadline, now)

    @property
    def idle(self) -> bool:
        """Whether nobody who is connected has an utterance alive."""
        return all(host.session.idle or host.outlet is None for host in self.registry)

    def session_counters(self) -> Counter[str]:
        """What sessions have counted since the start, living and ended ones."""
        totals = Counter(self.counters)
        for host in self.registry:
            totals.update(host.session.counters)
        return totals

    def sources(self) -> Counter[str]:
        """How many sessions have which source of their listener's position."""
        return Counter(host.meter.source for host in self.registry)

    def listeners(self) -> list[Listener]:
        """Every session, with the utterance that the engine works on."""
        working = {host.id: utterance for utterance, host in self._routes.items()}
        return [host.meter.listener(working.get(host.id)) for host in self.registry]

    def close(self) -> None:
        """Let the encoder threads go. Their running jobs end on their own."""
        self._threads.shutdown(wait=False, cancel_futures=True)
