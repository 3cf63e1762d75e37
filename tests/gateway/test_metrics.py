"""What /metrics tells, and that no client can make it grow."""

import asyncio
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fake_engine import FakeEngine
from playhead.codecs import registry as codecs
from playhead.engine.garbage import Keeper
from playhead.engine.types import (
    AudioChunk,
    Lane,
    ListenerState,
    Report,
    Request,
    Word,
)
from playhead.gateway import gpu
from playhead.gateway.blame import Cause
from playhead.gateway.collectors import (
    BuildCollector,
    EngineCollector,
    GarbageCollector,
    SessionCollector,
)
from playhead.gateway.gpu import GpuCollector
from playhead.gateway.messages import (
    Audio,
    Cancelled,
    Done,
    ErrorEvent,
    Failed,
    Ready,
    ServerMessage,
    Started,
)
from playhead.gateway.meter import SessionMeter
from playhead.gateway.metered import MeteredEncoder
from playhead.gateway.metrics import CODECS, REFUSALS, Metrics
from prometheus_client import generate_latest


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


def report(
    underruns: int = 0, buffered: int = 0, state: str = "playing", starved: float = 0.0
) -> Report:
    return Report(7, buffered, 0, 0, buffered, 0, ListenerState(state), underruns, starved)


def chunk(samples: int, made_at: float = 0.0) -> AudioChunk:
    pcm = np.zeros(samples, np.float32)
    words = (Word("hi", 0, 0, 2),)
    return AudioChunk(7, 0, 0, pcm, words, Lane.URGENT, None, 0.0, made_at, made_at)


def meter() -> tuple[SessionMeter, Metrics]:
    metrics = Metrics()
    watch = SessionMeter(metrics, 24_000, "s1")
    watch.sent(Started(seq=1, epoch=1), 8.9)
    watch.opened(Request(7, "s1", "alto"), 9.0)
    return watch, metrics


def sent(watch: SessionMeter, message: ServerMessage) -> None:
    watch.sent(message, 20.0)


def done(epoch: int = 1) -> Done:
    return Done(seq=9, epoch=epoch, samples=0, heard=0, estimated=False, reason="complete")


def stalls(metrics: Metrics) -> dict[str, float]:
    found = {cause: value(metrics, "playhead_stalls_total", cause=cause) for cause in Cause}
    return {str(cause): count for cause, count in found.items() if count}


def test_first_audio_is_measured_from_the_last_and_from_the_first_text() -> None:
    watch, metrics = meter()
    watch.text(7, 4, False, 10.0)
    watch.text(7, 4, False, 10.5)
    watch.audio(7, chunk(100), False, 10.6)
    watch.audio(7, chunk(100), True, 10.75)
    watch.text(7, 4, False, 11.0)
    watch.audio(7, None, True, 99.0)
    assert value(metrics, "playhead_ttfa_seconds_count") == 1
    assert value(metrics, "playhead_ttfa_seconds_sum") == pytest.approx(0.25)
    assert value(metrics, "playhead_first_text_to_audio_seconds_sum") == pytest.approx(0.75)


def test_an_utterance_without_sound_leaves_nothing_behind() -> None:
    watch, metrics = meter()
    watch.text(7, 2, True, 10.0)
    sent(watch, done())
    watch.text(7, 2, True, 10.5)
    watch.audio(7, chunk(100), True, 11.0)
    watch.report(report(3), 11.5)
    assert stalls(metrics) == {}
    assert value(metrics, "playhead_ttfa_seconds_count") == 0


def test_stalls_are_counted_once_and_within_reason() -> None:
    watch, metrics = meter()
    for underruns in (0, 1, 1, 3, 2, 1_000_000):
        watch.report(report(underruns), 10.0)
    assert sum(stalls(metrics).values()) == 3 + 20


def test_stalls_are_told_apart_by_cause_and_logged_with_ids(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch, metrics = meter()
    watch.text(7, 2, True, 10.0)
    watch.audio(7, chunk(24_000, 10.1), True, 10.1)
    watch.audio(7, chunk(24_000, 11.5), True, 11.5)
    watch.report(report(1, starved=0.4), 12.0)
    watch.blocked()
    watch.report(report(2, state="stalled", starved=0.9), 15.0)
    sent(watch, done())
    assert stalls(metrics) == {"engine": 1, "network": 1}
    assert value(metrics, "playhead_stall_seconds_sum", cause="engine") == pytest.approx(0.4)
    assert value(metrics, "playhead_worst_stall_seconds", cause="network") == pytest.approx(0.5)
    assert value(metrics, "playhead_slow_reader_holds_total") == 1
    record = caplog.records[0]
    assert record.getMessage() == "the listener ran dry for 400 ms: engine"
    assert vars(record)["session"] == "s1"
    assert vars(record)["utterance"] == 7


def test_the_open_loop_guess_is_held_against_what_is_reported() -> None:
    watch, metrics = meter()
    watch.audio(7, chunk(24_000), True, 10.0)
    watch.report(report(buffered=18_000), 10.5)
    assert value(metrics, "playhead_open_loop_error_seconds_count") == 1
    assert value(metrics, "playhead_open_loop_error_seconds_sum") == pytest.approx(0.25)


def test_an_utterance_that_is_over_is_forgotten() -> None:
    watch, metrics = meter()
    sent(watch, Started(seq=2, epoch=2))
    sent(watch, done(2))  # cut before it was handed to the engine
    sent(watch, Started(seq=3, epoch=3))
    watch.opened(Request(8, "s1", "alto"), 9.5)
    sent(watch, done(3))
    watch.report(replace(report(1), utterance=8), 10.0)
    assert stalls(metrics) == {}
    sent(watch, done(1))
    assert not watch._utterances
    assert not watch._numbers


def test_depth_is_that_of_playing_listeners() -> None:
    watch, metrics = meter()
    watch.report(report(buffered=12_000), 10.0)
    watch.report(report(buffered=12_000, state="paused"), 10.1)
    assert value(metrics, "playhead_listener_depth_seconds_count") == 1
    assert value(metrics, "playhead_listener_depth_seconds_sum") == pytest.approx(0.5)


def test_audio_sent_heard_and_wasted() -> None:
    watch, metrics = meter()
    sent(watch, ready(8_000))
    sent(watch, audio(1, 8_000))
    sent(watch, audio(1, 4_000))
    sent(
        watch,
        Cancelled(seq=2, epoch=1, heard=2_000, heard_text="", unheard_text="", estimated=False),
    )
    sent(watch, audio(2, 800))
    sent(watch, Done(seq=3, epoch=2, samples=800, heard=9_999, estimated=True, reason="complete"))
    assert value(metrics, "playhead_audio_sent_seconds_total") == pytest.approx(1.6)
    assert value(metrics, "playhead_audio_heard_seconds_total") == pytest.approx(0.35)
    assert value(metrics, "playhead_audio_wasted_seconds_total") == pytest.approx(1.25)
    assert value(metrics, "playhead_barge_in_waste_seconds_count") == 1
    assert value(metrics, "playhead_barge_in_waste_seconds_sum") == pytest.approx(1.25)
    assert value(metrics, "playhead_utterances_total", outcome="cancelled") == 1
    assert value(metrics, "playhead_utterances_total", outcome="done") == 1


def test_refusals_and_errors() -> None:
    watch, metrics = meter()
    sent(watch, ErrorEvent(code="bad_value", message="", expected=""))
    sent(watch, ErrorEvent(code="rate_limited", message="", expected=""))
    sent(
        watch,
        Failed(
            seq=1,
            epoch=1,
            code="overloaded",
            message="",
            expected="",
            heard=0,
            heard_text="",
            unheard_text="",
        ),
    )
    assert value(metrics, "playhead_invalid_messages_total") == 2
    assert value(metrics, "playhead_refusals_total", reason="rate_limited") == 1
    assert value(metrics, "playhead_refusals_total", reason="overloaded") == 1
    assert value(metrics, "playhead_utterances_total", outcome="failed") == 1


def test_label_values_are_bounded() -> None:
    metrics = Metrics()
    before = len(generate_latest(metrics.registry).splitlines())
    for number in range(1000):
        metrics.refused(f"made up {number}")
    assert len(generate_latest(metrics.registry).splitlines()) == before
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
    metrics.registry.register(EngineCollector(engine.stats, lambda: True))
    metrics.registry.register(SessionCollector(lambda: {"stale_report": 4}, lambda: {"mark": 2}))
    assert value(metrics, "playhead_lane_waiting", lane="urgent") == 1
    assert value(metrics, "playhead_lane_busy_seconds_total", lane="lm") == 2.5
    assert value(metrics, "playhead_lane_batch_bucket", lane="lm", le="2") == 3
    assert value(metrics, "playhead_lane_batch_count", lane="lm") == 3
    assert value(metrics, "playhead_lane_batch_sum", lane="lm") == 4
    assert value(metrics, "playhead_belief_error_seconds_sum") == 0.5
    assert value(metrics, "playhead_belief_error_seconds_bucket", le="0.02") == 1
    assert value(metrics, "playhead_belief_error_seconds_count") == 2
    assert value(metrics, "playhead_engine_parked") == 3
    assert value(metrics, "playhead_engine_uncaptured_calls_total") == 7
    assert value(metrics, "playhead_background_multiprocessors") == 48
    assert value(metrics, "playhead_background_switches_total") == 3
    assert value(metrics, "playhead_engine_held") == 1
    assert value(metrics, "playhead_engine_finished_total", outcome="length_budget") == 0
    assert value(metrics, "playhead_promotions_total") == 5
    assert value(metrics, "playhead_reports_total", outcome="clamped") == 2
    assert value(metrics, "playhead_session_events_total", event="stale_report") == 4
    assert value(metrics, "playhead_reports_total", outcome="accepted") == 0
    engine.reports.append(report())
    assert value(metrics, "playhead_reports_total", outcome="accepted") == 1


def test_statistics_without_buckets_are_empty_histograms() -> None:
    metrics = Metrics()
    engine = FakeEngine(lambda events: None)
    bare = replace(engine.stats(), belief_errors=())
    metrics.registry.register(EngineCollector(lambda: bare, lambda: True))
    assert value(metrics, "playhead_belief_error_seconds_count") == 0


def test_the_process_and_what_runs_in_it() -> None:
    metrics = Metrics()
    metrics.registry.register(BuildCollector("playhead 1.2.3", "fake"))
    assert value(metrics, "playhead_build_info", version="playhead 1.2.3", model="fake") == 1
    assert value(metrics, "process_open_fds") > 0


def test_another_thread_writes_what_the_caller_read() -> None:
    metrics = Metrics()
    written = asyncio.run(metrics.written()).decode().splitlines()
    assert [line.split(" ")[0] for line in written] == [
        line.split(" ")[0] for line in generate_latest(metrics.registry).decode().splitlines()
    ]


def test_encoders_are_counted_by_codec() -> None:
    metrics = Metrics()
    encoder = MeteredEncoder(
        codecs.encoder(codecs.open_format("pcm_s16le", 24_000), 24_000),
        24_000,
        metrics.encoder_cpu.labels("pcm_s16le"),
        metrics.encoded.labels("pcm_s16le"),
        iter((1.0, 1.25, 2.0, 2.5)).__next__,
    )
    pcm = np.zeros(12_000, np.float32)
    pcm[7] = np.nan
    assert encoder.encode(pcm).samples == 12_000
    assert (encoder.pre_skip, encoder.repaired) == (0, 1)
    assert encoder.flush().samples == 0
    assert value(metrics, "playhead_encoded_seconds_total", codec="pcm_s16le") == 0.5
    assert value(metrics, "playhead_encoder_cpu_seconds_total", codec="pcm_s16le") == 0.75
    assert value(metrics, "playhead_encoder_cpu_seconds_total", codec="opus") == 0


def test_the_codecs_named_are_those_that_exist() -> None:
    offered = {found["codec"] for found in codecs.formats()} | {codecs.OPUS}
    assert set(CODECS) == offered


class FakeNvml:
    """NVIDIA's library, with one device that tells its use and one that does not."""

    class NVMLError(Exception):
        pass

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.1"

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(used=10 + handle, total=100)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        if handle:
            raise self.NVMLError("not supported")
        return SimpleNamespace(gpu=25)

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetName(self, handle: int) -> str:
        return "H200"


def test_accelerators() -> None:
    metrics = Metrics()
    metrics.registry.register(GpuCollector(FakeNvml(), {}))
    assert value(metrics, "playhead_gpu_memory_used_bytes", gpu="1") == 11
    assert value(metrics, "playhead_gpu_memory_bytes", gpu="0") == 100
    assert value(metrics, "playhead_gpu_busy_ratio", gpu="0") == 0.25
    assert metrics.registry.get_sample_value("playhead_gpu_busy_ratio", {"gpu": "1"}) is None


@pytest.mark.parametrize(
    ("visible", "shown"),
    [(None, [0, 1]), ("1", [1]), ("1,0", [1, 0]), ("GPU-1", [1]), ("", []), ("7,0", []),
     ("0,-1,1", [0]), ("GPU-", [])],
)  # fmt: skip
def test_devices_that_others_use_are_not_shown(visible: str | None, shown: list[int]) -> None:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    found = gpu.chosen(gpu.devices(FakeNvml()), environ)
    assert [device.index for device in found] == shown


def test_what_another_process_tells_is_not_told_twice() -> None:
    metrics = Metrics()
    engine = FakeEngine(lambda events: None)
    metrics.registry.register(EngineCollector(engine.stats, lambda: False))
    metrics.registry.register(GpuCollector(FakeNvml(), {}, lambda: False))
    for name in ("playhead_engine_utterances", "playhead_promotions_total"):
        assert metrics.registry.get_sample_value(name) is None
    assert metrics.registry.get_sample_value("playhead_gpu_memory_bytes", {"gpu": "0"}) is None


def test_garbage() -> None:
    metrics = Metrics()
    keeper = Keeper(lambda: 0, lambda: False)
    metrics.registry.register(GarbageCollector(keeper))
    keeper.looks, keeper.freed, keeper.longest = 2, 70_000, 0.125
    assert value(metrics, "playhead_garbage_collections_total") == 2
    assert value(metrics, "playhead_garbage_collected_objects_total") == 70_000
    assert value(metrics, "playhead_garbage_longest_pause_seconds") == 0.125
    assert value(metrics, "playhead_garbage_grown_objects") >= 0


def test_no_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpu.devices(gpu.library()) == []
    broken = SimpleNamespace(nvmlInit=lambda: (_ for _ in ()).throw(RuntimeError("no driver")))
    monkeypatch.setitem(sys.modules, "pynvml", broken)
    assert gpu.library() is None
    working = SimpleNamespace(nvmlInit=lambda: None)
    monkeypatch.setitem(sys.modules, "pynvml", working)
    assert gpu.library() is working


def test_the_text_format_parses() -> None:
    lines = asyncio.run(Metrics().written()).decode().splitlines()
    pattern = re.compile(r"^(# (HELP|TYPE) .*|[a-z_]+(\{[^}]*\})? [0-9.e+-]+(Inf)?)$")
    assert [line for line in lines if not pattern.match(line)] == []
