"""What work costs on a machine, for the simulator: measured figures, as tables.

A table answers in seconds of a lane. The figures' sources are named where they stand; whoever
measures others makes another table.
"""

from dataclasses import dataclass

from playhead.engine.capacity import Capacity
from playhead.engine.policy import LaneLimits
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
    urgent_stops_lm: bool  # the urgent lane takes the whole device

    def step(self, streams: int) -> float:
        """One LM step of ``streams`` streams."""
        return self.step_fixed + self.step_per_stream * streams

    def decode(self, lane: Lane, audio: float) -> float:
        """A codec batch of ``audio`` seconds in all."""
        if lane is Lane.URGENT:
            return self.decode_fixed + audio / self.urgent_rate
        return self.decode_fixed * self.background_slowdown + audio / self.background_rate

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
            capacity.note(lane, self.step(batch), batch, batch * self.model.step_frames * frame)
            return
        for frames in self.model.chunk_frames:
            audio = batch * frames * frame
            capacity.note(lane, self.decode(lane, audio), batch, audio)


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
        urgent_stops_lm=True,
    )


def cpu(cores: int = 2) -> CostTable:
    """The bundled voice on ``cores`` processor cores: 6.3, 7.2 and 9.2 ms for 8, 16 and 32 frames
    of 12.5 ms, one thread; backbone 5 ms a sentence, entered per step."""
    return CostTable(
        name=f"bundled voice on {cores} cores",
        model=ModelInfo("simulated-hibari", ("any",), 24_000, 300, (8, 16, 32), 64),
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
        urgent_stops_lm=False,
    )
