"""Figures of runs, from records small enough to be checked by hand."""

from typing import Any

import pytest
from loadgen_kit import chunk, record, run
from playhead.loadgen.figures import Figures, Spread, backlog_growth, figures, peak_in_flight
from playhead.loadgen.listener import Stall
from playhead.loadgen.record import Lag, MetricsSample, Record


def good(number: int, intended: float, ttfa: float = 0.1, **values: Any) -> Record:
    """Half a second of audio in two chunks, complete."""
    at = intended + ttfa
    given = {
        "ready": intended - 1.0,
        "dispatched": intended,
        "text_sent": intended,
        "first_playable": at,
        "started": at,
        "chunks": [chunk(at, samples=100), chunk(at + 0.05, 100, samples=400)],
        "samples": 500,
        "heard": 500,
        "ended": at + 0.6,
        "finish": "complete",
    }
    return record(number, intended, **{**given, **values})


def test_a_run_without_trouble() -> None:
    made = figures([run(*(good(n, float(n), ttfa=0.01 * (n + 1)) for n in range(10)))])
    assert made.utterances == 10
    assert made.ttfa == Spread(*[pytest.approx(value) for value in (0.05, 0.1, 0.1, 0.1)])
    assert (made.listener.stalled, made.listener.c0, made.listener.worst) == (0, 1.0, 0.0)
    assert (made.viable_chunks, made.viable_utterances) == (1.0, 1.0)
    assert made.rtf.p50 == pytest.approx((0.05 + 0.05) / 0.5)
    assert made.intended_rate == made.achieved_rate == 1.0
    assert made.audio_rate == pytest.approx(0.5)
    assert made.peak_in_flight == 1
    assert made.faults == {}
    assert made.invalid == []
    assert not made.backlog_grows
    assert made.waste.barge_ins == 0
    assert made.held == pytest.approx((0.1 * 0.5 + 0.4 * 0.45 - 0.125) / 0.5)


def test_a_text_in_pieces_counts_from_the_piece_that_makes_sound_possible() -> None:
    kept = good(0, 1.0, ttfa=0.5, possible=1.3, text_sent=1.6)
    made = figures([run(kept)])
    assert made.ttfa.p50 == pytest.approx(0.2)
    assert made.first_wait is not None
    assert made.first_wait.p50 == pytest.approx(0.5)
    assert made.rtf.p50 == pytest.approx((0.2 + 0.05) / 0.5)
    assert figures([run(good(0, 1.0))]).first_wait is None


def test_sound_before_it_was_possible_means_that_the_rule_is_wrong() -> None:
    (doubt,) = figures([run(good(0, 1.0, ttfa=0.2, possible=1.3))]).invalid
    assert doubt.startswith("1 utterances spoke before the text that --speaks-after says they need")


def test_stalls_fall_into_their_classes_and_have_causes() -> None:
    lengths = [0.03, 0.07, 0.15, 0.5]
    records = [good(n, float(n)) for n in range(4)]
    for kept, length in zip(records, lengths, strict=True):
        kept.stalls = [Stall(kept.intended + 0.2, length, 1), Stall(9.0, 0.001, -1)]
    made = figures([run(*records)])
    heard = made.listener
    assert (heard.stalled, heard.c0, heard.c50, heard.c100, heard.c200) == (4, 0, 0.25, 0.5, 0.75)
    assert heard.worst == 0.5
    assert sum(made.causes.values()) == 8


def test_what_the_strict_player_hears_is_judged_beside() -> None:
    late = good(0, 0.0, chunks=[chunk(0.1, samples=100), chunk(0.5, 100, samples=400)])
    made = figures([run(late)])
    assert (made.listener.stalled, made.strict.stalled) == (0, 1)
    assert made.strict.worst == pytest.approx(0.3)
    assert made.viable_utterances == 0.0


def test_faults_are_named_and_not_achieved() -> None:
    lost = record(1, 1.0, finish="no_session", fault="unreachable", ended=1.5)
    made = figures([run(good(0, 0.0), lost)])
    assert made.faults == {"unreachable": 1}
    assert (made.intended_rate, made.achieved_rate) == (0.2, 0.1)
    assert made.listener.utterances == 1


def test_nothing_heard_gives_no_figures() -> None:
    made = figures([run(record(0, 0.0, fault="unreachable", ended=0.1))])
    assert made.ttfa == Spread(None, None, None, None)
    assert (made.listener.c0, made.viable_chunks, made.waste.share) == (None, None, None)
    assert made.held is None


def test_only_the_window_counts_but_all_audio_in_it_does() -> None:
    early = good(0, 0.5, counted=False)
    early.chunks = [chunk(0.6, samples=1_000), chunk(1.5, 1_000, samples=500)]
    made = figures([run(early, good(1, 2.0), warmup=1.0, window=10.0)])
    assert made.utterances == 1
    assert made.audio_rate == pytest.approx((0.5 + 0.5) / 10)


def test_waste_is_what_a_barge_in_left_unheard() -> None:
    cut = good(0, 0.0, cancel_sent=0.3, heard=200, finish="cancelled")
    made = figures([run(cut, good(1, 1.0, cancel_sent=1.3, heard=None))])
    assert made.waste.barge_ins == 2
    assert made.waste.seconds == pytest.approx(0.3 + 0.5)
    assert made.waste.share == pytest.approx(0.8)
    assert made.waste.each.most == pytest.approx(0.5)


def test_seeds_are_pooled() -> None:
    runs = [run(good(0, 0.0), seed=seed) for seed in (0, 1)]
    made = figures(runs)
    assert (made.seeds, made.utterances, made.window) == ([0, 1], 2, 20.0)
    assert made.name == "strict, 1/s"
    assert figures([run(label="none")]).name == "none, 1/s"


def test_in_flight_is_from_dispatch_to_end() -> None:
    records = [
        record(0, dispatched=0.0, ended=1.0),
        record(1, dispatched=0.5, ended=2.0),
        record(2, dispatched=1.0, ended=1.5),
        record(3, ended=9.0),
    ]
    assert peak_in_flight(records) == 2
    assert peak_in_flight([]) == 0


def test_a_backlog_that_grows_is_seen() -> None:
    slower = [good(n, 0.1 * n, ttfa=0.1 * n) for n in range(100)]
    assert backlog_growth(run(*slower)) > 5
    assert figures([run(*slower)]).backlog_grows
    unserved = record(0, 9.0, ended=10.0)
    assert backlog_growth(run(unserved)) == pytest.approx(0.3)
    assert backlog_growth(run(record(0, 9.0))) == 0.0
    assert backlog_growth(run(unserved, window=0.0)) == 0.0


def doubts(*records: Record, **changes: Any) -> list[str]:
    whole = run(*records)
    for name, value in changes.items():
        setattr(whole, name, value)
    return figures([whole]).invalid


def test_a_generator_that_dispatches_late_makes_the_run_invalid() -> None:
    (doubt,) = doubts(good(0, 0.0, dispatched=0.05))
    assert "dispatched 1 % later than 50 ms" in doubt


def test_a_session_that_was_late_is_not_the_generators_fault() -> None:
    assert doubts(good(0, 0.0, ready=0.5, dispatched=0.501)) == []


def test_a_generator_whose_loop_was_late_makes_the_run_invalid() -> None:
    assert doubts(good(0, 0.0), lags=[Lag(1.0, 0.019)] * 99) == []
    (doubt,) = doubts(good(0, 0.0), lags=[Lag(1.0, 0.2)])
    assert "late 2.0% of the time" in doubt


def test_partial_and_empty_runs_are_invalid() -> None:
    assert doubts(good(0, 0.0), complete=False) == ["run is partial"]
    assert doubts() == ["no utterance was meant to start in the window"]


def test_the_servers_figures_are_taken_along() -> None:
    whole = run(good(0, 0.0))
    whole.metrics = [MetricsSample(t, {"playhead_x_total": 2.0 * t}) for t in (0.0, 5.0)]
    made: Figures = figures([whole])
    assert made.server == {"playhead_x_total": 2.0}


def test_a_window_of_nothing_has_no_rates() -> None:
    assert figures([run(window=0.0)]).audio_rate == 0.0
