"""One text being spoken, as the caller of the client sees it."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from playhead.client.errors import PlayheadError, ResumeFailed
from playhead.client.placed import Placed
from playhead.client.script import END, FLUSH, Script
from playhead.client.style import Style
from playhead.client.track import Counters
from playhead.engine.types import Lane, Pcm
from playhead.gateway import messages as m
from playhead.gateway.messages import Audio, ClientMessage, SpokenWord, Warn

#: Utterances opened at the server at a time: the one that plays and the next. More would gain
#: nothing, and servers bound how many wait and how fast they are opened.
_AHEAD = 2


@dataclass(frozen=True, slots=True)
class AudioMessage:
    """Decoded sound, in order and without gaps. Positions are samples at the wire rate.

    After a move to another server (``recovered`` of :class:`Moved` tells) ``epoch`` is a new one,
    ``index`` and ``position`` begin again, and the first word may be one that was there before.
    """

    epoch: int
    index: int
    position: int  # of the first sample, from the utterance's first
    pcm: Pcm = field(repr=False)  # float32 [samples]; may be empty
    words: tuple[SpokenWord, ...]  # words that start inside this message
    lane: Lane
    slack: float | None  # seconds to spare when it was made; None: no deadline
    depth: float  # the server's belief of our buffer, seconds
    final: bool  # nothing follows


def heard_audio(message: m.Audio, pcm: Pcm) -> AudioMessage:
    """The server's message, its ``data`` decoded to ``pcm``."""
    return AudioMessage(
        epoch=message.epoch,
        index=message.index,
        position=message.position,
        pcm=pcm,
        words=message.words,
        lane=message.lane,
        slack=None if message.slack is None else message.slack / 1000,
        depth=message.depth / 1000,
        final=message.final,
    )


@dataclass(frozen=True, slots=True)
class Done:
    """The utterance has been played to its end. Counts are samples at the wire rate."""

    samples: int
    heard: int
    estimated: bool  # no report of ours had said so
    reason: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The utterance was cut. ``heard_text + unheard_text`` is the text as sent."""

    heard: int  # samples
    heard_text: str
    unheard_text: str
    estimated: bool


class Owner(Protocol):
    """What an utterance needs of its session."""

    @property
    def text_limit(self) -> float:
        """Most characters of one utterance."""

    def script_changed(self) -> None:
        """There is text to send."""

    def cut(self, utterance: "Utterance") -> None:
        """Cancel the utterance and all behind it."""

    def counters_of(self, epoch: int) -> Counters | None:
        """The player's counters of an utterance."""


def check_length(characters: int, limit: float) -> None:
    """Raises ``ValueError`` for more text than a server takes in one utterance."""
    if characters > limit:
        raise ValueError(f"an utterance takes at most {limit:g} characters; open another")


class Utterance:
    """A text on its way to being heard.

    Iterate over it for its :class:`AudioMessage`s, each of which comes once. Iteration ends with
    the last sound or with a cancel, and raises what :meth:`done` raises when it failed.
    """

    def __init__(self, owner: Owner, id: str, style: Style) -> None:
        self.id = id
        self.script = Script(style)
        self.epoch: int | None = None  # known once the server has opened it
        self.complete = False  # all its sound has arrived
        self._placed = Placed()
        self.warnings: list[Warn] = []  # what could not be spoken as written
        self._owner = owner
        self._audio: asyncio.Queue[AudioMessage | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = loop.create_future()
        self._outcome: asyncio.Future[Done | Cancelled] = loop.create_future()

    # ------------------------------------------------------------ text in

    @property
    def text(self) -> str:
        """All text given so far."""
        return self.script.text

    def send(self, delta: str) -> None:
        """Add text of any size, an LLM's token for example.

        Raises ``ValueError`` after :meth:`end`, or beyond the server's limit for one utterance.
        """
        check_length(len(self.text) + len(delta), self._owner.text_limit)
        self.script.add(delta)
        self._owner.script_changed()

    def flush(self) -> None:
        """Speak what has been sent so far, do not wait for the clause to end."""
        self.script.add(FLUSH)
        self._owner.script_changed()

    def end(self) -> None:
        """The text is complete. May be called again without effect."""
        if not self.script.closed:
            self.script.add(END)
            self._owner.script_changed()

    # ------------------------------------------------------------ sound and outcome

    async def __aiter__(self) -> AsyncIterator[AudioMessage]:
        final = False
        while not final and (message := await self._audio.get()) is not None:
            final = message.final
            yield message
        self._audio.put_nowait(None)  # whoever asks once more shall not wait for ever
        if not final:
            await self.done()

    async def read(self) -> Pcm:
        """All sound that is still to come, float32 [samples] at the wire rate."""
        parts = [message.pcm async for message in self]
        return np.concatenate([np.empty(0, np.float32), *parts])

    async def done(self) -> Done | Cancelled:
        """Wait until the utterance has been played to its end, or was cut.

        Raises :class:`~playhead.client.errors.UtteranceFailed` when the server could not speak
        it, and what ended the session when that came first.
        """
        return await asyncio.shield(self._outcome)

    async def cancel(self) -> Cancelled:
        """Stop now, and drop everything queued behind; tells what was heard.

        An utterance that was over before gives its whole text as heard. Raises like
        :meth:`done`.
        """
        if not self.over:
            self._owner.cut(self)
        outcome = await self.done()
        if isinstance(outcome, Cancelled):
            return outcome
        return Cancelled(outcome.heard, self.text, "", outcome.estimated)

    @property
    def counters(self) -> Counters | None:
        """The player's counters; None before the server has opened the utterance."""
        return None if self.epoch is None else self._owner.counters_of(self.epoch)

    @property
    def over(self) -> bool:
        """Whether :meth:`done` would return or raise at once."""
        return self._outcome.done()

    # ------------------------------------------------------------ called by the session

    async def opened(self) -> None:
        """Wait until ``epoch`` is known, or the utterance is over."""
        await asyncio.shield(self._opened)

    def on_started(self, epoch: int) -> None:
        """The server has opened it."""
        self.epoch = epoch
        self._settle_opened()

    def on_audio(self, message: Audio, pcm: Pcm) -> None:
        """Sound came."""
        words = self._placed.add(message.words)
        if words:
            self.script.spoken_to(words[-1].char_end)
        self.complete = message.final
        self._audio.put_nowait(
            AudioMessage(
                epoch=message.epoch,
                index=message.index,
                position=message.position,
                pcm=pcm,
                words=words,
                lane=message.lane,
                slack=None if message.slack is None else message.slack / 1000,
                depth=message.depth / 1000,
                final=message.final,
            )
        )

    def on_moved(self, counters: Counters | None) -> "Done | Cancelled | None":
        """Its server is gone: how it ended by what is known here, or None when the rest of its
        text is to be spoken by another. ``counters``: of its epoch."""
        heard = 0 if counters is None else counters.heard
        if self.script.severed:
            text, at = self.text, self._placed.reached
            return Cancelled(heard, text[:at], text[at:], estimated=True)
        if self.complete and counters is not None:
            return Done(counters.received, heard, estimated=True, reason="complete")
        self.script.rewind(self._placed.reached)
        self._placed.moved()
        self.epoch = None
        return None

    def on_lost(self, ended: PlayheadError) -> None:
        """Its session is gone. What the server does not know of it is told from here."""
        counters = self.counters
        heard = 0 if counters is None else counters.heard
        if isinstance(ended, ResumeFailed):
            ended = ended.completed(self.epoch, heard, self._placed.split(self.text, heard))
        self.on_outcome(ended)

    def on_warning(self, warning: Warn) -> None:
        """Something of the text was skipped or read otherwise."""
        self.warnings.append(warning)
        self.script.skipped(len(warning.text or ""))

    def on_outcome(self, outcome: Done | Cancelled | PlayheadError) -> None:
        """Nothing more will come. Once."""
        self.script.cut()
        if isinstance(outcome, PlayheadError):
            self._outcome.set_exception(outcome)
            self._outcome.exception()  # not every caller waits for it: no warning then
        else:
            self._outcome.set_result(outcome)
        self._settle_opened()
        self._audio.put_nowait(None)

    def _settle_opened(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)


def send_scripts(
    live: Mapping[str, Utterance],
    limits: Mapping[str, float],
    post: Callable[[ClientMessage], None],
    *,
    opening: bool,
) -> None:
    """Post what may be sent of ``live``, one utterance after the other, never more than is welcome.

    ``opening``: whether the server takes new utterances.
    """
    size = int(limits.get("text_message", 2000))
    opened = sum(utterance.script.started for utterance in live.values())
    for utterance in list(live.values()):
        script = utterance.script
        if not script.started:
            if not opening or opened >= _AHEAD:
                return
            opened += 1
            script.started = True
            post(script.style.opening(utterance.id))
        unspoken = sum(other.script.waiting for other in live.values())
        for message in script.take(size, limits.get("text_waiting", math.inf) - unspoken):
            post(message)
        if not script.exhausted:
            return
