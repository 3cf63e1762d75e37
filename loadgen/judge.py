"""Judgement of single utterances from their raw records: pure, so that it can be made again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from playhead.loadgen.listener import Stall
from playhead.loadgen.record import KERNEL, Chunk, Lag, MetricsSample, Record, Run

_LAG_BUCKET = 'playhead_loop_lag_seconds_bucket{le="'
_NEAR = 0.02  # seconds by which a lag's stamp and an arrival's may differ


class Cause(StrEnum):
    """Who made a listener run dry."""

    ENGINE = "engine"  # the audio was not ready
    LOOP = "loop"  # it was, but the server's event loop was busy
    NETWORK = "network"  # it had been sent
    CLIENT = "client"  # the generator itself was late
    TEXT = "text"  # it had not been written yet


@dataclass(frozen=True, slots=True)
class Attribution:
    """Seconds of a stall's length by cause; ``cause`` has the largest share."""

    stall: Stall
    cause: Cause
    shares: dict[Cause, float]


def strict_stalls(record: Record) -> list[Stall]:
    """What the strict player would have heard: it starts with the first sample, at the nominal
    rate, holds nothing back, and goes on when audio comes. As published peer benchmarks count."""
    stalls: list[Stall] = []
    dry: float | None = None
    for index, chunk in enumerate(record.chunks):
        if not chunk.samples:
            continue
        if dry is None:
            dry = chunk.at
        # Less than a sample late is just in time.
        elif chunk.at - dry > 1 / record.sample_rate:
            stalls.append(Stall(dry, chunk.at - dry, index))
            dry = chunk.at
        dry += chunk.samples / record.sample_rate
    return stalls


def viable_chunks(record: Record) -> list[bool]:
    """Streaming viability as the VoxServe paper defines it (arXiv 2602.00269, evaluation): chunk i
    is in time when the audio before it lasts longer than the time since the first one came.

    The first chunk is not judged, and a stall does not shift what follows. Empty for one chunk.
    """
    sound = [chunk for chunk in record.chunks if chunk.samples]
    before = 0.0
    verdicts = []
    for chunk, last in zip(sound[1:], sound, strict=False):
        before += last.samples / record.sample_rate
        verdicts.append(before > chunk.at - sound[0].at)
    return verdicts


Point = tuple[float, float]


def playhead(record: Record) -> list[Point]:
    """Time and seconds of audio played at each change of pace: flat in stalls, at the listener's
    rate elsewhere, up to the end or a barge-in. Empty when nothing was played, or when the
    listener stood still by itself, which leaves no trace of when it did."""
    if record.started is None or record.held:
        return []
    total = record.samples / record.sample_rate
    at, position = record.started, 0.0
    points = [(at, position)]
    for stall in record.stalls:
        position = min(total, position + (stall.start - at) * record.rate)
        at = stall.start + stall.length
        points += [(stall.start, position), (at, position)]
    until = at + max(0.0, total - position) / record.rate
    if record.cancel_sent is not None:
        until = max(at, min(until, record.cancel_sent))
    return [*points, (until, position + (until - at) * record.rate)]


def mean_held(record: Record) -> float | None:
    """Seconds of audio that had been sent and not been heard, averaged over the time from the
    first sound to the listener's end: what a barge-in at a random moment wastes. ``None`` when
    that is not known."""
    if record.listened is not None and record.unplayed is not None:
        return record.unplayed + _on_the_way(record) if record.listened else None
    points = playhead(record)
    if not points or points[-1][0] <= points[0][0]:
        return None
    begin, end = points[0][0], points[-1][0]
    received = sum(
        chunk.samples / record.sample_rate * max(0.0, end - max(begin, chunk.at))
        for chunk in record.chunks
    )
    played = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))
    return (received - played) / (end - begin)


def _on_the_way(record: Record) -> float:
    """Seconds of audio between the server's stamp and the listener, on average; 0 where the
    clocks were not compared."""
    first, span = record.first_playable, record.listened
    if first is None or not span:
        return 0.0
    area = 0.0
    for chunk in record.chunks:
        sent = chunk.at - (transit(record, chunk) or 0.0)
        late = min(chunk.at, first + span) - max(first, sent)
        area += chunk.samples / record.sample_rate * max(0.0, late)
    return area / span


def worst(stalls: Sequence[Stall]) -> float:
    """Longest stall in seconds."""
    return max((stall.length for stall in stalls), default=0.0)


def transit(record: Record, chunk: Chunk) -> float | None:
    """Seconds from the server's stamp to our reading, clocks compared; None when they were not."""
    if record.offset is None:
        return None
    return chunk.at - (chunk.sent / 1_000 - record.offset)


def base_transit(record: Record) -> float:
    """What the network takes when nothing is wrong: the utterance's quickest chunk, but never
    more than half the round trip that was measured when the session opened."""
    times = [time for chunk in record.chunks if (time := transit(record, chunk)) is not None]
    known = [record.round_trip / 2] if record.round_trip is not None else []
    return min([*times, *known], default=0.0)


def attribute(stall: Stall, record: Record, run: Run) -> Attribution:
    """Split a stall by the stamps of the audio that ended it.

    Late between the server's stamp and our reading is the network's, less what our own loop was
    late then; the rest is the server's, less what its event loop was late around the stamp. Audio
    that never came is the engine's, or the network's when the connection was lost.
    """
    chunk = _ender(stall, record)
    if chunk is None:
        cause = Cause.NETWORK if record.finish == "lost" else Cause.ENGINE
        return Attribution(stall, cause, {cause: stall.length})
    left = stall.length
    # Late reading makes an arrival late only where the kernel has not stamped it.
    client = 0.0 if record.stamps == KERNEL else min(left, own_lag(run.lags, chunk.at))
    left -= client
    late = (transit(record, chunk) or 0.0) - base_transit(record) - client
    network = min(left, max(0.0, late))
    left -= network
    text = min(left, _untold(stall, record))
    left -= text
    sent = chunk.at - (transit(record, chunk) or 0.0)
    loop = min(left, server_lag(run.metrics, sent))
    shares = {
        Cause.ENGINE: left - loop,
        Cause.LOOP: loop,
        Cause.NETWORK: network,
        Cause.CLIENT: client,
        Cause.TEXT: text,
    }
    return Attribution(stall, max(shares, key=shares.__getitem__), shares)


def _untold(stall: Stall, record: Record) -> float:
    """Seconds of a stall in which a text that comes in pieces was not complete."""
    if record.possible is None or record.text_sent is None:
        return 0.0
    return max(0.0, record.text_sent - stall.start)


def own_lag(lags: Sequence[Lag], at: float) -> float:
    """How late the generator's loop was when it read something at ``at``."""
    near = [lag.lag for lag in lags if lag.at - lag.lag - _NEAR <= at <= lag.at + _NEAR]
    return max(near, default=0.0)


def server_lag(samples: Sequence[MetricsSample], at: float) -> float:
    """Least lateness of the server's loop that its histogram proves for the time around ``at``:
    the lower bound of the highest bucket that grew between the two scrapes that enclose it."""
    before = [sample for sample in samples if sample.at <= at]
    after = [sample for sample in samples if sample.at > at]
    if not before or not after:
        return 0.0
    old, new = _buckets(before[-1]), _buckets(after[0])
    proven, lower, cumulated = 0.0, 0.0, 0.0
    for bound in sorted(new):
        grown = new[bound] - old.get(bound, 0.0)
        if grown > cumulated:
            proven = lower
        cumulated, lower = max(cumulated, grown), bound
    return proven


def _buckets(sample: MetricsSample) -> dict[float, float]:
    return {
        float(name.removeprefix(_LAG_BUCKET).partition('"')[0]): value
        for name, value in sample.values.items()
        if name.startswith(_LAG_BUCKET)
    }


def _ender(stall: Stall, record: Record) -> Chunk | None:
    """The audio that would have been needed: what ended the stall, else the first that came
    after its start."""
    if 0 <= stall.chunk < len(record.chunks):
        return record.chunks[stall.chunk]
    late = (chunk for chunk in record.chunks if chunk.samples and chunk.at >= stall.start)
    return next(late, None)


def percentile(values: Sequence[float], share: float) -> float | None:
    """Nearest rank: the smallest value that at least ``share`` (0..1) of them do not exceed."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]
