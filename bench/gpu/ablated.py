"""A server whose way of working can be changed while it runs, for bench/gpu/ablations.py.

``install`` is called before `playhead serve`, in the process that holds the engine, and in its
model's where that is another. It follows the file that ABLATION names: a JSON object of
:class:`Variant` fields. What cannot be changed in a running server is set by ABLATION_START before
it loads. Not for anything but measurements.
"""

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.engine.lead import parse_lead
from playhead.engine.scheduler import Scheduler
from playhead.engine.types import Lane, Urgency
from playhead.gateway import models
from playhead.gateway.serve import SWITCH_INTERVAL

if TYPE_CHECKING:
    from playhead.engine.models.qwen3_tts import cuda_runner

EVERY = 0.1
SIDES = ("engine", "model")
"""The scheduler; and the runner, which may be in another process."""
PARTITIONS = {f"partitions-{size}": (size,) for size in (16, 24, 32, 48, 64)}
PARTITIONS["partitions-auto"] = ()
BATCHES = {f"background-{most}": most for most in (96, 128)}
STARTS = (
    *("lanes", "flat", *PARTITIONS, *BATCHES),
    *("codec-library", "codec-fp16", "codec-bf16-plain", "codec-fp32"),
)
"""``flat``: lanes without priority. ``partitions-N``: N multiprocessors for the background lane
alone, the LM lane on the others, urgent chunks on all; ``partitions-auto``: one of several such
parts, chosen by load. ``background-N``: up to N chunks in a batch of that lane. The rest: what
decodes, instead of own kernels in bfloat16 (``codec-library``: the library's convolutions between
own kernels)."""


@dataclass(frozen=True)
class Variant:
    """One way of working; the defaults are those of the product.

    ``one_stream``: codec lanes use the backbone's stream of the device. ``workers``: dispatches at
    a time. ``extra``: frames that the device makes ahead, by streams. ``switch``: seconds for which
    a thread keeps the interpreter when others want it.
    """

    urgency: str = "reported"
    lead: str = "learned"
    ladder: tuple[int, ...] = (1, 2, 4, 8, 16)
    one_stream: bool = False
    workers: int = 3
    extra: tuple[tuple[int, int], ...] = ((32, 1),)
    switch: float = SWITCH_INTERVAL

    @classmethod
    def read(cls, text: str) -> "Variant":
        """From JSON."""
        given: dict[str, Any] = json.loads(text)
        known = {field.name for field in fields(cls)}
        values = {name: given[name] for name in given.keys() & known}
        if "ladder" in values:
            values["ladder"] = tuple(values["ladder"])
        if "extra" in values:
            values["extra"] = tuple(tuple(pair) for pair in values["extra"])
        return cls(**values)


class Followed:
    """The scheduler and the runner of this process, once they are there: with ``--lanes apart``
    two processes have one each, and both follow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scheduler: Scheduler | None = None
        self.runner: cuda_runner.CudaRunner | None = None
        self._streams: dict[int, Any] = {}

    def follow(self) -> None:
        """Apply what the file says, whenever it changes; FILE.SIDE says what a side applied."""
        last = dict.fromkeys(SIDES, "")
        while True:
            time.sleep(EVERY)
            if not self.path.exists():
                continue
            text = self.path.read_text(encoding="utf-8")
            for side in SIDES:
                if text.endswith("\n") and text != last[side] and self._apply(side, text):
                    self.path.with_suffix(f".{side}").write_text(text, encoding="utf-8")
                    last[side] = text

    def _apply(self, side: str, text: str) -> bool:
        """Between two loads, when nothing is spoken. False: that side is not here."""
        variant = Variant.read(text)
        sys.setswitchinterval(variant.switch)
        if side == "engine" and self.scheduler is not None:
            _change_engine(variant, self.scheduler)
            return True
        if side == "model" and self.runner is not None:
            self._change_model(variant, self.runner)
            return True
        return False

    def _change_model(self, variant: Variant, runner: "cuda_runner.CudaRunner") -> None:
        from playhead.engine.models.qwen3_tts import cuda_runner

        setattr(cuda_runner, "EXTRA_FRAMES", variant.extra)  # noqa: B010 - its type is narrower
        for codec in runner._lanes.every:
            own = self._streams.setdefault(id(codec), codec._stream)
            codec._stream = runner.lm.stream if variant.one_stream else own


def _change_engine(variant: Variant, scheduler: Scheduler) -> None:
    config = replace(
        scheduler.config, urgency=Urgency(variant.urgency), lead=parse_lead(variant.lead)
    )
    model = replace(scheduler.model, chunk_frames=variant.ladder)
    scheduler.config = scheduler.survey._config = config
    scheduler.model = scheduler.survey._model = model
    scheduler.dispatcher._limits = replace(scheduler.lanes, workers=variant.workers)


def install() -> Followed:
    """Prepare this process. The model's side is prepared where the model is opened, and nowhere
    else: an engine whose lanes are apart has no torch in it."""
    followed = Followed(Path(os.environ["ABLATION"]))
    scheduler_made, opened = Scheduler.__init__, models.open_accelerated

    def scheduler(self: Scheduler, *args: Any, **more: Any) -> None:
        scheduler_made(self, *args, **more)
        followed.scheduler = self

    def open_accelerated(*args: Any) -> models.Served:
        _watch_runner(followed)
        return opened(*args)

    Scheduler.__init__ = scheduler  # type: ignore[method-assign]
    models.open_accelerated = open_accelerated
    threading.Thread(target=followed.follow, name="ablation", daemon=True).start()
    return followed


def _watch_runner(followed: Followed) -> None:
    from playhead.engine.models.qwen3_tts import cuda_runner

    _start(os.environ.get("ABLATION_START", "lanes"))
    made = cuda_runner.CudaRunner.__init__

    def runner(self: cuda_runner.CudaRunner, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        followed.runner = self

    cuda_runner.CudaRunner.__init__ = runner  # type: ignore[method-assign]


def _start(name: str) -> None:
    import torch
    from playhead.engine.models.qwen3_tts import cuda_runner, partitions
    from playhead.engine.models.qwen3_tts.codec_ops import TorchOps

    if name == "flat":
        partitions.PRIORITIES.update(dict.fromkeys(Lane, 0))
    elif name == "codec-fp32":
        cuda_runner._codec_ops = lambda: TorchOps(torch.float32)
    elif name == "codec-bf16-plain":
        cuda_runner._codec_ops = lambda: TorchOps(torch.bfloat16)
    elif name == "codec-library":
        from playhead.engine.models.qwen3_tts.codec_triton import TritonOps

        cuda_runner._codec_ops = TritonOps
    elif name == "codec-fp16":
        from playhead.engine.models.qwen3_tts.codec_fused import FusedOps

        cuda_runner._codec_ops = lambda: FusedOps(torch.float16)
    elif name in BATCHES:
        cuda_runner.BACKGROUND_BATCHES = (*cuda_runner.BACKGROUND_BATCHES, BATCHES[name])
    elif name in PARTITIONS:
        partitions.BACKGROUND = PARTITIONS[name] or partitions.AUTO
