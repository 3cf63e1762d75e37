"""What the reliability scripts share: a real server with a voice that costs nothing, its figures
from /proc, and a client of bare sockets that may break every rule."""

import asyncio
import base64
import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import machine as machine
from figures import save as save

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER = ROOT / "tests" / "gateway" / "fake_runner.py"
READY = re.compile(rb"is ready: http://127\.0\.0\.1:(\d+)/")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
UNMASKED = bytes(4)


@dataclass
class Server:
    """A `playhead serve` process with the fake voice."""

    process: asyncio.subprocess.Process
    port: int

    @property
    def rss(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE

    @property
    def cpu(self) -> float:
        """Processor seconds used so far, of all threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def descriptors(self) -> int:
        """Open file descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    async def metric(self, name: str) -> float:
        """The value of one line of /metrics; 0 when it is not there yet."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        body = await reader.read()
        writer.close()
        for line in body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return 0.0


@contextlib.asynccontextmanager
async def server(*flags: str, **environment: str) -> AsyncIterator[Server]:
    """Start one on a free port; it is killed at the end."""
    command = (str(SERVER), "serve", "--port", "0", "--http-port", "off", *flags)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": python_path(), **environment},
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        found = READY.search(line)
        assert found is not None, line
        yield Server(process, int(found[1]))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def python_path() -> str:
    """The path of this process, with the tests' helpers in front."""
    parts = [str(ROOT / "tests" / "gateway"), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(part for part in parts if part)


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, mask: bytes = UNMASKED) -> bytes:
    """One client frame (RFC 6455 section 5.2). A zero mask leaves the payload as it is."""
    head = bytes([(0x80 if fin else 0) | opcode])
    size = len(payload)
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 65_536:
        head += bytes([0x80 | 126]) + struct.pack("!H", size)
    else:
        head += bytes([0x80 | 127]) + struct.pack("!Q", size)
    if mask != UNMASKED:
        payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return head + mask + payload


def message(**fields: Any) -> bytes:
    """One JSON message as a client frame."""
    return frame(TEXT, json.dumps(fields).encode())


def upgrade(port: int, protocol: str = "playhead.v1.json", extra: str = "") -> bytes:
    """The request that opens a WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        f"GET /v1/session HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: {protocol}\r\n{extra}\r\n"
    ).encode()


async def raw(
    port: int, protocol: str = "playhead.v1.json", *, receive_buffer: int | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """An open WebSocket as bare streams. Raises ``ConnectionError`` when it is refused."""
    plain = socket.socket()
    plain.setblocking(False)
    if receive_buffer is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=plain)
    writer.write(upgrade(port, protocol))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 101 " not in head.split(b"\r\n")[0]:
        writer.close()
        raise ConnectionError(head.split(b"\r\n")[0].decode())
    return reader, writer


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Opcode and payload of the next server frame."""
    first, second = await reader.readexactly(2)
    size = second & 0x7F
    if size == 126:
        (size,) = struct.unpack("!H", await reader.readexactly(2))
    elif size == 127:
        (size,) = struct.unpack("!Q", await reader.readexactly(8))
    return first & 0x0F, await reader.readexactly(size)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
