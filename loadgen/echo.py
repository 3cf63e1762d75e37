"""Trivial servers for many listeners: known audio by the clock, in processes of their own."""

import asyncio
import contextlib
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection

import uvloop
from playhead.loadgen.scripted import Script, ScriptedServer
from playhead.loadgen.workers import interrupts_kept

RATE = 8_000
"""Samples a second: 16 kB a second for each listener."""
FIRST = 0.05
"""Seconds after the text at which the first second of audio is sent; the others follow by the
clock, half a second ahead."""
REPORTS = 1_000  # milliseconds between reports, as a server with so many listeners asks for


@contextlib.contextmanager
def serving(count: int, speech: int, cpus: Sequence[int] = ()) -> Iterator[list[str]]:
    """``count`` servers on ``cpus`` (none: any), whose utterances last ``speech`` seconds; yields
    their addresses."""
    context = multiprocessing.get_context("spawn")
    pipes, children = [], []
    for _ in range(count):
        ours, theirs = context.Pipe()
        child = context.Process(target=_serve, args=(theirs, speech, tuple(cpus)), daemon=True)
        with interrupts_kept():  # the generator is interrupted, and ends its servers
            child.start()
        pipes.append(ours)
        children.append(child)
    try:
        yield [str(pipe.recv()) for pipe in pipes]
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.join()


def _serve(pipe: Connection, speech: int, cpus: Sequence[int]) -> None:
    async def serve() -> None:
        chunks = tuple((max(FIRST, second - 0.5), RATE) for second in range(speech))
        server = ScriptedServer(Script(chunks, report_interval=REPORTS, forget=True))
        async with server.running() as url:
            pipe.send(url)
            await asyncio.Event().wait()

    if cpus:
        os.sched_setaffinity(0, cpus)
    uvloop.run(serve())
