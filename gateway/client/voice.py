"""A session with a server, as a Python program has it: utterances in, sound and outcomes out."""

import itertools
import math
from collections.abc import Callable

from playhead.client.carrier import Carrier, Clock
from playhead.client.errors import (
    ConnectionLost,
    PlayheadError,
    ServerError,
    UtteranceFailed,
    server_error,
)
from playhead.client.link import PROTOCOL_ERROR
from playhead.client.pings import Pings
from playhead.client.reporter import Reporter
from playhead.client.track import Counters
from playhead.client.utterance import AudioMessage, Cancelled, Done, Utterance, check_length
from playhead.codecs.base import BadAudio, Decoder
from playhead.codecs.registry import Format, decoder
from playhead.gateway import messages as m

#: Utterances opened at the server at a time: the one that plays and the next. More would gain
#: nothing, and servers bound how many wait and how fast they are opened.
_AHEAD = 2
#: Error codes that may answer ``start``.
_REFUSALS = frozenset({"overloaded", "draining", "rate_limited", "unknown_voice"})

Event = m.Warn | m.Draining | m.ErrorEvent


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
        self._pings = Pings()
        self._ended: PlayheadError | None = None

    # ------------------------------------------------------------ speaking

    def speak(
        self, text: str, *, voice: str | None = None, speed: float | None = None
    ) -> Utterance:
        """Speak a text that is known in full. Raises like :meth:`open` and ``send``."""
        check_length(len(text), self.text_limit)
        utterance = self.open(voice=voice, speed=speed)
        utterance.send(text)
        utterance.end()
        return utterance

    def open(self, *, voice: str | None = None, speed: float | None = None) -> Utterance:
        """Open an utterance whose text comes piece by piece: send, flush, end.

        ``voice`` and ``speed`` default to the session's. Raises
        :class:`~playhead.client.errors.ServerError` for a voice that the server does not have,
        and what ended the session when it is over.
        """
        if self._ended is not None:
            raise self._ended
        if voice is not None and voice not in self.ready.voices:
            known = "one of " + ", ".join(self.ready.voices)
            raise ServerError("unknown_voice", f"unknown voice {voice!r}", known, field="voice")
        utterance = Utterance(self, f"u{next(self._ids)}", voice, speed)
        self._live[utterance.id] = utterance
        self.script_changed()
        return utterance

    @property
    def sample_rate(self) -> int:
        """Hz, of all sound and all positions."""
        return self.ready.sample_rate

    @property
    def text_limit(self) -> float:
        """Most characters of one utterance."""
        return self.ready.limits.get("text_utterance", math.inf)

    def script_changed(self) -> None:
        """Send what may be sent: one utterance after the other, never more than is welcome."""
        limits = self.ready.limits
        size = int(limits.get("text_message", 2000))
        opened = sum(utterance.script.started for utterance in self._live.values())
        for utterance in list(self._live.values()):
            script = utterance.script
            if not script.started:
                if opened >= _AHEAD:
                    return
                opened += 1
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

    def cut(self, utterance: Utterance) -> None:
        """Stop an utterance and all behind it (:meth:`Utterance.cancel` waits for the answer)."""
        live = list(self._live.values())
        for other in live[live.index(utterance) :]:
            other.script.cut()
            if not other.script.started:
                self._over(other, Cancelled(0, "", other.text, estimated=False))
        if utterance.over:
            return
        if utterance.epoch is None:
            # Its epoch is on the way. Until then nothing new may pass: it would be cut as well.
            utterance.script.blocks = True
        else:
            self._post_cancel(utterance.epoch)

    def _post_cancel(self, epoch: int) -> None:
        now = self._clock()
        self._player.clear(now, epoch)
        counters = self._player.counters(epoch, now)
        heard = None if counters is None else counters.heard
        self._carrier.post(m.Cancel(epoch=epoch, heard=heard))
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
        ping = self._pings.open(self._clock())
        self._carrier.post(ping)
        return await self._pings.wait(ping)

    # ------------------------------------------------------------ the server's side

    async def run(self) -> None:
        """Take messages until the session ends; then everything that waits learns why."""
        ended: PlayheadError = PlayheadError("the session was closed")
        try:
            await self._carrier.run(self.on_message)
        except BadAudio as error:
            ended = ConnectionLost(f"the server sent audio that is none: {error}", PROTOCOL_ERROR)
        except PlayheadError as error:
            ended = error
        finally:
            self._ended = self._ended or ended
            for utterance in list(self._live.values()):
                self._over(utterance, self._ended)
            self._pings.fail(self._ended)

    async def close(self) -> None:
        """End the session. What is still being spoken is cut."""
        self._ended = self._ended or PlayheadError("the session was closed")
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
            case m.Ready():
                self._player.report_again()  # reports on their way were lost with the socket
            case m.Pong():
                self._pings.answer(message, now)
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
            if utterance.script.blocks:
                utterance.script.blocks = False
                self._post_cancel(message.epoch)
                self.script_changed()

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
        if isinstance(message, m.ErrorEvent) and message.code in _REFUSALS:
            self._refuse_opening(message)
        self._on_event(message)

    def _refuse_opening(self, message: m.ErrorEvent) -> None:
        """Errors come in the order of what they answer: the oldest ``start`` without an answer."""
        for utterance in self._live.values():
            if utterance.script.started and utterance.epoch is None:
                self._over(utterance, server_error(message))
                self.script_changed()
                return
