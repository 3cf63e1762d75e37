# ruff: noqa: E402 - what follows needs torch
"""Which graphs are given up first, and for which faults."""

import logging
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts import cuda_runner
from playhead.engine.models.qwen3_tts.cuda_runner import Buckets
from playhead.engine.models.qwen3_tts.device_faults import MEMORY_ERROR, DeviceError
from playhead.engine.models.qwen3_tts.runner import Parts
from playhead.engine.types import Lane


def graphs(buckets: Buckets) -> int:
    lm = buckets.lm
    lanes = len(buckets.urgent) + len(buckets.background)
    return len(lm.steps) + len(lm.firsts) + len(lm.prompts) + lanes


def test_every_plan_has_fewer_graphs_and_serves_as_many() -> None:
    whole, fewer, least = Buckets().plans()
    assert graphs(whole) > 1.7 * graphs(fewer) > 3 * graphs(least)
    assert whole == Buckets()
    for plan in (fewer, least):
        assert plan.limits() == whole.limits()
        assert max(rows for _, rows in plan.lm.prompts) == max(r for _, r in whole.lm.prompts)


def test_the_least_is_one_size_per_lane() -> None:
    least = Buckets().plans()[-1]
    assert least.lm.steps == (Buckets().limits().batch[Lane.LM],)
    assert (least.urgent, least.background) == ((64,), (64,))
    assert all(batch == 1 for batch, _ in least.lm.prompts)


class Opened:
    """``open_cuda`` on a device that fails as it is told, once per attempt to capture."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, faults: list[Exception]) -> None:
        self.plans: list[Buckets] = []
        self.released: list[None] = []
        self._faults = faults
        parts = Parts(*[SimpleNamespace(table=None)] * 6)  # type: ignore[arg-type]
        stands_in = {
            "load_parts": lambda *_: (parts, None),
            "with_ops": lambda loop, _: loop,
            "compile_ahead": lambda *_: SimpleNamespace(wait=None),
            "CudaRunner": self._capture,
            "_release": lambda: self.released.append(None),
            "_codec_ops": lambda: None,
            "_layer_ops": lambda: None,
        }
        for name, value in stands_in.items():
            monkeypatch.setattr(cuda_runner, name, value)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1, 2))

    def _capture(self, parts: Parts, options: object, plan: Buckets, **more: object) -> str:
        self.plans.append(plan)
        if self._faults:
            raise self._faults.pop(0)
        return "ready"

    def __call__(self) -> object:
        return cuda_runner.open_cuda("random:1.7b", slots=512, positions=1024)


def test_a_device_that_fills_up_while_graphs_are_captured_gets_fewer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever of those that allocate there says so."""
    caplog.set_level(logging.WARNING)
    of_the_driver = torch.AcceleratorError("CUDA error: out of memory")
    opened = Opened(monkeypatch, [MEMORY_ERROR("CUDA out of memory"), of_the_driver])
    assert opened() == "ready"
    assert opened.plans == [*Buckets().plans()]
    assert len(opened.released) == 2
    assert caplog.text.count("out of memory; trying again with fewer graphs") == 2


def test_what_does_not_fit_at_all_is_no_fault_of_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults: list[Exception] = [torch.AcceleratorError("CUDA error: out of memory")] * 3
    with pytest.raises(MEMORY_ERROR):
        Opened(monkeypatch, faults)()


def test_a_broken_device_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened(monkeypatch, [torch.AcceleratorError("CUDA error: no kernel image")])
    with pytest.raises(DeviceError, match="the device failed: CUDA error: no kernel image"):
        opened()
    assert len(opened.plans) == 1


def test_a_device_that_fails_before_anything_is_captured_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = Opened(monkeypatch, [])

    def broken(*_: object) -> None:
        raise torch.AcceleratorError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(cuda_runner, "compile_ahead", broken)
    with pytest.raises(DeviceError, match="the device failed: CUDA error: unspecified launch"):
        opened()
    assert not opened.plans
