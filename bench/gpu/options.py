"""What the programs here ask alike that start `playhead serve` and load it with `bench run`."""

import argparse
import os
from pathlib import Path

import source_tree


def add_server(parser: argparse.ArgumentParser, slots: int) -> None:
    """The model and its places; what else there is goes through ``--flags``."""
    parser.add_argument("--weights", default="random:1.7b")
    parser.add_argument("--slots", default=str(slots))
    parser.add_argument("--context", default="512")
    parser.add_argument("--flags", default="", help="more flags for `playhead serve`, in quotes")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))


def add_gateways(parser: argparse.ArgumentParser) -> None:
    """How the server parts its processes."""
    parser.add_argument("--gateways", type=int, default=0, help="0: all in one process")


def add_load(parser: argparse.ArgumentParser, warmup: float, window: float, processes: int) -> None:
    """Of one rate: arrivals, seconds, and the generator's processes."""
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--warmup", type=float, default=warmup)
    parser.add_argument("--window", type=float, default=window)
    parser.add_argument("--processes", type=int, default=processes)


def served(args: argparse.Namespace) -> list[str]:
    """Flags of `playhead serve` for what ``add_server`` asked; without ``--flags``."""
    flags = ["--model", "qwen3-tts", "--weights", args.weights]
    return [*flags, "--slots", args.slots, "--context", args.context]


def loaded(args: argparse.Namespace) -> list[str]:
    """Flags of `playhead bench run` for what ``add_load`` asked; one utterance each."""
    flags = ["--seeds", args.seeds, "--turns", "1"]
    return [*flags, "--warmup", f"{args.warmup:g}", "--window", f"{args.window:g}"]


def briefly(args: argparse.Namespace, **others: object) -> argparse.Namespace:
    """The same for a few requests that warm the server up and are not measured."""
    return argparse.Namespace(**{**vars(args), "window": 2.0, "warmup": 0.0, **others})


def environment(*folders: Path) -> dict[str, str]:
    """For the programs that are started: the package, ``folders``, and what is there."""
    path = [str(source_tree.tree()), *map(str, folders), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }
