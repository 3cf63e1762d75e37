"""A session with a Playhead server: text in, sound out, and the playhead told back."""

import asyncio
import itertools
import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from playhead.client.carrier import Carrier, Clock
from playhead.client.errors import PlayheadError, UtteranceFailed
from playhead.client.link import Address, dial
from playhead.client.player import Player
from playhead.client.reporter import Reporter
from playhead.client.track import Counters, PlayerConfig
from playhead.client.utterance import AudioMessage, Cancelled, Done, Utterance
from playhead.codecs.base import Decoder
from playhead.codecs.registry import Format, decoder
from playhead.engine.clock import monotonic
from playhead.gateway import messages as m
from playhead.gateway.protocol import Encoding

log = logging.getLogger("playhead.client")

_PING_PATIENCE = 10.0  # seconds

Event = m.Warn | m.Draining | m.ErrorEvent


@asynccontextmanager
async def connect(
    url: str,
    *,
    voice: str | None = None,
    speed: float = 1.0,
    codec: str = "pcm_s16le",
    sample_rate: int = 24000,
    start_threshold: float = 0.1,
    playback_rate: float = 1.0,
    output_latency: float = 0.0,
    reports: bool = True,
    encoding: Encoding = "msgpack",
    binary_audio: bool = False,
    timeout: float = 10.0,
    on_event: Callable[[Event], None] | None = None,
    clock: Clock = monotonic,
) -> AsyncIterator["Voice"]:
    """Open a session; leaving the block ends it, also when speech is still being played.

    ``start_threshold`` and ``output_latency`` (seconds), ``playback_rate`` describe the player
    that is modelled and reported; ``reports=False`` keeps it silent. ``on_event`` gets warnings,
    errors and the notice of a shutdown; without it they are logged.

    Raises :class:`~playhead.client.errors.ConnectionFailed` when no session comes about within
    ``timeout`` seconds, :class:`~playhead.client.errors.ServerError` when the server refuses the
    settings.
    """
    hello = m.Hello(
        voice=voice,
        speed=speed,
        codec=codec,
        sample_rate=sample_rate,
        start_threshold=1000 * start_threshold,
        playback_rate=playback_rate,
        reports=reports,
        binary_audio=binary_audio,
    )
    address = Address(url, encoding, timeout)
    link, ready = await dial(address, hello)
    config = PlayerConfig(
        sample_rate=ready.sample_rate,
        start_threshold=start_threshold,
        playback_rate=playback_rate,
        output_latency=output_latency,
    )
    carrier = Carrier(address, hello, link, ready, clock)
    reporter = Reporter(Player(config), carrier, clock, reports=reports)
    session = Voice(carrier, reporter, on_event or _log_event, clock)
    tasks = [asyncio.create_task(session.run()), asyncio.create_task(reporter.run())]
    try:
        yield session
    finally:
        await session.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _log_event(event: Event) -> None:
    log.warning("%s", event)


class Voice:
    """An open session. Made by :func:`connect`; belongs to one event loop.

    Utterances are spoken in the order in which they were opened.
    """

    def __init__(
        self,
        carrier: Carrier,
        reporter: Reporter,
        on_event: Callable[[Event], None],
        clock: Clock,
    ) -> None:
        self.ready = ready = carrier.ready  # the server's first answer: voices, formats, limits
        self._format = Format(ready.codec, ready.sample_rate, ready.pre_skip, ready.packet_samples)
        self._carrier = carrier
        self._reporter = reporter
        self._player = reporter.player
        self._on_event = on_event
        self._clock = clock
        self._ids = itertools.count(1)
        self._live: dict[str, Utterance] = {}  # not over, in order, by id
        self._by_epoch: dict[int, Utterance] = {}
        self._decoders: dict[int, Decoder] = {}
        self._pings: dict[float, asyncio.Future[float]] = {}
        self._ended: PlayheadError | None = None

    # ------------------------------------------------------------ speaking

    def speak(
        self, text: str, *, voice: str | None = None, speed: float | None = None
    ) -> Utterance:
        """Speak a text that is known in full."""
        utterance = self.open(voice=voice, speed=speed)
        utterance.send(text)
        utterance.end()
        return utterance

    def open(self, *, voice: str | None = None, speed: float | None = None) -> Utterance:
        """Open an utterance whose text comes piece by piece: send, flush, end.

        ``voice`` and ``speed`` default to the session's. Raises what ended the session when it
        is over.
        """
        if self._ended is not None:
            raise self._ended
        utterance = Utterance(self, f"u{next(self._ids)}", voice, speed)
        self._live[utterance.id] = utterance
        self.script_changed()
        return utterance

    @property
    def text_limit(self) -> float:
        """Most characters of one utterance."""
        return self.ready.limits.get("text_utterance", math.inf)

    def script_changed(self) -> None:
        """Send what may be sent: one utterance after the other, never more than is welcome."""
        limits = self.ready.limits
        size = int(limits.get("text_message", 2000))
        for utterance in list(self._live.values()):
            script = utterance.script
            if not script.started:
                script.started = True
                self._carrier.post(m.Start(voice=script.voice, speed=script.speed, id=utterance.id))
            unspoken = sum(other.script.waiting for other in self._live.values())
            for message in script.take(size, limits.get("text_waiting", math.inf) - unspoken):
                self._carrier.post(message)
            if not script.exhausted:
                return

    # ------------------------------------------------------------ holding and cutting

    def pause(self) -> None:
        """Hold playback where it is."""
        self._player.pause(self._clock())
        self._carrier.post(m.Pause())
        self._reporter.wake()

    def resume(self) -> None:
        """Let playback go on."""
        self._player.resume(self._clock())
        self._carrier.post(m.ResumePlayback())
        self._reporter.wake()

    async def cut(self, utterance: Utterance) -> None:
        """Stop an utterance and all behind it (:meth:`Utterance.cancel` waits for the answer)."""
        behind = list(self._live.values())
        behind = behind[behind.index(utterance) :]
        for other in behind:
            other.script.cut()
            if not other.script.started:
                self._over(other, Cancelled(0, "", other.text, estimated=False))
        await utterance.opened()
        if utterance.epoch is None or utterance.over:
            return
        now = self._clock()
        self._player.clear(now, utterance.epoch)
        counters = self._player.counters(utterance.epoch, now)
        heard = None if counters is None else counters.heard
        self._carrier.post(m.Cancel(epoch=utterance.epoch, heard=heard))
        self._reporter.wake()

    # ------------------------------------------------------------ watching

    def counters_of(self, epoch: int) -> Counters | None:
        """The player's counters of an utterance."""
        return self._player.counters(epoch, self._clock())

    @property
    def resumptions(self) -> int:
        """How often a dropped socket was replaced."""
        return self._carrier.resumptions

    async def ping(self) -> float:
        """The round trip to the server in seconds, its own time taken off.

        Raises what ended the session, and ``TimeoutError`` when the ping was lost with a socket.
        """
        if self._ended is not None:
            raise self._ended
        stamp = 1000 * self._clock()
        answer = asyncio.get_running_loop().create_future()
        self._pings[stamp] = answer
        self._carrier.post(m.Ping(stamp))
        try:
            async with asyncio.timeout(_PING_PATIENCE):
                return float(await answer)
        finally:
            self._pings.pop(stamp, None)

    # ------------------------------------------------------------ the server's side

    async def run(self) -> None:
        """Take messages until the session ends; then everything that waits learns why."""
        ended = PlayheadError("the session was closed")
        try:
            await self._carrier.run(self.on_message)
        except PlayheadError as error:
            ended = error
        finally:
            self._ended = ended
            for utterance in list(self._live.values()):
                self._over(utterance, ended)
            for answer in self._pings.values():
                answer.cancel()

    async def close(self) -> None:
        """End the session. What is still being spoken is cut."""
        self._carrier.post(m.CloseSession())
        await self._carrier.close()

    def on_message(self, message: m.ServerMessage, now: float) -> None:
        """Act on one message of the server, read at ``now``."""
        match message:
            case m.Audio():
                self._on_audio(message, now)
            case m.Started():
                self._on_started(message, now)
            case m.Done():
                self._player.add(message.epoch, 0, True, now)
                self._on_outcome(
                    message.epoch,
                    Done(message.samples, message.heard, message.estimated, message.reason),
                )
            case m.Cancelled():
                self._player.clear(now, message.epoch, message.epoch)
                self._on_outcome(
                    message.epoch,
                    Cancelled(
                        message.heard,
                        message.heard_text,
                        message.unheard_text,
                        message.estimated,
                    ),
                )
            case m.Failed():
                self._player.add(message.epoch, 0, True, now)
                self._on_outcome(message.epoch, UtteranceFailed(message))
            case m.Pong():
                self._on_pong(message, now)
            case m.Warn() | m.Draining() | m.ErrorEvent():
                self._on_notice(message)
        self._reporter.wake()

    def _on_started(self, message: m.Started, now: float) -> None:
        utterance = self._live.get(message.id or "")
        self._player.begin(message.epoch, now)
        if utterance is not None:
            self._carrier.backlog.confirm(utterance.id)
            self._by_epoch[message.epoch] = utterance
            self._decoders[message.epoch] = decoder(self._format)
            utterance.on_started(message.epoch)

    def _on_audio(self, message: m.Audio, now: float) -> None:
        self._player.add(message.epoch, message.samples, message.final, now)
        self._reporter.echo(message.sent, now)
        utterance = self._by_epoch.get(message.epoch)
        if utterance is None:
            return
        decode = self._decoders[message.epoch].decode
        utterance.on_audio(
            AudioMessage(
                epoch=message.epoch,
                index=message.index,
                position=message.position,
                pcm=decode(message.data, message.packets or (), message.samples),
                words=message.words,
                lane=message.lane,
                slack=None if message.slack is None else message.slack / 1000,
                depth=message.depth / 1000,
                final=message.final,
            )
        )
        self.script_changed()

    def _on_outcome(self, epoch: int, outcome: Done | Cancelled | PlayheadError) -> None:
        utterance = self._by_epoch.pop(epoch, None)
        self._decoders.pop(epoch, None)
        if utterance is not None:
            self._over(utterance, outcome)
            self.script_changed()

    def _over(self, utterance: Utterance, outcome: Done | Cancelled | PlayheadError) -> None:
        self._live.pop(utterance.id, None)
        utterance.on_outcome(outcome)

    def _on_notice(self, message: Event) -> None:
        if isinstance(message, m.Warn):
            utterance = self._by_epoch.get(-1 if message.epoch is None else message.epoch)
            if utterance is not None:
                utterance.on_warning(message)
                self.script_changed()
        self._on_event(message)

    def _on_pong(self, message: m.Pong, now: float) -> None:
        answer = self._pings.get(message.time)
        if answer is not None and not answer.done():
            held = message.sent - message.received
            answer.set_result((1000 * now - message.time - held) / 1000)
