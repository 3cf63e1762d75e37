"""Messages and records for the tests of the load generator, with short names."""

from typing import Any

from playhead.engine.types import Lane
from playhead.gateway.messages import Audio, Done, Started
from playhead.loadgen.record import Chunk, Record, Run

RATE = 1_000
"""Wire rate of the tests: a sample is a millisecond."""


def record(number: int = 0, intended: float = 0.0, **values: Any) -> Record:
    made = Record(number, intended, "Hello there.", sample_rate=RATE, codec="pcm_s16le")
    for name, value in values.items():
        setattr(made, name, value)
    return made


def chunk(at: float, position: int = 0, samples: int = 100, **values: Any) -> Chunk:
    given = {"bytes": 2 * samples, "lane": "background", "slack": 50.0, "depth": 80.0}
    return Chunk(at, position, samples, **{**given, "sent": at * 1_000, **values})


def run(*records: Record, **plan: Any) -> Run:
    given = {"rate": 1.0, "seed": 0, "window": 10.0, "warmup": 0.0, "mix": "strict"}
    return Run({**given, **plan}, list(records), complete=True, name="run")


def started(epoch: int = 1, seq: int = 1) -> Started:
    return Started(seq=seq, epoch=epoch)


def audio(position: int, samples: int, **values: Any) -> Audio:
    given: dict[str, Any] = {
        "seq": 2, "epoch": 1, "index": 0, "words": (), "lane": Lane.URGENT, "slack": 20.0,
        "depth": 0.0, "sent": 5_000.0 + position, "final": False, "data": b"\x01\x02" * samples,
    }  # fmt: skip
    return Audio(position=position, samples=samples, **{**given, **values})


def done(samples: int, **values: Any) -> Done:
    given: dict[str, Any] = {"seq": 9, "epoch": 1, "heard": samples, "estimated": False}
    return Done(samples=samples, **{**given, "reason": "complete", **values})
