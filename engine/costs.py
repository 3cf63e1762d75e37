"""What work costs on a machine, for the simulator: measured figures, as tables.

A table answers in seconds of a lane. The figures' sources are named where they stand; whoever
measures others makes another table.
"""

import math
import random
from dataclasses import dataclass, field, replace

from playhead.engine.capacity import Capacity
from playhead.engine.policy import LaneLimits
from playhead.engine.sim_device import Slows
from playhead.engine.types import Lane, ModelInfo


@dataclass(frozen=True, slots=True)
class CostTable:
    """Costs of one model on one machine. Times in seconds, rates in seconds of audio a second."""

    name: str
    model: ModelInfo
    lanes: LaneLimits
    step_fixed: float  # one LM step of any batch
    step_per_stream: float  # and of each stream in it
    decode_fixed: float  # one codec batch on the urgent lane
    urgent_rate: float  # audio decoded per second on the urgent lane
    background_rate: float  # and on the background lane
    background_slowdown: float  # of the fixed part there
    slows: Slows = field(default_factory=dict)  # by what lanes slow each other down
    ahead_from: int = 0  # streams in a step from which the device makes a frame ahead; 0: never
    prompt: float = 0.0  # to read one new stream's text, beside a step
    turn_fixed: float = 0.0  # of the engine's thread, for one turn
    turn_each: float = 0.0  # and for each step, chunk and report that it takes or hands over
    decode_each: float = 0.0  # of each chunk in a codec batch, whatever its size
    spread: float = 0.0  # of a piece's time: standard deviation of its logarithm

    def step_frames(self, streams: int) -> int:
        """Frames that each running stream gets of one LM step of ``streams``."""
        return self.model.step_frames if streams >= self.ahead_from else 1

    def step(self, streams: int, new: int = 0) -> float:
        """One LM step of ``streams`` streams, ``new`` ones among them."""
        made = self.step_fixed + self.step_per_stream * streams
        times = self.step_frames(streams) if self.ahead_from else 1
        return times * made + self.prompt * new

    def decode(self, lane: Lane, audio: float, chunks: int = 1, sizes: int = 1) -> float:
        """A codec batch of ``audio`` seconds in all, in ``chunks`` of so many different sizes."""
        each = self.decode_each * chunks
        if lane is Lane.URGENT:
            return self.decode_fixed * sizes + each + audio / self.urgent_rate
        fixed = self.decode_fixed * self.background_slowdown
        return fixed * sizes + each + audio / self.background_rate

    def luck(self, rng: random.Random) -> float:
        """By what factor a piece takes longer than its costs say, 1 on average."""
        if not self.spread:
            return 1.0
        return rng.lognormvariate(-(self.spread**2) / 2, self.spread)

    def rehearsed(self) -> Capacity:
        """What a rehearsal on such a machine would find."""
        capacity = Capacity(self.lanes)
        frame = self.model.frame_samples / self.model.sample_rate
        while not capacity.known:
            for streams in (1, 2, 4, 8, 16):
                for lane in (Lane.LM, Lane.BACKGROUND):
                    batch = min(streams, self.lanes.batch[lane])
                    self._rehearse(capacity, lane, batch, frame)
        return capacity

    def _rehearse(self, capacity: Capacity, lane: Lane, batch: int, frame: float) -> None:
        if lane is Lane.LM:
            audio = batch * self.step_frames(batch) * frame
            capacity.note(lane, self.step(batch), batch, audio)
            return
        for frames in self.model.chunk_frames:
            audio = batch * frames * frame
            capacity.note(lane, self.decode(lane, audio, batch), batch, audio)


def smaller(table: CostTable, times: int) -> CostTable:
    """A machine that is full with so many times fewer streams and otherwise behaves alike: each
    stream costs more, batches hold fewer."""
    lanes = {lane: max(1, table.lanes.batch[lane] // times) for lane in Lane}
    return replace(
        table,
        name=f"1/{times} of: {table.name}",
        lanes=replace(table.lanes, batch=lanes),
        step_per_stream=table.step_per_stream * times,
        urgent_rate=table.urgent_rate / times,
        background_rate=table.background_rate / times,
        ahead_from=math.ceil(table.ahead_from / times),
        turn_each=table.turn_each * times,
    )


def accelerator(background_sms: int = 48) -> CostTable:
    """Qwen3-TTS 1.7B on one NVIDIA H200 (132 SMs).

    LM step: 7 ms + 25.6 µs a stream. Codec: 4,488 s of audio a second on the whole device, in
    proportion on a partition; 0.35 ms fixed. Single-operator probes of plain PyTorch with CUDA
    graphs, not a served system.
    """
    share = background_sms / 132
    return CostTable(
        name=f"accelerator, {background_sms} of 132 SMs for the background lane",
        model=ModelInfo("simulated-qwen3-tts", ("any",), 24_000, 1_920, (1, 2, 4, 8, 12), 1),
        lanes=LaneLimits(
            workers=3,
            slots=dict.fromkeys(Lane, 1),
            batch={Lane.LM: 1024, Lane.URGENT: 64, Lane.BACKGROUND: 64},
        ),
        step_fixed=7.0e-3,
        step_per_stream=25.6e-6,
        decode_fixed=0.35e-3,
        urgent_rate=4_488.0,
        background_rate=4_488.0 * share,
        background_slowdown=1.0 / share,
        slows={(Lane.LM, Lane.URGENT): math.inf},
    )


def h200() -> CostTable:
    """Qwen3-TTS 1.7B as it is served on one NVIDIA H200.

    LM step, alone: 5.5, 6.6, 12.8 ms for 1, 64, 512 streams, a frame ahead from 32 streams on.
    Codec, alone: 0.66, 1.0, 3.9, 7.1 ms for 1 x 1, 8 x 4, 64 x 4, 64 x 8 frames. What they cost
    each other, back to back: 1.56, 2.2 and 6.3 times (bench/gpu/roofline.py, docs/benchmarks.md).
    The engine's thread, 0.3 ms a turn and 15 µs for each of what it handles, is an estimate.
    """
    return CostTable(
        name="Qwen3-TTS as served on one H200",
        model=ModelInfo("simulated-h200", ("any",), 24_000, 1_920, (1, 2, 4, 8, 16), 2),
        lanes=LaneLimits(
            workers=3,
            slots=dict.fromkeys(Lane, 1),
            batch={Lane.LM: 512, Lane.URGENT: 64, Lane.BACKGROUND: 64},
        ),
        step_fixed=5.5e-3,
        step_per_stream=14.3e-6,
        decode_fixed=0.65e-3,
        urgent_rate=0.08 / 12.6e-6,
        background_rate=0.08 / 12.6e-6,
        background_slowdown=1.0,
        slows={
            (Lane.LM, Lane.BACKGROUND): 1.56,
            (Lane.BACKGROUND, Lane.LM): 2.2,
            (Lane.URGENT, Lane.LM): 6.3,
        },
        ahead_from=32,
        prompt=0.44e-3,
        turn_fixed=0.3e-3,
        turn_each=15e-6,
    )


def cpu(cores: int = 2) -> CostTable:
    """The bundled voice on ``cores`` processor cores: 7.2 and 9.2 ms for 16 and 32 frames
    of 12.5 ms, one thread; backbone 5 ms a sentence, entered per step."""
    return CostTable(
        name=f"bundled voice on {cores} cores",
        model=ModelInfo("simulated-hibari", ("any",), 24_000, 300, (16, 32), 64),
        lanes=LaneLimits(
            workers=cores,
            slots=dict.fromkeys(Lane, cores),
            batch={Lane.LM: 1, Lane.URGENT: 4, Lane.BACKGROUND: 4},
            reserve=1,
        ),
        step_fixed=1.5e-3,
        step_per_stream=1.0e-3,
        decode_fixed=5.3e-3,
        urgent_rate=102.0,
        background_rate=102.0,
        background_slowdown=1.0,
    )


def cpu_served() -> CostTable:
    """The bundled voice as `playhead serve` speaks it in a crowd on two cores that it shares with
    its own event loop and those who listen: 28,000 chunks and 5,900 steps of two minutes at 22
    utterances a second (bench/reliability/overload_warm.py, 2026-11-30). A batch is decoded size by
    size; the first step of a text reads a sentence, the later ones mostly hand out what is there.
    """
    return replace(
        cpu(2),
        name="bundled voice as served on two shared cores",
        step_fixed=1.6e-3,
        step_per_stream=0.0,
        prompt=16e-3,
        decode_fixed=4.6e-3,
        decode_each=4.1e-3,
        urgent_rate=80.0,
        background_rate=80.0,
        turn_fixed=0.3e-3,
        turn_each=30e-6,
        spread=0.3,
    )
