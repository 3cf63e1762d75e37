"""What this process opens, imports and calls, as the interpreter's audit hooks tell (PEP 578): no
code can go round them."""

import contextlib
import gc
import sys
import threading
from collections.abc import Iterator
from typing import Any

EVENTS = frozenset(
    {
        *("open", "os.listdir", "os.scandir", "import", "exec", "compile", "subprocess.Popen"),
        *("socket.getaddrinfo", "urllib.Request"),
    }
)
_seen: list[str] = []
_watching = [False]
_strangers: set[int] = set()


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching[0] and event in EVENTS and threading.get_ident() not in _strangers:
        _seen.append(f"{event} {arguments[0]!r}")


sys.addaudithook(_hook)  # there is no way to take one away: it is told when to look


def begin() -> None:
    """What runs already, but for this thread, is another test's that has not ended yet."""
    _strangers.clear()
    _strangers.update(t.ident for t in threading.enumerate() if t.ident is not None)
    _strangers.discard(threading.get_ident())


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """What is done while the block runs, by threads that began after :func:`begin`."""
    gc.collect()  # what others left behind may be told of, with a look at its source, when it goes
    gc.disable()
    _seen.clear()
    _watching[0] = True
    try:
        yield _seen
    finally:
        _watching[0] = False
        gc.enable()
