# ruff: noqa: E402 - what follows needs torch
"""Running call by call, and as graphs where there is a device for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import runner_lab
import talker_lab as lab
from playhead.engine.models.qwen3_tts.execution import Buckets, Direct, Graphed
from playhead.engine.models.qwen3_tts.frames import FrameLoop
from playhead.engine.models.qwen3_tts.graphs import LoopGraphs, _fit, fast_ops, with_ops
from playhead.engine.models.qwen3_tts.layers import PLAIN_OPS
from playhead.engine.models.qwen3_tts.runner import Qwen3Runner
from playhead.engine.types import Lane
from talker_kit import RYAN, model_config

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
BUCKETS = Buckets(
    batches=(1, 4),
    prompt_batches=(1, 4),
    prompt_rows=(32,),
    chunk_batches=(1, 2),
    chunk_frames=(1, 4),
)
TEXT = "The quick brown fox jumps"


@pytest.fixture(autouse=True)
def _inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


@pytest.mark.parametrize(
    ("slots", "sizes"), [(1, (1,)), (4, (1, 2, 4)), (5, (1, 2, 4, 8)), (900, (1, 2, 4, 8))]
)
def test_buckets_end_at_the_first_that_holds_all(slots: int, sizes: tuple[int, ...]) -> None:
    assert Buckets(batches=(1, 2, 4, 8)).up_to(slots) == sizes


def test_the_smallest_bucket_that_holds_a_call_is_taken() -> None:
    buckets = {(2, 64): "small", (8, 64): "wide", (8, 256): "large"}
    found = [_fit(buckets, *call) for call in ((1, 9), (2, 65), (3, 64), (9, 1))]  # type: ignore[arg-type]
    assert found == ["small", "large", "wide", None]


def test_plain_work_is_the_default() -> None:
    assert fast_ops(compiled=False, in_place=False) == PLAIN_OPS


def test_direct_calls_are_the_loops_and_the_codecs(tmp_path: Path) -> None:
    model = runner_lab.runner(tmp_path, frames=lambda _: 3)
    direct = Direct(model._loop, model._codec)
    heard = runner_lab.say(Qwen3Runner(model._parts, model._options, direct), 1, TEXT)
    expected = runner_lab.say(runner_lab.runner(tmp_path, frames=lambda _: 3), 1, TEXT)
    assert (heard.sound == expected.sound).all()
    with direct.on(Lane.LM), direct.on(Lane.URGENT):
        codes = torch.zeros(1, 16, 2, dtype=torch.int64)
        assert direct.decode(Lane.URGENT, codes, torch.tensor([0])).shape == (
            1,
            2 * runner_lab.FRAME,
        )


@pytest.fixture
def cuda_loop(tmp_path: Path) -> FrameLoop:
    config = model_config("custom_voice", "1b7", tmp_path)
    return lab.build(config, 11, device=torch.device("cuda"))


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("compiled", [False, True])
def test_graphs_say_what_the_loop_says(
    cuda_loop: FrameLoop, compiled: bool, tmp_path: Path
) -> None:
    config = model_config("custom_voice", "1b7", tmp_path)
    prompt = lab.prompt_of(RYAN, config, full=True)
    expected = lab.speak(cuda_loop, [prompt], 0, slots=[1])
    codes = [lab.go_on(cuda_loop, [1]).codes for _ in range(20)]
    loop = with_ops(cuda_loop, fast_ops(compiled=compiled, in_place=True))
    graphs = LoopGraphs(loop)
    graphs.capture_step(4, 128)
    assert lab.speak(loop, [prompt], 0, slots=[1]) == expected
    replayed = [graphs.step([1], [lab.PAD], 128).codes.clone() for _ in range(20)]
    assert torch.equal(torch.cat(replayed), torch.cat(codes))
    assert graphs.eager == 0


@pytest.mark.gpu
@GPU
def test_the_runner_speaks_through_graphs(tmp_path: Path) -> None:
    expected = runner_lab.say(runner_lab.runner(tmp_path, frames=lambda _: 9), 1, TEXT)
    cuda = torch.device("cuda")
    plain = runner_lab.runner(tmp_path, frames=lambda _: 9, device=cuda)
    loop = with_ops(plain._loop, fast_ops(compiled=False, in_place=True))
    graphed = Graphed(loop, plain._codec, BUCKETS)
    model = Qwen3Runner(plain._parts, plain._options, graphed)
    heard = runner_lab.say(model, 1, TEXT)
    assert graphed.graphs.eager == 0
    assert abs(heard.sound - expected.sound).max() < 1e-3
