"""Which model speaks: the bundled voice on the processor, or the accelerator's.

Each model's libraries are imported only when it is asked for.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playhead.engine.answers import Hear, unasked
from playhead.engine.lanes import cpu_limits
from playhead.engine.models.hibari import split
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.progress import Tell, quiet
from playhead.engine.types import ModelCounts, Runner
from playhead.gateway import checks
from playhead.gateway.settings import APART, AUTO, HIBARI, Settings

log: Final = logging.getLogger("playhead.gateway")


APART_BY_DEFAULT: Final = True
"""Whether an engine that has a process of its own gives its model another, unless told: at 250
requests a second on one H200 five of 3,116 utterances stalled so, and most did otherwise."""


class StartError(RuntimeError):
    """The server cannot start; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class Served:
    """A model that is ready to speak, and how the engine is to use it."""

    runner: Runner
    lanes: LaneLimits
    policy: PolicyConfig
    counts: Callable[[], ModelCounts] = ModelCounts  # see EngineConfig; without a device: none
    follow: Callable[[Hear], None] = unasked  # see EngineConfig
    end: Callable[[], None] = lambda: None  # lets it go, when the engine has ended
    at_work: Callable[[], Mapping[str, int]] = dict  # see EngineConfig
    vetted: bool = False  # see EngineConfig


def open_model(
    settings: Settings, open_voice: Callable[[], Runner], tell: Tell = quiet, *, alone: bool = False
) -> Served:
    """The model that ``settings`` name; ``open_voice`` makes the bundled one. ``tell`` hears how
    far it is; ``alone``: this process has the engine and no gateway. Raises :class:`StartError`."""
    for fault in checks.faults(settings):
        raise StartError(fault)
    if settings.model == HIBARI:
        policy = PolicyConfig(settings.urgency, settings.lead)
        tell("loading the voice", 0.0)
        return Served(open_voice(), cpu_limits(usable_cores()), policy)
    if settings.lanes == APART or (settings.lanes == AUTO and alone and APART_BY_DEFAULT):
        from playhead.gateway.model_process import open_apart

        return open_apart(settings, tell)
    return open_accelerated(settings, tell)


def load_voice() -> Runner:
    """The bundled voice, ready to speak. Raises :class:`StartError`."""
    from playhead.engine.models.hibari.runner import HibariRunner
    from playhead.engine.models.hibari.split import VoiceError

    try:
        return HibariRunner()
    except OSError as error:
        raise StartError(f"{checks.unwritable(split.cache_root())} ({error})") from error
    except VoiceError as error:
        raise StartError(f"the voice cannot be prepared: {error}") from error


def usable_cores() -> int:
    """Cores that this process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_accelerated(settings: Settings, tell: Tell) -> Served:
    """The accelerator's model, in this process. Raises :class:`StartError`."""
    tell("loading libraries", 0.0)
    try:
        from playhead.engine.models.qwen3_tts import cuda_runner, device_faults
    except ImportError as error:
        raise _lacking(settings, error) from error
    assert settings.weights is not None  # Settings has seen to it
    try:
        runner = cuda_runner.open_cuda(
            settings.weights,
            slots=settings.slots,
            positions=settings.context,
            recordings=None if settings.clones is None else Path(settings.clones),
            tell=tell,
        )
    except ImportError as error:
        raise _lacking(settings, error) from error
    except device_faults.MEMORY_ERROR as error:
        raise StartError(
            f"--slots {settings.slots} of --context {settings.context} do not fit the "
            f"accelerator's memory: lower one of them ({error})"
        ) from error
    except device_faults.DeviceError as error:
        raise StartError(f"--model {settings.model} cannot be served: {error}") from error
    except cuda_runner.TOO_LARGE as error:
        raise StartError(
            f"--slots {settings.slots} of --context {settings.context} do not fit: {error}"
        ) from error
    except cuda_runner.VOICE_ERROR as error:
        given = "(not given)" if settings.clones is None else settings.clones
        raise StartError(f"--clones {given}: {error}") from error
    except (ValueError, OSError) as error:
        raise StartError(
            f"--weights {settings.weights} cannot be used ({error}): name a model folder, a hub "
            "id, or random:1.7b"
        ) from error
    log.info("serving %s with %d streams", runner.info.name, settings.slots)
    return Served(runner, runner.limits, accelerated_policy(settings), runner.counts)


def _lacking(settings: Settings, error: ImportError) -> StartError:
    return StartError(
        f"--model {settings.model} needs packages that are not installed ({error}): "
        "pip install 'playhead[qwen]'"
    )


def accelerated_policy(settings: Settings) -> PolicyConfig:
    """For the accelerator's model."""
    return PolicyConfig(settings.urgency, settings.lead, max_live=settings.slots)
