"""When a connection is pinged, and what its pongs tell."""

from playhead.gateway.pulse import Pulse


def started(interval: float = 10.0, timeout: float = 10.0) -> Pulse:
    pulse = Pulse(interval, timeout)
    pulse.start(100.0)
    return pulse


def sent(pulse: Pulse, now: float) -> bytes:
    payload = pulse.ping(now)
    assert payload is not None
    return payload


def test_the_first_ping_comes_soon() -> None:
    pulse = started()
    assert pulse.due(100.0) == 100.05
    assert pulse.ping(100.0) is None
    sent(pulse, 100.05)
    assert pulse.due(100.05) == 101.05  # the next one


def test_pings_get_rarer_and_rarer_still_when_nothing_is_sent() -> None:
    pulse = started()
    times = []
    now = 100.05
    for number in range(7):
        times.append(round(now, 2))
        if number == 5:
            pulse.speaks()
        pulse.pong(sent(pulse, now), now + 0.001)
        now = pulse.due(now + 0.001)
    assert times == [100.05, 101.05, 109.05, 139.05, 169.05, 199.05, 209.05]


def test_half_the_least_round_trip_is_the_delay() -> None:
    pulse = started()
    assert pulse.pong(sent(pulse, 100.05), 100.15) == (100.15 - 100.05) / 2
    assert pulse.pong(sent(pulse, 101.05), 101.25) is None  # a longer one says nothing
    assert pulse.pong(sent(pulse, 109.05), 109.05) == 0.0


def test_only_the_last_round_trips_count() -> None:
    pulse = started()
    pulse.pong(sent(pulse, 100.05), 100.06)
    now, told = 100.06, []
    for _ in range(8):
        now = pulse.due(now)
        told.append(pulse.pong(sent(pulse, now), now + 0.5))
    assert told == [None] * 7 + [0.25]


def test_a_pong_that_was_not_asked_for_says_nothing() -> None:
    pulse = started()
    assert pulse.pong(b"", 100.0) is None
    payload = sent(pulse, 100.05)
    assert pulse.pong(b"other", 100.06) is None
    assert pulse.pong(payload, 100.07) is not None
    assert pulse.pong(payload, 100.08) is None


def test_a_pong_that_does_not_come() -> None:
    pulse = started(timeout=2.0)
    sent(pulse, 100.05)
    assert not pulse.lost(101.05)
    assert pulse.ping(101.05) is None
    assert pulse.due(101.05) == 102.05
    assert pulse.lost(102.05)


def test_a_pulse_beats_for_ever() -> None:
    pulse = started(interval=1.0)
    now = 100.05
    for _ in range(2_000):
        pulse.pong(sent(pulse, now), now)
        now = pulse.due(now)
    assert now < 100.05 + 3.0 * 2_000
