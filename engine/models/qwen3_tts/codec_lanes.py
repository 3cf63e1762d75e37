"""Both codec lanes on a CUDA device: for urgent chunks, and for the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from playhead.engine.clock import monotonic
from playhead.engine.models.qwen3_tts.chosen_lane import ChosenLane
from playhead.engine.models.qwen3_tts.codec import Codec
from playhead.engine.models.qwen3_tts.codec_rounds import Ints
from playhead.engine.models.qwen3_tts.cuda_codec import CodecLane
from playhead.engine.models.qwen3_tts.partitions import LaneStreams
from playhead.engine.models.qwen3_tts.splits import Splits
from playhead.engine.models.qwen3_tts.startup import Capture
from playhead.engine.types import ChunkWork, Lane, Pcm


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is captured: batches by lane, chunks of so many frames."""

    urgent: Sequence[int]
    background: Sequence[int]
    ladder: Sequence[int]


class CodecLanes:
    """Decodes chunks, those of a lane by one thread at a time."""

    def __init__(
        self,
        codec: Codec,
        codes: torch.Tensor,
        sizes: Sizes,
        streams: LaneStreams,
        capture: Capture,
        sample_rate: int,
        open_streams: Callable[[], int],
    ) -> None:
        """``codes`` as of ``CodecLane``; ``sample_rate`` in Hz. Graphs are captured at the start or
        never: capturing allocates and waits, which stops what the device does for others."""

        def captured(name: str, batches: Sequence[int], stream: torch.cuda.Stream) -> CodecLane:
            made = CodecLane(codec, codes, batches, sizes.ladder, stream)
            used = torch.cuda.memory_reserved(codes.device) / 2**30
            count = len(batches) * len(sizes.ladder)
            capture.done(f"{count} chunk sizes of the {name}, {used:.1f} GiB in use")
            return made

        with streams.captured(Lane.URGENT) as stream:
            self._urgent = captured("urgent lane", sizes.urgent, stream)
        self._background: CodecLane | None = None
        self._chosen: ChosenLane | None = None
        if not streams.parts:
            with streams.captured(Lane.BACKGROUND) as stream:
                self._background = captured("background lane", sizes.background, stream)
            self._part = streams.counts[Lane.BACKGROUND]
            return
        parts: dict[int, CodecLane] = {}
        for size in streams.parts:
            name = f"background lane on {size or 'all'} multiprocessors"
            with streams.captured_part(size) as stream:
                parts[size] = captured(name, sizes.background, stream)
        splits = Splits(tuple(parts), streams.total, monotonic())
        frame_seconds = codec.decoder.config.frame_samples / sample_rate
        self._chosen = ChosenLane(parts, splits, monotonic, frame_seconds, open_streams)

    @property
    def every(self) -> tuple[CodecLane, ...]:
        """All that was captured."""
        if self._chosen is not None:
            return (self._urgent, *self._chosen.lanes.values())
        assert self._background is not None
        return (self._urgent, self._background)

    @property
    def part(self) -> int:
        """See ``ModelCounts``. Any thread."""
        return self._part if self._chosen is None else self._chosen.part

    @property
    def switches(self) -> int:
        """See ``ModelCounts``. Any thread."""
        return 0 if self._chosen is None else self._chosen.switches

    def decode(self, chunks: Sequence[ChunkWork], slots: Ints, first: Ints, frames: Ints) -> Pcm:
        """See ``CodecLane.decode``. ``chunks`` are of one lane."""
        if chunks[0].lane is Lane.URGENT:
            return self._urgent.decode(slots, first, frames)
        if self._background is not None:
            return self._background.decode(slots, first, frames)
        assert self._chosen is not None
        return self._chosen.decode(slots, first, frames, [chunk.slack for chunk in chunks])
