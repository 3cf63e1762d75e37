"""A LiveKit Agents TTS that speaks through Playhead and reports what is played.

A LiveKit audio output tells when a segment starts to be played and how far it came. Give it to
:meth:`PlayheadTTS.follow`: then the server schedules by the listener's real playhead, and the
words that were heard of an interrupted reply are told to ``on_heard``.

Needs the extra ``playhead[livekit]``.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from livekit.agents import APIConnectionError, APIConnectOptions, APIError, tts, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, TimedString
from playhead.client import Cancelled, ConnectionFailed, PlayheadError, Utterance, Voice, connect
from playhead.codecs.pcm import pack_s16le

MOST_FOLLOWED = 64
"""Segments whose playing may still be told."""


@dataclass(slots=True)
class _Segment:
    utterance: Utterance
    voice: Voice
    cut: bool = False


@dataclass(slots=True)
class _Session:
    voice: Voice
    stack: contextlib.AsyncExitStack


class PlayheadTTS(tts.TTS):
    """Streams text in and speech out; a session for each reply that is being spoken.

    ``url`` is the server's (``ws://127.0.0.1:8080``); ``session`` goes to
    :func:`playhead.client.connect` as it is (``voice``, ``speed``, ``instruct`` and so on).
    ``on_heard(heard_text, unheard_text)`` is called for every reply that was interrupted.
    """

    def __init__(
        self,
        *,
        url: str,
        sample_rate: int = 24_000,
        session: dict[str, Any] | None = None,
        on_heard: Callable[[str, str], None] | None = None,
    ) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=True, aligned_transcript=True),
            sample_rate=sample_rate,
            num_channels=1,
        )
        self._url = url
        self._options = session or {}
        self._on_heard = on_heard
        self._followed = False
        self._free: list[_Session] = []
        self._all: list[_Session] = []
        self._segments: deque[_Segment] = deque(maxlen=MOST_FOLLOWED)
        self._cut_already: WeakSet[Utterance] = WeakSet()
        self._tasks: set[asyncio.Task[None]] = set()

    # -- playback -----------------------------------------------------------------------------

    def follow(self, output: Any) -> None:
        """Report what ``output`` plays (``AgentSession.output.audio``). Before the first reply;
        the output must play nothing but this TTS."""
        self._followed = True
        output.on("playback_started", self._on_playback_started)
        output.on("playback_finished", self._on_playback_finished)

    def _on_playback_started(self, event: Any) -> None:
        if self._segments:
            self._segments[0].voice.playback_started()

    def _on_playback_finished(self, event: Any) -> None:
        if not self._segments:
            return
        segment = self._segments.popleft()
        segment.voice.playback_stopped()
        if event.interrupted and not segment.cut:
            self._spawn(self._cut(segment.utterance))

    async def _cut(self, utterance: Utterance) -> None:
        if utterance in self._cut_already:
            return
        self._cut_already.add(utterance)
        with contextlib.suppress(PlayheadError):
            ending = await utterance.cancel()
            if self._on_heard is not None:
                self._on_heard(ending.heard_text, ending.unheard_text)

    # -- sessions -----------------------------------------------------------------------------

    async def acquire(self, timeout: float) -> _Session:
        """A session in which nothing is spoken."""
        if self._free:
            return self._free.pop()
        stack = contextlib.AsyncExitStack()
        opening = connect(
            self._url,
            sample_rate=self.sample_rate,
            external_start=self._followed,
            timeout=timeout,
            **self._options,
        )
        session = _Session(await stack.enter_async_context(opening), stack)
        self._all.append(session)
        return session

    def release(self, session: _Session, utterance: Utterance) -> None:
        """``session`` is free again when ``utterance`` has been played or was cut."""
        self._spawn(self._free_after(session, utterance))

    def segment(self, utterance: Utterance, voice: Voice) -> None:
        """The first sound of the next segment that an output will play."""
        if self._followed:
            self._segments.append(_Segment(utterance, voice))

    def cut_short(self, utterance: Utterance) -> None:
        """A reply was dropped before all of it was there; its end will still be told, if any of
        it was played."""
        for segment in self._segments:
            if segment.utterance is utterance:
                segment.cut = True
        self._spawn(self._cut(utterance))

    async def _free_after(self, session: _Session, utterance: Utterance) -> None:
        try:
            await utterance.done()
        except PlayheadError:
            self._all.remove(session)
            await session.stack.aclose()
        else:
            self._free.append(session)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- tts.TTS ------------------------------------------------------------------------------

    @property
    def model(self) -> str:
        """For metrics."""
        return "playhead"

    @property
    def provider(self) -> str:
        """For metrics."""
        return "playhead"

    def stream(
        self, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> "SpeechStream":
        """A reply whose text comes piece by piece."""
        return SpeechStream(tts=self, conn_options=conn_options)

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        """A text that is known in full."""
        return self._synthesize_with_stream(text, conn_options=conn_options)

    async def aclose(self) -> None:
        """Close every session; what is spoken is cut."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in self._all:
            await session.stack.aclose()
        self._all.clear()
        self._free.clear()


class SpeechStream(tts.SynthesizeStream):
    """One reply."""

    def __init__(self, *, tts: PlayheadTTS, conn_options: APIConnectOptions) -> None:
        super().__init__(tts=tts, conn_options=conn_options)
        self._playhead = tts

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        owner = self._playhead
        try:
            session = await owner.acquire(self._conn_options.timeout)
        except ConnectionFailed as fault:
            raise APIConnectionError(str(fault)) from fault
        utterance = session.voice.open()
        owner.release(session, utterance)
        feeding = asyncio.create_task(self._feed(utterance))
        try:
            await self._listen(utterance, session.voice, output_emitter)
        except PlayheadError as fault:
            raise APIError(str(fault)) from fault
        except asyncio.CancelledError:
            owner.cut_short(utterance)
            raise
        finally:
            await utils.aio.gracefully_cancel(feeding)

    async def _feed(self, utterance: Utterance) -> None:
        async for data in self._input_ch:
            if isinstance(data, self._FlushSentinel):
                utterance.flush()
            else:
                self._mark_started()
                utterance.send(data)
        utterance.end()

    async def _listen(self, utterance: Utterance, voice: Voice, emitter: tts.AudioEmitter) -> None:
        rate = self._playhead.sample_rate
        emitter.initialize(
            request_id=utils.shortuuid(),
            sample_rate=rate,
            num_channels=1,
            mime_type="audio/pcm",
            stream=True,
        )
        emitter.start_segment(segment_id=utterance.id)
        told = 0
        async for part in utterance:
            for word in part.words:
                text = utterance.text[told : word.char_end]
                told = word.char_end
                start = word.position / rate
                emitter.push_timed_transcript(TimedString(text=text, start_time=start))
            if part.position == 0:
                self._playhead.segment(utterance, voice)
            if len(part.pcm):
                emitter.push(pack_s16le(part.pcm))
        rest = utterance.text[told:]
        if rest.strip() and not isinstance(await _ending(utterance), Cancelled):
            emitter.push_timed_transcript(TimedString(text=rest))
        emitter.end_input()


async def _ending(utterance: Utterance) -> object:
    return await utterance.done() if utterance.over else None
