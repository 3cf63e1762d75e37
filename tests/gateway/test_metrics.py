"""What /metrics tells, and that no client can make it grow."""

import re

import pytest
from fake_engine import FakeEngine
from playhead.engine.types import Lane, ListenerState, Report
from playhead.gateway.collectors import EngineCollector, SessionCollector
from playhead.gateway.messages import Audio, Cancelled, Done, ErrorEvent, Failed, Ready
from playhead.gateway.meter import SessionMeter
from playhead.gateway.metrics import REFUSALS, Metrics


def value(metrics: Metrics, name: str, **labels: str) -> float:
    found = metrics.registry.get_sample_value(name, labels)
    assert found is not None, name
    return found


def ready(rate: int = 24_000) -> Ready:
    return Ready(
        session="s",
        token="t",
        resumed=False,
        codec="pcm_s16le",
        sample_rate=rate,
        pre_skip=0,
        packet_samples=0,
        voice="alto",
        voices=("alto",),
        formats=(),
        limits={},
        grace=0.0,
        epoch=0,
        time=0.0,
        model="fake",
        server="test",
    )


def audio(epoch: int, samples: int) -> Audio:
    return Audio(
        seq=1,
        epoch=epoch,
        index=0,
        position=0,
        samples=samples,
        words=(),
        lane=Lane.URGENT,
        slack=None,
        depth=0.0,
        sent=0.0,
        final=False,
        data=b"",
    )


def report(underruns: int = 0, buffered: int = 0, state: str = "playing") -> Report:
    return Report(7, 0, 0, 0, buffered, 0, ListenerState(state), underruns)


def meter() -> tuple[SessionMeter, Metrics]:
    metrics = Metrics()
    return SessionMeter(metrics, 24_000), metrics


def test_first_audio_is_measured_from_the_last_and_from_the_first_text() -> None:
    watch, metrics = meter()
    watch.text(7, 10.0)
    watch.text(7, 10.5)
    watch.first_audio(7, 10.75)
    watch.first_audio(7, 99.0)
    assert value(metrics, "playhead_ttfa_seconds_count") == 1
    assert value(metrics, "playhead_ttfa_seconds_sum") == pytest.approx(0.25)
    assert value(metrics, "playhead_first_text_to_audio_seconds_sum") == pytest.approx(0.75)


def test_an_utterance_without_sound_leaves_nothing_behind() -> None:
    watch, metrics = meter()
    watch.text(7, 10.0)
    watch.utterance_over(7)
    watch.first_audio(7, 11.0)
    assert value(metrics, "playhead_ttfa_seconds_count") == 0


def test_stalls_are_counted_once_and_within_reason() -> None:
    watch, metrics = meter()
    for underruns in (0, 1, 1, 3, 2, 1_000_000):
        watch.report(report(underruns))
    assert value(metrics, "playhead_stalls_total") == 3 + 20


def test_depth_is_that_of_playing_listeners() -> None:
    watch, metrics = meter()
    watch.report(report(buffered=12_000))
    watch.report(report(buffered=12_000, state="paused"))
    assert value(metrics, "playhead_listener_depth_seconds_count") == 1
    assert value(metrics, "playhead_listener_depth_seconds_sum") == pytest.approx(0.5)


def test_audio_sent_heard_and_wasted() -> None:
    watch, metrics = meter()
    watch.sent(ready(8_000))
    watch.sent(audio(1, 8_000))
    watch.sent(audio(1, 4_000))
    watch.sent(
        Cancelled(seq=2, epoch=1, heard=2_000, heard_text="", unheard_text="", estimated=False)
    )
    watch.sent(audio(2, 800))
    watch.sent(Done(seq=3, epoch=2, samples=800, heard=9_999, estimated=True, reason="complete"))
    assert value(metrics, "playhead_audio_sent_seconds_total") == pytest.approx(1.6)
    assert value(metrics, "playhead_audio_heard_seconds_total") == pytest.approx(0.35)
    assert value(metrics, "playhead_audio_wasted_seconds_total") == pytest.approx(1.25)
    assert value(metrics, "playhead_utterances_total", outcome="cancelled") == 1
    assert value(metrics, "playhead_utterances_total", outcome="done") == 1


def test_refusals_and_errors() -> None:
    watch, metrics = meter()
    watch.sent(ErrorEvent(code="bad_value", message="", expected=""))
    watch.sent(ErrorEvent(code="rate_limited", message="", expected=""))
    watch.sent(
        Failed(
            seq=1,
            epoch=1,
            code="overloaded",
            message="",
            expected="",
            heard=0,
            heard_text="",
            unheard_text="",
        )
    )
    assert value(metrics, "playhead_invalid_messages_total") == 2
    assert value(metrics, "playhead_refusals_total", reason="rate_limited") == 1
    assert value(metrics, "playhead_refusals_total", reason="overloaded") == 1
    assert value(metrics, "playhead_utterances_total", outcome="failed") == 1


def test_label_values_are_bounded() -> None:
    metrics = Metrics()
    before = len(metrics.text().splitlines())
    for number in range(1000):
        metrics.refused(f"made up {number}")
    assert len(metrics.text().splitlines()) == before
    assert value(metrics, "playhead_refusals_total", reason="other") == 1000
    for reason in REFUSALS:
        assert value(metrics, "playhead_refusals_total", reason=reason) >= 0


def test_loop_lag() -> None:
    metrics = Metrics()
    metrics.observe_lag(0.004)
    assert value(metrics, "playhead_loop_lag_last_seconds") == 0.004
    assert value(metrics, "playhead_loop_lag_seconds_bucket", le="0.005") == 1
    assert value(metrics, "playhead_loop_lag_seconds_bucket", le="0.002") == 0


def test_engine_and_session_figures_are_read_on_demand() -> None:
    metrics = Metrics()
    engine = FakeEngine(lambda events: None)
    metrics.registry.register(EngineCollector(engine.stats))
    metrics.registry.register(SessionCollector(lambda: {"stale_report": 4}))
    assert value(metrics, "playhead_lane_waiting", lane="urgent") == 1
    assert value(metrics, "playhead_lane_busy_seconds_total", lane="lm") == 2.5
    assert value(metrics, "playhead_promotions_total") == 5
    assert value(metrics, "playhead_reports_total", outcome="clamped") == 2
    assert value(metrics, "playhead_session_events_total", event="stale_report") == 4
    assert value(metrics, "playhead_reports_total", outcome="accepted") == 0
    engine.reports.append(report())
    assert value(metrics, "playhead_reports_total", outcome="accepted") == 1


def test_the_text_format_parses() -> None:
    lines = Metrics().text().decode().splitlines()
    pattern = re.compile(r"^(# (HELP|TYPE) .*|[a-z_]+(\{[^}]*\})? [0-9.e+-]+(Inf)?)$")
    assert [line for line in lines if not pattern.match(line)] == []
