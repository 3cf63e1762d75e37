"""bench/gpu/host_profile.py: whose time it was."""

import os
import sys
import threading
from pathlib import Path

import pytest
from machine import until

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench" / "gpu"))

import host_profile  # noqa: E402


@pytest.mark.parametrize(
    ("command", "role"),
    [
        (b"python\0serve.py\0serve\0--port\x000\0--gateways\x004\0", "parent"),
        (b"python\0serve.py\0serve\0--engine\0/tmp/socket\0", "gateway"),
        (b"python\0-c\0main\0model\0", "model"),
        (b"python\0serve.py\0serve\0--model\0qwen3-tts\0", "engine"),
    ],
)
def test_a_process_is_told_by_its_arguments(command: bytes, role: str) -> None:
    assert host_profile.role(command) == role


def test_the_busiest_stretch_counts() -> None:
    """Seconds of warming up and of letting go are not those that are asked about."""
    spent = [(0.0, 0.0), (1.0, 0.1), (2.0, 1.0), (3.0, 1.9), (4.0, 2.0), (5.0, 2.0)]
    samples = [(at, {"engine/engine": total}) for at, total in spent]
    seconds, cores = host_profile.busiest(samples, 2.0)
    assert seconds == 2.0
    assert cores == {"engine/engine": pytest.approx(0.9)}


def test_a_thread_that_began_meanwhile_counts_from_nothing() -> None:
    samples = [(0.0, {}), (2.0, {"model/lane-0": 1.0})]
    assert host_profile.busiest(samples, 10.0) == (2.0, {"model/lane-0": 0.5})


def test_one_sample_says_nothing() -> None:
    assert host_profile.busiest([(0.0, {"engine/engine": 4.0})], 1.0) == (0.0, {})


def test_figures_count_what_a_chunk_costs() -> None:
    series = {
        'playhead_lane_items_total{lane="urgent"}': 500.0,
        'playhead_lane_items_total{lane="background"}': 1500.0,
    }
    found = host_profile.figures(2.0, {"engine/engine": 0.4, "gateway/serve": 0.6}, series)
    assert found["cores"] == pytest.approx(1.0)
    assert found["host"]["engine_us_per_chunk"] == 200.0
    assert found["host"]["all_us_per_chunk"] == 500.0
    told = host_profile.line(found["host"])
    assert told.startswith("gateway/serve 0.60, engine/engine 0.40, 200 us")
    assert "us" not in host_profile.line(host_profile.figures(2.0, {"a/b": 1.0}, {})["host"])


def counted(processes: list[int]) -> float:
    spent = host_profile.thread_seconds(processes)
    return sum(seconds for name, seconds in spent.items() if name.endswith("/counted"))


def test_threads_have_their_names_for_the_system() -> None:
    """And their time is found under them."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.001):
            sum(range(20_000))

    worker = threading.Thread(target=work, name="playhead-counted", daemon=True)
    worker.start()
    enough = host_profile.name_threads()
    own = [os.getpid()]
    try:
        until(lambda: counted(own) > 0.0)
    finally:
        enough.set()
        ended.set()
        worker.join()


def test_a_meter_reads_until_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_profile, "EVERY", 0.01)
    with host_profile.Meter(lambda: [os.getpid()]) as meter:
        until(lambda: len(meter.samples) > 2)
    began, ended = meter.samples[0], meter.samples[-1]
    assert ended[0] > began[0]
    assert sum(ended[1].values()) >= sum(began[1].values()) > 0.0
    assert not meter._thread.is_alive()
