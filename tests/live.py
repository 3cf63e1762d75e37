"""A whole server in this process: real sockets, real engine, and a voice that is a known wave.

The wave depends on the text and on the position alone, so that a sample that is lost, doubled,
or another stream's shows up as a difference.
"""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from playhead.engine.lanes import cpu_limits
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.policy import PolicyConfig
from playhead.engine.types import ChunkWork, ModelInfo, Pcm, Request, StepResult, Word
from playhead.gateway.serve import server_facts
from playhead.gateway.server import GatewayServer, bind
from playhead.gateway.settings import Settings

RATE = 24000
FRAME = 300
FRAMES_PER_CHARACTER = 6  # 75 ms: about the pace of speech


def wave(text: str, first: int, count: int) -> Pcm:
    """Samples ``first`` to ``first + count`` of the sound of ``text``, float32 [count]."""
    at = np.arange(first, first + count)
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    here = codes[at // (FRAME * FRAMES_PER_CHARACTER)]
    return (((at * (here + 7)) % 1009) / 1009 - 0.5).astype(np.float32)


def sound(text: str) -> Pcm:
    """All of it."""
    return wave(text, 0, len(text) * FRAME * FRAMES_PER_CHARACTER)


@dataclass
class _Text:
    text: str = ""
    frames: int = 0  # released
    ended: bool = False

    @property
    def left(self) -> int:
        return len(self.text) * FRAMES_PER_CHARACTER - self.frames


class WaveRunner:
    """See ``Runner``. ``pace``: seconds of sound made per second by one lane."""

    info = ModelInfo("wave", ("wave",), RATE, FRAME, (8, 16, 32), 64)

    def __init__(self, pace: float = 20.0) -> None:
        self._pace = pace
        self._texts: dict[int, _Text] = {}

    def open(self, request: Request) -> None:
        self._texts[request.utterance] = _Text()

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        state = self._texts[utterance]
        state.text += delta
        state.ended = state.ended or end
        return state.left > 0 or state.ended

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        return [self._step(utterance) for utterance in utterances]

    def _step(self, utterance: int) -> StepResult:
        state = self._texts[utterance]
        ended = state.ended  # before what is left is looked at: text may come meanwhile
        frames = min(self.info.step_frames, state.left)
        first, state.frames = state.frames, state.frames + frames
        done = state.left == 0
        words = _words(state.text, -(-first // FRAMES_PER_CHARACTER), state.frames)
        return StepResult(utterance, frames, done and ended, done, done and ended, words)

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        frames = sum(chunk.frames for chunk in chunks)
        time.sleep(frames * FRAME / RATE / self._pace)
        return [
            wave(self._texts[c.utterance].text, c.first * FRAME, c.frames * FRAME) for c in chunks
        ]

    def close(self, utterance: int) -> None:
        self._texts.pop(utterance, None)


def _words(text: str, first: int, frames: int) -> tuple[Word, ...]:
    """Words of which the first character starts in these frames."""
    end = -(-frames // FRAMES_PER_CHARACTER)
    starts = [
        at for at in range(first, end) if text[at] != " " and (at == 0 or text[at - 1] == " ")
    ]
    samples = FRAME * FRAMES_PER_CHARACTER
    words = [(at, text[at:].partition(" ")[0]) for at in starts]
    return tuple(Word(word, at * samples, at, at + len(word)) for at, word in words)


@contextlib.asynccontextmanager
async def live_server(
    runner: Any = None, policy: PolicyConfig | None = None, **settings: Any
) -> AsyncIterator[str]:
    """A server on a free port of this machine; yields its URL."""
    async with live_gateway(runner, policy, **settings) as server:
        yield f"ws://127.0.0.1:{server.port}"


@contextlib.asynccontextmanager
async def live_gateway(
    runner: Any = None, policy: PolicyConfig | None = None, **settings: Any
) -> AsyncIterator[GatewayServer]:
    """The same; yields the server itself."""
    runner = runner or WaveRunner()
    chosen = Settings(port=0, **({"close_timeout": 1.0, "drain_timeout": 0.0} | settings))

    def open_engine(deliver: Any) -> Engine:
        engine = Engine(runner, EngineConfig(cpu_limits(2), policy or PolicyConfig()), deliver)
        engine.start()
        return engine

    server = GatewayServer(chosen, server_facts(chosen, runner.info), open_engine)
    await server.start(bind(chosen.host, chosen.port))
    try:
        yield server
    finally:
        server.hurry()
        await server.drain()


@contextlib.contextmanager
def serve_process(*flags: str, program: Path | None = None) -> Iterator[str]:
    """``playhead serve`` as users start it, with its own voice; yields its URL. ``program``: of
    another installation than the tests'."""
    program = program or Path(sys.executable).with_name("playhead")
    command = [program, "serve", "--port", "0", *flags]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http(s?)://([\d.]+:\d+)", line)
        try:
            assert found, f"no address in {line!r}"
            yield f"ws{found[1]}://{found[2]}"
        finally:
            process.terminate()
            process.terminate()
            process.stdout.read()


class Cable:
    """A TCP relay that can be cut. ``url`` leads through it."""

    def __init__(self, url: str) -> None:
        self._host, self._port = str(urlsplit(url).hostname), urlsplit(url).port
        self._ends: set[asyncio.StreamWriter] = set()
        self.url = ""

    @contextlib.asynccontextmanager
    async def laid(self) -> AsyncIterator["Cable"]:
        """Relay while the block runs."""
        listener = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = f"ws://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            listener.close()
            self.cut()

    def cut(self) -> None:
        """Drop all connections at once; what is under way is lost."""
        for end in self._ends:
            end.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        ends = {writer, far_writer}
        self._ends |= ends
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        for end in ends:
            end.transport.abort()
        self._ends -= ends


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(4096):
        writer.write(data)
        await writer.drain()
    raise ConnectionResetError
