"""The lanes' streams: of different priority, or in parts of the device of their own.

A short kernel of the LM lane finds its multiprocessors free whatever the codec runs on the others;
priorities alone order blocks only as earlier ones end. Parts are CUDA green contexts: a graph
captured on a stream of a part stays in it wherever it is replayed (CUDA driver API,
``cuDevSmResourceSplitByCount``, ``cuGreenCtxCreate``). They share memory, loaded kernels and events
with the device's primary context, which stays the current one. torch's own ``GreenContext`` divides
the whole device anew each time, so that two of them overlap: hence the driver's own calls.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from playhead.engine.models.qwen3_tts.splits import WHOLE
from playhead.engine.types import Lane

PRIORITIES = {Lane.LM: -2, Lane.URGENT: -1, Lane.BACKGROUND: 0}
"""Of the lanes' streams, lower first, clamped to what the device has. A step is a thousand short
kernels that leave most of the device free: it must not queue behind the codec's wide ones."""
BACKGROUND: tuple[int, ...] = ()
"""Multiprocessors for the background lane alone, a multiple of ``STEP``; several: parts of these
sizes are prepared and one of them is chosen by load (``splits.py``), ``WHOLE`` last where it is one
of them. None: lanes share the device, the default until parts have been measured
(``bench/gpu/ablations.py --start partitions-N`` and ``partitions-auto``)."""
AUTO = (24, 32, 48, 64, 80, WHOLE)
"""To choose from: each costs the capture of a lane's graphs and their memory."""
STEP = 8
"""Parts come in whole groups of this many multiprocessors (compute capability 9.0)."""


class PartitionError(RuntimeError):
    """The device cannot be divided so; the message says what is missing or would be right."""


class LaneStreams(NamedTuple):
    """A stream per lane, and how many multiprocessors its kernels have (0: the whole device)."""

    streams: Mapping[Lane, torch.cuda.Stream]
    counts: Mapping[Lane, int]
    parts: Mapping[int, torch.cuda.Stream] = MappingProxyType({})
    """Of the background lane, by the size of the part, where it has several to choose from."""
    total: int = 0
    """Multiprocessors of the device, where it is divided."""

    @contextmanager
    def captured(self, lane: Lane) -> Iterator[torch.cuda.Stream]:
        """The lane's stream, to capture on. Meanwhile the matrix products' library counts its
        part's multiprocessors, not the device's: kernels of one block per multiprocessor would
        otherwise take two turns. The library keeps that per thread: capture from one."""
        with _counted_on(self.counts[lane]):
            yield self.streams[lane]

    @contextmanager
    def captured_part(self, size: int) -> Iterator[torch.cuda.Stream]:
        """The same of a part of the background lane."""
        with _counted_on(size):
            yield self.parts[size]


def check_size(background: int, total: int) -> None:
    """Raises :class:`PartitionError` for a part that the device cannot set aside."""
    if background % STEP or not 0 < background < total:
        raise PartitionError(
            f"{background} multiprocessors cannot be set aside for the background lane: "
            f"a multiple of {STEP} below {total}"
        )


def lane_streams(
    device: torch.device, priorities: Mapping[Lane, int], sizes: Sequence[int] | None = None
) -> LaneStreams:
    """Streams of these ``priorities`` (lower first). With ``sizes`` (``BACKGROUND``) the background
    lane has so many multiprocessors, the LM lane the rest, and urgent chunks all of the device.
    Parts of several sizes lie within each other, and the LM lane has what the smallest leaves: the
    larger ones reach into its part, where its kernels go first.

    The parts live as long as the process. Raises :class:`PartitionError`.
    """
    sizes = BACKGROUND if sizes is None else sizes
    if not sizes:
        shared = {lane: torch.cuda.Stream(device, priority=priorities[lane]) for lane in Lane}
        return LaneStreams(shared, dict.fromkeys(Lane, 0))
    total = torch.cuda.get_device_properties(device).multi_processor_count
    for size in sizes:
        if size != WHOLE or len(sizes) == 1:
            check_size(size, total)
    divided = _Device(_driver(), device)
    taken, left = divided.one(sizes[0]) if len(sizes) == 1 else divided.nested(sizes)
    lm, rest = divided.rest(left, priorities[Lane.LM])
    first = priorities[Lane.BACKGROUND]
    parts = {size: divided.stream(part, first) for size, part in taken.items()}
    streams = {
        Lane.LM: lm,
        Lane.BACKGROUND: parts[sizes[0]],
        Lane.URGENT: divided.stream([], priorities[Lane.URGENT]),
    }
    counts = {Lane.LM: rest, Lane.BACKGROUND: sizes[0], Lane.URGENT: 0}
    return LaneStreams(streams, counts, parts if len(parts) > 1 else {}, total)


Part = list[Any]
"""The driver's resources that make a part together; none: all of the device."""


def _size(part: Part) -> int:
    return sum(int(resource.sm.smCount) for resource in part)


class _Device:
    """A device, to be divided through its driver."""

    def __init__(self, driver: Any, device: torch.device) -> None:
        torch.cuda.synchronize(device)  # the primary context exists from here on
        index = torch.cuda.current_device() if device.index is None else device.index
        self._driver, self._device = driver, device
        self._handle = _done(driver.cuDeviceGet(index))
        kind = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
        self._whole = _done(driver.cuDeviceGetDevResource(self._handle, kind))

    def one(self, size: int) -> tuple[dict[int, Part], Part]:
        """A part of that size, and the rest."""
        groups, rest = self._split(1, size)
        return {size: groups}, [rest]

    def nested(self, sizes: Sequence[int]) -> tuple[dict[int, Part], Part]:
        """Parts of these sizes, ascending, each within the next, and what the smallest leaves. All
        that makes a part must come of one division."""
        groups, rest = self._split(_size([self._whole]) // STEP, STEP)
        parts = {size: groups[: size // STEP] for size in sizes}
        for size, part in parts.items():
            if _size(part) != size:
                raise PartitionError(
                    f"no part of {size} multiprocessors can be set aside: the device gives "
                    f"{len(groups)} groups of {STEP}"
                )
        left = groups[sizes[0] // STEP :]
        return parts, [*left, rest] if _size([rest]) else left

    def rest(self, left: Part, priority: int) -> tuple[torch.cuda.Stream, int]:
        """A stream on what is left, and how much that is. What remains beside a division's groups
        may be of another kind than these, and the driver then refuses both as one part: it is left
        out."""
        try:
            return self.stream(left, priority), _size(left)
        except PartitionError:
            if len(left) < 2:
                raise
            return self.stream(left[:-1], priority), _size(left[:-1])

    def stream(self, part: Part, priority: int) -> torch.cuda.Stream:
        """Whose kernels keep to ``part``."""
        if not part:
            return torch.cuda.Stream(self._device, priority=priority)
        driver = self._driver
        described = _done(driver.cuDevResourceGenerateDesc(part, len(part)))
        default = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
        context = _done(driver.cuGreenCtxCreate(described, self._handle, default))
        flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
        stream = _done(driver.cuGreenCtxStreamCreate(context, flags, priority))
        return torch.cuda.ExternalStream(int(stream), device=self._device)

    def _split(self, count: int, size: int) -> tuple[Part, Any]:
        split = self._driver.cuDevSmResourceSplitByCount
        groups, made, rest = _done(split(count, self._whole, 0, size))
        return list(groups)[: int(made)], rest


def _driver() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise PartitionError(
            f"dividing the device needs cuda-bindings: pip install cuda-bindings ({error})"
        ) from error
    return driver


def _done(answer: tuple[Any, ...]) -> Any:
    """What a driver call gave."""
    error, *values = answer
    if error:
        raise PartitionError(f"the driver cannot divide the device: {error.name}")
    return values[0] if len(values) == 1 else tuple(values)


@contextmanager
def _counted_on(multiprocessors: int) -> Iterator[None]:
    if not multiprocessors:
        yield
        return
    _count_on(multiprocessors)
    try:
        yield
    finally:
        _count_on(0)


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
