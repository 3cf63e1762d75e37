"""Engine events through the wire encoder, in order, without holding up the event loop.

One :class:`EncoderPipe` per utterance owns its stateful encoder. Cheap encoders run inline.
Dear ones run on a shared thread pool, at most one job per utterance at a time, so that the
encoder is never entered twice and the order of events is kept. A fault of one encoder ends
that utterance alone.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

from playhead.codecs.base import Encoded, Encoder
from playhead.engine.types import AudioChunk, EngineEvent, Finish, Finished, TextWarning

log: Final = logging.getLogger("playhead.gateway.encoding")

_PLAYED_TO_THE_END: Final = (Finish.COMPLETE, Finish.LENGTH_BUDGET)


@dataclass(frozen=True, slots=True)
class EncodedAudio:
    """Wire bytes of one chunk; ``chunk`` is None for what flushing the encoder gave."""

    encoded: Encoded
    chunk: AudioChunk | None
    final: bool


@dataclass(frozen=True, slots=True)
class EncoderFailed:
    """The encoder raised; nothing more comes out of this pipe."""

    utterance: int
    message: str


PipeOutput = EncodedAudio | TextWarning | Finished | EncoderFailed


class EncoderPipe:
    """Turns one utterance's engine events into :data:`PipeOutput`, in the order given.

    ``emit`` is called on the event loop with one or more outputs at a time, and never after
    :meth:`close`. ``executor`` None runs the encoder inline.
    """

    def __init__(
        self,
        utterance: int,
        encoder: Encoder,
        emit: Callable[[int, Sequence[PipeOutput]], None],
        *,
        executor: Executor | None = None,
    ) -> None:
        self._utterance = utterance
        self._encoder = encoder
        self._emit = emit
        self._executor = executor
        self._waiting: list[EngineEvent] = []
        self._busy = False
        self._closed = False

    def push(self, event: EngineEvent) -> None:
        """Accept the next event of this utterance. Event loop only."""
        if self._closed:
            return
        self._waiting.append(event)
        if not self._busy:
            self._run()

    def close(self) -> None:
        """Drop what waits, and what a running job will still give. May be called twice."""
        self._closed = True
        self._waiting.clear()

    def _run(self) -> None:
        batch, self._waiting = self._waiting, []
        if self._executor is None:
            self._deliver(self._encode(batch))
            return
        self._busy = True
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(self._executor, self._encode, batch)
        job.add_done_callback(self._done)

    def _done(self, job: asyncio.Future[list[PipeOutput]]) -> None:
        self._busy = False
        if job.cancelled() or self._closed:
            return
        self._deliver(job.result())
        if self._waiting and not self._closed:
            self._run()

    def _deliver(self, outputs: list[PipeOutput]) -> None:
        if any(isinstance(output, EncoderFailed) for output in outputs):
            self._closed = True
            self._waiting.clear()
        self._emit(self._utterance, outputs)

    def _encode(self, batch: Sequence[EngineEvent]) -> list[PipeOutput]:
        outputs: list[PipeOutput] = []
        try:
            for event in batch:
                self._encode_one(event, outputs)
        # An encoder is foreign code (libopus through ctypes): whatever it raises must end this
        # utterance only, and must not be lost inside the pool.
        except Exception as error:
            log.exception("wire encoder of utterance %d failed", self._utterance)
            outputs.append(EncoderFailed(self._utterance, type(error).__name__))
        return outputs

    def _encode_one(self, event: EngineEvent, outputs: list[PipeOutput]) -> None:
        if isinstance(event, AudioChunk):
            outputs.append(EncodedAudio(self._encoder.encode(event.pcm), event, final=False))
            return
        if isinstance(event, Finished) and event.reason in _PLAYED_TO_THE_END:
            outputs.append(EncodedAudio(self._encoder.flush(), None, final=True))
        outputs.append(event)
