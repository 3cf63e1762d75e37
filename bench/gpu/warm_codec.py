# ruff: noqa: E402 - the source tree is linked before it is imported
"""Compile the codec's kernels by many processes at once, so that a server started next finds them.

    python bench/gpu/warm_codec.py

Each process decodes one bucket with the product's own kernels; together the buckets reach every
tile. Triton keeps what it compiled in its cache on disk. Half a minute. Needs a CUDA device.
"""

import multiprocessing
import time

import source_tree
import torch

source_tree.link()

from codec_buckets import PUBLISHED, decoder_tensors, random_codes, random_tensors
from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
from playhead.engine.models.qwen3_tts.codec_fused import FusedOps

BUCKETS = (
    (1, 1), (1, 2), (1, 4), (4, 2), (4, 4), (8, 4), (16, 4), (32, 4), (64, 2), (64, 4), (64, 8),
    (64, 16),
)  # fmt: skip


def decode(bucket: tuple[int, int]) -> float:
    """Seconds that a bucket took from nothing."""
    began = time.perf_counter()
    batch, frames = bucket
    tensors = random_tensors(decoder_tensors(PUBLISHED), 0, device="cuda")
    decoder = CodecDecoder(PUBLISHED, tensors, FusedOps(torch.bfloat16))
    codec = Codec(decoder, decoder.arena(batch, frames), frames)
    with torch.inference_mode():
        codec.decode(random_codes(batch, frames, 1), torch.arange(batch, device="cuda"))
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    """All at once."""
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(len(BUCKETS)) as pool:
        for bucket, seconds in zip(BUCKETS, pool.map(decode, BUCKETS, chunksize=1), strict=True):
            print(f"{bucket[0]} x {bucket[1]}: {seconds:.0f} s", flush=True)
    print(f"{time.perf_counter() - began:.0f} s in all")


if __name__ == "__main__":
    main()
