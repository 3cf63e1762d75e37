"""``playhead engine``: an engine in a process of its own, for the gateways of this machine."""

import asyncio
import logging
import signal
import sys
from typing import Final

import uvloop
from playhead.engine import garbage
from playhead.engine.remote.server import EngineServer
from playhead.gateway import signals
from playhead.gateway.engines import opener
from playhead.gateway.loading_note import LoadingNote
from playhead.gateway.models import Served, StartError, load_voice, open_model
from playhead.gateway.serve import (
    ENGINE_CHECK,
    EXIT_ENGINE_DEAD,
    EXIT_FAULT,
    configure_logging,
    share_interpreter,
)
from playhead.gateway.settings import Settings

log: Final = logging.getLogger("playhead.gateway.engine")


def run(settings: Settings, path: str) -> int:
    """Serve gateways at ``path`` until a signal; returns the exit status."""
    configure_logging(settings.log_level, settings.log_format)
    note = LoadingNote(path)
    try:
        served = open_model(settings, load_voice, note, alone=True)
    except StartError as error:
        print(f"playhead engine: {error}", file=sys.stderr)
        return EXIT_FAULT
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        note.remove()
    share_interpreter()
    try:
        return uvloop.run(_serve(settings, served, path))
    finally:
        signals.ignore()
        served.end()


async def _serve(settings: Settings, served: Served, path: str) -> int:
    stop = asyncio.Event()
    signals.hear(lambda _: stop.set())
    server = EngineServer(opener(settings, served))
    try:
        await server.start(path)
    except OSError as error:
        server.stop()
        print(f"playhead engine: --socket {path} cannot be had: {error}", file=sys.stderr)
        return EXIT_FAULT
    log.info("the engine of %s is ready at %s", served.runner.info.name, path)
    dead = await _until_stopped(server, stop)
    server.stop()
    log.info("the engine at %s has stopped", path)
    return EXIT_ENGINE_DEAD if dead else 0


async def _until_stopped(server: EngineServer, stop: asyncio.Event) -> bool:
    """Wait for a signal; True when the engine died instead."""
    keeper = garbage.Keeper(lambda: server.living, lambda: server.speaking)
    while not stop.is_set():
        keeper.look()
        if server.engine.dead is not None:
            log.critical("the speech engine has stopped; shutting down")
            await server.tell_dead(f"{type(server.engine.dead).__name__}: {server.engine.dead}")
            return True
        try:
            await asyncio.wait_for(stop.wait(), ENGINE_CHECK)
        except TimeoutError:
            continue
    return False
