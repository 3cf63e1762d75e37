"""A fault of the device ends the engine: everybody is told at once. In a process of its own, which
is good for nothing afterwards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu
HERE = Path(__file__).resolve().parent
PROGRAM = """
import json, sys, tempfile, threading, time
from pathlib import Path
sys.path[:0] = sys.argv[1:]
import source_tree
source_tree.link()
import gpu_kit as kit, torch
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.types import AudioChunk, Finished
from runner_lab import request

model = kit.tiny_runner(kit.Made(Path(tempfile.mkdtemp()), frames=lambda _: 100000))
step, broken = model._step, threading.Event()

def breaking(utterances):
    if broken.is_set():
        torch.zeros(4, device="cuda")[torch.tensor([9], device="cuda")].sum().item()
    return step(utterances)

model._step = breaking
told, sound, all_told = {}, set(), threading.Event()

def deliver(events):
    for event in events:
        if isinstance(event, AudioChunk):
            sound.add(event.utterance)
        if isinstance(event, Finished):
            told[event.utterance] = (event.code, time.monotonic())
    if len(told) == 8:
        all_told.set()

engine = Engine(model, EngineConfig(model.limits), deliver)
engine.start()
for number in range(1, 9):
    engine.submit(request(number))
    engine.push_text(number, "One two three", end=True)
deadline = time.monotonic() + 20
while len(sound) < 8 and time.monotonic() < deadline:
    time.sleep(0.01)
at = time.monotonic()
broken.set()
all_told.wait(10)
late = max(when for _, when in told.values()) - at if told else None
print(json.dumps({
    "heard": len(sound), "told": len(told), "codes": sorted({code for code, _ in told.values()}),
    "seconds": late, "dead": type(engine.dead).__name__,
}), flush=True)
import os
os._exit(0)
"""


def test_everybody_is_told_within_a_second() -> None:
    tests = HERE.parent
    folders = (HERE, tests / "engine" / "models", tests / "engine", tests.parent / "bench" / "gpu")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, folders)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout, done.stderr[-2000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["heard"] == seen["told"] == 8
    assert seen["codes"] == ["engine_error"]
    assert seen["dead"] == "RunnerDead"
    assert seen["seconds"] < 1.0
