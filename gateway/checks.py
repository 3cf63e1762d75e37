"""What must be right on a machine before it serves: each check says what is wrong and the remedy.

``playhead serve`` stops at the first fault, ``playhead doctor`` shows them all.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from playhead.codecs import opus
from playhead.engine.models.hibari import split
from playhead.gateway import gpu
from playhead.gateway.listen import ListenError, listen
from playhead.gateway.settings import HIBARI, Settings

SPARE: Final = 200
"""Descriptors beside connections: refusals on their way out, files, the engine's and the loop's."""
PREPARED_BYTES: Final = 300 * 2**20
OLDEST_DRIVER: Final = 550
"""NVIDIA's branch for CUDA 12.4; green contexts and graphs with conditional nodes need it."""


class Level(StrEnum):
    """How a check went."""

    OK = "ok"
    NOTE = "note"  # something that only some need is missing
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, in one sentence that names the setting and, for faults, the remedy."""

    level: Level
    about: str
    text: str


def descriptors(settings: Settings) -> Finding:
    """Room for every connection. Raises the soft limit as far as it may."""
    needed = settings.max_connections + settings.max_connections // 10 + SPARE
    if sys.platform == "win32":
        return Finding(Level.OK, "descriptors", "this platform sets no limit")
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        most = max(1, (hard - SPARE) * 10 // 11)
        return Finding(
            Level.FAULT,
            "descriptors",
            f"--max-connections {settings.max_connections} needs {needed} file descriptors and "
            f"this process may open {hard}: raise the limit (ulimit -Hn, LimitNOFILE=, "
            f"--ulimit nofile=) or lower --max-connections to {most}",
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return Finding(
        Level.OK, "descriptors", f"{needed} for --max-connections {settings.max_connections}"
    )


def ports(settings: Settings) -> Finding:
    """Whether the ports can be had."""
    try:
        with listen(settings) as found:
            had = [found.sessions] if found.http is None else [found.sessions, found.http]
            names = " and ".join(str(each.getsockname()[1]) for each in had)
    except ListenError as error:
        return Finding(Level.FAULT, "ports", str(error))
    return Finding(Level.OK, "ports", f"{names} of {settings.host} can be had")


def voice_cache(settings: Settings) -> Finding:
    """Whether the bundled voice is prepared, or can be."""
    root = split.cache_root()
    if settings.model != HIBARI:
        return Finding(Level.OK, "voice", f"not needed by --model {settings.model}")
    if split.prepared():
        return Finding(Level.OK, "voice", f"prepared in {root}")
    folder = next(path for path in (root, *root.parents) if path.exists())
    if not os.access(folder, os.W_OK | os.X_OK) or not folder.is_dir():
        return Finding(Level.FAULT, "voice", unwritable(root))
    free = shutil.disk_usage(folder).free
    if free < PREPARED_BYTES:
        return Finding(
            Level.FAULT,
            "voice",
            f"PLAYHEAD_CACHE: {root} has {free // 2**20} MiB free and preparing the voice takes "
            f"{PREPARED_BYTES // 2**20}: make room, or name another folder",
        )
    return Finding(Level.OK, "voice", f"will be prepared in {root} at the first start")


def unwritable(root: Path) -> str:
    """What to say of a cache that cannot be written."""
    return (
        f"the voice's cache {root} cannot be written: name a writable folder with PLAYHEAD_CACHE, "
        "or prepare the voice there as another user with "
        "`python -m playhead.engine.models.hibari.split`"
    )


def weights(settings: Settings) -> Finding:
    """Whether the model's folder can be read, when it is one."""
    chosen = settings.weights
    if chosen is None or chosen.startswith("random"):
        return Finding(Level.OK, "weights", "none to read")
    folder = Path(chosen)
    if not folder.exists() and not folder.is_absolute() and chosen.count("/") == 1:
        return Finding(Level.OK, "weights", f"{chosen} is taken for a hub id")
    try:
        (folder / "config.json").read_bytes()
    except OSError as error:
        return Finding(
            Level.FAULT,
            "weights",
            f"--weights {chosen} cannot be read ({error.strerror}: config.json): name a model "
            "folder that this user may read, a hub id, or random:1.7b",
        )
    return Finding(Level.OK, "weights", f"{chosen} can be read")


def traces(settings: Settings) -> Finding:
    """Whether traces can be sent."""
    if settings.traces is None:
        return Finding(Level.OK, "traces", "not asked for")
    if urlsplit(settings.traces).scheme not in ("http", "https"):
        return Finding(
            Level.FAULT,
            "traces",
            f"--traces {settings.traces} is no URL: expected http://HOST:4318/v1/traces",
        )
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        return Finding(
            Level.FAULT, "traces", "--traces needs the package: pip install 'playhead[traces]'"
        )
    return Finding(Level.OK, "traces", f"go to {settings.traces}")


def libopus(settings: Settings) -> Finding:
    """Whether Opus can be offered."""
    reason = opus.unavailable()
    if reason:
        return Finding(Level.NOTE, "libopus", f"Opus is not offered: {reason}")
    return Finding(Level.OK, "libopus", "Opus is offered")


def audio_device(settings: Settings) -> Finding:
    """Whether `playhead say --play` could be heard here."""
    try:
        import sounddevice

        sounddevice.query_devices(kind="output")
    except ImportError:
        return Finding(
            Level.NOTE, "audio", "`playhead say --play` needs: pip install 'playhead[play]'"
        )
    # PortAudio missing is an OSError, no device a ValueError, a broken one its own error.
    except Exception as error:  # noqa: BLE001
        return Finding(Level.NOTE, "audio", f"no sound can be played here ({error})")
    return Finding(Level.OK, "audio", "sound can be played here")


def accelerators(settings: Settings) -> Finding:
    """Driver and devices, which only the accelerator's model needs."""
    missing = Level.NOTE if settings.model == HIBARI else Level.FAULT
    found = gpu.devices(gpu.library())
    if not found:
        return Finding(
            missing,
            "gpu",
            "no CUDA device is seen: --model qwen3-tts needs one, NVIDIA's driver and "
            "pip install 'playhead[qwen]' (in a container also --gpus all)",
        )
    if int(found[0].driver.partition(".")[0]) < OLDEST_DRIVER:
        return Finding(
            missing,
            "gpu",
            f"driver {found[0].driver} is too old: install {OLDEST_DRIVER} or newer",
        )
    free = ", ".join(
        f"{device.name} with {(device.total - device.used) // 2**30} GiB free" for device in found
    )
    return Finding(Level.OK, "gpu", f"driver {found[0].driver}: {free}")


Check = Callable[[Settings], Finding]
BEFORE_SERVING: Final[tuple[Check, ...]] = (descriptors, weights, traces)
ALL: Final[tuple[Check, ...]] = (
    *BEFORE_SERVING,
    voice_cache,
    ports,
    libopus,
    audio_device,
    accelerators,
)


def faults(settings: Settings) -> Iterator[str]:
    """What keeps ``settings`` from being served, one sentence each."""
    for check in BEFORE_SERVING:
        finding = check(settings)
        if finding.level is Level.FAULT:
            yield finding.text
