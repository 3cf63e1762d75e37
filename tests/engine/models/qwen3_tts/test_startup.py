"""Start-up within bounds: what fits, what is given up when it does not, and what is told."""

import gc
import weakref
from collections.abc import Callable

import pytest
from playhead.engine.models.qwen3_tts import presets
from playhead.engine.models.qwen3_tts.startup import (
    CAPTURE_ROOM,
    GIB,
    Capture,
    Fallback,
    Needs,
    TooLarge,
    TooSlow,
    check_fits,
    make_largest,
    needs,
    thinner,
)


def test_a_position_takes_what_its_keys_and_numbers_take() -> None:
    need = needs(presets.model_config("1.7b").talker, presets.codec_config().decoder, 10)
    assert need.weights == 20
    assert need.position == 114_688 + 8 * 16  # keys and values; codes
    # Window 72 and room for a chunk, 16 heads of 64, keys and values, bf16, with histories.
    assert 3_000_000 < need.fixed < 4_500_000


def test_the_published_size_with_1500_streams_fits_a_large_device() -> None:
    """1.7B plus 1,500 streams within 139 GiB, at the longest context that leaves room."""
    need = needs(presets.model_config("1.7b").talker, presets.codec_config().decoder, 2_031_000_000)
    check_fits(need, 1_500, 700, 139 * GIB)
    with pytest.raises(TooLarge):
        check_fits(need, 1_500, 1_024, 139 * GIB)


SMALL = Needs(weights=2 * GIB, fixed=1 << 20, position=1 << 10)  # a slot of 1,024: 2 MiB


def test_the_message_says_what_would_fit() -> None:
    free = 2 * GIB + CAPTURE_ROOM + 100 * (2 << 20)
    check_fits(SMALL, 100, 1_024, free)
    with pytest.raises(TooLarge) as caught:
        check_fits(SMALL, 101, 1_024, free)
    assert "101 streams with 1024 positions" in str(caught.value)
    assert "100 streams would fit, or 1003 positions" in str(caught.value)
    check_fits(SMALL, 101, 1_003, free)


def test_when_not_even_the_weights_fit() -> None:
    with pytest.raises(TooLarge, match=r"0\.0 of 1\.0 GiB are left .*: 0 streams would fit, or 0"):
        check_fits(SMALL, 1, 1_024, GIB)


def test_thinning_keeps_the_largest_and_the_smallest() -> None:
    assert thinner((1, 2, 4, 8, 16, 32, 64)) == (1, 4, 16, 64)
    assert thinner((1, 2, 4, 8)) == (1, 2, 8)
    assert thinner((1, 2, 8)) == (1, 8)
    assert thinner((1, 8)) == (8,)
    assert thinner((8,)) == (8,)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_progress_is_told() -> None:
    clock, told = Clock(), list[str]()
    capture = Capture(clock, told.append, limit=10.0)
    clock.now += 2.5
    capture.done("a step")
    assert told == ["captured a step (2.5 s)"]
    clock.now += 8.0
    with pytest.raises(TooSlow, match="taken 10 s, at most 10"):
        capture.done("another")
    assert told[-1] == "captured another (10.5 s)"


def test_the_last_attempt_may_take_what_it_takes() -> None:
    clock = Clock()
    calls: list[str] = []
    capture = Capture(clock, lambda _: None, limit=None, waiting=lambda: calls.append("told"))
    clock.now += 1e6
    capture.done("a step")
    assert capture.seconds == 1e6
    assert calls == ["told"]


class Full(Exception):
    """Stands in for a device's error."""


class Device:
    """A device with so much room; each attempt takes its plan's size until it is let go."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.attempts: list[tuple[int, bool]] = []
        self.released = 0
        self.told: list[str] = []
        self.held: list[weakref.ref[Device.Part]] = []

    class Part:
        """Something on the device."""

    def make(self, plan: int, last: bool) -> int:
        self.attempts.append((plan, last))
        part = Device.Part()
        self.held.append(weakref.ref(part))
        if plan > self.room:
            raise Full(f"{plan} do not fit\nand many more lines")
        return plan

    def release(self) -> None:
        gc.collect()
        assert all(part() is None for part in self.held), "a failed attempt is still held"
        self.released += 1

    @property
    def fallback(self) -> Fallback:
        return Fallback((Full,), self.release, self.told.append)


def test_the_largest_plan_that_fits_is_used() -> None:
    device = Device(room=4)
    assert make_largest(device.make, [8, 5, 4, 2], device.fallback) == 4
    assert device.attempts == [(8, False), (5, False), (4, False)]
    assert device.released == 2
    assert device.told[0] == "Full: 8 do not fit; trying again with fewer graphs"


def test_nothing_is_given_up_that_fits() -> None:
    device = Device(room=8)
    assert make_largest(device.make, [8, 4], device.fallback) == 8
    assert (device.released, device.told) == (0, [])


def test_the_smallest_plans_fault_is_raised() -> None:
    device = Device(room=0)
    with pytest.raises(Full, match="1 do not fit"):
        make_largest(device.make, [8, 1], device.fallback)
    assert device.attempts[-1] == (1, True)


def test_other_faults_are_nobodys_to_hide() -> None:
    def make(plan: int, last: bool) -> int:
        raise ZeroDivisionError

    forbidden: Callable[[], None] = lambda: pytest.fail("released")  # noqa: E731
    with pytest.raises(ZeroDivisionError):
        make_largest(make, [2, 1], Fallback((Full,), forbidden, lambda _: None))
