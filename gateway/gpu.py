"""The machine's CUDA devices, as NVIDIA's management library sees them.

Needs no CUDA context and no torch. Without the library (package ``nvidia-ml-py``, extra ``qwen``)
or a driver there are no devices.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Device:
    """One device. Memory in bytes; ``busy``: share of the last second with a kernel at work, None
    where the driver does not tell."""

    index: int
    uuid: str
    name: str
    driver: str
    used: int
    total: int
    busy: float | None


def library() -> Any:
    """The library, initialised, or None."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except ImportError:
        return None
    # A missing driver, a driver without devices and a container without access all raise kinds
    # of the library's own error, which cannot be named before it is imported.
    except Exception:  # noqa: BLE001
        return None
    return pynvml


def devices(nvml: Any) -> list[Device]:
    """The devices that this process may see. ``nvml``: what :func:`library` gave."""
    if nvml is None:
        return []
    driver = str(nvml.nvmlSystemGetDriverVersion())
    return [_device(nvml, index, driver) for index in range(nvml.nvmlDeviceGetCount())]


def _device(nvml: Any, index: int, driver: str) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    busy = None
    with contextlib.suppress(nvml.NVMLError):
        busy = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
    uuid, name = str(nvml.nvmlDeviceGetUUID(handle)), str(nvml.nvmlDeviceGetName(handle))
    return Device(index, uuid, name, driver, int(memory.used), int(memory.total), busy)


def chosen(found: Iterable[Device], environ: Mapping[str, str]) -> list[Device]:
    """Those of the devices that CUDA uses here: ``CUDA_VISIBLE_DEVICES`` names them by number or by
    the beginning of their uuid, and nothing after what it names wrongly counts."""
    wanted = environ.get(VISIBLE)
    if wanted is None:
        return list(found)
    known = list(found)
    used: list[Device] = []
    for name in map(str.strip, wanted.split(",")):
        match = [each for each in known if name in (str(each.index), each.uuid)]
        match = match or [each for each in known if name and each.uuid.startswith(name)]
        if len(match) != 1:
            break
        used += match
    return used


class GpuCollector(Collector):
    """Memory and use of this process's devices, read when /metrics is asked for."""

    def __init__(
        self, nvml: Any, environ: Mapping[str, str], tells: Callable[[], bool] = lambda: True
    ) -> None:
        self._nvml = nvml
        self._environ = environ
        self._tells = tells

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Families with one sample per device."""
        used = GaugeMetricFamily("playhead_gpu_memory_used_bytes", "In use", labels=["gpu"])
        total = GaugeMetricFamily("playhead_gpu_memory_bytes", "Built in", labels=["gpu"])
        busy = GaugeMetricFamily(
            "playhead_gpu_busy_ratio", "Share of the time with a kernel at work", labels=["gpu"]
        )
        found = devices(self._nvml) if self._tells() else []
        for device in chosen(found, self._environ):
            label = [str(device.index)]
            used.add_metric(label, device.used)
            total.add_metric(label, device.total)
            if device.busy is not None:
                busy.add_metric(label, device.busy)
        yield from (used, total, busy)
