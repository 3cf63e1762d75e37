"""What the kernel is told about a client's socket: without it, a cut cable is noticed in minutes,
and a minute of speech is hidden behind a client that does not read."""

import socket
import sys

import pytest
import uvloop
from harness import gateway

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="options of Linux")


def test_a_served_socket_gives_up_a_dead_peer_and_keeps_little() -> None:
    async def main() -> dict[int, int]:
        async with gateway(ping_timeout=7.0, send_buffer=24_576, notsent_lowat=8_192) as running:
            await running.client()
            (peer,) = running.server.peers
            served = peer.transport.get_extra_info("socket")
            assert served.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 24_576, "tcp(7)"
            names = (socket.TCP_NODELAY, socket.TCP_NOTSENT_LOWAT, socket.TCP_USER_TIMEOUT)
            return {name: served.getsockopt(socket.IPPROTO_TCP, name) for name in names}

    assert uvloop.run(main()) == {
        socket.TCP_NODELAY: 1,
        socket.TCP_NOTSENT_LOWAT: 8_192,
        socket.TCP_USER_TIMEOUT: 7_000,
    }


def test_ten_seconds_unless_told_otherwise() -> None:
    async def main() -> int:
        async with gateway() as running:
            await running.client()
            (peer,) = running.server.peers
            served = peer.transport.get_extra_info("socket")
            return int(served.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    assert uvloop.run(main()) == 10_000
