"""The CPU voice behind the engine's ``Runner`` protocol."""

import logging
from collections.abc import Sequence
from pathlib import Path

from playhead.engine.models.hibari.backbone import Backbone
from playhead.engine.models.hibari.frontend import Frontend
from playhead.engine.models.hibari.shape import HOP, SAMPLE_RATE
from playhead.engine.models.hibari.spectra import SpectrumDecoder
from playhead.engine.models.hibari.split import ensure_voice
from playhead.engine.models.hibari.stream import SegmentStream
from playhead.engine.models.hibari.utterance import Utterance, Voice
from playhead.engine.types import ChunkWork, ModelInfo, Pcm, Request, Runner, StepResult

VOICE = "heart"
SLOWEST, FASTEST = 0.5, 2.0
_WARM_UP = "Good morning, everybody, this sentence is only thought, never heard."
_log = logging.getLogger(__name__)
_Job = tuple[int, SegmentStream, int]
"""Position among the chunks asked for, stream, frames."""


class HibariRunner(Runner):
    """Loads the voice (about a second) and speaks any number of utterances at a time.

    Raises VoiceError or OSError when the voice's files cannot be prepared (see ``split``).
    """

    def __init__(self, cache_dir: Path | None = None) -> None:
        files = ensure_voice(cache_dir)
        self.info = ModelInfo(
            name="hibari-heart",
            voices=(VOICE,),
            sample_rate=SAMPLE_RATE,
            frame_samples=HOP,
            chunk_frames=(16, 32),
            step_frames=64,
            languages=("english", "auto"),
        )
        self._voice = Voice(Frontend(), Backbone(files.backbone))
        self._decoder = SpectrumDecoder(files.decoder)
        self._utterances: dict[int, Utterance] = {}
        self._warm_up()

    def open(self, request: Request) -> None:
        """See ``Runner``."""
        if request.voice not in self.info.voices:
            raise ValueError(f"unknown voice {request.voice!r}: available is {VOICE!r}")
        if not SLOWEST <= request.speed <= FASTEST:
            raise ValueError(
                f"speed {request.speed} is out of range: {SLOWEST} (slow) to {FASTEST} (fast)"
            )
        if request.utterance in self._utterances:
            raise ValueError(f"utterance {request.utterance} is open already")
        self._utterances[request.utterance] = Utterance(request)

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        """See ``Runner``."""
        return self._utterances[utterance].push(delta, flush=flush, end=end)

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        """See ``Runner``. The backbone takes one stream at a time; order is as given."""
        return [self._step(utterance) for utterance in utterances]

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        """See ``Runner``. Frames must be asked for in order and not across a boundary."""
        results: list[Pcm | BaseException] = [KeyError("not decoded")] * len(chunks)
        groups: dict[tuple[int, int], list[_Job]] = {}
        for position, chunk in enumerate(chunks):
            try:
                stream = self._stream_for(chunk)
            except (KeyError, ValueError) as error:
                results[position] = error
                continue
            key = (stream.needed(chunk.frames), chunk.frames)
            groups.setdefault(key, []).append((position, stream, chunk.frames))
        for jobs in groups.values():
            for (position, _, frames), result in zip(jobs, self._decode(jobs), strict=True):
                results[position] = result
                self._utterances[chunks[position].utterance].decoded += frames
        return results

    def close(self, utterance: int) -> None:
        """See ``Runner``. Closing twice is fine."""
        self._utterances.pop(utterance, None)

    def _step(self, utterance: int) -> StepResult:
        try:
            return self._utterances[utterance].step(self._voice, self.info.step_frames)
        except Exception as error:  # noqa: BLE001
            # Text decides what runs in there; a fault of one text must not end the others.
            _log.exception("step of utterance %d failed", utterance)
            return StepResult(
                utterance,
                0,
                boundary=False,
                hungry=False,
                ended=False,
                error=f"{type(error).__name__}: {error}",
            )

    def _stream_for(self, chunk: ChunkWork) -> SegmentStream:
        state = self._utterances[chunk.utterance]
        if chunk.first != state.decoded:
            raise ValueError(f"frame {chunk.first} was asked for, {state.decoded} is next")
        while state.streams and not state.streams[0].remaining:
            state.streams.popleft()
        if not state.streams or chunk.frames > state.streams[0].remaining:
            left = state.streams[0].remaining if state.streams else 0
            raise ValueError(f"{chunk.frames} frames were asked for, the segment has {left} left")
        return state.streams[0]

    def _decode(self, jobs: Sequence[_Job]) -> Sequence[Pcm | BaseException]:
        streams = [stream for _, stream, _ in jobs]
        try:
            return SegmentStream.decode(self._decoder, streams, jobs[0][2])
        except (RuntimeError, ValueError, MemoryError) as error:
            _log.exception("decoding %d streams failed", len(jobs))
            return [error] * len(jobs)

    def _warm_up(self) -> None:
        """Runs what a first request runs: lazily made tables and buffers cost 30 ms otherwise."""
        self.open(Request(utterance=-1, client="", voice=VOICE))
        self.push_text(-1, _WARM_UP, flush=False, end=True)
        self.step([-1])
        stream = self._utterances[-1].streams[0]
        for frames in self.info.chunk_frames:
            SegmentStream.decode(self._decoder, [stream], min(frames, stream.remaining))
        self.close(-1)
