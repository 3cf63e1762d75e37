"""Where a gateway's engine is: in this process, or in one of its own (``--engine``)."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from playhead.engine import clock
from playhead.engine.answers import Relay, unasked
from playhead.engine.loop import Deliver, Engine, EngineConfig
from playhead.engine.progress import Tell, quiet
from playhead.engine.rehearsal import rehearse
from playhead.engine.remote.door import NoEngine, NotYet, RemoteEngine, introduce
from playhead.engine.remote.wire import STRIDE
from playhead.engine.types import ModelInfo, Runner
from playhead.gateway.door import EngineDoor
from playhead.gateway.loading_note import read_note
from playhead.gateway.models import Served, StartError, open_model
from playhead.gateway.settings import Settings

LOADS_WITHIN: Final = 900.0
"""Seconds that an engine may take to load its model before its gateways give up."""
ASK_AGAIN: Final = 0.2


@dataclass(frozen=True, slots=True)
class EngineSource:
    """An engine that is ready. ``open`` is called once, on the event loop."""

    info: ModelInfo
    numbers: Iterator[int]  # of this gateway's utterances
    open: Callable[[Deliver], EngineDoor]
    end: Callable[[], None] = lambda: None  # what to do when that has ended


def find_engine(
    settings: Settings, open_voice: Callable[[], Runner], tell: Tell = quiet
) -> EngineSource:
    """The engine that ``settings`` name. Raises :class:`StartError`. Blocks while it loads, and
    ``tell`` hears how far it is."""
    if settings.engine is None:
        return here(settings, open_voice, tell)
    return elsewhere(settings.engine, tell)


def here(settings: Settings, open_voice: Callable[[], Runner], tell: Tell = quiet) -> EngineSource:
    """An engine on threads of this process."""
    served = open_model(settings, open_voice, tell)
    return EngineSource(served.runner.info, count(1), opener(settings, served), served.end)


def opener(settings: Settings, served: Served) -> Callable[[Deliver], Engine]:
    """Starts an engine of a model that is ready. Where lane time is what limits, the model first
    speaks to nobody, so that the first listeners find its costs known. Blocks for that long."""
    relay, capacity = Relay(served.follow), None
    if math.isfinite(served.policy.max_utilisation):
        most = served.policy.max_live
        follow = unasked if served.follow is unasked else relay.turn_to
        capacity = rehearse(served.runner, served.lanes, clock.monotonic, most=most, follow=follow)

    def open_engine(deliver: Deliver) -> Engine:
        config = EngineConfig(
            served.lanes,
            served.policy,
            settings.stuck_after,
            served.counts,
            capacity,
            relay.turn_to,
            served.at_work,
            served.vetted,
        )
        engine = Engine(served.runner, config, deliver)
        engine.start()
        return engine

    return open_engine


def elsewhere(path: str, tell: Tell = quiet, patience: float = LOADS_WITHIN) -> EngineSource:
    """The engine at a Unix socket, once it has loaded its model."""
    until = clock.monotonic() + patience
    while True:
        stage = read_note(path)
        tell(stage.name, stage.done)
        try:
            introduction = introduce(path, patience)
            break
        except NoEngine as error:
            if not isinstance(error, NotYet) or clock.monotonic() >= until:
                raise StartError(
                    f"--engine {path}: {error}. Start one with `playhead engine --socket {path}`"
                ) from error
        clock.pause(ASK_AGAIN)

    def open_engine(deliver: Deliver) -> RemoteEngine:
        engine = RemoteEngine(introduction, deliver)
        engine.start()
        return engine

    hello = introduction.hello
    return EngineSource(hello.info, count(hello.first, STRIDE), open_engine)
