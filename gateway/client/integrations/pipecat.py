"""A pipecat TTS service that speaks through Playhead and reports what is played.

pipecat's output transport tells when the bot's voice starts to be heard. That moment starts the
session's model of the player, so the server schedules by the listener's real playhead, and an
interruption is answered with the words that were heard.

Needs the extra ``playhead[pipecat]``.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from pipecat.frames.frames import (
    BotStartedSpeakingFrame,
    BotStoppedSpeakingFrame,
    CancelFrame,
    EndFrame,
    ErrorFrame,
    Frame,
    InterruptionFrame,
    StartFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
)
from pipecat.processors.frame_processor import FrameDirection
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TextAggregationMode, TTSService
from playhead.client import PlayheadError, Utterance, Voice, connect
from playhead.codecs.pcm import pack_s16le

CANCEL_PATIENCE = 2.0
"""Seconds to wait for what was heard when a turn is interrupted."""


class PlayheadTTSService(TTSService):
    """Speaks a pipeline's text.

    ``url`` is the server's (``ws://127.0.0.1:8080``); ``session`` goes to
    :func:`playhead.client.connect` as it is (``voice``, ``speed``, ``instruct`` and so on). Text
    is passed on token by token unless ``text_aggregation_mode`` says otherwise: the server cuts it
    itself. ``sample_rate`` must be one that the server has.

    Event ``on_heard(service, heard_text, unheard_text)``: a turn was interrupted.
    """

    def __init__(
        self,
        *,
        url: str,
        sample_rate: int = 24_000,
        text_aggregation_mode: TextAggregationMode = TextAggregationMode.TOKEN,
        session: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            text_aggregation_mode=text_aggregation_mode,
            push_text_frames=False,
            push_start_frame=True,
            sample_rate=sample_rate,
            settings=TTSSettings(model="playhead", voice=None, language=None),
            **kwargs,
        )
        self._url = url
        self._session = session or {}
        self._whole_pieces = text_aggregation_mode is not TextAggregationMode.TOKEN
        self._open = contextlib.AsyncExitStack()
        self._voice: Voice | None = None
        self._turns: dict[str, Utterance] = {}
        self._listening: set[asyncio.Task[None]] = set()
        self._register_event_handler("on_heard")

    def can_generate_metrics(self) -> bool:
        """Time to first byte and characters are measured."""
        return True

    # -- the pipeline's life ------------------------------------------------------------------

    async def start(self, frame: StartFrame) -> None:
        """Open the session."""
        await super().start(frame)
        await self._connect()

    async def stop(self, frame: EndFrame) -> None:
        """Let speech end, then close the session."""
        await super().stop(frame)
        await self._disconnect()

    async def cancel(self, frame: CancelFrame) -> None:
        """Close the session."""
        await super().cancel(frame)
        await self._disconnect()

    async def cleanup(self) -> None:
        """Close the session, whatever came before."""
        await super().cleanup()
        await self._disconnect()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """The transport's word that the bot is heard starts the player's clock."""
        if isinstance(frame, BotStartedSpeakingFrame) and self._voice is not None:
            self._voice.playback_started()
        if isinstance(frame, BotStoppedSpeakingFrame) and self._voice is not None:
            self._voice.playback_stopped()
        await super().process_frame(frame, direction)
        if isinstance(frame, InterruptionFrame):
            # Turns that the pipeline is done with may still be played by its transport.
            for context_id in list(self._turns):
                if not self.audio_context_available(context_id):
                    await self._cut(context_id)

    async def _connect(self) -> Voice:
        if self._voice is None:
            opening = connect(
                self._url, sample_rate=self.sample_rate, external_start=True, **self._session
            )
            self._voice = await self._open.enter_async_context(opening)
            await self._call_event_handler("on_connected")
        return self._voice

    async def _disconnect(self) -> None:
        if self._voice is None:
            return
        self._voice = None
        self._turns.clear()
        for task in list(self._listening):
            await self.cancel_task(task)
        await self._open.aclose()
        await self._call_event_handler("on_disconnected")

    # -- speech -------------------------------------------------------------------------------

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        """Add text to the turn of that context; its audio comes on its own."""
        try:
            turn = self._turns.get(context_id) or await self._begin(context_id)
            turn.send(text if not self._whole_pieces or text[-1:].isspace() else text + " ")
            await self.start_tts_usage_metrics(text)
            yield None
        except (PlayheadError, ValueError) as fault:
            yield ErrorFrame(error=f"Playhead: {fault}")
            yield TTSStoppedFrame(context_id=context_id)

    async def flush_audio(self, context_id: str | None = None) -> None:
        """The turn's text is complete."""
        turn = self._turns.get(context_id or self.get_active_audio_context_id() or "")
        if turn is not None:
            turn.end()

    async def on_audio_context_interrupted(self, context_id: str) -> None:
        """Stop the turn, and tell what of it was heard."""
        await self.stop_all_metrics()
        await self._cut(context_id)
        await super().on_audio_context_interrupted(context_id)

    async def _cut(self, context_id: str) -> None:
        turn = self._turns.pop(context_id, None)
        if turn is None or turn.over:
            return
        with contextlib.suppress(PlayheadError, TimeoutError):
            async with asyncio.timeout(CANCEL_PATIENCE):
                ending = await turn.cancel()
            await self._call_event_handler("on_heard", ending.heard_text, ending.unheard_text)

    async def _begin(self, context_id: str) -> Utterance:
        turn = (await self._connect()).open()
        self._turns[context_id] = turn
        task = self.create_task(self._listen(turn, context_id))
        self._listening.add(task)
        task.add_done_callback(self._listening.discard)
        return turn

    async def _listen(self, turn: Utterance, context_id: str) -> None:
        """Pass a turn's audio and words on until it ends."""
        rate = self.sample_rate
        try:
            async for part in turn:
                audio = TTSAudioRawFrame(pack_s16le(part.pcm), rate, 1, context_id=context_id)
                if len(part.pcm):
                    await self.append_to_audio_context(context_id, audio)
                words = [(word.text, word.position / rate) for word in part.words]
                if words:
                    await self.add_word_timestamps(words, context_id)
        except PlayheadError as fault:
            await self.push_error(error_msg=f"Playhead: {fault}")
        if self.audio_context_available(context_id):
            await self.append_to_audio_context(context_id, TTSStoppedFrame(context_id=context_id))
            await self.remove_audio_context(context_id)
        with contextlib.suppress(PlayheadError):
            await turn.done()
        if self._turns.get(context_id) is turn:
            del self._turns[context_id]
