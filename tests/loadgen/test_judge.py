"""Judgement of single utterances: stalls, viability, and whose fault it was."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loadgen_kit import RATE, chunk, record, run
from playhead.loadgen.habits import STRICT
from playhead.loadgen.judge import (
    Cause,
    attribute,
    base_transit,
    mean_held,
    own_lag,
    percentile,
    playhead,
    server_lag,
    strict_stalls,
    transit,
    viable_chunks,
    worst,
)
from playhead.loadgen.listener import Listener, Stall
from playhead.loadgen.record import KERNEL, Lag, MetricsSample, Record


def test_the_strict_player_stalls_by_what_is_late() -> None:
    kept = record(chunks=[chunk(1.0), chunk(1.05, 100), chunk(1.5, 200), chunk(1.7, 300)])
    assert strict_stalls(kept) == [
        Stall(pytest.approx(1.2), pytest.approx(0.3), 2),
        Stall(pytest.approx(1.6), pytest.approx(0.1), 3),
    ]
    assert worst(strict_stalls(kept)) == pytest.approx(0.3)
    assert worst([]) == 0.0


@given(
    st.lists(
        st.tuples(st.floats(0, 2), st.integers(0, 900)), min_size=1, max_size=30
    )  # seconds since the one before, samples
)
def test_two_ways_to_count_stalls_agree(steps: list[tuple[float, int]]) -> None:
    """The strict judgement and the strict listener share no code."""
    player = Listener(STRICT, RATE, 0.0)
    kept = record()
    at, position = 0.0, 0
    for gap, samples in steps:
        at += gap
        player.arrive(samples, False, at)
        kept.chunks.append(chunk(at, position, samples))
        position += samples
    # Which message ended a stall may differ by an empty one; a sample more or less is a tie.
    clear = [stall for stall in strict_stalls(kept) if stall.length > 2 / RATE]
    heard = [stall for stall in player.stalls if stall.length > 2 / RATE]
    assert [stall.start for stall in heard] == pytest.approx([s.start for s in clear], abs=1e-3)
    assert [stall.length for stall in heard] == pytest.approx([s.length for s in clear], abs=2e-3)


def test_just_in_time_and_empty_messages_are_no_stalls() -> None:
    kept = record(chunks=[chunk(1.0), chunk(1.1, 100), chunk(9.0, 200, samples=0)])
    assert strict_stalls(kept) == []


def test_viability_compares_with_the_first_arrival_alone() -> None:
    kept = record(chunks=[chunk(1.0), chunk(1.05, 100), chunk(1.25, 200), chunk(1.28, 300)])
    assert viable_chunks(kept) == [True, False, True]
    assert viable_chunks(record(chunks=[chunk(1.0), chunk(2.0, samples=0)])) == []


def test_the_playhead_is_flat_in_stalls_and_ends_with_the_audio() -> None:
    kept = record(samples=200, started=1.2, rate=2.0, stalls=[Stall(1.25, 0.3, 1)])
    assert playhead(kept) == [
        (1.2, 0.0),
        (1.25, pytest.approx(0.1)),
        (pytest.approx(1.55), pytest.approx(0.1)),
        (pytest.approx(1.6), pytest.approx(0.2)),
    ]
    kept.cancel_sent = 1.4
    assert playhead(kept)[-1] == (pytest.approx(1.55), pytest.approx(0.1))
    kept.cancel_sent = 9.0
    assert playhead(kept)[-1] == (pytest.approx(1.6), pytest.approx(0.2))


def test_whose_pauses_are_unknown_has_no_playhead() -> None:
    assert playhead(record(samples=200, started=1.2, held=0.5)) == []
    assert mean_held(record(samples=200, started=1.2, held=0.5)) is None
    assert playhead(record(samples=200)) == []
    assert mean_held(record(started=1.0)) is None


def test_audio_that_was_sent_and_not_heard_counts_from_the_listeners_own_truth() -> None:
    heard = record(first_playable=1.0, listened=2.0, unplayed=0.4)
    assert mean_held(heard) == 0.4
    # Sent at 1.5, there at 2.0: half a second of audio on its way for a quarter of the time.
    heard.chunks = [chunk(1.0), chunk(2.0, samples=500, sent=1_500.0)]
    assert mean_held(heard) == 0.4, "the clocks were not compared"
    heard.offset = 0.0
    assert mean_held(heard) == pytest.approx(0.4 + 0.125)
    assert mean_held(record(listened=2.0, unplayed=0.4)) == 0.4
    assert mean_held(record(listened=0.0, unplayed=0.0)) is None


def test_audio_held_is_averaged_over_the_time_of_listening() -> None:
    # A second of audio at once, played in a second: half a second on average.
    kept = record(samples=1_000, started=1.0, chunks=[chunk(1.0, samples=1_000)])
    assert mean_held(kept) == pytest.approx(0.5)
    # In two halves, each just in time: a quarter.
    halves = [chunk(0.9, samples=500), chunk(1.5, 500, samples=500), chunk(9.0, 1_000, samples=0)]
    assert mean_held(record(samples=1_000, started=1.0, chunks=halves)) == pytest.approx(0.25)


def test_transit_compares_clocks() -> None:
    kept = record(offset=100.0, chunks=[chunk(1.2, sent=101_150.0)])
    assert transit(kept, kept.chunks[0]) == pytest.approx(0.05)
    assert transit(record(), chunk(1.2)) is None


@pytest.mark.parametrize(
    ("values", "base"),
    [
        ({}, 0.0),
        ({"round_trip": 0.04}, 0.02),
        ({"offset": 0.0, "chunks": [chunk(1.0, sent=990.0)], "round_trip": 0.04}, 0.01),
    ],
)
def test_base_transit_is_the_least_that_was_seen(values: dict[str, Any], base: float) -> None:
    assert base_transit(record(**values)) == pytest.approx(base)


STALL = Stall(1.1, 0.4, 1)


def stalled(sent: float, **values: Any) -> Record:
    """Dry at 1.1; the next audio came at 1.5 and had been stamped at ``sent``."""
    chunks = [chunk(1.0, sent=1_000.0), chunk(1.5, 100, sent=1_000 * sent)]
    return record(**{"offset": 0.0, "chunks": chunks, "stalls": [STALL], **values})


def test_late_before_the_stamp_is_the_engines() -> None:
    kept = stalled(1.5)
    made = attribute(STALL, kept, run(kept))
    assert (made.cause, made.stall) == (Cause.ENGINE, STALL)
    assert made.shares[Cause.ENGINE] == pytest.approx(0.4)


def test_late_after_the_stamp_is_the_networks() -> None:
    kept = stalled(1.15)
    made = attribute(STALL, kept, run(kept))
    assert made.cause is Cause.NETWORK
    assert made.shares[Cause.NETWORK] == pytest.approx(0.35)
    assert made.shares[Cause.ENGINE] == pytest.approx(0.05)


def test_what_had_not_been_written_is_the_texts() -> None:
    kept = stalled(1.45, possible=1.0, text_sent=1.4)
    shares = attribute(STALL, kept, run(kept)).shares
    assert shares[Cause.TEXT] == pytest.approx(0.3)
    assert shares[Cause.NETWORK] == pytest.approx(0.05)
    assert shares[Cause.ENGINE] == pytest.approx(0.05)
    whole = stalled(1.5, text_sent=1.4)
    assert attribute(STALL, whole, run(whole)).shares[Cause.TEXT] == 0.0
    cut = stalled(1.5, possible=1.0)
    assert attribute(STALL, cut, run(cut)).shares[Cause.TEXT] == 0.0


def test_late_reading_is_the_clients_own() -> None:
    kept = stalled(1.15)
    whole = run(kept)
    whole.lags.append(Lag(1.5, 0.35))
    made = attribute(STALL, kept, whole)
    assert made.cause is Cause.CLIENT
    assert made.shares[Cause.CLIENT] == pytest.approx(0.35)
    assert made.shares[Cause.NETWORK] == pytest.approx(0.0)
    kept.stamps = KERNEL
    assert attribute(STALL, kept, whole).cause is Cause.NETWORK, "reading late moved no stamp"


def test_the_servers_loop_takes_what_its_histogram_proves() -> None:
    kept = stalled(1.5)
    whole = run(kept)
    whole.metrics += [buckets(1.0, 5, 5, 5), buckets(2.0, 8, 8, 9)]
    made = attribute(STALL, kept, whole)
    assert made.cause is Cause.LOOP
    assert made.shares[Cause.LOOP] == pytest.approx(0.25)


def test_audio_that_never_came_is_the_engines_or_the_lost_networks() -> None:
    stall = Stall(5.0, 2.0, -1)
    kept = stalled(1.5, finish="timeout")
    assert attribute(stall, kept, run(kept)).cause is Cause.ENGINE
    kept = stalled(1.5, finish="lost")
    assert attribute(stall, kept, run(kept)).shares == {Cause.NETWORK: 2.0}


def test_a_stall_that_a_pause_ended_is_judged_by_the_next_audio() -> None:
    kept = stalled(1.15)
    assert attribute(Stall(1.1, 0.1, -1), kept, run(kept)).cause is Cause.NETWORK


def test_without_a_clock_comparison_the_server_is_blamed() -> None:
    kept = stalled(1.15, offset=None)
    assert attribute(STALL, kept, run(kept)).cause is Cause.ENGINE


def test_own_lag_covers_its_moment_only() -> None:
    lags = [Lag(5.0, 0.3), Lag(9.0, 0.1)]
    assert own_lag(lags, 4.8) == 0.3
    assert own_lag(lags, 5.5) == 0.0
    assert own_lag(lags, 9.01) == 0.1


def buckets(at: float, quick: float, slow: float, every: float) -> MetricsSample:
    name = 'playhead_loop_lag_seconds_bucket{le="%s"}'
    values = {name % "0.1": quick, name % "0.25": slow, name % "+Inf": every, "other": 1.0}
    return MetricsSample(at, values)


@pytest.mark.parametrize(
    ("after", "proven"),
    [((5, 5, 5), 0.0), ((9, 9, 9), 0.0), ((5, 6, 6), 0.1), ((5, 5, 6), 0.25)],
)
def test_server_lag_is_the_bound_below_the_highest_that_grew(
    after: tuple[float, float, float], proven: float
) -> None:
    samples = [buckets(1.0, 5, 5, 5), buckets(2.0, *after)]
    assert server_lag(samples, 1.5) == proven
    assert server_lag(samples, 0.5) == 0.0
    assert server_lag(samples, 2.5) == 0.0


def test_percentiles_are_nearest_ranks() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.99) == 3.0
    hundred = [float(n) for n in range(100, 0, -1)]
    assert [percentile(hundred, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
