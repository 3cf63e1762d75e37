"""A machine with nothing left: no reader of what is printed, no descriptors, no room, no clock."""

import asyncio
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kit import PROGRAM, Bare, client, environment, served
from live import WaveRunner, live_server, sound
from machine import AT_ONCE, PATIENCE
from playhead.engine.policy import PolicyConfig
from playhead.gateway import messages as m
from ports import free_ports
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

TEXT = "Nothing of this may be missing."


@contextlib.contextmanager
def full_pipe() -> Iterator[int]:
    """The writing end of a pipe that takes nothing more, though it blocks who tries."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    try:
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


async def hears(url: str) -> None:
    async with client(url) as bare:
        await bare.send(m.Text(TEXT), m.End())
        np.testing.assert_array_equal(await bare.all_audio(), sound(TEXT))


async def patiently(url: str) -> None:
    """The same, at a server that starts."""
    for _ in range(round(PATIENCE / 0.05)):
        with contextlib.suppress(OSError, InvalidStatus):  # not there, or loading
            return await asyncio.wait_for(hears(url), PATIENCE)
        await asyncio.sleep(0.05)
    raise AssertionError("the server does not come up")


def test_nobody_reads_what_is_printed_and_logged() -> None:
    port = free_ports()
    url = f"ws://127.0.0.1:{port}/v1/session"

    async def main() -> None:
        await patiently(url)
        async with client(url) as bare:
            for _ in range(30):  # each is logged
                await bare.send(m.Text("This {decode} is logged."), m.End())
            failed = [await bare.until(m.Failed) for _ in range(16)]
            assert {failure.code for failure in failed} == {"engine_error"}
        await hears(url)

    with full_pipe() as blocked:
        command = [sys.executable, str(PROGRAM), "serve", "--port", str(port)]
        with subprocess.Popen(
            [*command, "--http-port", "off"], stdout=blocked, stderr=blocked, env=environment()
        ) as process:
            try:
                asyncio.run(main())
                process.terminate()
                assert process.wait(AT_ONCE) == 0
            finally:
                process.kill()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_without_descriptors_streams_go_on_and_newcomers_come_later() -> None:
    """EMFILE at accept: no spinning, nobody is hurt, and it passes by itself."""
    with served() as (process, url):
        port = int(re.search(r":(\d+)/", url)[1])  # type: ignore[index]

        async def main() -> None:
            await hears(url)  # what is imported at first use needs a descriptor too
            async with client(url) as bare:
                used = len(os.listdir(f"/proc/{process.pid}/fd"))
                resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used + 2, 20_000))
                crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(12)]
                await asyncio.sleep(0.3)
                before = cpu_seconds(process.pid)
                await bare.send(m.Text(TEXT), m.End())
                np.testing.assert_array_equal(await bare.all_audio(), sound(TEXT))
                await asyncio.sleep(1.0)
                assert cpu_seconds(process.pid) - before < 0.7
                for one in crowd:
                    one.close()
                resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (20_000, 20_000))
                await patiently(url)

        asyncio.run(main())
        process.send_signal(signal.SIGTERM)
        assert process.wait(AT_ONCE) == 0


def test_without_descriptors_the_first_who_wants_opus_gets_it() -> None:
    """EMFILE before libopus is first used: it was loaded at start, where looking for it can fail
    nobody's session."""
    with served("--http-port", "off") as (process, url):

        async def main() -> None:
            async with connect(url, subprotocols=[Subprotocol("playhead.v1.msgpack")]) as socket:
                late = Bare(socket)
                used = len(os.listdir(f"/proc/{process.pid}/fd"))
                resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (used, 20_000))
                await late.send(m.Hello(codec="opus", reports=False), m.Text(TEXT), m.End())
                samples, final = 0, False
                while not final:
                    message = await late.until(m.Audio, m.Failed)
                    assert isinstance(message, m.Audio), message
                    samples, final = samples + message.samples, message.final
                assert samples == len(sound(TEXT))

        asyncio.run(main())


def test_a_refusal_comes_within_fifty_milliseconds() -> None:
    """Measured on a socket, from the text to ``failed``, and no stall behind."""
    house = PolicyConfig(max_live=1)

    async def main() -> None:
        async with live_server(WaveRunner(200.0), policy=house) as address:
            url = address + "/v1/session"
            async with client(url) as speaker, client(url) as refused:
                await speaker.send(m.Text(TEXT * 9), m.End())
                await speaker.until(m.Audio)
                waits, told = [], set()
                for _ in range(21):  # the quickest tells what the server takes, the others who else
                    began = time.monotonic()
                    await refused.send(m.Text("No room."), m.End())
                    failed = await refused.until(m.Failed)
                    waits.append(time.monotonic() - began)
                    assert failed.code == "overloaded"
                    told.add(failed.retry_after)
                    await asyncio.sleep(0.06)  # under the rate of opening
                assert min(waits) < 0.05
                assert len(told) == 21, "they do not all come back at the same moment"
                assert all(1_000 <= wait < 1_500 for wait in told)
                assert 1 not in speaker.endings

    asyncio.run(main())


@pytest.mark.parametrize("jump", [-3_600.0, 3_600.0])
def test_a_jump_of_the_wall_clock_changes_nothing(
    jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions, timers and returns go by the monotonic clock."""

    async def main() -> None:
        async with live_server(WaveRunner(200.0), grace=5.0) as address:
            url = address + "/v1/session"
            async with client(url) as bare:
                await bare.send(m.Text(TEXT), m.End())
                await bare.until(m.Audio)
                real = time.time
                monkeypatch.setattr(time, "time", lambda: real() + jump)
                np.testing.assert_array_equal(await bare.all_audio(), sound(TEXT))
                bare.socket.transport.abort()
                with contextlib.suppress(ConnectionClosed):
                    await bare.receive()
                origin = m.ResumeFrom(bare.ready.session, bare.ready.token, bare.seq)
            async with client(url, resume=origin, greeted=False) as back:
                assert (await back.until(m.Ready)).resumed
            await hears(url)

    asyncio.run(main())
