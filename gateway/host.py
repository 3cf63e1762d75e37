"""One session and what it owns outside the protocol: its effects, encoders and timer.

The session decides, the host does: it performs effects in order, encodes what the engine makes,
keeps one timer, and freezes the engine's work while the socket takes nothing. Event loop only.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from playhead.engine import clock
from playhead.engine.types import AudioChunk, EngineEvent, Finish, Finished, ListenerState
from playhead.gateway.effects import (
    CancelUtterance,
    Close,
    CloseEncoder,
    Effect,
    ForwardDelay,
    ForwardReport,
    Hold,
    OpenEncoder,
    PushText,
    Send,
    Submit,
)
from playhead.gateway.encoding import EncodedAudio, EncoderFailed, EncoderPipe, PipeOutput
from playhead.gateway.messages import Audio, ClientMessage, ResumeFrom
from playhead.gateway.meter import SessionMeter
from playhead.gateway.outlet import Outlet as Outlet
from playhead.gateway.protocol import ProtocolError
from playhead.gateway.session import Session
from playhead.gateway.session_dialogue import DRAINING
from playhead.gateway.session_queue import Fault

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from playhead.gateway.hub import Hub

log: Final = logging.getLogger("playhead.gateway.host")

INTERNAL_ERROR: Final = 1011
TIMER_STEP: Final = 0.001
"""uvloop's timers have whole milliseconds; an earlier wake-up would only re-arm."""


class SessionHost:
    """Performs the effects of one session."""

    def __init__(
        self, session: Session, hub: "Hub", outlet: Outlet, owner: str, dialect: str = "playhead"
    ) -> None:
        self.session = session
        self.owner = owner  # see access.Grant
        self.outlet: Outlet | None = outlet
        self._hub = hub
        self.meter = SessionMeter(hub.metrics, hub.facts.model_rate, session.id, dialect)
        self._pipes: dict[int, EncoderPipe] = {}
        self._live: dict[int, ListenerState | None] = {}  # engine utterances, and how held
        self._delays: dict[str, float] = {}
        self._blocked = False
        self._closed = False
        self._timer: TimerHandle | None = None
        self._timer_at: float | None = None
        session.allowance.give_up = self._displace

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    # -- the client's side ------------------------------------------------------------------

    def open(self, now: float) -> None:
        """A fresh session waits for its first message."""
        self._settle(now)

    def receive(self, message: ClientMessage, now: float) -> None:
        """A decoded message that was read at ``now``."""
        self._perform(self.session.receive(message, now), now)

    def refuse(self, error: ProtocolError, now: float) -> None:
        """A frame that is no message."""
        self._perform(self.session.refuse(error, now), now)

    def resume(self, request: ResumeFrom, token: str, outlet: Outlet, now: float) -> bool:
        """Move to a new connection, the newest wins. False: refused, nothing has changed."""
        if not self.session.can_resume(request):
            self._perform(self.session.resume(request, token, now), now, outlet)
            return False
        if self.outlet is not None:
            self._perform(self.session.takeover(now), now)
        self.outlet = outlet
        self._perform(self.session.resume(request, token, now), now)
        self.blocked(False, now)
        self._hub.metrics.resumes.labels("resumed").inc()
        return True

    def detach(self, outlet: Outlet, now: float) -> None:
        """``outlet`` is gone. Nothing happens when another one has taken over."""
        if self._closed or self.outlet is not outlet:
            return
        self.outlet = None
        self._perform(self.session.detach(now), now)
        self.blocked(False, now)

    def blocked(self, blocked: bool, now: float) -> None:
        """The socket takes nothing (or does again): make no more audio for it."""
        if blocked == self._blocked or self._closed:
            return
        self._blocked = blocked
        if blocked:
            self.meter.blocked()
        for utterance in self._live:
            self._hold(utterance, now)

    def network_delay(self, one_way: float) -> None:
        """Half a measured round trip, in seconds."""
        self._delay("ping", min(one_way, self._hub.facts.limits.one_way_most))

    # -- the server's side ------------------------------------------------------------------

    def drain(self, deadline: float, now: float) -> None:
        """Take nothing new, and speak on until ``deadline``."""
        self._perform(self.session.drain(deadline, now), now)

    def stop(self, code: int, reason: str, now: float, fault: Fault = DRAINING) -> None:
        """End at once; what is alive fails with ``fault``."""
        if not self._closed:
            self._perform(self.session.stop(code, reason, now, fault), now)

    def _displace(self, now: float) -> None:
        with self._isolated():
            self._perform(self.session.displace(now), now)

    def engine_event(self, event: EngineEvent, now: float) -> None:
        """An event of one of this session's utterances. Raises nothing."""
        with self._isolated():
            self._engine_event(event, now)

    def _engine_event(self, event: EngineEvent, now: float) -> None:
        pipe = self._pipes.get(event.utterance)
        if isinstance(event, Finished):
            self._live.pop(event.utterance, None)
        if pipe is not None:
            pipe.push(event)
        elif not isinstance(event, AudioChunk) and not self._closed:
            self._perform(self.session.engine_event(event, now), now)

    def close(self) -> None:
        """Let go of connection, timer and encoders; the session has ended."""
        self._closed = True
        self.outlet = None
        self.session.allowance.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for pipe in self._pipes.values():
            pipe.close()
        self._pipes.clear()

    @contextlib.contextmanager
    def _isolated(self) -> Iterator[None]:
        """Top of every callback from outside the client's own task."""
        try:
            yield
        # A fault in one session must not cost the others of the same engine step their audio,
        # nor leave this one hanging without a word.
        except Exception:
            log.exception("session %s failed", self.id)
            for utterance in self._live:
                self._hub.engine.cancel(utterance)
            if self.outlet is not None:
                self.outlet.close(INTERNAL_ERROR, "internal_error")
            self.close()
            self._hub.abandon(self)

    def _encoded(self, utterance: int, outputs: Sequence[PipeOutput]) -> None:
        with self._isolated():
            self._take(utterance, outputs, clock.monotonic())

    def _take(self, utterance: int, outputs: Sequence[PipeOutput], now: float) -> None:
        for output in outputs:
            if self._closed or utterance not in self._pipes:
                return
            if isinstance(output, EncodedAudio):
                self._audio(utterance, output, now)
            elif isinstance(output, EncoderFailed):
                self._encoder_failed(output, now)
            else:
                self._perform(self.session.engine_event(output, now), now)

    def _audio(self, utterance: int, output: EncodedAudio, now: float) -> None:
        effects = self.session.audio(utterance, output.encoded, output.chunk, output.final, now)
        leaves = any(isinstance(e, Send) and isinstance(e.message, Audio) for e in effects)
        self.meter.audio(utterance, output.chunk, leaves, now)
        self._perform(effects, now)

    def _encoder_failed(self, fault: EncoderFailed, now: float) -> None:
        self._hub.metrics.encoder_failures.inc()
        self._hub.engine.cancel(fault.utterance)
        message = f"the wire encoder failed ({fault.message})"
        event = Finished(fault.utterance, Finish.FAILED, 0, "internal_error", message)
        self._perform(self.session.engine_event(event, now), now)

    # -- effects ----------------------------------------------------------------------------

    def _perform(self, effects: Sequence[Effect], now: float, outlet: Outlet | None = None) -> None:
        target = outlet or self.outlet
        for effect in effects:
            if isinstance(effect, Send):
                self.meter.sent(effect.message, now)
                if target is not None:
                    target.send(effect.message)
            elif isinstance(effect, Close):
                if target is not None:
                    target.close(effect.code, effect.reason)
            else:
                self._drive(effect, now)
        self._settle(now)

    def _drive(self, effect: Effect, now: float) -> None:
        match effect:
            case OpenEncoder(utterance, wire_format):
                self._pipes[utterance] = self._hub.open_pipe(utterance, wire_format, self._encoded)
            case CloseEncoder(utterance):
                if pipe := self._pipes.pop(utterance, None):
                    pipe.close()
            case Submit():
                self._submit(effect, now)
            case Hold(utterance, state):
                if utterance in self._live:
                    self._live[utterance] = state
                    self._hold(utterance, now)
            case _:
                self._forward(effect, now)

    def _forward(self, effect: Effect, now: float) -> None:
        engine = self._hub.engine
        match effect:
            case PushText(utterance, delta, flush, end):
                self.meter.text(utterance, len(delta), end, now)
                engine.push_text(utterance, delta, flush=flush, end=end)
            case CancelUtterance(utterance):
                engine.cancel(utterance)
            case ForwardReport(report, arrived):
                self.meter.report(report, arrived)
                engine.report(report, arrived)
            case ForwardDelay(_, one_way):
                self._delay("echo", one_way)

    def _delay(self, source: str, one_way: float) -> None:
        # Both sources err upwards only: what waits in a queue arrives late, never early.
        self._delays[source] = one_way
        self.meter.one_way = min(self._delays.values())
        self._hub.engine.delay(self.id, self.meter.one_way)

    def _submit(self, effect: Submit, now: float) -> None:
        utterance = effect.request.utterance
        self._live[utterance] = None
        self._hub.route(utterance, self)
        self.meter.opened(effect.request, now)
        self._hub.engine.submit(replace(effect.request, account=self.owner))
        if self._blocked:
            self._hold(utterance, now)

    def _hold(self, utterance: int, now: float) -> None:
        state = ListenerState.SUSPENDED if self._blocked else self._live[utterance]
        self._hub.engine.hold(utterance, state, now)

    # -- the one timer ----------------------------------------------------------------------

    def _settle(self, now: float) -> None:
        """Bury an ended session, or arm the timer for what it waits for next."""
        if self.session.ended:
            self.close()
            self._hub.bury(self, now)
            return
        self.session.allowance.speaking(not self.session.idle)
        due = self.session.get_timer()
        if due == self._timer_at and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = due
        if due is not None:
            delay = max(due - clock.monotonic(), TIMER_STEP)
            self._timer = self._hub.loop.call_later(delay, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = clock.monotonic()
        with self._isolated():
            self._perform(self.session.handle_timer(now), now)
