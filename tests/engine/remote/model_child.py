"""A model's process for tests: ``model_child.py DESCRIPTORS``; the settings say how it behaves."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from doubles import FakeRunner
from playhead.engine.policy import LaneLimits
from playhead.engine.progress import Tell
from playhead.engine.remote.runner_host import CannotHost, Hosted, host
from playhead.engine.types import Lane, ModelCounts, RunnerDead, StepResult

LIMITS = LaneLimits(3, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 4))


class OddRunner(FakeRunner):
    """Digits in a text are faults of the whole process, or of all that there is."""

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        text = "".join(self._next(utterance) for utterance in utterances)
        if "1" in text:
            raise RunnerDead("the device is gone")
        if "2" in text:
            os._exit(3)
        if "3" in text:
            time.sleep(60)
        if "4" in text:
            return []
        return super().step(utterances)

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        if "&" in delta:
            time.sleep(60)
        if "^" in delta:
            time.sleep(1.0)
        return super().push_text(utterance, delta, flush=flush, end=end) and "$" not in delta

    def _step(self, utterance: int) -> StepResult:
        speech = self.speeches[utterance]
        if "7" in speech.text:  # nothing for ever
            return StepResult(utterance, 0, boundary=False, hungry=False, ended=False)
        if "8" in speech.text:
            return StepResult(utterance, -1, boundary=False, hungry=False, ended=False)
        if "6" not in speech.text:
            return super()._step(utterance)
        speech.text += "." * self.info.step_frames  # it never ends
        return replace(super()._step(utterance), hungry=False, ended=False)

    def decode(self, chunks):  # type: ignore[no-untyped-def]
        if any("5" in self._text(chunk) for chunk in chunks):
            os.kill(os.getpid(), 9)
        made = super().decode(chunks)
        return [
            pcm.reshape(2, -1) if "9" in self._text(chunk) and isinstance(pcm, np.ndarray) else pcm
            for chunk, pcm in zip(chunks, made, strict=True)
        ]


def load(settings: bytes, tell: Tell) -> Hosted:
    how, _, rest = settings.decode().partition(":")
    tell("loading", 0.25)
    if how == "refuse":
        raise CannotHost(f"there is no {rest}")
    if how == "exit":
        os._exit(int(rest))
    if how == "slowly":
        helper = subprocess.Popen(["sleep", "60"])  # as those that compile kernels
        tell(str(helper.pid), 0.5)
        helper.wait()
    if how == "qwen":
        import runner_lab

        model = runner_lab.runner(Path(rest), frames=lambda _: 5)
        return Hosted(model, LIMITS, lambda: ModelCounts(7))
    tell("loading", 1.0)
    return Hosted(OddRunner(), LIMITS, lambda: ModelCounts(7))


if __name__ == "__main__":
    sys.exit(host([int(number) for number in sys.argv[1].split(",")], load))
