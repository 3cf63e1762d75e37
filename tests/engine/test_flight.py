"""What is on its way: sent, confirmed, taken for granted, late."""

from playhead.engine.flight import HELD_BACK, Flight

RATE = 1000


def flying() -> Flight:
    """300 samples sent at 1.0, 200 at 2.0, 500 at 3.0."""
    flight = Flight(RATE)
    for samples, now in ((300, 1.0), (200, 2.0), (500, 3.0)):
        flight.add(samples, now)
    return flight


def test_everything_is_in_flight_until_it_is_confirmed() -> None:
    flight = flying()
    assert flight.total == 1000
    assert list(flight.parts()) == [(300, 1.0), (200, 2.0), (500, 3.0)]
    flight.confirm(300)
    assert list(flight.parts()) == [(200, 2.0), (500, 3.0)]
    flight.confirm(400)
    assert list(flight.parts()) == [(100, 2.0), (500, 3.0)]
    flight.confirm(1000)
    assert list(flight.parts()) == []
    flight.add(50, 4.0)
    assert list(flight.parts()) == [(50, 4.0)]
    assert flight.total == 1050


def test_a_listener_that_counts_a_rounding_too_much_holds_no_more_than_was_sent() -> None:
    flight = flying()
    flight.confirm(1003)
    assert flight.arrived(9.0) == 1000
    flight.add(50, 4.0)
    assert list(flight.parts()) == [(50, 4.0)]


def test_what_was_sent_long_enough_ago_has_arrived() -> None:
    flight = flying()
    assert [flight.arrived(t) for t in (0.9, 1.0, 2.5, 3.0)] == [0, 300, 500, 1000]
    flight.confirm(450)
    assert [flight.arrived(t) for t in (0.9, 2.0, 3.0)] == [450, 500, 1000]


def test_without_reports_what_should_have_arrived_is_forgotten() -> None:
    flight = flying()
    flight.forget(2.0)
    assert list(flight.parts()) == [(500, 3.0)]
    assert flight.arrived(2.0) == 500
    flight.forget(3.0)
    assert list(flight.parts()) == []
    assert flight.arrived(3.0) == 1000


def test_lateness_is_that_of_the_oldest_audio_unconfirmed() -> None:
    flight = flying()
    assert flight.late(0.5) == 0.0
    assert flight.late(1.25) == 0.25
    flight.confirm(300)
    assert flight.late(2.75) == 0.75
    flight.confirm(1000)
    assert flight.late(9.0) == 0.0


def test_what_the_wire_codec_may_hold_back_is_not_late() -> None:
    flight = Flight(RATE)
    flight.add(1000, 1.0)
    flight.confirm(1000 - round(HELD_BACK * RATE))
    assert flight.late(9.0) == 0.0
    flight.add(1, 2.0)
    assert flight.late(9.0) == 7.0, "now more is missing than it may keep: the newest is late"
