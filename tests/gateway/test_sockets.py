"""What the kernel is told about a client's socket: without it, a cut cable is noticed in minutes,
and a minute of speech is hidden behind a client that does not read."""

import asyncio
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop
from api_kit import api
from harness import eventually, gateway
from playhead.gateway.settings import Settings
from playhead.gateway.sockets import UNDECIPHERED, set_up
from test_access_tls import client_context, issue

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="options of Linux")


@pytest.mark.slow
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


@pytest.mark.slow
def test_ten_seconds_unless_told_otherwise() -> None:
    async def main() -> int:
        async with gateway() as running:
            await running.client()
            (peer,) = running.server.peers
            served = peer.transport.get_extra_info("socket")
            return int(served.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    assert uvloop.run(main()) == 10_000


class Transport:
    """As far as it is asked here."""

    def __init__(self, **known: object) -> None:
        self.known, self.high = known, 256 * 1024

    def get_extra_info(self, name: str) -> Any:
        return self.known.get(name)

    def set_read_buffer_limits(self, high: int) -> None:
        self.high = high


def test_little_waits_to_be_deciphered() -> None:
    for known, high in (({"ssl_object": object()}, UNDECIPHERED), ({}, 256 * 1024)):
        transport = Transport(**known)
        set_up(cast(asyncio.BaseTransport, transport), Settings())
        assert transport.high == high


@pytest.mark.slow
@pytest.mark.parametrize("loop", [uvloop.run, asyncio.run])
def test_the_http_api_over_tls_deciphers_little_at_once(
    tmp_path: Path, loop: Callable[[Any], None]
) -> None:
    async def main() -> None:
        async with api(**issue(tmp_path)) as client:
            asked = await client.connect(ssl=client_context(), server_hostname="127.0.0.1")
            connections = client.listener._server.server_state.connections
            await eventually(lambda: len(connections) == 1)
            (served,) = connections
            limits = served.transport.get_read_buffer_limits()
            assert limits == (UNDECIPHERED // 4, UNDECIPHERED)
            asked.leave()

    loop(main())
