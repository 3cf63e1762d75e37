"""Who changes the machine's network interfaces, and who must not see that happen.

A browser gives up what it is loading when an interface comes or goes (``ERR_NETWORK_CHANGED``),
though its server is on loopback. Test processes run beside each other.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, which has no such interfaces either
    fcntl = None  # type: ignore[assignment]

LOCK = Path(tempfile.gettempdir()) / f"playhead-interfaces-{getattr(os, 'getuid', lambda: 0)()}"


@contextlib.contextmanager
def held(change: bool) -> Iterator[None]:
    """Interfaces stay as they are while the block runs, unless it is the one to ``change`` them."""
    with LOCK.open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX if change else fcntl.LOCK_SH)
        yield
