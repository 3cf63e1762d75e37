"""Starts ``playhead serve`` with given flags, for comparisons of a server with itself."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_STOP_WITHIN = 40.0
_READY = re.compile(r"http://([^/\s]+)/")


class ServerFailed(RuntimeError):
    """The server did not start; the message is what it said."""


@contextlib.contextmanager
def serving(flags: Sequence[str]) -> Iterator[str]:
    """A server on a free port; yields its WebSocket address. Raises :class:`ServerFailed`."""
    program = Path(sys.executable).with_name("playhead")
    command = [str(program), "serve", "--port", "0", "--max-connections-per-address", "5000"]
    with subprocess.Popen(
        [*command, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said: list[str] = []
        assert process.stdout is not None
        try:
            yield f"ws://{_address(process.stdout, said)}/v1/session"
        finally:
            process.terminate()
            # What it still says must not fill the pipe.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_STOP_WITHIN)
            process.kill()


def _address(lines: Iterator[str], said: list[str]) -> str:
    for line in lines:
        said.append(line.rstrip())
        if found := _READY.search(line):
            return found[1]
    raise ServerFailed("playhead serve did not start: " + (" / ".join(said[-3:]) or "silence"))
