"""``playhead serve --workers N`` and ``--gpus all``: several servers on one host, kept alive.

Each is a process of its own, with its own ports and name; a session lives in one of them. A
balancer before them makes one address of them (deploy/haproxy).
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from playhead.engine import clock
from playhead.gateway import gpu
from playhead.gateway.settings import HTTP_NEXT, HTTP_OFF, Settings, SettingsError
from playhead.gateway.settings_values import node as host_name

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
SETTLED: Final = 60.0
"""Seconds alive after which a death counts as the first one again."""
CANNOT_START: Final = (1, 2)
MOST: Final = 64


class Backoff:
    """How long to wait before starting something again that keeps dying."""

    def __init__(self) -> None:
        self._pause = 0.0

    def died(self, lived: float) -> float:
        """Seconds to wait after a life of ``lived`` seconds."""
        if lived >= SETTLED:
            self._pause = 0.0
        pause = self._pause
        self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * pause))
        return pause


@dataclass(frozen=True, slots=True)
class Worker:
    """One process: the flags and variables that make it differ from its mates."""

    name: str
    flags: tuple[str, ...]
    environ: Mapping[str, str]


def workers(args: argparse.Namespace, settings: Settings) -> list[Worker]:
    """What to start. Raises :class:`SettingsError`."""
    if args.workers is not None and args.gpus is not None:
        raise SettingsError("--workers and --gpus contradict each other: choose one")
    if args.gpus is not None:
        devices = _devices(args.gpus)
        environs = [{"CUDA_VISIBLE_DEVICES": str(device)} for device in devices]
    else:
        environs = [{} for _ in range(_count(args.workers))]
    if settings.port and settings.port + 3 * len(environs) > 65_535:
        raise SettingsError(f"--port {settings.port} leaves no room for {len(environs)} processes")
    return [
        _worker(settings, number, len(environs), environ) for number, environ in enumerate(environs)
    ]


def _worker(settings: Settings, number: int, count: int, environ: Mapping[str, str]) -> Worker:
    base = settings.port
    http = settings.http_port
    if http == HTTP_NEXT:
        http = base + count if base else 0
    agent = settings.agent_port
    if agent is None:
        agent = base + 2 * count if base else 0
    name = f"{settings.node or host_name('auto')}-{number}"[-64:]
    flags = ["--port", str(base + number if base else 0), "--node", name]
    flags += ["--http-port", "off" if http == HTTP_OFF else str(http + number if http else 0)]
    flags += ["--agent-port", str(agent + number if agent else 0)]
    return Worker(name, tuple(flags), environ)


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST:
        raise SettingsError(f"--workers={text!r} is not usable: expected a number from 1 to {MOST}")
    return int(text)


def _devices(text: str) -> list[int]:
    seen = [device.index for device in gpu.devices(gpu.library())]
    if not seen:
        raise SettingsError("--gpus: no CUDA device is seen; `playhead doctor` says more")
    if text == "all":
        return seen
    parts = text.split(",")
    wanted = [int(part) for part in parts if part.strip().isdigit()]
    if len(wanted) != len(parts) or not set(wanted) <= set(seen) or len(set(wanted)) < len(wanted):
        known = ", ".join(map(str, seen))
        raise SettingsError(f"--gpus={text!r} is not usable: expected all, or some of {known}")
    return wanted


class Supervisor:
    """Runs workers until a signal; a worker that dies is started again."""

    def __init__(self, command: Sequence[str], team: Sequence[Worker]) -> None:
        self._command = tuple(command)
        self._team = team
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._status = 0

    async def run(self) -> int:
        """The exit status: 0, or the first of a worker that could not start or did not end well."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop, number)
        await asyncio.gather(*(self._keep(worker) for worker in self._team))
        return self._status

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Pass a signal on; nothing is started any more."""
        self._stopping.set()
        for process in self._running.values():
            process.send_signal(number)

    async def _keep(self, worker: Worker) -> None:
        backoff = Backoff()
        lives = 0
        while not self._stopping.is_set():
            born = clock.monotonic()
            status = await self._live(worker)
            lives += 1
            if self._stopping.is_set():
                self._status = self._status or max(0, status)
            elif lives == 1 and status in CANNOT_START:
                self._status = status
                self.stop()
            else:
                pause = backoff.died(clock.monotonic() - born)
                _tell(f"{worker.name} ended with {status}; again in {pause:g} s")
                await self._wait(pause)

    async def _live(self, worker: Worker) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *worker.flags,
            env=os.environ | dict(worker.environ),
            start_new_session=True,  # the terminal's Ctrl-C comes through us, once
        )
        self._running[worker.name] = process
        status = await process.wait()
        del self._running[worker.name]
        return status

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return


def _tell(line: str) -> None:
    print(f"playhead serve: {line}", file=sys.stderr, flush=True)


def without(arguments: Sequence[str], *flags: str) -> list[str]:
    """A command line without these flags and their values."""
    left: list[str] = []
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word in flags:
            skip = True
        elif word.partition("=")[0] not in flags:
            left.append(word)
    return left


def run(args: argparse.Namespace, arguments: Sequence[str], settings: Settings) -> int:
    """Start and keep what ``args`` ask for; ``arguments``: the whole command line."""
    try:
        team = workers(args, settings)
    except SettingsError as error:
        print(f"playhead serve: {error}", file=sys.stderr)
        return 2
    shared = without(arguments, "--workers", "--gpus", "--port", "--http-port", "--agent-port")
    command = [sys.executable, sys.argv[0], *without(shared, "--node")]

    async def supervise() -> int:
        return await Supervisor(command, team).run()

    return asyncio.run(supervise())
