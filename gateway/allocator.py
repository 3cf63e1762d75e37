"""How the C library's allocator gives memory back."""

import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
TRIM: Final = 512 * 1024
MMAP: Final = 1024 * 1024


def keep_thresholds() -> bool:
    """Keep glibc's thresholds (mallopt(3)) where they are; False where the C library has none.

    By itself it raises both, up to 32 and 64 MiB, when it sees a large block freed, once and for
    all: after that the pages of a full house that has left, and of every large block, stay with the
    process, in pieces.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_M_TRIM_THRESHOLD, TRIM) and mallopt(_M_MMAP_THRESHOLD, MMAP))
