"""``playhead model``: the accelerator's model in a process of its own, started by its engine.

The scheduler and its sockets then share one interpreter's lock, and the lanes' threads another.
"""

import sys
from typing import Final

import msgspec
from playhead.engine.progress import Tell
from playhead.engine.remote.runner_host import CannotHost, Hosted, host
from playhead.engine.remote.runner_proxy import CannotStart, start
from playhead.gateway import models
from playhead.gateway.models import Served, StartError, accelerated_policy
from playhead.gateway.serve import configure_logging, share_interpreter
from playhead.gateway.settings import Settings

COMMAND: Final = "model"


def open_apart(settings: Settings, tell: Tell) -> Served:
    """The model that ``settings`` name, in another process. Raises :class:`StartError`."""
    program = [sys.executable, sys.argv[0], COMMAND]
    try:
        runner = start(program, msgspec.msgpack.encode(settings), tell)
    except CannotStart as error:
        raise StartError(str(error)) from error
    return Served(
        runner,
        runner.limits,
        accelerated_policy(settings),
        runner.counts,
        runner.follow,
        runner.end,
        runner.at_work,
        vetted=True,  # in its own process: twice would keep this one's interpreter from others
    )


def run(lines: str) -> int:
    """Be that process. ``lines``: the descriptors it was given, with commas between."""
    return host([int(number) for number in lines.split(",")], _load)


def _load(written: bytes, tell: Tell) -> Hosted:
    settings = msgspec.msgpack.decode(written, type=Settings)
    configure_logging(settings.log_level, settings.log_format)
    try:
        served = models.open_accelerated(settings, tell)
    except StartError as error:
        raise CannotHost(str(error)) from error
    share_interpreter()
    return Hosted(served.runner, served.lanes, served.counts)
