"""``playhead serve``: bind, load the voice, serve until told to stop."""

import asyncio
import logging
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from itertools import count
from typing import TYPE_CHECKING, Final

import uvloop
from playhead.codecs import registry as codecs
from playhead.engine import garbage
from playhead.engine.types import ModelInfo, Runner
from playhead.gateway import gpu, logs, signals
from playhead.gateway.access_guard import Guard
from playhead.gateway.agent import Agent
from playhead.gateway.allocator import keep_thresholds
from playhead.gateway.api.listener import open_api
from playhead.gateway.engines import EngineSource, find_engine
from playhead.gateway.gpu import GpuCollector
from playhead.gateway.limits import Limits
from playhead.gateway.listen import ListenError, Listeners, listen
from playhead.gateway.models import StartError as StartError
from playhead.gateway.models import load_voice as load_voice
from playhead.gateway.server import GOING_AWAY, SERVICE_RESTART, GatewayServer
from playhead.gateway.session import ServerFacts
from playhead.gateway.settings import HIBARI, Settings, SettingsError
from playhead.gateway.sockets import TELLS_UNACKNOWLEDGED
from playhead.gateway.starting import waiting

if TYPE_CHECKING:
    from playhead.gateway.tracing import Tracer

log: Final = logging.getLogger("playhead.gateway")

EXIT_FAULT: Final = 1
EXIT_USAGE: Final = 2
EXIT_ENGINE_DEAD: Final = 70
ENGINE_CHECK: Final = 0.2
SWITCH_INTERVAL: Final = 0.0005


def run(settings: Settings, open_runner: Callable[[], Runner] | None = None) -> int:
    """Serve until a signal; returns the exit status. Prints what went wrong in one line."""
    configure_logging(settings.log_level, settings.log_format)
    if settings.engine is not None or settings.model == HIBARI:
        # Not beside an accelerator: its driver follows every page that a process gives back.
        keep_thresholds()
    try:
        guard = Guard(settings)
    except SettingsError as error:
        print(f"playhead serve: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        listeners = listen(settings)
    except ListenError as error:
        print(f"playhead serve: {error}", file=sys.stderr)
        return EXIT_FAULT
    with listeners:
        try:
            with waiting(listeners, guard) as progress:
                source = find_engine(settings, open_runner or load_voice, progress)
                facts = server_facts(settings, source.info, source.numbers)
        except SettingsError as error:
            print(f"playhead serve: {error}", file=sys.stderr)
            return EXIT_USAGE
        except StartError as error:
            print(f"playhead serve: {error}", file=sys.stderr)
            return EXIT_FAULT
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        share_interpreter()
        try:
            return uvloop.run(_serve(settings, guard, facts, source, listeners))
        finally:
            signals.ignore()
            source.end()


def server_facts(
    settings: Settings, info: ModelInfo, numbers: Iterator[int] | None = None
) -> ServerFacts:
    """What sessions need to know; ``numbers`` are for utterances. Raises :class:`SettingsError` for
    an unknown voice."""
    voice = settings.voice or info.voices[0]
    if voice not in info.voices:
        known = ", ".join(info.voices)
        raise SettingsError(f"--voice={voice!r} is not usable: expected one of {known}")
    return ServerFacts(
        model=info.name,
        server="playhead " + metadata.version("playhead"),
        voices=info.voices,
        languages=info.languages,
        takes_instruct=info.takes_instruct,
        random_weights=info.random_weights,
        default_voice=voice,
        model_rate=info.sample_rate,
        formats=tuple(dict(found) for found in codecs.formats()),
        open_format=codecs.open_format,
        new_utterance=(numbers or count(1)).__next__,
        observed=TELLS_UNACKNOWLEDGED,
        limits=Limits(
            message_bytes=settings.max_message,
            grace=settings.grace,
            hello_within=settings.hello_timeout,
        ),
        node=settings.node,
    )


def configure_logging(level: str, form: str = logs.TEXT) -> None:
    """Lines on standard error. Texts that clients send are never logged."""
    logs.open_log(sys.stderr, level, form)


def share_interpreter() -> None:
    """Sockets, engine and lanes take turns in one interpreter: short ones. And none of them has to
    wait for a garbage collection, which holds it from end to end."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    garbage.settle()


async def _serve(
    settings: Settings, guard: Guard, facts: ServerFacts, source: EngineSource, listeners: Listeners
) -> int:
    server = GatewayServer(settings, facts, source.open, guard=guard)
    tracer = _tracer(settings)
    server.metrics.tracer = tracer
    if settings.model != HIBARI:
        seen = GpuCollector(gpu.library(), os.environ, lambda: server.hub.engine.tells)
        server.metrics.registry.register(seen)
    stop: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    _watch_signals(server, stop, settings.drain_timeout)
    await server.start(listeners.sessions)
    api = open_api(server)
    if listeners.http is not None:
        await api.start(listeners.http)
    agent = Agent(server.readiness)
    if listeners.agent is not None:
        await agent.start(listeners.agent)
    secure = settings.tls_cert is not None
    address = page_address(settings.host, server.port, secure=secure)
    noise = " (RANDOM weights: it speaks noise)" if facts.random_weights else ""
    _tell(f"playhead with voice {facts.default_voice} is ready: {address}{noise}")
    if listeners.http is not None:
        _tell(f"HTTP API: {page_address(settings.host, api.port, secure=secure)}v1")
    # Once more, for what was made since, and what failed handshakes left in the waiting room. Who
    # has come by now is set aside as well: cycles of theirs alone would be kept for good.
    garbage.settle()
    dead = await _until_stopped(server, stop)
    await server.drain(SERVICE_RESTART if dead else stop.result(), agent.stop, api.stop)
    if tracer is not None:
        tracer.close()
    return EXIT_ENGINE_DEAD if dead else 0


def _tracer(settings: Settings) -> "Tracer | None":
    if settings.traces is None:
        return None
    from playhead.gateway.tracing import open_tracer

    version = metadata.version("playhead")
    return open_tracer(
        settings.traces, version=version, node=settings.node, ratio=settings.trace_ratio
    )


def _takes_a_line() -> bool:
    try:
        asked = select.poll()
        asked.register(sys.stdout.fileno(), select.POLLOUT)
    except (OSError, ValueError):  # no descriptor under it: nothing can block
        return True
    return bool(asked.poll(0))


def _tell(line: str) -> None:
    """Print a line for whoever started the server and may have stopped reading since: then the line
    is lost, for speech must not wait for a reader."""
    if not _takes_a_line():
        return
    try:
        # One write for a whole line: several workers share what they print on.
        print(f"{line}\n", end="", flush=True)
    except OSError:
        # Python keeps the line and would fail on it once more at exit, with status 120.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


async def _until_stopped(server: GatewayServer, stop: "asyncio.Future[int]") -> bool:
    """Wait for a signal; True when the engine died instead, which no waiting repairs."""
    while not stop.done():
        await asyncio.wait([stop], timeout=ENGINE_CHECK)
        if server.hub.engine.dead is not None:
            log.critical("the speech engine has stopped; shutting down")
            server.hurry()
            return True
    return False


def _watch_signals(server: GatewayServer, stop: "asyncio.Future[int]", patience: float) -> None:
    def on_signal(number: int) -> None:
        if stop.done():
            server.hurry()
            return
        # SIGTERM comes from a supervisor that starts a successor; Ctrl-C from somebody who leaves.
        stop.set_result(SERVICE_RESTART if number == signal.SIGTERM else GOING_AWAY)
        _tell(f"playhead is stopping: speech may go on for {patience:g} s (once more: stop now)")

    signals.hear(on_signal)


def page_address(host: str, port: int, *, secure: bool = False) -> str:
    """The URL at which a browser on this machine finds the page."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)
    if ":" in shown and not shown.startswith("["):
        shown = f"[{shown}]"
    return f"{'https' if secure else 'http'}://{shown}:{port}/"
