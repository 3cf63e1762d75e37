"""A session with a server, as a Python program has it: utterances in, sound and outcomes out."""

import itertools
import math
from collections.abc import Callable

from playhead.client.carrier import Carrier, Clock
from playhead.client.errors import (
    ConnectionLost,
    PlayheadError,
    UtteranceFailed,
    server_error,
)
from playhead.client.link import PROTOCOL_ERROR
from playhead.client.moving import Moved
from playhead.client.outcomes import outcome
from playhead.client.pings import Pings
from playhead.client.relocation import Relocation
from playhead.client.reporter import Reporter
from playhead.client.style import REFUSALS, Style, check_style
from playhead.client.track import Counters
from playhead.client.utterance import Cancelled, Done, Utterance, check_length, send_scripts
from playhead.codecs.base import BadAudio, Decoder
from playhead.codecs.registry import Format, decoder
from playhead.gateway import messages as m

Event = m.Warn | m.Draining | m.ErrorEvent | Moved


class Voice:
    """An open session. Made by :func:`connect`; belongs to one event loop.

    Utterances are spoken in the order in which they were opened.
    """

    def __init__(
        self, carrier: Carrier, reporter: Reporter, on_event: Callable[[Event], None], clock: Clock
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
        self._move = Relocation(carrier, self._player, self._live, self._by_epoch)
        carrier.on_moved, carrier.awaiting = self._on_moved, self._awaiting

    # ------------------------------------------------------------ speaking

    def speak(
        self,
        text: str,
        *,
        voice: str | None = None,
        speed: float | None = None,
        language: str | None = None,
        instruct: str | None = None,
    ) -> Utterance:
        """Speak a text that is known in full. Raises like :meth:`open` and ``send``."""
        check_length(len(text), self.text_limit)
        utterance = self.open(voice=voice, speed=speed, language=language, instruct=instruct)
        utterance.send(text)
        utterance.end()
        return utterance

    def open(
        self,
        *,
        voice: str | None = None,
        speed: float | None = None,
        language: str | None = None,
        instruct: str | None = None,
    ) -> Utterance:
        """Open an utterance whose text comes piece by piece: send, flush, end.

        What is not given is as the session has it. ``instruct`` says in words how to speak, and
        ``""`` takes the session's instruction back. Raises
        :class:`~playhead.client.errors.ServerError` for a voice, a language or an instruction
        that the server's model has not, and what ended the session when it is over.
        """
        if self._ended is not None:
            raise self._ended
        style = Style(voice=voice, speed=speed, language=language, instruct=instruct)
        check_style(style, self.ready)
        utterance = Utterance(self, f"u{next(self._ids)}", style)
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
        """Send what may be sent."""
        send_scripts(
            self._live, self.ready.limits, self._carrier.post, opening=not self._move.leaving
        )

    # ------------------------------------------------------------ holding and cutting

    def pause(self) -> None:
        """Hold playback where it is."""
        self._move.paused = True
        self._player.pause(self._clock())
        self._carrier.post(m.Pause())
        self._reporter.wake()

    def resume(self) -> None:
        """Let playback go on."""
        self._move.paused = False
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

    def playback_started(self) -> None:
        """Sound of the current utterance leaves the speaker (``external_start`` of
        :func:`~playhead.client.connect`)."""
        self._player.start(self._clock())
        self._reporter.wake()

    def playback_stopped(self) -> None:
        """The speaker is silent until the next :meth:`playback_started`."""
        self._player.stop(self._clock())

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
            while self._live:
                self._live.popitem()[1].on_lost(self._ended)
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
                self._on_outcome(message.epoch, outcome(message))
            case m.Cancelled():
                self._player.clear(now, message.epoch, message.epoch)
                self._on_outcome(message.epoch, outcome(message))
            case m.Failed():
                self._player.add(message.epoch, 0, True, now)
                if self._move.keeps(message.code):
                    self._by_epoch.pop(message.epoch, None)
                    self._move.leave_if_idle()
                else:
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
        utterance.on_audio(message, decode(message.data, message.packets or (), message.samples))
        self.script_changed()

    def _on_outcome(self, epoch: int, ending: Done | Cancelled | PlayheadError) -> None:
        utterance = self._by_epoch.pop(epoch, None)
        self._decoders.pop(epoch, None)
        if utterance is not None:
            self._over(utterance, ending)
            self.script_changed()
        self._move.leave_if_idle()

    def _awaiting(self) -> bool:
        return any(each.script.started for each in self._live.values()) or self._pings.waiting

    def _on_moved(self, now: float) -> None:
        self.ready = self._carrier.ready
        self._decoders.clear()
        moved = self._move.arrived(now, self._over)
        self.script_changed()
        self._on_event(moved)

    def _over(self, utterance: Utterance, outcome: Done | Cancelled | PlayheadError) -> None:
        self._live.pop(utterance.id, None)
        utterance.on_outcome(outcome)

    def _on_notice(self, message: m.Warn | m.Draining | m.ErrorEvent) -> None:
        if isinstance(message, m.Warn):
            utterance = self._by_epoch.get(-1 if message.epoch is None else message.epoch)
            if utterance is not None:
                utterance.on_warning(message)
                self.script_changed()
        if isinstance(message, m.Draining):
            self._move.announced()
        if isinstance(message, m.ErrorEvent) and message.code in REFUSALS:
            self._refuse_opening(message)
        self._on_event(message)

    def _refuse_opening(self, message: m.ErrorEvent) -> None:
        """Errors come in the order of what they answer: the oldest ``start`` without an answer."""
        for utterance in self._live.values():
            if utterance.script.started and utterance.epoch is None:
                if not self._move.keeps(message.code):
                    self._over(utterance, server_error(message))
                    self.script_changed()
                return
