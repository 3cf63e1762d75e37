"""What `playhead doctor` looks at beyond what a server needs to start: how well it would run."""

import math
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from playhead.gateway import gpu
from playhead.gateway.checks import Finding, Level
from playhead.gateway.listener import BACKLOG
from playhead.gateway.models import usable_cores
from playhead.gateway.settings import HIBARI, Settings

CORES_OF_A_PROCESS: Final = 2
SOMAXCONN: Final = Path("/proc/sys/net/core/somaxconn")
CLOCK: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
FAST_CLOCKS: Final = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen")
"""Those that are read without a system call."""
QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
QUOTA_V1: Final = Path("/sys/fs/cgroup/cpu")


def cores(processes: int) -> Finding:
    """Whether the cores that this process may use, and has time on, are enough for so many."""
    usable = usable_cores()
    quota = cpu_quota()
    have = min(float(usable), quota)
    most = max(1, int(have // CORES_OF_A_PROCESS))
    limited = f" (the container's limit; {usable} are seen)" if quota < usable else ""
    told = f"{have:g} cores{limited} for {processes} process{'es' if processes > 1 else ''}"
    if have >= CORES_OF_A_PROCESS * processes:
        return Finding(Level.OK, "cores", told)
    remedy = "allow the container more (--cpus)" if limited else "take a larger machine"
    if processes > most:
        remedy = f"start at most {most} with --workers, or {remedy}"
    return Finding(
        Level.NOTE,
        "cores",
        f"{told}: each takes about {CORES_OF_A_PROCESS} (models, event loop, encoders): {remedy}",
    )


def cpu_quota() -> float:
    """Cores that a control group allows; infinite where it does not say."""
    try:
        quota, _, period = QUOTA.read_text().partition(" ")
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        allowed = int((QUOTA_V1 / "cpu.cfs_quota_us").read_text())
        return (
            allowed / int((QUOTA_V1 / "cpu.cfs_period_us").read_text()) if allowed > 0 else math.inf
        )
    except (OSError, ValueError):
        return math.inf


def backlog(settings: Settings) -> Finding:
    """Whether the kernel keeps as many new connections as the server asks it to."""
    try:
        allowed = int(SOMAXCONN.read_text())
    except (OSError, ValueError):
        return Finding(Level.OK, "backlog", "this platform does not tell its limit")
    if allowed < BACKLOG:
        return Finding(
            Level.NOTE,
            "backlog",
            f"net.core.somaxconn is {allowed}: of more clients that connect at once some wait "
            f"a second or more; allow {BACKLOG} (sysctl -w net.core.somaxconn={BACKLOG})",
        )
    return Finding(Level.OK, "backlog", f"{BACKLOG} connections may wait to be accepted")


def clock_source(settings: Settings) -> Finding:
    """Whether reading the clock is cheap: the scheduler does it at every turn."""
    try:
        source = CLOCK.read_text().strip()
    except OSError:
        return Finding(Level.OK, "clock", "this platform does not name its source")
    if source.startswith(FAST_CLOCKS):
        return Finding(Level.OK, "clock", f"{source}, read without a system call")
    return Finding(
        Level.NOTE,
        "clock",
        f"{source} is slow to read, and the scheduler reads it all the time: choose tsc "
        f"(kernel parameter clocksource=tsc), or kvm-clock in a virtual machine",
    )


def torch_build(settings: Settings) -> Finding:
    """Whether torch and triton are there, made for CUDA, and find the device."""
    if settings.model == HIBARI:
        return Finding(Level.OK, "torch", f"not needed by --model {settings.model}")
    if missing := [name for name in ("torch", "triton", "transformers") if find_spec(name) is None]:
        return Finding(
            Level.FAULT,
            "torch",
            f"{' and '.join(missing)} cannot be imported: pip install 'playhead[qwen]'",
        )
    import torch

    if torch.version.cuda is None:
        return Finding(
            Level.FAULT,
            "torch",
            f"torch {torch.__version__} is a build without CUDA: install one with it (see "
            "https://pytorch.org/get-started)",
        )
    if not torch.cuda.is_available():
        return Finding(
            Level.FAULT,
            "torch",
            f"torch {torch.__version__} for CUDA {torch.version.cuda} can use no device: install a "
            f"driver for CUDA {torch.version.cuda} or newer, or look at CUDA_VISIBLE_DEVICES",
        )
    return Finding(Level.OK, "torch", f"{torch.__version__} for CUDA {torch.version.cuda}")


def gpu_memory(settings: Settings) -> Finding:
    """Whether weights and slots fit what is free on the devices."""
    devices = gpu.devices(gpu.library())
    known = settings.weights is not None and _is_described(settings.weights)
    if settings.model == HIBARI or not devices or not known or find_spec("torch") is None:
        return Finding(Level.OK, "gpu memory", "nothing to work out")
    from playhead.engine.models.qwen3_tts import memory

    assert settings.weights is not None
    told = []
    for device in devices:
        free = device.total - device.used
        try:
            needed = memory.needed(settings.weights, settings.slots, settings.context, free)
        except ValueError as error:  # TooLarge, or a folder that is no model
            told.append(f"device {device.index}: {error}")
        else:
            fits = f"{needed / 2**30:.0f} of {free / 2**30:.0f} GiB free on {device.name}"
    if len(told) == len(devices):
        return Finding(
            Level.FAULT, "gpu memory", f"{told[0]}. Lower --slots or --context, or free memory"
        )
    if told:
        return Finding(Level.NOTE, "gpu memory", "; ".join(told))
    return Finding(Level.OK, "gpu memory", f"{settings.slots} slots and weights take {fits}")


def _is_described(weights: str) -> bool:
    """A hub id is not: to know its sizes it must be downloaded."""
    return weights.startswith("random:") or (Path(weights) / "config.json").exists()


SETTINGS_CHECKS: Final = (backlog, clock_source, torch_build, gpu_memory)


def findings(settings: Settings, processes: int) -> list[Finding]:
    """All of them, for so many processes with these settings."""
    linux = sys.platform == "linux"
    checked = SETTINGS_CHECKS if linux else (torch_build, gpu_memory)
    return [cores(processes), *(check(settings) for check in checked)]
