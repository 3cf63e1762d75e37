"""Qwen3-TTS behind the engine's ``Runner`` protocol: many streams, one frame each per step."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
import torch
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.codec_rounds import silent_tails
from playhead.engine.models.qwen3_tts.config import ModelConfig
from playhead.engine.models.qwen3_tts.counts import NEVER, Counts, Ints, Limits
from playhead.engine.models.qwen3_tts.embed import embed_prompts
from playhead.engine.models.qwen3_tts.execution import Direct, Execution
from playhead.engine.models.qwen3_tts.frames import LEAST_CODES, FrameLoop, Frames
from playhead.engine.models.qwen3_tts.prompt import Prompt, PromptBuilder, PromptError, Voices
from playhead.engine.models.qwen3_tts.seats import Seats
from playhead.engine.models.qwen3_tts.slots import NoSlot
from playhead.engine.models.qwen3_tts.stream import SILENCE, Stream
from playhead.engine.models.qwen3_tts.text import (
    KnownIds,
    Tokenizer,
    TokenStream,
    instruct_ids,
    role_ids,
)
from playhead.engine.types import (
    ChunkWork,
    Lane,
    ModelInfo,
    Pcm,
    Request,
    StepResult,
)
from torch import Tensor

CHUNK_FRAMES = (1, 2, 4, 8, 16, 25)
SPANS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
"""Contexts that a step may be asked to look at: few, so that each can have its own graph."""
_SEED_BITS = (1 << 63) - 1
_Opening = tuple[Stream, Prompt]


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is run.

    ``whole_text``: a text that is complete when its turn comes is laid out whole, which sounds
    steadier; else every text joins frame by frame. ``frames``: with random weights, how many
    frames a request gets; its model never ends by itself.
    """

    whole_text: bool = True
    limits: Limits = field(default_factory=Limits)
    frames: Callable[[Request], int] | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """A loaded model. ``sample_rate`` in Hz."""

    config: ModelConfig
    loop: FrameLoop
    codec: Codec
    sample_rate: int
    tokenizer: Tokenizer
    voices: Voices


class Qwen3Runner:
    """Speaks as many utterances at a time as the slot table has slots."""

    def __init__(
        self, parts: Parts, options: Options | None = None, execution: Execution | None = None
    ) -> None:
        self._parts = parts
        self._run = execution or Direct(parts.loop, parts.codec)
        self._options = options or Options()
        self._loop, self._codec, self._table = parts.loop, parts.codec, parts.loop.table
        self._tokenizer = KnownIds(parts.tokenizer, parts.config.talker.text_vocab)
        self._builder = PromptBuilder(parts.config, role_ids(parts.tokenizer))
        table, pad = self._table, parts.config.ids.tts_pad
        self._counts = Counts(table.slots, table.positions, pad, self._options.limits)
        self._seats = Seats(self._counts)
        self._streams: dict[int, Stream] = {}
        self._prepare_voices()
        self.info = ModelInfo(
            name=_name(parts.config, random=self._options.frames is not None),
            voices=parts.voices.names,
            sample_rate=parts.sample_rate,
            frame_samples=parts.codec.decoder.config.frame_samples,
            chunk_frames=CHUNK_FRAMES,
            step_frames=1,
            languages=parts.voices.languages,
            takes_instruct=parts.voices.takes_instructions,
            random_weights=self._options.frames is not None,
        )

    def open(self, request: Request) -> None:
        """See ``Runner``. Raises PromptError (a ValueError) for an unknown voice or language, for
        an instruction that the model does not take, and NoSlot when all streams are in use."""
        if request.utterance in self._streams:
            raise ValueError(f"utterance {request.utterance} is open already")
        if request.speed != 1.0:
            raise PromptError(f"speed {request.speed} is not available: this voice speaks at 1.0")
        tokenizer = self._tokenizer
        instruct = instruct_ids(tokenizer, request.instruct)
        style = self._parts.voices.style(request.voice, request.language, instruct)
        self._check_fits(
            len(instruct) + style.reference_frames, "instruction (and the voice's recording)"
        )
        if len(self._streams) >= self._table.slots:
            raise NoSlot(f"all {self._table.slots} streams are in use")
        count = self._options.frames
        frames = None if count is None else count(request)
        self._streams[request.utterance] = Stream(
            request, style, TokenStream(tokenizer), self._counts, fixed_frames=frames
        )

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        """See ``Runner``. Raises PromptError when the text exceeds the context."""
        stream = self._streams[utterance]
        stream.push(delta, flush=flush, end=end, eos=self._parts.config.ids.tts_eos)
        self._check_fits(stream.text_ids, "text")
        return stream.steppable(self._builder)

    @torch.inference_mode()
    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        """See ``Runner``. Prompts of new utterances are read first, all together."""
        slots = self._seats.slots(utterances)
        opening: list[_Opening] = []
        told: dict[int, StepResult] = {}
        for place in np.flatnonzero(slots < 0).tolist():
            stream = self._streams[utterances[place]]
            answer = self._prepare(stream)
            if isinstance(answer, Prompt):
                opening.append((stream, answer))
            else:
                told[place] = answer
        running = self._counts.able(slots[slots >= 0])
        with self._on_lm():
            self._prefill(opening)
            self._continue(running)
        return self._seats.answers(utterances, told)

    @torch.inference_mode()
    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        """See ``Runner``. Frames must be asked for in order."""
        results, due = self._due(chunks)
        groups: dict[tuple[Lane, int], list[tuple[int, Stream]]] = {}
        for position, stream in due:
            chunk = chunks[position]
            groups.setdefault((chunk.lane, chunk.frames), []).append((position, stream))
        for (lane, frames), members in groups.items():
            slots = np.array(self._numbers([member for _, member in members]))
            with self._run.on(lane):
                pcm = self._decode(lane, slots, frames)
            self._decoded(slots, pcm.reshape(-1, self.info.frame_samples), frames)
            for (position, _), row in zip(members, pcm, strict=True):
                results[position] = row
        return results

    def close(self, utterance: int) -> None:
        """See ``Runner``. Closing twice is fine."""
        stream = self._streams.pop(utterance, None)
        if stream is None:
            return
        self._seats.leave(stream)
        if stream.slot is None:
            return
        if not stream.poisoned:
            self._table.give_back(stream.slot)
            return
        with torch.inference_mode(), self._on_lm():
            self._table.give_back(stream.slot, scrub=True)

    def _on_lm(self) -> AbstractContextManager[object]:
        """Where the LM lane's work goes."""
        return self._run.on(Lane.LM)

    # -- the LM lane ------------------------------------------------------------------------

    def _prepare(self, stream: Stream) -> Prompt | StepResult:
        """The prompt of a new stream, or what there is to say without one."""
        if not stream.steppable(self._builder):
            return stream.result(0, hungry=True)
        try:
            prompt = stream.lay_out(self._builder, whole=self._options.whole_text)
            if prompt is None:
                return stream.result(0, ended=True)
            self._check_fits(len(prompt.rows), "prompt")
            self._seats.sit(stream, self._table.take())
        except (PromptError, NoSlot) as fault:
            return stream.result(0, error=str(fault))
        return prompt

    def _prefill(self, opening: Sequence[_Opening]) -> None:
        if not opening:
            return
        streams = [stream for stream, _ in opening]
        prompts = [prompt for _, prompt in opening]
        rows, lengths = embed_prompts(prompts, self._loop.talker, self._loop.predictor)
        slots = np.array(self._numbers(streams))
        where = self._column(slots)
        seeds = self._column([stream.request.seed & _SEED_BITS for stream in streams])
        least = [LEAST_CODES if s.fixed_frames is None else NEVER for s in streams]
        self._table.begin(where, lengths, seeds, self._column(least))
        self._codec.reset(where)
        self._prime(streams)
        self._counts.ask(slots)
        self._take_in(slots, self._run.prefill(rows, lengths, slots.tolist()))

    def _continue(self, running: Ints) -> None:
        if not len(running):
            return
        counts = self._counts
        latest = counts.made[running] - 1
        joining = counts.ask(running)
        longest = int((counts.rows[running] + latest).max()) + 1
        span = min(next(span for span in SPANS if span >= longest), self._table.positions)
        frames = self._run.step(running.tolist(), joining.tolist(), span)
        self._take_in(running, frames)

    def _take_in(self, slots: Ints, frames: Frames) -> None:
        """What became of a batch; the only place where the host waits for the device."""
        status, repeats = torch.stack((frames.status, frames.repeats)).cpu().numpy()
        self._seats.land(slots, self._counts.life[slots], status, repeats)

    @torch.inference_mode()
    def _prepare_voices(self) -> None:
        """Let the codec hear every recording now, and not when somebody waits."""
        first = self._column([0])
        for clone in self._parts.voices.clones.values():
            if clone.codes is not None:
                self._codec.prime(clone.codes, first)
                self._codec.reset(first)

    # -- the codec lanes --------------------------------------------------------------------

    def _due(
        self, chunks: Sequence[ChunkWork]
    ) -> tuple[list[Pcm | BaseException], list[tuple[int, Stream]]]:
        """Results with a fault for every chunk that cannot be decoded, and the position and stream
        of every other."""
        results: list[Pcm | BaseException] = [KeyError("not decoded")] * len(chunks)
        due: list[tuple[int, Stream]] = []
        for position, chunk in enumerate(chunks):
            try:
                due.append((position, self._next(chunk)))
            except (KeyError, ValueError) as fault:
                results[position] = fault
        return results, due

    def _next(self, chunk: ChunkWork) -> Stream:
        stream = self._streams[chunk.utterance]
        if chunk.first != stream.decoded:
            raise ValueError(f"frame {chunk.first} was asked for, {stream.decoded} is next")
        if stream.decoded + chunk.frames > stream.made:
            left = stream.made - stream.decoded
            raise ValueError(f"{chunk.frames} frames were asked for, {left} are ready")
        return stream

    def _decode(self, lane: Lane, slots: Ints, frames: int) -> Pcm:
        where = self._column(slots)
        first = self._column(self._counts.decoded[slots])
        at = first[:, None] + torch.arange(frames, device=where.device)
        codes = self._table.codes[where[:, None], at].transpose(1, 2)
        pcm: Pcm = self._run.decode(lane, codes, where).cpu().numpy()
        return pcm

    def _decoded(self, slots: Ints, pcm: Pcm, frames: int | Ints) -> None:
        """``frames`` of each slot were decoded, one after the other: ``pcm`` [frames of all,
        frame_samples]."""
        self._counts.decoded[slots] += frames
        if self._options.frames is None:  # else nobody listens: lengths are given
            tails, heard = silent_tails(pcm, np.broadcast_to(frames, slots.shape), SILENCE)
            self._counts.hear(slots, tails / self.info.sample_rate, heard)

    def _prime(self, streams: Sequence[Stream]) -> None:
        """Let the codec hear the recording that a stream continues; that audio is nobody's."""
        for stream in streams:
            clone = stream.style.clone
            if clone is not None and clone.codes is not None:
                self._codec.prime(clone.codes, self._column(self._numbers([stream])))

    # -- common -----------------------------------------------------------------------------

    def _check_fits(self, rows: int, what: str) -> None:
        if rows >= self._table.positions:
            raise PromptError(
                f"the {what} takes {rows} positions: at most {self._table.positions - 1} fit, "
                f"speech included"
            )

    def _numbers(self, streams: Sequence[Stream]) -> list[int]:
        return [-1 if stream.slot is None else stream.slot for stream in streams]

    def _column(self, values: Sequence[int] | Ints) -> Tensor:
        column = torch.from_numpy(np.array(values, np.int64))
        return column.to(self._table.device, non_blocking=True)


def _name(config: ModelConfig, *, random: bool) -> str:
    name = f"qwen3-tts-{config.size}-{config.kind}".replace("_", "-")
    return f"{name}-random" if random else name
