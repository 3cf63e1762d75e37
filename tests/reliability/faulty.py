"""A voice that breaks where its text says so; everything else it speaks is a known wave.

Signs in a text and what they do (``WaveRunner`` sets pace and sound):
  open, text, step, decode  raise in that call for this utterance alone, or return its fault
  batch     the whole decode call raises, whoever else is in it;  memory: for want of memory
  lock      each decoding keeps the interpreter to itself for 50 ms
  oom       opening finds no memory
  nan, inf, loud            the sound of this one chunk is none
  endless   the model never says that it has ended
  nothing   its steps come back with neither a frame nor an end, for ever
  mute      it has all its text, and says that it waits for more
  many      a step tells of more frames than a step gives;  shape: of a sound half as long as its
            frames;  early: it ends before its first frame
  dead      the device is gone: no call will ever succeed again
  stuck     a step that never returns;  hang: taking the text never returns
Each stands in braces, as in ``{nan}``. Run as a program it is ``playhead serve`` with this voice;
with ``FAULTY_BATCH=32`` it makes so many chunks in one dispatch and lets everybody in at once, as
an accelerator's does.
"""

import ctypes
import math
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from live import FRAME, FRAMES_PER_CHARACTER, WaveRunner
from playhead.codecs.base import Encoded
from playhead.engine.lanes import cpu_limits
from playhead.engine.policy import LaneLimits
from playhead.engine.types import ChunkWork, Pcm, Request, RunnerDead, StepResult

FOREVER = threading.Event()  # set by tests that are done with a stuck thread
HELD = 50_000  # microseconds
NOISE = {"{nan}": np.nan, "{inf}": np.inf, "{loud}": 1e6}

NOTHING = StepResult(0, 0, False, False, False)
ODD = {
    "{step}": replace(NOTHING, error="the step of this one broke"),
    "{nothing}": NOTHING,
    "{mute}": replace(NOTHING, hungry=True),
    "{many}": replace(NOTHING, frames=10**9),
    "{early}": replace(NOTHING, ended=True),
}


class FaultyRunner(WaveRunner):
    """See the module."""

    def __init__(self, pace: float = 200.0) -> None:
        super().__init__(pace)
        self.closed = 0

    def open(self, request: Request) -> None:
        if request.language == "{oom}":
            raise MemoryError("no room for one more stream")
        super().open(request)

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        if "{text}" in delta:
            raise ZeroDivisionError("the front end broke")
        if "{hang}" in delta:
            FOREVER.wait()
        return super().push_text(utterance, delta, flush=flush, end=end)

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        signs = {number: self._texts[number].text for number in utterances}
        if any("{dead}" in text for text in signs.values()):
            raise RunnerDead("illegal memory access")
        if any("{stuck}" in text for text in signs.values()):
            FOREVER.wait()
        return [self._odd(number, text) for number, text in signs.items()]

    def _odd(self, number: int, text: str) -> StepResult:
        for sign, result in ODD.items():
            if sign in text:
                return replace(result, utterance=number)
        return self._endless(number) if "{endless}" in text else self._step(number)

    def _endless(self, number: int) -> StepResult:
        state = self._texts[number]
        end = len(state.text.rstrip(".")) + 1
        state.text += "." * (self.info.step_frames // FRAMES_PER_CHARACTER)
        step = self._step(number)
        words = tuple(replace(word, char_end=min(word.char_end, end)) for word in step.words)
        return replace(step, words=words, boundary=False, ended=False, hungry=False)

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        if any("{batch}" in self._spoken(chunk) for chunk in chunks):
            raise RuntimeError("the batch broke")
        if any("{memory}" in self._spoken(chunk) for chunk in chunks):
            raise MemoryError("no room for this batch")
        if any("{lock}" in self._spoken(chunk) for chunk in chunks):
            ctypes.PyDLL(None).usleep(HELD)  # a call that does not let go of it
        made = super().decode(chunks)
        return [self._spoil(c, pcm) for c, pcm in zip(chunks, made, strict=True)]

    def close(self, utterance: int) -> None:
        super().close(utterance)
        self.closed += 1

    def _spoil(self, chunk: ChunkWork, pcm: Pcm | BaseException) -> Pcm | BaseException:
        text = self._spoken(chunk)
        if "{decode}" in text:
            return ArithmeticError("the decoding of this one broke")
        if "{shape}" in text and not isinstance(pcm, BaseException):
            return pcm[::2]
        for sign, value in NOISE.items():
            if sign in text and not isinstance(pcm, BaseException):
                pcm[len(pcm) // 2] = value
        return pcm

    def _spoken(self, chunk: ChunkWork) -> str:
        return self._texts[chunk.utterance].text


PLACE = FRAME * FRAMES_PER_CHARACTER
"""Samples of one character."""


class HangingEncoder:
    """A wire encoder that never comes back."""

    pre_skip = 0
    repaired = 0

    def encode(self, pcm: Pcm) -> Encoded:
        FOREVER.wait()
        return Encoded(b"", 0)

    def flush(self) -> Encoded:
        return Encoded(b"", 0)


def batching(most: int, cores: int) -> LaneLimits:
    """A processor's lanes, with up to ``most`` utterances in one dispatch."""
    limits = cpu_limits(cores)
    return replace(limits, batch=dict.fromkeys(limits.batch, most))


if __name__ == "__main__":
    from playhead.codecs import registry
    from playhead.gateway import models, serve
    from playhead.gateway.cli import main

    if os.environ.get("FAULTY_ENCODER") == "hang":
        registry.encoder = lambda wire_format, rate: HangingEncoder()
        registry.is_cheap = lambda wire_format, rate: False
    # As many at a time as a test wants: the default is for a voice that costs something.
    policy: dict[str, Any] = {"max_live": 10_000}
    if batch := int(os.environ.get("FAULTY_BATCH", "0")):
        policy["max_utilisation"] = math.inf
        models.cpu_limits = partial(batching, batch)
    models.PolicyConfig = partial(models.PolicyConfig, **policy)
    pace = float(os.environ.get("FAULTY_PACE", "200"))
    serve.load_voice = lambda: FaultyRunner(pace)
    sys.exit(main())
