"""``playhead serve --workers N``, ``--gateways N`` and ``--gpus all``: several processes on one
host, kept alive.

Each server has its own ports and name; a session lives in one of them. A balancer before them makes
one address of them (deploy/haproxy). A worker has an engine of its own; gateways share one, which
has a process to itself.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from playhead.engine import clock
from playhead.gateway import gpu, signals
from playhead.gateway.lifeline import Lifeline
from playhead.gateway.settings import HTTP_NEXT, HTTP_OFF, Settings, SettingsError
from playhead.gateway.settings_values import node as host_name

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
SETTLED: Final = 60.0
"""Seconds alive after which a death counts as the first one again."""
CANNOT_START: Final = (1, 2)
OURS: Final = (
    *("--workers", "--gateways", "--gpus", "--port", "--http-port", "--agent-port", "--node"),
)
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
    command: str = "serve"


def workers(args: argparse.Namespace, settings: Settings, folder: Path) -> list[Worker]:
    """What to start; sockets lie in ``folder``. Raises :class:`SettingsError`."""
    if args.workers is not None and (args.gpus is not None or args.gateways is not None):
        raise SettingsError("--workers contradicts --gpus and --gateways: choose one")
    if args.workers is not None:
        return _servers(settings, [{} for _ in range(_count("--workers", args.workers))])
    environs: list[Mapping[str, str]] = [{}]
    if args.gpus is not None:
        environs = [_only(device) for device in _devices(args.gpus)]
    if args.gateways is None:
        return _servers(settings, environs)
    return _teams(settings, environs, _count("--gateways", args.gateways), folder)


def _only(device: int) -> Mapping[str, str]:
    """One device, by the number that NVIDIA's tools give it: CUDA's own order is by speed."""
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(device)}


def _servers(settings: Settings, environs: Sequence[Mapping[str, str]]) -> list[Worker]:
    if settings.port and settings.port + 3 * len(environs) > 65_535:
        raise SettingsError(f"--port {settings.port} leaves no room for {len(environs)} processes")
    return [
        _worker(settings, number, len(environs), environ) for number, environ in enumerate(environs)
    ]


def _teams(
    settings: Settings, environs: Sequence[Mapping[str, str]], each: int, folder: Path
) -> list[Worker]:
    """An engine per environment, and ``each`` gateways before it."""
    team = _servers(settings, [environ for environ in environs for _ in range(each)])
    sockets = [str(folder / f"engine-{number}") for number in range(len(environs))]
    gateways = [
        replace(worker, flags=(*worker.flags, "--engine", sockets[number // each]))
        for number, worker in enumerate(team)
    ]
    base = settings.node or host_name("auto")
    engines = [
        Worker(f"{base}-engine-{number}"[-64:], ("--socket", sockets[number]), environ, "engine")
        for number, environ in enumerate(environs)
    ]
    return engines + gateways


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


def _count(flag: str, text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST:
        raise SettingsError(f"{flag}={text!r} is not usable: expected a number from 1 to {MOST}")
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

    def __init__(
        self, program: Sequence[str], shared: Sequence[str], team: Sequence[Worker]
    ) -> None:
        self._program = tuple(program)
        self._shared = tuple(shared)  # flags of all
        self._team = team
        self._engines = {worker.name for worker in team if worker.command == "engine"}
        self._released: set[str] = set()  # engines that were told to end
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._ours = Lifeline()
        self._theirs = Lifeline()  # of the engines: gateways hold it as well
        self._stopping = asyncio.Event()
        self._status = 0

    async def run(self) -> int:
        """The exit status: 0, or the first of a worker that could not start or did not end well."""
        signals.hear(self.stop)
        with self._ours, self._theirs:
            await asyncio.gather(*(self._keep(worker) for worker in self._team))
        return self._status

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Pass a signal on; nothing is started any more. Engines speak on until their gateways,
        which let speech end, are gone."""
        self._stopping.set()
        for name, process in self._running.items():
            if name not in self._engines:
                _signal(process, number)
        self._release_engines()

    def _release_engines(self) -> None:
        if self._stopping.is_set() and self._running.keys() <= self._engines:
            for name in self._running.keys() - self._released:
                _signal(self._running[name])
            self._released |= self._engines

    async def _keep(self, worker: Worker) -> None:
        backoff = Backoff()
        lives = 0
        while not self._stopping.is_set():
            born = clock.monotonic()
            status = await self._live(worker)
            lives += 1
            if self._stopping.is_set():
                if status:
                    _tell(f"{worker.name} ended with {status}")
                self._status = self._status or max(0, status)
            elif lives == 1 and status in CANNOT_START:
                self._status = status
                self.stop()
            else:
                pause = backoff.died(clock.monotonic() - born)
                _tell(f"{worker.name} ended with {status}; again in {pause:g} s")
                await self._wait(pause)

    async def _live(self, worker: Worker) -> int:
        watches, holds = self._ties(worker)
        process = await asyncio.create_subprocess_exec(
            *self._program,
            worker.command,
            *self._shared,
            *worker.flags,
            env=os.environ | dict(worker.environ) | dict(watches.environ),
            start_new_session=True,  # the terminal's Ctrl-C comes through us, once
            pass_fds=(watches.watched, *holds),
        )
        self._running[worker.name] = process
        if self._stopping.is_set():  # it came while this one was being started
            _signal(process)
        status = await process.wait()
        del self._running[worker.name]
        self._release_engines()
        return status

    def _ties(self, worker: Worker) -> tuple[Lifeline, tuple[int, ...]]:
        """What a worker watches and what it holds. Should we be killed, gateways drain, and engines
        end when the last gateway has."""
        if worker.name in self._engines:
            return self._theirs, ()
        return self._ours, (self._theirs.held,)

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


def _signal(process: asyncio.subprocess.Process, number: int = signal.SIGTERM) -> None:
    """Send a signal, unless it has ended by itself and is about to be known to have."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def run(args: argparse.Namespace, arguments: Sequence[str], settings: Settings) -> int:
    """Start and keep what ``args`` ask for; ``arguments``: the whole command line."""
    with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
        try:
            team = workers(args, settings, Path(folder))
        except SettingsError as error:
            print(f"playhead serve: {error}", file=sys.stderr)
            return 2
        shared = without(arguments, *OURS)
        shared.remove("serve")

        async def supervise() -> int:
            return await Supervisor([sys.executable, sys.argv[0]], shared, team).run()

        try:
            return asyncio.run(supervise())
        finally:
            signals.ignore()
