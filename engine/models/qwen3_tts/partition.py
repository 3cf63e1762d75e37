"""The device's multiprocessors in two parts that cannot hold each other up (CUDA green contexts).

A short kernel of the LM lane finds its multiprocessors free whatever the codec runs on the others;
priorities alone order blocks only as earlier ones end. A graph captured on a stream of a part stays
in it wherever it is replayed (CUDA driver API, green contexts; ``cuDevSmResourceSplitByCount``).
"""

from typing import Any, NamedTuple

import torch

STEP = 8
"""Parts come in whole groups of this many multiprocessors (compute capability 9.0)."""


class PartitionError(RuntimeError):
    """The device cannot be divided so; the message says why."""


class Parts(NamedTuple):
    """A stream in each part."""

    small: torch.cuda.Stream
    rest: torch.cuda.Stream


def split(device: torch.device, multiprocessors: int, priority: int) -> Parts:
    """A stream in a part of ``multiprocessors`` and one, of ``priority``, in what is left.

    The parts live as long as the process. Raises :class:`PartitionError`.
    """
    total = torch.cuda.get_device_properties(device).multi_processor_count
    if multiprocessors % STEP or not 0 < multiprocessors < total:
        raise PartitionError(
            f"{multiprocessors} multiprocessors cannot be set apart: a multiple of {STEP} "
            f"below {total}"
        )
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise PartitionError(
            f"dividing the device needs cuda-bindings: pip install cuda-bindings ({error})"
        ) from error
    torch.cuda.synchronize(device)  # the primary context exists from here on
    handle = _done(driver.cuDeviceGet(device.index or 0))
    whole = _done(
        driver.cuDeviceGetDevResource(handle, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
    )
    groups, _, rest = _done(driver.cuDevSmResourceSplitByCount(1, whole, 0, multiprocessors))
    return Parts(
        _stream(driver, handle, groups[0], device, 0),
        _stream(driver, handle, rest, device, priority),
    )


def _stream(
    driver: Any, handle: Any, part: Any, device: torch.device, priority: int
) -> torch.cuda.Stream:
    description = _done(driver.cuDevResourceGenerateDesc([part], 1))
    flags = driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
    context = _done(driver.cuGreenCtxCreate(description, handle, flags))
    flags = driver.CUstream_flags.CU_STREAM_NON_BLOCKING
    stream = _done(driver.cuGreenCtxStreamCreate(context, flags, priority))
    return torch.cuda.ExternalStream(int(stream), device=device)


def _done(answer: tuple[Any, ...]) -> Any:
    """What a driver call gave."""
    error, *values = answer
    if error:
        raise PartitionError(f"the driver cannot divide the device: {error.name}")
    return values[0] if len(values) == 1 else tuple(values)
