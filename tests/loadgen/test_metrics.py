"""The Prometheus text, and figures from samples of it."""

from playhead.loadgen.metrics import inside, parse, server_figures
from playhead.loadgen.record import MetricsSample

TEXT = """# HELP playhead_stalls_total Stalls
# TYPE playhead_stalls_total counter
playhead_stalls_total 3.0
playhead_lane_busy_seconds_total{lane="urgent"} 1.5
playhead_ttfa_seconds_bucket{le="0.1"} 7.0
playhead_loop_lag_seconds_bucket{le="0.1"} 9.0
process_cpu_seconds_total 12.5
python_gc_objects_collected_total{generation="0"} 5.0
playhead_broken x
playhead_unknown NaN

"""


def test_ours_is_read_and_the_rest_left() -> None:
    assert parse(TEXT) == {
        "playhead_stalls_total": 3.0,
        'playhead_lane_busy_seconds_total{lane="urgent"}': 1.5,
        'playhead_loop_lag_seconds_bucket{le="0.1"}': 9.0,
        "process_cpu_seconds_total": 12.5,
    }


def sample(at: float, **values: float) -> MetricsSample:
    return MetricsSample(at, {"playhead_" + name: value for name, value in values.items()})


def test_counters_become_rates_and_gauges_their_most() -> None:
    samples = [
        sample(0.0, stalls_total=1.0, sessions=2.0),
        sample(1.0, stalls_total=2.0, sessions=9.0, late=1.0),
        sample(4.0, stalls_total=9.0, sessions=3.0, late_total=4.0),
    ]
    assert server_figures([samples]) == {
        "playhead_stalls_total": 2.0,
        "playhead_sessions": 9.0,
        "playhead_late": 1.0,
        "playhead_late_total": 1.0,
    }


def test_runs_are_pooled_and_single_samples_tell_nothing() -> None:
    first = [sample(0.0, x_total=0.0), sample(1.0, x_total=10.0)]
    second = [sample(0.0, x_total=50.0), sample(3.0, x_total=52.0)]
    assert server_figures([first, second, [sample(0.0, x_total=7.0)]]) == {"playhead_x_total": 3.0}
    assert server_figures([[], [sample(0.0, sessions=1.0)]]) == {}


def test_buckets_are_no_figures() -> None:
    samples = [MetricsSample(t, {'playhead_loop_lag_seconds_bucket{le="1"}': 1.0}) for t in (0, 1)]
    assert server_figures([samples]) == {}


def test_what_was_told_before_and_after_the_window_does_not_count() -> None:
    samples = [sample(float(t), x_total=t * t) for t in range(6)]
    assert inside(samples, 1.0, 4.0) == samples[1:4]
    assert inside(samples, 1.5, 2.5) == samples
