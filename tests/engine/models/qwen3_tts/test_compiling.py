"""Kernels compiled ahead: found without being launched, and found again by who calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("triton", reason="triton is not installed")

import torch
from playhead.engine.models.qwen3_tts import compiling, cuda_codec
from playhead.engine.models.qwen3_tts.codec import Codec, CodecDecoder
from playhead.engine.models.qwen3_tts.codec_fused import FusedOps
from playhead.engine.models.qwen3_tts.codec_spec import decoder_tensors
from playhead.engine.models.qwen3_tts.codec_triton import TritonOps
from playhead.engine.models.qwen3_tts.cuda_codec import compile_ahead
from playhead.engine.models.qwen3_tts.weights import random_tensors
from runner_lab import CODEC
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

TARGET = ("cuda", 90, 32)


class Device:
    """What Triton asks of a device before it compiles; there is none to launch on."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_current_target(self) -> Any:
        return GPUTarget(*TARGET)


@pytest.fixture(autouse=True)
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if knobs.runtime.interpret:
        pytest.skip("the interpreter compiles nothing")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(driver, "_active", Device())


def call() -> None:
    """Two kernels, one of them twice."""
    x = torch.zeros(1, 2, 32)
    ops = TritonOps(torch.float32)
    ops.rms(x, 1e-5)
    ops.rms(x, 1e-5)
    ops.gate(x)


def test_kernels_are_found_once_each_and_not_launched() -> None:
    hook = knobs.runtime.jit_cache_hook
    names = [json.loads(text)["name"].rpartition(".")[2] for text in compiling.wanted(call)]
    assert names == ["_rms", "_gate"]
    assert knobs.runtime.jit_cache_hook is hook
    assert compiling.target() == TARGET


def test_the_hook_goes_with_a_call_that_fails() -> None:
    hook = knobs.runtime.jit_cache_hook

    def fail() -> None:
        raise ValueError("no such bucket")

    with pytest.raises(ValueError, match="no such bucket"):
        compiling.wanted(fail)
    assert knobs.runtime.jit_cache_hook is hook


def test_what_other_processes_compiled_is_found_by_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels = compiling.wanted(call)[:1]
    ahead = compiling.Ahead(kernels, compiling.target())
    assert ahead.processes == 1
    assert ahead.wait() == 1
    assert ahead.wait() == 0
    hits: list[bool] = []
    monkeypatch.setattr(
        knobs.compilation, "listener", lambda **call: hits.append(call["cache_hit"])
    )
    compiling.compile_kernel(kernels[0], TARGET)
    _preload(kernels[0])
    assert hits == [True, True]


def _preload(kernel: str) -> None:
    """Triton's own way from what it wrote down, with the key that a call would have."""
    from playhead.engine.models.qwen3_tts import codec_triton

    codec_triton._rms.preload(kernel)


BROKEN = json.dumps({"name": "playhead.engine.models.qwen3_tts.codec_triton._nothing"})
INSTEAD = "a kernel is compiled when it is needed instead"


def test_a_kernel_that_cannot_be_compiled_is_told_and_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = torch.zeros(1, 2, 32)
    kernels = (BROKEN, *compiling.wanted(lambda: TritonOps(torch.float32).gate(gate)))
    assert compiling.Ahead(kernels, TARGET, most=1).wait() == 1
    assert f"{INSTEAD}: KeyError" in caplog.text


def test_a_compiler_that_dies_is_told_and_its_kernels_left(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling.sys, "executable", "/bin/false")
    assert compiling.Ahead((BROKEN, BROKEN), TARGET, most=1).wait() == 0
    assert caplog.text.count(f"{INSTEAD}: a compiler ended with 1") == 2


NOISY = """
import os
from playhead.engine.models.qwen3_tts import compiling
compiling.compile_kernel = lambda *_: os.write(1, b"ptxas says much")
compiling.main()
"""


def test_what_a_compiler_prints_is_no_answer() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", NOISY],
        input=json.dumps([["{}"], TARGET]),
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert (done.stdout, "ptxas says much" in done.stderr) == ("[]", True)


def test_compilers_that_hang_or_cannot_be_started_are_given_up(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "PATIENCE", 0.01)
    assert compiling.Ahead((BROKEN,), TARGET).wait() == 0
    monkeypatch.setattr(compiling.sys, "executable", "/no/python")
    assert compiling.Ahead((BROKEN,), TARGET).wait() == 0
    assert caplog.text.count(f"{INSTEAD}: no compiler") == 2


def test_a_program_s_main_module_is_not_run_again(tmp_path: Path) -> None:
    program = tmp_path / "unguarded.py"
    program.write_text(
        "from playhead.engine.models.qwen3_tts import compiling\n"
        "print('once')\n"
        f"print(compiling.Ahead(({BROKEN!r},), {TARGET}).wait())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split() == ["once", "0"]


def test_all_that_lanes_and_recordings_call_is_compiled_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[tuple[str, ...]] = []
    monkeypatch.setattr(cuda_codec, "Ahead", lambda kernels, _: begun.append(kernels))
    weights = random_tensors(decoder_tensors(CODEC), 5)
    decoder = CodecDecoder(CODEC, weights, FusedOps(torch.float32))
    codec = Codec(decoder, decoder.arena(2), 25)
    compile_ahead(codec, {4, 1}, (1, 2))
    (kernels,) = begun
    assert len(kernels) > 5
    assert all(state.isfinite().all() for state in codec.arena.snapshot(codec.arena.spare))
    for rows, frames in ((1, 1), (4, 2), (1, 25)):
        codes, slots = torch.zeros(rows, 16, frames, dtype=torch.int64), torch.full((rows,), 2)
        called = compiling.wanted(lambda c=codes, s=slots: codec.decode(c, s))  # type: ignore[misc]
        assert set(called) <= set(kernels)


def test_convolutions_are_tried_from_the_first_call_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library has once chosen for a size is kept, tried or not."""
    monkeypatch.setattr(cuda_codec, "Ahead", lambda *_: None)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    decoder = CodecDecoder(CODEC, random_tensors(decoder_tensors(CODEC), 5))
    codec, tried = Codec(decoder, decoder.arena(1), 25), list[bool]()
    decode = Codec.decode

    def watched(self: Codec, *args: Any, **more: Any) -> torch.Tensor:
        tried.append(torch.backends.cudnn.benchmark)
        return decode(self, *args, **more)

    monkeypatch.setattr(Codec, "decode", watched)
    compile_ahead(codec, {1}, (1,))
    assert tried == [True, True]


def test_nothing_wanted_starts_no_process() -> None:
    ahead = compiling.Ahead((), TARGET)
    assert (ahead.processes, ahead.wait()) == (0, 0)
