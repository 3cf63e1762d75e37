"""What may go wrong with a device while a model starts on it: it is full, or it is broken.

Who runs out of memory decides what is raised: torch's allocator has a class of its own for it, the
driver (which keeps graphs and loaded kernels itself) tells it as any other fault of the device,
Triton as a RuntimeError; and what ends a capture may raise after it, and hide it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

MEMORY_ERROR = torch.OutOfMemoryError
DEVICE_FAULT = torch.AcceleratorError
FULL = ("out of memory", "ALLOC_FAILED")
"""How the driver and Triton say so, and the libraries of products and of convolutions."""
OURS = ("CUDA", "cuDNN")
"""One of these is in what all of them say."""


class DeviceError(RuntimeError):
    """There is no usable accelerator; the message says what is missing."""


@contextmanager
def told_apart() -> Iterator[None]:
    """Whatever runs out of the device's memory within raises ``MEMORY_ERROR``, any other fault of
    the device :class:`DeviceError`."""
    try:
        yield
    except MEMORY_ERROR:
        raise
    except RuntimeError as fault:
        if (full := _full(fault)) is not None:
            raise MEMORY_ERROR(_first_line(full)) from fault
        if isinstance(fault, DEVICE_FAULT):
            raise DeviceError(f"the device failed: {_first_line(fault)}") from fault
        raise


def _full(fault: BaseException) -> BaseException | None:
    """Of a fault and those that it followed, the one that says so. Only of the device's: a file
    system or a child process can be full as well."""
    seen: BaseException | None = fault
    while seen is not None:
        if isinstance(seen, MEMORY_ERROR):
            return seen
        ours = isinstance(seen, DEVICE_FAULT) or any(name in str(seen) for name in OURS)
        if isinstance(seen, RuntimeError) and ours and any(said in str(seen) for said in FULL):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def _first_line(fault: BaseException) -> str:
    return str(fault).partition("\n")[0]
