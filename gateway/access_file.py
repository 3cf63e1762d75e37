"""The key file on disk: read, watched, and written without ever being half there."""

import errno
import fcntl
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playhead.gateway.access_keys import KeyFileError, KeyRing, parse, render

log: Final = logging.getLogger("playhead.gateway.access")

MAX_BYTES: Final = 64 * 1024 * 1024
PASSING: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Faults of the machine that say nothing of a file: it has to be read again."""


class Unread(KeyFileError):
    """There was no descriptor, or no memory, to read the file with."""


def load(path: Path) -> KeyRing:
    """The keys of a file. Raises :class:`KeyFileError`, naming the file; :class:`Unread` when that
    says nothing of the file."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as fault:
        kind = Unread if fault.errno in PASSING else KeyFileError
        raise kind(f"{path}: {fault.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise KeyFileError(f"{path}: more than {MAX_BYTES} bytes")
    try:
        return parse(raw.decode())
    except (UnicodeDecodeError, KeyFileError) as fault:
        reason = "it is not UTF-8" if isinstance(fault, UnicodeDecodeError) else str(fault)
        raise KeyFileError(f"{path}: {reason}") from None


def others_may_write(path: Path) -> bool:
    """Whether everybody can change the file. Its digests open nothing, but whoever may write here
    lets himself in. A file that has just gone is nobody's."""
    try:
        return bool(path.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


@contextmanager
def edit(path: Path) -> Iterator[Callable[[KeyRing], None]]:
    """Exclusive access to the file's keys: call what is yielded to replace them.

    Two commands at once take turns; a reader finds the old or the new file, whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(path.name + ".lock"), "w", opener=_private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lambda ring: _replace(path, render(ring))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            # The server may run as another user of the same group: what was granted stays so.
            found = path.stat()
            os.chmod(temporary, stat.S_IMODE(found.st_mode))
            if os.geteuid() == 0:
                os.chown(temporary, found.st_uid, found.st_gid)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class Watched:
    """A file that is looked at again and again. Any change of its identity, size or time counts."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._seen: tuple[tuple[int, ...], ...] | None = self._look()

    def changed(self) -> bool:
        """Whether a file differs from the last time; a file that is gone is another one."""
        now = self._look()
        if now == self._seen:
            return False
        self._seen = now
        return True

    def forget(self) -> None:
        """What was seen could not be read: it has changed until it is."""
        self._seen = None

    def _look(self) -> tuple[tuple[int, ...], ...]:
        return tuple(map(_identity, self._paths))


def _identity(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
