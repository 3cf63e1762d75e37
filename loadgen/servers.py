"""Starts ``playhead serve`` with given flags, for comparisons of a server with itself."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from playhead.loadgen.namespace import Net, inside, moved, namespaces
from playhead.loadgen.plan import Network
from playhead.loadgen.shaping import DIRECT

_STOP_WITHIN = 40.0
_READY = re.compile(r"http://([^/\s]+)/")


class ServerFailed(RuntimeError):
    """The server did not start; the message is what it said."""


@contextlib.contextmanager
def placed(network: Network, seed: int) -> Iterator[Net | None]:
    """Puts this thread into the client's namespace where the network wants that. Raises
    :class:`~playhead.loadgen.namespace.NoNamespaces`."""
    if network == "proxy":
        yield None
        return
    with namespaces(seed) as net, inside(net.client):
        yield net


@contextlib.contextmanager
def serving(flags: Sequence[str], net: Net | None = None) -> Iterator[str]:
    """A server on a free port, in the server's namespace of ``net`` where one is given; yields its
    address. Raises :class:`ServerFailed`."""
    program = Path(sys.executable).with_name("playhead")
    command = [str(program), "serve", "--port", "0", "--max-connections-per-address", "5000"]
    if net is not None:
        command += ["--host", "0.0.0.0", "--open"]
    with contextlib.ExitStack() as stack:
        if net is not None:
            stack.enter_context(inside(net.server))
        process = subprocess.Popen(
            [*command, *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    with process:
        said: list[str] = []
        assert process.stdout is not None
        try:
            url = f"http://{_address(process.stdout, said)}"
            yield url if net is None else moved(url, DIRECT)
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
