"""What the commands of ``playhead bench`` share: flags, and the plans that follow from them."""

import argparse
import os
from dataclasses import replace
from pathlib import Path

from playhead.engine.lead import parse_lead
from playhead.engine.types import Urgency
from playhead.gateway.redact import redact
from playhead.loadgen.arrivals import trace
from playhead.loadgen.frontier import LEARNED
from playhead.loadgen.habits import MIXES
from playhead.loadgen.plan import NETWORK_KINDS, PROCESSES, TARGETS, Plan
from playhead.loadgen.targets import endpoint
from playhead.loadgen.texts import Kind
from playhead.loadgen.typist import SpeaksAfter

LEADS = ("1", "1.5", "2", "learned:1.5", "learned")


_RULES = {"nari": SpeaksAfter.PIECE, "voxserve-stream": SpeaksAfter.START}
"""Of targets that begin to speak by another rule than ours."""


class UsageError(ValueError):
    """The command line cannot be acted upon; the message says why, and shows no secret."""

    def __init__(self, message: str) -> None:
        super().__init__(redact(message))


def add_rates(parser: argparse.ArgumentParser) -> None:
    """Which rates to run."""
    parser.add_argument("--rate", type=float, nargs="+", default=[1.0], help="utterances a second")


def add_load(parser: argparse.ArgumentParser) -> None:
    """Everything about a run but its rates."""
    add = parser.add_argument
    add(
        "--url",
        default="http://127.0.0.1:8080",
        help="server, or several with commas between that --processes take in turn "
        "(default %(default)s)",
    )
    add("--target", choices=TARGETS, default="playhead", help="what the server speaks")
    add("--label", default="", help="name of the server in comparisons")
    add("--out", type=Path, default=Path("bench-out"), help="folder (default %(default)s)")
    add("--raw", type=Path, help="folder of the raw records (default: that of --out)")
    add("--seeds", default="0,1,2", help="one run each, pooled (default %(default)s)")
    add("--warmup", type=float, default=10.0, help="seconds not counted (default %(default)s)")
    add("--window", type=float, default=60.0, help="seconds counted (default %(default)s)")
    add("--timeout", type=float, default=60.0, help="seconds for one utterance")
    add("--arrivals", choices=PROCESSES, default="poisson")
    add("--variation", type=float, default=2.0, help="of the gaps of --arrivals gamma")
    add("--trace", type=Path, help="file of --arrivals trace: seconds, one a line")
    add("--mix", choices=list(MIXES), default="strict", help="who listens")
    add("--network", choices=NETWORK_KINDS, default="proxy", help="how bad networks are made")
    add("--texts", choices=[kind.value for kind in Kind], default=Kind.CONVERSATION.value)
    add("--pace", type=float, default=0.0, help="pieces of text a second (0: the text at once)")
    rules = [rule.value for rule in SpeaksAfter]
    add("--speaks-after", choices=rules, help="of a text that comes in pieces: TTFA counts from it")
    add("--codec", default="pcm_s16le")
    add("--sample-rate", type=int, default=24_000)
    add("--voice")
    add("--model", help="named in requests of other targets")
    add("--turns", type=int, help="utterances of one session (default 4; other targets: 1)")
    add("--key-from", default="", metavar="VARIABLE", help="environment variable with the API key")
    add("--processes", type=int, default=1, help="generator processes (default %(default)s)")


def plans(args: argparse.Namespace, rate: float) -> list[Plan]:
    """One plan per seed. Raises :class:`UsageError`."""
    try:
        seeds = [int(seed) for seed in args.seeds.split(",")]
    except ValueError:
        raise UsageError(f"--seeds {args.seeds!r}: give whole numbers, such as 0,1,2") from None
    if not rate > 0:
        raise UsageError(f"--rate {rate:g}: utterances a second must be above 0")
    if args.key_from and not os.environ.get(args.key_from):
        raise UsageError(f"--key-from {args.key_from}: this environment variable is not set")
    rule = args.speaks_after or _RULES.get(args.target, SpeaksAfter.CLAUSE)
    try:
        first, *also = (endpoint(url, args.target) for url in args.url.split(","))
        base = Plan(
            url=first,
            also=tuple(also),
            rate=rate,
            arrivals=args.arrivals,
            variation=args.variation,
            trace=_trace(args),
            warmup=args.warmup,
            window=args.window,
            mix=args.mix,
            network=args.network,
            texts=Kind(args.texts),
            pace=args.pace,
            speaks_after=SpeaksAfter(rule),
            codec=args.codec,
            sample_rate=args.sample_rate,
            voice=args.voice,
            turns=args.turns or (4 if args.target == "playhead" else 1),
            target=args.target,
            model=args.model,
            key_from=args.key_from,
            label=args.label,
            timeout=args.timeout,
            processes=args.processes,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    return [replace(base, seed=seed) for seed in seeds]


def _trace(args: argparse.Namespace) -> tuple[float, ...]:
    if args.arrivals != "trace":
        return ()
    if args.trace is None:
        raise UsageError("--arrivals trace needs --trace FILE")
    return tuple(trace(args.trace.read_text(encoding="utf-8").splitlines()))


def add_serve(parser: argparse.ArgumentParser, told: str) -> None:
    """Has to be the last flag: all that follows is the server's."""
    parser.add_argument("--serve", nargs=argparse.REMAINDER, help=told)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The settings that an urgency experiment compares."""
    modes = [urgency.value for urgency in Urgency]
    parser.add_argument("--modes", nargs="+", choices=modes, default=modes)
    parser.add_argument(
        "--leads",
        nargs="+",
        default=list(LEADS),
        help="of playhead serve, each with each mode (learned: with reported only)",
    )


def settings(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Mode and lead of each server to be measured: only reports can teach a lead. Raises
    :class:`UsageError`."""
    for lead in args.leads:
        try:
            parse_lead(lead)
        except ValueError as error:
            raise UsageError(f"--leads {lead!r}: expected {error}") from None
    found = [
        (mode, lead)
        for mode in args.modes
        for lead in args.leads
        if mode == Urgency.REPORTED or not lead.startswith(LEARNED)
    ]
    if not found:
        raise UsageError("--leads: learned leads need --modes reported; give seconds, such as 1.5")
    return found
