"""A tiny model's process on a CUDA device: ``apart_child.py DESCRIPTORS``; the settings name the
folder of its configuration."""

import sys
from pathlib import Path

import gpu_kit as kit
from playhead.engine.progress import Tell
from playhead.engine.remote.runner_host import Hosted, host

FRAMES = 12


def load(settings: bytes, tell: Tell) -> Hosted:
    runner = kit.tiny_runner(kit.Made(Path(settings.decode()), frames=lambda _: FRAMES))
    return Hosted(runner, runner.limits, runner.counts)


if __name__ == "__main__":
    sys.exit(host([int(number) for number in sys.argv[1].split(",")], load))
