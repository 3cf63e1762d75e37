"""What a run leaves behind: raw, one JSON object a line, to be judged later and again.

Every line has a ``kind``: ``run`` (how it was run), ``utterance`` (one :class:`Record`), ``lag``
(the generator's own lateness), ``server`` (what its /readyz told), ``metrics`` (a sample of the
server's /metrics) and ``end``.
Times are seconds since the start of the run, in the generator's clock, unless a name says more.
"""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from playhead.loadgen.listener import Stall

KERNEL, READ = "kernel", "read"
FORMAT = 1
"""Version of the files; a reader refuses others."""


class RecordError(ValueError):
    """A file that is no raw record; the message names the file, the line and what was expected."""


@dataclass(frozen=True)
class Chunk:
    """One audio message. ``sent`` is the server's stamp in its own milliseconds; ``slack`` and
    ``depth`` (milliseconds) are what it believed when it routed the chunk."""

    at: float
    position: int
    samples: int
    bytes: int
    lane: str
    slack: float | None
    depth: float
    sent: float


@dataclass
class Record:
    """One utterance. ``None``: it never came to that.

    ``ready`` is when a session was there to speak on; ``dispatched`` when the generator got to
    it; ``text_sent`` when its last byte had been handed to the socket. ``offset`` is the server's
    clock minus the run's, as measured by ``ping`` with ``round_trip``.
    """

    number: int
    intended: float
    text: str
    counted: bool = True  # False: warm-up
    session: int = -1
    network: str = "direct"
    reports: str = "on"
    threshold: float = 0.0
    rate: float = 1.0
    stamps: str = READ  # when audio arrived: by the kernel, or when the generator read it
    held: float = 0.0  # seconds for which the listener stands still by itself
    codec: str = ""
    sample_rate: int = 0
    offset: float | None = None
    round_trip: float | None = None
    ready: float | None = None
    dispatched: float | None = None
    text_sent: float | None = None
    possible: float | None = None
    first_byte: float | None = None
    first_playable: float | None = None
    started: float | None = None
    chunks: list[Chunk] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    samples: int = 0
    bytes: int = 0
    listened: float | None = None  # seconds from the first sound to the listener's end
    unplayed: float | None = None  # seconds of audio that it held meanwhile, on average
    cancel_sent: float | None = None
    heard: int | None = None  # by the listener itself, in samples, when it was over
    server_heard: int | None = None
    server_samples: int | None = None
    estimated: bool | None = None
    ended: float | None = None
    finish: str = (
        ""  # complete, length_budget, cancelled, failed, timeout, lost, refused, no_session
    )
    fault: str = ""  # a name for what must not be counted as good; empty when there is none
    message: str = ""

    @property
    def asked(self) -> float:
        """From when on its first sound is waited for."""
        return self.intended if self.possible is None else self.possible

    def as_line(self) -> dict[str, Any]:
        """A JSON object. Written while a run goes on, so without the deep copies of ``asdict``."""
        return {
            "kind": "utterance",
            **vars(self),
            "chunks": [vars(chunk) for chunk in self.chunks],
            "stalls": [asdict(stall) for stall in self.stalls],
        }

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> "Record":
        """Back from a JSON object. Raises ``TypeError`` or ``KeyError`` for another shape."""
        known = {each.name for each in fields(cls)}
        values = {name: value for name, value in line.items() if name in known}
        values["chunks"] = [Chunk(**chunk) for chunk in line["chunks"]]
        values["stalls"] = [Stall(**stall) for stall in line["stalls"]]
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Lag:
    """At ``at`` the generator's own event loop ran ``lag`` seconds late."""

    at: float
    lag: float


@dataclass(frozen=True, slots=True)
class MetricsSample:
    """The server's figures at ``at``: series as the text format names them, labels included."""

    at: float
    values: Mapping[str, float]


@dataclass(slots=True)
class Run:
    """One run as its file tells it."""

    plan: dict[str, Any]
    records: list[Record] = field(default_factory=list)
    lags: list[Lag] = field(default_factory=list)
    metrics: list[MetricsSample] = field(default_factory=list)
    server: Mapping[str, Any] = field(default_factory=dict)  # what its /readyz told
    processor: float = 0.0  # seconds that the generator used, all its processes
    complete: bool = False  # False: it was interrupted, or the file is cut
    name: str = ""

    @property
    def model(self) -> str:
        """As the server names it; empty where it was not told."""
        name = str(self.server.get("model", ""))
        return f"{name} (random weights)" if self.server.get("random_weights") else name

    @property
    def window(self) -> tuple[float, float]:
        """Seconds of the run in which utterances count, from and to."""
        begin = float(self.plan["warmup"])
        return begin, begin + float(self.plan["window"])

    @property
    def counted(self) -> list[Record]:
        """The utterances of the window, in the order in which they were meant to start."""
        chosen = [record for record in self.records if record.counted]
        return sorted(chosen, key=lambda record: (record.intended, record.number))


def encode(line: Mapping[str, Any]) -> str:
    """One line of a file."""
    return json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def decode(lines: Iterable[str], name: str) -> Run:
    """A run from its lines. Raises :class:`RecordError`."""
    run: Run | None = None
    for number, text in enumerate(lines, 1):
        try:
            line = json.loads(text)
            if run is None:
                run = _head(line, name)
            else:
                _add(run, line)
        except (ValueError, TypeError, KeyError, AttributeError) as fault:
            raise RecordError(f"{name}, line {number}: {fault}") from None
    if run is None:
        raise RecordError(f"{name} is empty; expected the raw records of a run")
    return run


def load(path: Path) -> Run:
    """A run from its file, which may be compressed. Raises :class:`RecordError` and ``OSError``."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8") as packed:
            return decode(packed, path.name.partition(".jsonl")[0])
    with path.open(encoding="utf-8") as file:
        return decode(file, path.stem)


def _head(line: Any, name: str) -> Run:
    if not isinstance(line, dict) or line.get("kind") != "run":
        raise ValueError("expected a line of kind 'run' first: this is no raw record of a run")
    if line.get("format") != FORMAT:
        raise ValueError(f"format {line.get('format')} is not known; expected {FORMAT}")
    return Run(plan=line["plan"], name=name)


def _add(run: Run, line: dict[str, Any]) -> None:
    kind = line["kind"]
    if kind == "utterance":
        run.records.append(Record.from_line(line))
    elif kind == "lag":
        run.lags.append(Lag(line["at"], line["lag"]))
    elif kind == "metrics":
        run.metrics.append(MetricsSample(line["at"], line["values"]))
    elif kind == "server":
        run.server = line["load"]
    elif kind == "processor":
        run.processor += line["seconds"]
    elif kind == "end":
        run.complete = bool(line["complete"])
