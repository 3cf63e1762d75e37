"""A cable that is really cut: packets stop, and nobody says so. Needs a network of its own."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from harness import eventually, gateway
from machine import AT_ONCE
from playhead.engine.types import ListenerState
from playhead.gateway import line
from playhead.gateway.messages import Audio, Text
from playhead.gateway.pulse import Pulse
from playhead.loadgen import namespace

if sys.platform != "linux":
    pytest.skip("network namespaces are Linux's", allow_module_level=True)

import fcntl
import socket
import struct


def cut() -> None:
    """The loopback interface of this thread's network goes down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, namespace._SET_FLAGS, struct.pack("16sH22x", b"lo", 0))


def apart(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run ``main`` on a thread whose network nobody else sees: namespaces belong to threads."""
    ended: list[BaseException | None] = []

    def run() -> None:
        try:
            os.close(namespace.new_namespace())
        except OSError as error:
            ended.append(pytest.skip.Exception(f"no network namespace: {error}"))
            return
        try:
            asyncio.run(main())
            ended.append(None)
        except BaseException as error:  # noqa: BLE001
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if ended[0] is not None:
        raise ended[0]


def test_a_cable_that_is_cut_while_sound_flows_is_noticed_and_its_lane_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Its pings would find out too, after the same second: they have more patience here.
    monkeypatch.setattr(line, "Pulse", lambda interval, timeout: Pulse(600.0, 600.0))

    async def main() -> None:
        async with gateway(interval=0.002, grace=60.0, ping_timeout=1.0) as running:
            client = await running.greeted()
            await client.send(Text("!endless "))
            await client.until(Audio)
            reading = asyncio.create_task(client.closed())  # it takes all that comes
            (speech,) = running.engine.live.values()
            cut()
            # The kernel gives up after a second (TCP_USER_TIMEOUT); nothing else does.
            await eventually(lambda: running.server.readiness().load["connections"] == 0, AT_ONCE)
            assert running.engine.holds[-1][1] is ListenerState.SUSPENDED
            made = speech.chunks
            await asyncio.sleep(0.05)
            assert speech.chunks == made
            assert len(running.server.hub.registry) == 1, "its session waits for it"
            reading.cancel()

    apart(main)
