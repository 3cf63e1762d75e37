"""Which graphs are given up first."""

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.cuda_runner import Buckets
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
