"""What one device could do at best: how long a part takes by its arithmetic and its traffic.

Counts are of the true configurations (layer by layer, a multiplication and an addition are two
operations), of bfloat16, with all elementwise work fused away. A part takes as long as the slower
of both: its arithmetic at ``flops``, what it must read and write at ``bandwidth``.
"""

from dataclasses import dataclass

KV_BYTES = 114_688
"""Keys and values of one position in the talker's 28 layers."""
CODEC_GFLOP, CODEC_WEIGHTS, CODEC_ACTIVATIONS, CODEC_STATE = 4.961, 211e6, 11.4e6, 2.6e6
"""Of the codec: arithmetic of a frame; bytes of weights, of a frame's activations between
convolutions, of a stream's state."""


@dataclass(frozen=True)
class Device:
    """What was measured to be reachable: operations and bytes per second."""

    flops: float = 790e12
    bandwidth: float = 4.3e12

    def ms(self, operations: float, traffic: float) -> float:
        """The limit, milliseconds."""
        return 1e3 * max(operations / self.flops, traffic / self.bandwidth)


@dataclass(frozen=True)
class Sizes:
    """Of the language model: operations per position and bytes of weights."""

    talker_gflop: float
    talker_bytes: float
    predictor_gflop: float  # of a frame
    predictor_bytes: float  # read once in each of 15 passes

    def talker(self, device: Device, streams: int, context: int) -> float:
        """One position of each stream."""
        attention = 4 * 28 * 2048 * context
        traffic = self.talker_bytes + streams * context * KV_BYTES
        return device.ms(streams * (self.talker_gflop * 1e9 + attention), traffic)

    def predictor(self, device: Device, streams: int) -> float:
        """A frame of each stream: 15 passes, 16 positions."""
        traffic = self.predictor_bytes + streams * 2.75e6
        return device.ms(streams * self.predictor_gflop * 1e9, traffic)

    def step(self, device: Device, streams: int, context: int) -> float:
        """One after the other."""
        return self.talker(device, streams, context) + self.predictor(device, streams)

    def prompt(self, device: Device, prompts: int, rows: int) -> float:
        """``prompts`` of ``rows`` each."""
        attention = 4 * 28 * 2048 * rows / 2
        operations = prompts * rows * (self.talker_gflop * 1e9 + attention)
        return device.ms(operations, self.talker_bytes + prompts * rows * KV_BYTES)


SIZES = {
    "1.7b": Sizes(2.831, 2.831e9, 2.653, 2.486e9),
    "0.6b": Sizes(0.887, 0.887e9, 2.586, 2.423e9),
}


def codec(device: Device, streams: int, frames: int) -> float:
    """A chunk of ``frames`` of each stream."""
    traffic = CODEC_WEIGHTS + streams * (frames * CODEC_ACTIVATIONS + CODEC_STATE)
    return device.ms(streams * frames * CODEC_GFLOP * 1e9, traffic)
