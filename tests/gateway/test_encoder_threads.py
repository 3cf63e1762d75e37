"""Threads that go on to be as many as they should, however many never come back."""

import sys
import threading
import time
from collections.abc import Iterator

import pytest
from machine import PATIENCE
from playhead.gateway.encoder_threads import NAME, EncoderThreads


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def until_running(*jobs: object) -> None:
    end = time.monotonic() + PATIENCE
    while not all(job.running() for job in jobs):  # type: ignore[attr-defined]
        assert time.monotonic() < end
        time.sleep(0.002)


def test_work_is_done_elsewhere_and_its_result_or_fault_comes_back() -> None:
    pool = EncoderThreads(2)
    assert pool.submit(threading.current_thread).result(PATIENCE).name == NAME
    assert pool.submit(pow, 2, 3).result(PATIENCE) == 8
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result(PATIENCE)
    assert pool.submit(pow, 2, 3, mod=5).result(PATIENCE) == 3, "its thread lives on"
    pool.shutdown()
    with pytest.raises(RuntimeError, match="have ended"):
        pool.submit(pow, 2, 3)


def test_no_more_work_at_a_time_than_there_are_threads(gate: threading.Event) -> None:
    pool = EncoderThreads(2)
    first, second, third = (pool.submit(gate.wait, PATIENCE) for _ in range(3))
    until_running(first, second)
    assert not third.running()
    gate.set()
    assert third.result(PATIENCE)
    pool.shutdown()


def test_what_waits_can_be_dropped(gate: threading.Event) -> None:
    pool = EncoderThreads(1)
    working, cancelled = pool.submit(gate.wait, PATIENCE), pool.submit(pow, 2, 3)
    until_running(working)
    assert cancelled.cancel()
    never = pool.submit(pow, 2, 3)
    pool.shutdown(wait=False, cancel_futures=True)
    gate.set()
    assert working.result(PATIENCE)
    assert never.cancelled(), "whoever waits for it is told"


def test_dropping_what_waits_never_waits_for_work_that_a_thread_was_quicker_to_take() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            pool = EncoderThreads(2)
            jobs = [pool.submit(pow, 2, 3) for _ in range(6)]
            pool.shutdown(cancel_futures=True)
            assert all(job.cancelled() or job.result(PATIENCE) == 8 for job in jobs)
    finally:
        sys.setswitchinterval(interval)


def test_a_job_that_wants_to_end_its_thread_is_told_and_the_thread_lives() -> None:
    pool = EncoderThreads(1)
    with pytest.raises(SystemExit):
        pool.submit(sys.exit, 1).result(PATIENCE)
    assert pool.submit(pow, 2, 3).result(PATIENCE) == 8
    pool.shutdown()


def test_a_cancelled_job_is_passed_over(gate: threading.Event) -> None:
    pool = EncoderThreads(1)
    working, cancelled = pool.submit(gate.wait, PATIENCE), pool.submit(pow, 2, 3)
    until_running(working)
    assert cancelled.cancel()
    last = pool.submit(pow, 2, 4)
    gate.set()
    assert last.result(PATIENCE) == 16
    pool.shutdown()


def test_one_that_hangs_is_replaced_and_ends_when_it_comes_back(gate: threading.Event) -> None:
    pool = EncoderThreads(1)
    hung = pool.submit(gate.wait, PATIENCE)
    until_running(hung)
    (before,) = pool._threads
    pool.write_off(hung)
    pool.write_off(hung)  # once is enough
    assert pool.submit(pow, 2, 3).result(PATIENCE) == 8
    assert len(pool._threads) == 1
    gate.set()
    before.join(PATIENCE)
    assert not before.is_alive()
    pool.write_off(hung)  # it came back after all
    assert pool.submit(pow, 2, 3).result(PATIENCE) == 8
    assert len(pool._threads) == 1
    pool.shutdown()
