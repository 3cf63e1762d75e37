"""Engine events through the wire encoder, in order, without holding up the event loop.

One :class:`EncoderPipe` per utterance owns its stateful encoder. Cheap encoders run inline.
Dear ones run on a shared thread pool, at most one job per utterance at a time, so that the
encoder is never entered twice and the order of events is kept. A fault of one encoder, or that it
does not come back, ends that utterance alone.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from playhead.codecs.base import Encoded, Encoder
from playhead.engine.types import AudioChunk, EngineEvent, Finish, Finished, TextWarning
from playhead.gateway.encoder_threads import EncoderThreads

log: Final = logging.getLogger("playhead.gateway.encoding")

LOOK: Final = 1.0
"""Seconds between two looks at an encoder that works."""
LOOKS: Final = 10
"""As many later it is given up. Only looks that were made count: a process that stood still finds
everything late."""

_PLAYED_TO_THE_END: Final = (Finish.COMPLETE, Finish.LENGTH_BUDGET)


@dataclass(frozen=True, slots=True)
class EncodedAudio:
    """Wire bytes of one chunk; ``chunk`` is None for what flushing the encoder gave."""

    encoded: Encoded
    chunk: AudioChunk | None
    final: bool


@dataclass(frozen=True, slots=True)
class EncoderFailed:
    """The encoder raised, or did not come back; nothing more comes out of this pipe."""

    utterance: int
    message: str


PipeOutput = EncodedAudio | TextWarning | Finished | EncoderFailed


class EncoderPipe:
    """Turns one utterance's engine events into :data:`PipeOutput`, in the order given.

    ``emit`` is called on the event loop with one or more outputs at a time, and never after
    :meth:`close`. ``threads`` None runs the encoder inline.
    """

    def __init__(
        self,
        utterance: int,
        encoder: Encoder,
        emit: Callable[[int, Sequence[PipeOutput]], None],
        *,
        threads: EncoderThreads | None = None,
    ) -> None:
        self._utterance = utterance
        self._encoder = encoder
        self._emit = emit
        self._threads = threads
        self._waiting: list[EngineEvent] = []
        self._work: Future[list[PipeOutput]] | None = None
        self._closed = False
        self._watched = False
        self._looks = 0  # at work that was running

    def push(self, event: EngineEvent) -> None:
        """Accept the next event of this utterance. Event loop only."""
        if self._closed:
            return
        self._waiting.append(event)
        if self._work is None:
            self._run()

    def close(self) -> None:
        """Drop what waits, and what a running job will still give. May be called twice."""
        self._closed = True
        self._waiting.clear()

    def _run(self) -> None:
        batch, self._waiting = self._waiting, []
        if self._threads is None:
            self._deliver(self._encode(batch))
            return
        self._looks = 0
        self._work = self._threads.submit(self._encode, batch)
        asyncio.wrap_future(self._work).add_done_callback(self._done)
        if not self._watched:  # one timer a second, however many jobs that is
            self._look_later()

    def _look_later(self) -> None:
        self._watched = True
        asyncio.get_running_loop().call_later(LOOK, self._look)

    def _look(self) -> None:
        """Give up an encoder that has worked for too long. One that waits for a thread has not."""
        self._watched = False
        if self._work is None:
            return
        self._looks += self._work.running()
        if self._looks < LOOKS:
            self._look_later()
            return
        assert self._threads is not None, "who works inline is never looked at"
        self._threads.write_off(self._work)
        log.error("the wire encoder of utterance %d does not come back", self._utterance)
        if not self._closed:
            self._deliver([EncoderFailed(self._utterance, "it does not come back")])

    def _done(self, job: asyncio.Future[list[PipeOutput]]) -> None:
        self._work = None
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
