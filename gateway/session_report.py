"""Checks of playback reports, and the network delay that they show.

A report can only move the session's idea of the listener within what was sent. The engine's own
playhead belief judges further, with time (a client cannot play faster than it may).
"""

from collections import deque
from dataclasses import replace
from enum import Enum

from playhead.engine.types import Report
from playhead.gateway.messages import PlaybackReport


class Verdict(Enum):
    TAKEN = "taken"
    CLAMPED = "clamped"  # claims more than was sent
    REFUSED = "refused"  # contradicts itself or an earlier report


def check(
    report: PlaybackReport, last: PlaybackReport | None, *, sent: int, quantum: int
) -> tuple[Verdict, PlaybackReport]:
    """The report as it may be believed. ``sent`` and ``quantum`` in wire samples."""
    accounted = report.consumed + report.discarded + report.buffered
    if abs(report.received - accounted) > quantum or report.heard > report.consumed + quantum:
        return Verdict.REFUSED, report
    if last is not None and _goes_back(report, last):
        return Verdict.REFUSED, report
    verdict = Verdict.CLAMPED if report.received > sent + quantum else Verdict.TAKEN
    discarded = min(report.discarded, sent)
    consumed = min(report.consumed, sent - discarded)
    # Output latency is noisy, so an honest `heard` may step back a little: keep the furthest.
    heard = max(min(report.heard, consumed), last.heard if last else 0)
    received = min(report.received, sent)
    buffered = max(0, received - consumed - discarded)
    believed = (received, consumed, discarded, heard, buffered)
    if believed == (
        report.received,
        report.consumed,
        report.discarded,
        report.heard,
        report.buffered,
    ):
        return verdict, report  # the usual case, many times a second
    return verdict, replace(
        report,
        received=received,
        consumed=consumed,
        discarded=discarded,
        heard=heard,
        buffered=buffered,
    )


def _goes_back(report: PlaybackReport, last: PlaybackReport) -> bool:
    return (
        report.received < last.received
        or report.consumed < last.consumed
        or report.discarded < last.discarded
        or report.underruns < last.underruns
        or report.starved < last.starved
        or report.time < last.time
    )


def to_engine(report: PlaybackReport, *, utterance: int, wire_rate: int, model_rate: int) -> Report:
    """The report in model samples and seconds."""

    def model(samples: int) -> int:
        return round(samples * model_rate / wire_rate)

    return Report(
        utterance=utterance,
        received=model(report.received),
        consumed=model(report.consumed),
        heard=model(report.heard),
        buffered=model(report.buffered),
        discarded=model(report.discarded),
        state=report.state,
        underruns=report.underruns,
        starved=report.starved / 1_000,
        client_time=report.time / 1_000,
        source=report.source,
    )


class DelayFilter:
    """One-way delay: half of the shortest round trip among the last few echoed stamps.

    The downlink carries the audio queue, so most samples are too long and the minimum is nearest
    to the truth (RFC 5905, section 10, picks the sample of least delay likewise).
    """

    WINDOW = 16

    def __init__(self, most: float) -> None:
        self._most = most
        self._samples: deque[float] = deque(maxlen=self.WINDOW)
        self._newest_echo: float | None = None
        self._told: float | None = None

    def sample(self, report: PlaybackReport, now: float) -> float | None:
        """Seconds, when the estimate has moved by more than a millisecond."""
        if report.echo is None or report.hold is None:
            return None
        if self._newest_echo is not None and report.echo <= self._newest_echo:
            return None
        round_trip = now - (report.echo + report.hold) / 1_000
        if round_trip < 0:
            return None  # an echo of a stamp that was never given
        self._newest_echo = report.echo
        self._samples.append(round_trip)
        one_way = min(self._most, min(self._samples) / 2)
        if self._told is not None and abs(one_way - self._told) <= 0.001:
            return None
        self._told = one_way
        return one_way
