"""One connection that speaks ``playhead.v1``: its frames to a session, the session's to it."""

from typing import Final

from playhead.engine import clock
from playhead.gateway.effects import Close, Send
from playhead.gateway.host import SessionHost
from playhead.gateway.hub import Hub
from playhead.gateway.line import SLOW_CONSUMER, Line, audio_bytes
from playhead.gateway.messages import Cancel, Hello, Ready, ServerMessage
from playhead.gateway.peer import Peer
from playhead.gateway.protocol import ProtocolError, Wire
from playhead.gateway.registry import new_secret
from playhead.gateway.session import refuse_resume
from playhead.gateway.settings import Settings
from playhead.gateway.silence import SilentListener

RESUME_FAILED: Final = "resume_failed"


class Connection:
    """Serves one peer until either side is done. Event loop only."""

    def __init__(self, peer: Peer, hub: Hub, wire: Wire, settings: Settings) -> None:
        self._hub = hub
        self._wire = wire
        self._line = Line(peer, settings, self)
        self._host: SessionHost | None = None
        grant = peer.grant
        assert grant is not None, "nobody gets here without passing the gate"
        self._grant = grant
        self._first = True  # the next message may be a hello
        self._replaying = False  # a resumed session sends what it kept, at once
        self._silent: SilentListener | None = None

    async def run(self) -> None:
        """Serve until the connection is closed. Raises nothing for a peer that vanishes."""
        self._host = self._hub.open(self, self._grant, clock.monotonic())
        try:
            await self._line.run()
        finally:
            self._detach(clock.monotonic())

    @property
    def _attached(self) -> SessionHost | None:
        """The session, unless a newer connection has taken it over."""
        if self._host is not None and self._host.outlet is self:
            return self._host
        return None

    def _detach(self, now: float) -> None:
        if self._silent is not None:
            self._silent.stop()
        if self._host is not None:
            self._host.detach(self, now)

    # -- outlet of the session ----------------------------------------------------------------

    def send(self, message: ServerMessage) -> None:
        """Queue a message for the writer."""
        if self._line.closing:
            return
        if isinstance(message, Ready):
            self._line.allow(audio_bytes(message.codec, message.sample_rate))
        for frame in self._wire.encode(message):
            self._line.send(frame, extra=self._replaying)
        if self._silent is not None:
            self._silent.sent(message, clock.monotonic())

    def close(self, code: int, reason: str) -> None:
        """Close once everything queued has been written. The session has ended, or goes on
        elsewhere: it need not wait for the socket to be freed."""
        if self._silent is not None:
            self._silent.stop()
        self._host = self._silent = None
        self._line.close(code, reason)

    # -- user of the line ---------------------------------------------------------------------

    def take(self, frame: bytes | str, now: float) -> None:
        """Give a frame to the session."""
        assert self._host is not None
        try:
            message = self._wire.decode_client(frame)
        except ProtocolError as error:
            self._host.refuse(error, now)
            return
        first, self._first = self._first, False
        if first and isinstance(message, Hello):
            self._greet(message, now)
            return
        if isinstance(message, Cancel) and self._silent is not None:
            self._silent.look(now)  # where the listener is must be known before it is cut off
        self._host.receive(message, now)

    def hold(self, held: bool, now: float) -> None:
        """The peer takes nothing, or does again."""
        if self._attached is not None:
            self._attached.blocked(held, now)

    def delay(self, one_way: float) -> None:
        """A bound of the one-way network delay, seconds."""
        if self._attached is not None:
            self._attached.network_delay(one_way)

    def gave_up(self, now: float) -> None:
        """The peer does not read."""
        self._hub.metrics.refused(SLOW_CONSUMER)
        self._detach(now)

    # -- coming back --------------------------------------------------------------------------

    def _greet(self, hello: Hello, now: float) -> None:
        assert self._host is not None
        self._wire.binary_audio = hello.binary_audio
        if hello.resume is None:
            if not hello.reports and self._hub.facts.observed:
                self._silent = SilentListener(self._line, hello, self._host.receive)
            self._host.receive(hello, now)
            return
        self._hub.abandon(self._host)
        self._host = None
        resumes = self._hub.metrics.resumes
        host = self._hub.find(hello.resume.session, self._grant.owner)
        if host is not None:
            self._replaying = True
            owned = host.session.owned_by(hello.resume)
            if host.resume(hello.resume, new_secret(), self, now):
                self._host = host
            else:
                resumes.labels("replay_lost" if owned else "token").inc()
            self._replaying = False
            return
        stone = self._hub.registry.tombstone(hello.resume.session, self._grant.owner, now)
        resumes.labels("unknown" if stone is None else "ended").inc()
        for effect in refuse_resume(hello.resume, stone, now):
            if isinstance(effect, Send):
                self.send(effect.message)
            elif isinstance(effect, Close):
                self.close(effect.code, effect.reason)
        self._hub.metrics.refused(RESUME_FAILED)
