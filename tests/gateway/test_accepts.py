"""How fast connections may come, and how many may wait."""

from playhead.gateway.accepts import LEAST_HALF_OPEN, Accepts, HalfOpen, Pace


def test_an_address_has_a_rate_and_a_burst() -> None:
    accepts = Accepts(5.0)
    assert [accepts.arrive("a", 0.0) for _ in range(10)] == [Pace.SERVE] * 10
    assert [accepts.arrive("a", 0.0) for _ in range(9)] == [Pace.REFUSE] * 9
    assert [accepts.arrive("a", 0.0) for _ in range(3)] == [Pace.CUT] * 3
    assert accepts.wait("a") == 11 / 5
    assert accepts.arrive("b", 0.0) is Pace.SERVE
    assert accepts.arrive("a", 2.2) is Pace.SERVE
    assert accepts.arrive("a", 1.0) is Pace.REFUSE  # clocks do not run backwards; tokens neither
    assert accepts.wait("unknown") == 0.0


def test_memory_of_addresses_is_bounded() -> None:
    accepts = Accepts(1.0, most=2)
    for key in "abc":
        accepts.arrive(key, 0.0)
    assert len(accepts) == 2


def test_the_oldest_half_open_connection_goes() -> None:
    half_open: HalfOpen[int] = HalfOpen(10)
    for number in range(LEAST_HALF_OPEN):
        assert half_open.add(number) is None
    half_open.discard(0)
    half_open.discard(0)
    assert half_open.add(100) is None
    assert half_open.add(101) == 1
    assert len(half_open) == LEAST_HALF_OPEN
    assert list(half_open) == [*range(2, LEAST_HALF_OPEN), 100, 101]


def test_a_tenth_of_all_places_may_be_half_open() -> None:
    half_open: HalfOpen[int] = HalfOpen(2_000)
    assert {half_open.add(number) for number in range(200)} == {None}
    assert half_open.add(200) == 0
    assert LEAST_HALF_OPEN == 64
