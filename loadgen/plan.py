"""What a run will do, decided before it starts: pure, from one seed.

The schedule does not depend on the server, so two servers, or two settings of one, are asked for
exactly the same at exactly the same times.
"""

import math
import random
import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

from playhead.gateway.protocol import Encoding
from playhead.gateway.redact import redact
from playhead.loadgen.arrivals import BURSTY, constant, gamma, poisson
from playhead.loadgen.habits import MIXES, Mix
from playhead.loadgen.texts import Kind, draw
from playhead.loadgen.typist import SpeaksAfter

Process = Literal["poisson", "constant", "gamma", "trace"]
Target = Literal["playhead", "openai", "voxserve", "voxserve-stream", "nari"]
TARGETS: tuple[Target, ...] = ("playhead", "openai", "voxserve", "voxserve-stream", "nari")
IN_PIECES: frozenset[Target] = frozenset({"playhead", "voxserve-stream", "nari"})
"""Targets that take a text piece by piece."""
Network = Literal["proxy", "namespace"]
NETWORK_KINDS: tuple[Network, ...] = ("proxy", "namespace")
PROCESSES: tuple[Process, ...] = ("poisson", "constant", "gamma", "trace")


@dataclass(frozen=True, slots=True)
class Plan:
    """One run at one rate with one seed. Times in seconds.

    ``trace`` holds the times of ``arrivals="trace"``. ``turns``: utterances that one session may
    speak, one after the other. ``timeout``: for one utterance, from its intended start.
    ``pace``: pieces of text a second, as a language model writes; 0 sends a text at once.
    ``speaks_after``: what makes the first sound possible then (typist.py).
    ``label``: the setting of the server that is compared with others; the run is the same.
    """

    url: str
    rate: float
    arrivals: Process = "poisson"
    variation: float = BURSTY
    trace: tuple[float, ...] = ()
    seed: int = 0
    warmup: float = 5.0
    window: float = 30.0
    mix: str = "strict"
    network: Network = "proxy"  # how the mix's networks are made
    texts: Kind = Kind.CONVERSATION
    pace: float = 0.0
    speaks_after: SpeaksAfter = SpeaksAfter.CLAUSE
    codec: str = "pcm_s16le"
    sample_rate: int = 24_000
    voice: str | None = None
    encoding: Encoding = "msgpack"
    turns: int = 4
    timeout: float = 60.0
    processes: int = 1
    target: Target = "playhead"
    model: str | None = None  # named in the requests of targets that want one
    key_from: str = ""  # environment variable that holds the target's key
    label: str = ""
    signal: str = ""  # of an urgency experiment: the server's --urgency and --lead
    lead: str = ""
    also: tuple[str, ...] = ()  # more servers that the processes take in turn
    cores: tuple[int, ...] = ()  # processors that the processes take in turn; none: any

    def __post_init__(self) -> None:
        for name, unit in (
            ("warmup", "seconds"),
            ("window", "seconds"),
            ("timeout", "seconds"),
            ("pace", "pieces of text a second, 0 for the text at once"),
        ):
            value = asdict(self)[name]
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} is {value}; expected {unit}")
        if self.mix not in MIXES:
            raise ValueError(f"mix {self.mix!r} is not known; one of {', '.join(MIXES)}")
        if self.target != "playhead" and self.turns > 1:
            raise ValueError("such a target speaks one utterance a session: turns must be 1")
        if self.pace and self.target not in IN_PIECES:
            raise ValueError(f"target {self.target} takes a text at once: pace must be 0")
        if self.turns < 1 or self.processes < 1:
            raise ValueError("turns and processes start at 1")

    @property
    def length(self) -> float:
        """Seconds in which utterances start."""
        return self.warmup + self.window

    @property
    def listeners(self) -> Mix:
        """From which listeners are drawn."""
        return MIXES[self.mix]

    @property
    def name(self) -> str:
        """Of the run's file."""
        who = re.sub(r"[^\w.]+", "-", self.label or self.mix)
        return f"{who}-rate-{self.rate:g}-seed-{self.seed}"

    def as_json(self) -> dict[str, Any]:
        """For the head of the file, without what addresses hold of secrets; the trace's times are
        in the records anyway."""
        url, *also = (redact(each) for each in (self.url, *self.also))
        return {**asdict(self), "url": url, "also": also, "trace": len(self.trace)}


@dataclass(frozen=True, slots=True)
class Job:
    """An utterance to be asked for at ``at`` seconds from the start of the run."""

    number: int
    at: float
    text: str
    counted: bool


def jobs(plan: Plan, process: int = 0) -> list[Job]:
    """The share of one of the plan's processes. Raises ``ValueError`` for a rate that is none."""
    return [
        Job(
            number,
            at,
            draw(random.Random(f"text {plan.seed} {number}"), plan.texts),
            at >= plan.warmup,
        )
        for number, at in enumerate(_times(plan))
        if number % plan.processes == process
    ]


def _times(plan: Plan) -> list[float]:
    if plan.arrivals == "constant":
        return constant(plan.rate, plan.length)
    if plan.arrivals == "gamma":
        return gamma(plan.rate, plan.length, plan.seed, plan.variation)
    if plan.arrivals == "trace":
        return [at for at in plan.trace if at < plan.length]
    return poisson(plan.rate, plan.length, plan.seed)
