"""Work that does not come back is noticed; a stopped or starved process is not mistaken for it."""

from playhead.engine.watchdog import MOST_COUNTED, TICK, Watchdog, Watched


def looks(dog: Watchdog, at_work: dict[str, int], times: int, start: float = 0.0) -> list[str]:
    found = (dog.look(at_work, start + TICK * i) for i in range(times))
    return [str(stuck) for stuck in found if stuck is not None]


def test_a_piece_that_does_not_come_back_is_named() -> None:
    found = looks(Watchdog(1.0), {"a": 7, "b": 1}, 13)
    assert found[0] == "a has not come back for 1.1 s"


def test_time_counts_from_when_the_piece_was_first_seen() -> None:
    dog = Watchdog(1.0)
    assert looks(dog, {}, 20) == []
    assert looks(dog, {"a": 1}, 11, start=2.0) == []
    assert dog.look({"a": 1}, 3.15) is not None


def test_a_worker_that_takes_the_next_piece_is_well() -> None:
    dog = Watchdog(0.5)
    for tick in range(50):
        assert dog.look({"a": tick // 4}, TICK * tick) is None


def test_a_worker_that_rested_starts_anew() -> None:
    dog = Watchdog(0.5)
    assert looks(dog, {"a": 1}, 5) == []
    assert dog.look({}, 0.5) is None
    assert looks(dog, {"a": 1}, 5, start=0.6) == []


def test_time_in_which_nobody_looked_does_not_count() -> None:
    dog = Watchdog(1.0)
    dog.look({"a": 1}, 0.0)
    assert dog.look({"a": 1}, 3600.0) is None, "the process was stopped for an hour"
    assert looks(dog, {"a": 1}, 8, start=3600.1) == []
    assert MOST_COUNTED < 1.0


def test_a_watched_clock_stands_still_while_nobody_looks() -> None:
    clock = Watched(1.0)
    assert [clock.look(now) for now in (5.0, 5.5, 6.5, 3600.0, 3600.0)] == [0.0, 0.5, 1.5, 2.5, 2.5]
