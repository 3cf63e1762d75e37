"""The lanes' streams: of different priority, or in parts of the device of their own.

A short kernel of the LM lane finds its multiprocessors free whatever the codec runs on the others;
priorities alone order blocks only as earlier ones end. Parts are CUDA green contexts: a graph
captured on a stream of a part stays in it wherever it is replayed (CUDA driver API,
``cuDevSmResourceSplitByCount``, ``cuGreenCtxCreate``). They share memory, loaded kernels and events
with the device's primary context, which stays the current one. torch's own ``GreenContext`` divides
the whole device anew each time, so that two of them overlap: hence the driver's own calls.
"""

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from playhead.engine.types import Lane

PRIORITIES = {Lane.LM: -2, Lane.URGENT: -1, Lane.BACKGROUND: 0}
"""Of the lanes' streams, lower first, clamped to what the device has. A step is a thousand short
kernels that leave most of the device free: it must not queue behind the codec's wide ones."""
BACKGROUND = 0
"""Multiprocessors for the background lane alone, a multiple of ``STEP``; 0: lanes share them all.
The default until it has been measured (``bench/gpu/ablations.py --start partitions-N``)."""
STEP = 8
"""Parts come in whole groups of this many multiprocessors (compute capability 9.0)."""


class PartitionError(RuntimeError):
    """The device cannot be divided so; the message says what is missing or would be right."""


class LaneStreams(NamedTuple):
    """A stream per lane, and how many multiprocessors its kernels have (0: the whole device)."""

    streams: Mapping[Lane, torch.cuda.Stream]
    counts: Mapping[Lane, int]

    @contextmanager
    def captured(self, lane: Lane) -> Iterator[torch.cuda.Stream]:
        """The lane's stream, to capture on. Meanwhile the matrix products' library counts its
        part's multiprocessors, not the device's: kernels of one block per multiprocessor would
        otherwise take two turns. The library keeps that per thread: capture from one."""
        count = self.counts[lane]
        if not count:
            yield self.streams[lane]
            return
        _count_on(count)
        try:
            yield self.streams[lane]
        finally:
            _count_on(0)


def check_size(background: int, total: int) -> None:
    """Raises :class:`PartitionError` for a part that the device cannot set aside."""
    if background % STEP or not 0 < background < total:
        raise PartitionError(
            f"{background} multiprocessors cannot be set aside for the background lane: "
            f"a multiple of {STEP} below {total}"
        )


def lane_streams(
    device: torch.device, priorities: Mapping[Lane, int], background: int | None = None
) -> LaneStreams:
    """Streams of these ``priorities`` (lower first). With ``background`` multiprocessors set aside,
    the background lane has these, the LM lane the rest, and urgent chunks all of the device.

    The parts live as long as the process. Raises :class:`PartitionError`.
    """
    background = BACKGROUND if background is None else background
    shared = {
        lane: torch.cuda.Stream(device, priority=priorities[lane])
        for lane in Lane
        if not background or lane is Lane.URGENT
    }
    if not background:
        return LaneStreams(shared, dict.fromkeys(Lane, 0))
    total = torch.cuda.get_device_properties(device).multi_processor_count
    check_size(background, total)
    driver = _driver()
    torch.cuda.synchronize(device)  # the primary context exists from here on
    index = torch.cuda.current_device() if device.index is None else device.index
    handle = _done(driver.cuDeviceGet(index))
    kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    whole = _done(driver.cuDeviceGetDevResource(handle, kind))
    groups, _, rest = _done(driver.cuDevSmResourceSplitByCount(1, whole, 0, background))
    parts = {Lane.BACKGROUND: groups[0], Lane.LM: rest}
    streams = {
        lane: _stream(driver, handle, part, device, priorities[lane])
        for lane, part in parts.items()
    }
    counts = {lane: int(part.sm.smCount) for lane, part in parts.items()}
    return LaneStreams(shared | streams, {Lane.URGENT: 0} | counts)


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise PartitionError(
            f"dividing the device needs cuda-bindings: pip install cuda-bindings ({error})"
        ) from error
    return driver


def _stream(
    driver: Any, handle: Any, part: Any, device: torch.device, priority: int
) -> torch.cuda.Stream:
    described = _done(driver.cuDevResourceGenerateDesc([part], 1))
    default = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
    context = _done(driver.cuGreenCtxCreate(described, handle, default))
    flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
    stream = _done(driver.cuGreenCtxStreamCreate(context, flags, priority))
    return torch.cuda.ExternalStream(int(stream), device=device)


def _done(answer: tuple[Any, ...]) -> Any:
    """What a driver call gave."""
    error, *values = answer
    if error:
        raise PartitionError(f"the driver cannot divide the device: {error.name}")
    return values[0] if len(values) == 1 else tuple(values)


def _count_on(multiprocessors: int) -> None:
    """What this thread's cuBLAS may use (``cublasSetSmCountTarget``); 0: the whole device."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").split()
    loaded = next((name for name in maps if "/libcublas.so" in name), None)
    if loaded is None:
        raise PartitionError("torch has not loaded libcublas.so: it was built without CUDA")
    library = ctypes.CDLL(loaded)  # the one that is loaded already, not a second one
    handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
    status = library.cublasSetSmCountTarget(handle, ctypes.c_int(multiprocessors))
    if status:
        raise PartitionError(f"cuBLAS refuses to count on {multiprocessors}: status {status}")
