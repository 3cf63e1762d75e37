"""Qwen3-TTS on one CUDA device: a stream per lane, everything that repeats as a graph."""

import gc
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from playhead.engine.clock import monotonic
from playhead.engine.models.qwen3_tts import partitions
from playhead.engine.models.qwen3_tts.calls import Uncaptured
from playhead.engine.models.qwen3_tts.codec_lanes import CodecLanes, Sizes
from playhead.engine.models.qwen3_tts.codec_ops import TorchOps
from playhead.engine.models.qwen3_tts.counts import NEVER, READING, RUNNING, Ints
from playhead.engine.models.qwen3_tts.cuda_codec import compile_ahead
from playhead.engine.models.qwen3_tts.cuda_lm import Flight, LmBuckets, LmLane, Opening
from playhead.engine.models.qwen3_tts.device_faults import (
    DEVICE_FAULT,
    MEMORY_ERROR,
    DeviceError,
    told_apart,
)
from playhead.engine.models.qwen3_tts.frames import LEAST_CODES
from playhead.engine.models.qwen3_tts.graphs import with_ops
from playhead.engine.models.qwen3_tts.layers import LayerOps
from playhead.engine.models.qwen3_tts.lengths import random_frames
from playhead.engine.models.qwen3_tts.loading import Setup, load_parts
from playhead.engine.models.qwen3_tts.memory import SPARE_SLOTS
from playhead.engine.models.qwen3_tts.partitions import PRIORITIES, lane_streams
from playhead.engine.models.qwen3_tts.prompt import Prompt, PromptError
from playhead.engine.models.qwen3_tts.prompt_turns import EVERYTHING, ROWS_PER_STEP, read_on
from playhead.engine.models.qwen3_tts.runner import Options, Parts, Qwen3Runner
from playhead.engine.models.qwen3_tts.startup import (
    CAPTURE_LIMIT,
    Capture,
    Fallback,
    TooLarge,
    TooSlow,
    make_largest,
    thinner,
)
from playhead.engine.models.qwen3_tts.stream import Stream
from playhead.engine.policy import LaneLimits
from playhead.engine.progress import Count, Tell, quiet
from playhead.engine.types import ChunkWork, Lane, ModelCounts, Pcm, RunnerDead, StepResult

LADDER = (1, 2, 4, 8, 16)
PROMPTS_AT_ONCE = 16
ROWS_AT_ONCE = 1024
"""New streams per step, and rows of their prompts (the last may go beyond): they must not hold up
the running ones for long. Long prompts have a measure of their own, see ``prompt_turns``."""
EXTRA_FRAMES = ((32, 1),)
"""From that many streams in a step, so many more frames of each for the device to make while the
host looks at the last: it then does not wait for the host, and the host works less often. With few
streams there is time to spare, and a new one should not have to wait for those frames. Three were
measured too: a step then takes so long that listeners who started at their first frame run dry."""
BACKGROUND_BATCHES = (1, 4, 8, 16, 32, 64)
"""Of the background lane. A larger last one is for measurements (docs/qwen3-tts.md)."""
RANDOM = "random:"
VOICE_ERROR = PromptError
TOO_LARGE = TooLarge
_SEED_BITS = (1 << 63) - 1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Buckets:
    """What is captured, lane by lane: batch sizes."""

    lm: LmBuckets = LmBuckets()  # noqa: RUF009 - frozen
    urgent: tuple[int, ...] = (1, 4, 8, 16, 32, 64)
    background: tuple[int, ...] = field(default_factory=lambda: BACKGROUND_BATCHES)
    parts: tuple[int, ...] = field(default_factory=lambda: partitions.BACKGROUND)
    """See ``partitions.BACKGROUND``."""

    def plans(self) -> tuple["Buckets", ...]:
        """What to capture, and twice less of it for when that does not fit or takes too long."""
        return (self, self._fewer(thinner, 4), self._fewer(lambda sizes: sizes[-1:], 1))

    def _fewer(
        self, choose: Callable[[tuple[int, ...]], tuple[int, ...]], prompts: int
    ) -> "Buckets":
        lm = replace(
            self.lm,
            steps=choose(self.lm.steps),
            firsts=self.lm.firsts[:1],
            prompts=tuple(size for size in self.lm.prompts if size[0] in (1, prompts)),
        )
        # The largest part does for every load, and the smallest leaves the LM lane the most.
        parts = tuple(dict.fromkeys((self.parts[0], self.parts[-1]))) if self.parts else ()
        return Buckets(lm, choose(self.urgent), choose(self.background), parts)

    @property
    def captures(self) -> int:
        """How often capturing them all is told of: each size of a step, prompts and pieces of
        prompts, and both lanes of the codec, in every part."""
        return len(self.lm.steps) + 3 + max(1, len(self.parts))

    def limits(self) -> LaneLimits:
        """One dispatch per lane, each up to its largest bucket."""
        return LaneLimits(
            workers=3,
            slots=dict.fromkeys(Lane, 1),
            batch={
                Lane.LM: max(self.lm.steps),
                Lane.URGENT: max(self.urgent),
                Lane.BACKGROUND: max(self.background),
            },
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """A frame of each slot, on the device, for the streams that sat there (``Counts.life``)."""

    flight: Flight
    slots: Ints
    life: Ints


class CudaRunner(Qwen3Runner):
    """See ``Qwen3Runner``; captures all graphs when made, in tens of seconds."""

    def __init__(
        self,
        parts: Parts,
        options: Options,
        buckets: Buckets,
        priorities: Mapping[Lane, int] = PRIORITIES,
        capture: Capture | None = None,
        compiled: Callable[[], object] = lambda: None,
    ) -> None:
        """``compiled`` waits for the codec's kernels."""
        if any(clone.codes is not None for clone in parts.voices.clones.values()):
            compiled()  # recordings are heard first of all
        super().__init__(parts, options)
        self.limits = buckets.limits()
        device = parts.loop.table.device
        capture = capture or _capture(buckets, quiet, last=True)
        most = 1 + max(extra for _, extra in EXTRA_FRAMES)
        self.info = replace(self.info, chunk_frames=LADDER, step_frames=most)
        lanes = lane_streams(device, priorities, buckets.parts)
        with lanes.captured(Lane.LM) as stream:
            self.lm = LmLane(parts.loop, parts.codec, buckets.lm, stream, capture.done)
        self._extra: list[_Batch] = []  # frames that the device makes beside the host
        compiled()
        sizes = Sizes(buckets.urgent, buckets.background, LADDER)
        self._lanes = CodecLanes(
            parts.codec,
            parts.loop.table.codes,
            sizes,
            lanes,
            capture,
            parts.sample_rate,
            lambda: len(self._streams),
        )
        self.uncaptured = Uncaptured()  # everything from here on is a graph
        torch.cuda.synchronize(device)
        used = torch.cuda.memory_reserved(device) / 2**30
        _log.info("ready after %.1f s, %.1f GiB in use", capture.seconds, used)

    def counts(self) -> ModelCounts:
        """What the model has counted so far. Any thread."""
        return ModelCounts(self.uncaptured(), self._lanes.part, self._lanes.switches)

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        """See ``Runner``. New streams get their first frame in the same pass of the predictor as
        the next frames of the others. Raises ``RunnerDead`` for a fault of the device."""
        try:
            return self._step(utterances)
        except DEVICE_FAULT as error:
            raise RunnerDead(str(error)) from error

    @torch.inference_mode()
    def _step(self, utterances: Sequence[int]) -> list[StepResult]:
        slots = self._seats.slots(utterances)
        running = self._counts.able(slots[slots >= 0])
        openings: list[Opening] = []
        told: dict[int, StepResult] = {}
        if slots.min(initial=0) < 0:
            openings, told = self._open_new(utterances, np.flatnonzero(slots < 0).tolist())
            slots = self._seats.slots(utterances)
        due, self._extra = self._extra, []
        with self._on_lm():
            opened = self._read_prompts(slots, openings, alone=not len(running))
            if len(running) or opened:
                due.append(self._launch(running, opened))
                self._run_ahead(due[-1].slots)
        self._land(due)
        return self._seats.answers(utterances, told)

    def _open_new(
        self, utterances: Sequence[int], places: Sequence[int]
    ) -> tuple[list[Opening], dict[int, StepResult]]:
        """Give the new streams among ``utterances`` their slots; answers to those that cannot
        begin now, by place."""
        openings: list[Opening] = []
        told: dict[int, StepResult] = {}
        rows = 0
        for place in places:
            stream = self._streams[utterances[place]]
            if len(openings) == PROMPTS_AT_ONCE or rows >= ROWS_AT_ONCE:
                told[place] = stream.result(0, waiting=True)
                continue
            answer = self._prepare(stream)
            if isinstance(answer, Prompt):
                openings.append(_opening(stream, answer))
                rows += len(answer.rows) if self.lm.holds(answer) else 0
            else:
                told[place] = answer
        return openings, told

    def _read_prompts(self, slots: Ints, openings: Sequence[Opening], *, alone: bool) -> list[int]:
        """Read what is due of the prompts of the streams in ``slots``, new ones among them; nobody
        waits for a step meanwhile if they are ``alone``. Returns slots of those that can have their
        first frame."""
        counts = self._counts
        whole: list[Opening] = []
        for opening in openings:
            if self.lm.holds(opening.prompt):
                whole.append(opening)
            else:
                self._seats.at(opening.slot).reading = self.lm.read(opening)
                counts.phase[opening.slot] = READING
        self.lm.open(whole)
        ready = [opening.slot for opening in whole]
        reading = slots[counts.phase[slots] == READING]
        if len(reading):
            rows = EVERYTHING if alone and not whole else ROWS_PER_STEP
            complete = read_on([self._seats.at(slot) for slot in reading.tolist()], rows)
            ready += self._numbers(complete)
            counts.phase[self._numbers(complete)] = RUNNING
        return ready

    def _run_ahead(self, slots: Ints) -> None:
        """Further frames for the device to make while the host is busy."""
        for _ in range(extra_frames(len(slots))):
            able = self._counts.able(slots)
            if len(able):
                self._extra.append(self._launch(able, []))

    def _launch(self, running: Ints, opened: Sequence[int]) -> _Batch:
        """The next frame of each stream, behind what the device does already."""
        slots = np.append(running, opened) if opened else running
        joining = self._counts.ask(slots)
        flight = self.lm.launch(slots, len(running), joining)
        return _Batch(flight, slots, self._counts.life[slots])

    def _land(self, due: Sequence[_Batch]) -> None:
        """Wait for these, which the device makes in this order, and note what became of them."""
        if due:
            due[-1].flight.done.synchronize()
        for batch in due:
            self._seats.land(batch.slots, batch.life, *batch.flight.numbers)

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        """See ``Runner``. All of one lane. Raises ``RunnerDead`` for a fault of the device."""
        try:
            return self._decode_all(chunks)
        except DEVICE_FAULT as error:
            raise RunnerDead(str(error)) from error

    def _decode_all(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        slots = self._seats.slots([chunk.utterance for chunk in chunks])
        first = np.array([chunk.first for chunk in chunks], np.int64)
        frames = np.array([chunk.frames for chunk in chunks], np.int64)
        due = (slots >= 0) & self._counts.ready(slots, first, frames)
        if due.all():
            return [*self._decode_due(chunks, slots, first, frames)]
        results, _ = self._due(chunks)
        places = np.flatnonzero(due)
        made = self._decode_due(chunks, slots[places], first[places], frames[places])
        for place, pcm in zip(places.tolist(), made, strict=True):
            results[place] = pcm
        return results

    def _decode_due(
        self, chunks: Sequence[ChunkWork], slots: Ints, first: Ints, frames: Ints
    ) -> list[Pcm]:
        """PCM of each, parts of one array. ``chunks`` say the lane."""
        if not len(slots):
            return []
        made = self._lanes.decode(chunks, slots, first, frames)
        self._decoded(slots, made, frames)
        ends = (np.cumsum(frames) * self.info.frame_samples).tolist()
        sound = made.reshape(-1)
        return [sound[at:end] for at, end in pairwise([0, *ends])]

    def _on_lm(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self.lm.stream)


def open_cuda(
    weights: str,
    *,
    slots: int,
    positions: int,
    recordings: Path | None = None,
    buckets: Buckets | None = None,
    tell: Tell = quiet,
) -> CudaRunner:
    """The model that ``weights`` names: a folder, a hub id, or ``random:`` and a published size,
    whose utterances get a lognormal number of frames. ``recordings``: voices for a base model.
    ``tell`` hears how it goes.

    Raises :class:`DeviceError`, and as ``loading.open_runner``.
    """
    if not torch.cuda.is_available():
        raise DeviceError(
            "no CUDA device is usable here: this model needs one "
            f"(torch {torch.__version__}); --model hibari runs on the processor"
        )
    warnings.filterwarnings("ignore", category=UserWarning, module="torch")
    size = weights.removeprefix(RANDOM) if weights.startswith(RANDOM) else None
    setup = Setup(
        slots=slots + SPARE_SLOTS,
        positions=positions,
        device="cuda",
        dtype="bfloat16",
        random_seed=0 if size is not None else None,
        frames=random_frames(0) if size is not None else None,
        recordings=recordings,
        memory=torch.cuda.mem_get_info()[0],
        codec_ops=_codec_ops(),
        compiled=False,
        tell=tell,
    )
    source: str | Path = weights if size is None else size
    with told_apart():
        parts, options = load_parts(source, setup)
    parts = replace(parts, loop=with_ops(parts.loop, _layer_ops()))
    chosen = buckets or Buckets()
    steps = tuple(batch for batch in chosen.lm.steps if batch < 2 * slots)
    buckets = replace(chosen, lm=replace(chosen.lm, steps=steps))
    sizes = {*buckets.urgent, *buckets.background}
    with told_apart():
        ahead = compile_ahead(parts.codec, sizes, LADDER)

    @told_apart()
    def make(plan: Buckets, last: bool) -> CudaRunner:
        capture = _capture(plan, tell, last)
        return CudaRunner(parts, options, plan, capture=capture, compiled=ahead.wait)

    fallback = Fallback((MEMORY_ERROR, TooSlow), _release, _log.warning)
    return make_largest(make, buckets.plans(), fallback)


def _capture(buckets: Buckets, tell: Tell, last: bool) -> Capture:
    count = Count(tell, "capturing graphs", buckets.captures)
    return Capture(monotonic, _log.info, None if last else CAPTURE_LIMIT, count.add)


def _release() -> None:
    """Give back what a failed capture had taken."""
    gc.collect()
    torch.cuda.empty_cache()


def extra_frames(streams: int) -> int:
    """Frames of ``streams`` that the device makes ahead of the host (``EXTRA_FRAMES``)."""
    return next((extra for least, extra in EXTRA_FRAMES if streams >= least), 0)


def _opening(stream: Stream, prompt: Prompt) -> Opening:
    assert stream.slot is not None
    least = LEAST_CODES if stream.fixed_frames is None else NEVER
    return Opening(prompt, stream.slot, stream.request.seed & _SEED_BITS, least)


# Both need triton, which only comes with torch for CUDA.


def _codec_ops() -> TorchOps:
    from playhead.engine.models.qwen3_tts.codec_fused import FusedOps

    return FusedOps()


def _layer_ops() -> LayerOps:
    from playhead.engine.models.qwen3_tts.lm_triton import FUSED_OPS

    return FUSED_OPS
