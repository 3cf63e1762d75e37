# ruff: noqa: E402 - what follows needs torch
"""bench/gpu/ablated.py: what a server is started as changes what is prepared, and nothing else."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench" / "gpu"))

import ablated
from playhead.engine.models.qwen3_tts import cuda_runner, partitions
from playhead.engine.models.qwen3_tts.cuda_runner import Buckets
from playhead.engine.types import Lane


@pytest.mark.parametrize(
    ("start", "parts", "batches"),
    [
        ("lanes", (), (1, 4, 8, 16, 32, 64)),
        ("partitions-48", (48,), (1, 4, 8, 16, 32, 64)),
        ("partitions-auto", (24, 32, 48, 64, 80, 0), (1, 4, 8, 16, 32, 64)),
        ("background-128", (), (1, 4, 8, 16, 32, 64, 128)),
    ],
)
def test_what_a_start_prepares(
    start: str, parts: tuple[int, ...], batches: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "BACKGROUND", partitions.BACKGROUND)
    monkeypatch.setattr(cuda_runner, "BACKGROUND_BATCHES", cuda_runner.BACKGROUND_BATCHES)
    before = Buckets()
    assert (before.parts, before.background) == ((), (1, 4, 8, 16, 32, 64))
    ablated._start(start)
    made = Buckets()
    assert (made.parts, made.background) == (parts, batches)
    assert made.limits().batch[Lane.BACKGROUND] == batches[-1]
    assert (made.lm, made.urgent) == (before.lm, before.urgent)


def test_every_start_is_one_that_is_known() -> None:
    assert {*ablated.PARTITIONS, *ablated.BATCHES} < {*ablated.STARTS}
