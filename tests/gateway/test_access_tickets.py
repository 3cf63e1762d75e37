"""Tickets open one connection, once, within a minute."""

from playhead.gateway.access_tickets import LIFETIME, Tickets


def test_a_ticket_is_good_once() -> None:
    tickets = Tickets()
    text = tickets.give("k1", 0.0)
    assert text is not None
    assert len(text) > 32
    assert tickets.take(text + "x", 1.0) is None
    assert tickets.take(text, 1.0) == "k1"
    assert tickets.take(text, 1.0) is None
    assert len(tickets) == 0


def test_a_ticket_expires() -> None:
    tickets = Tickets()
    first, second = tickets.give("k1", 0.0), tickets.give("k1", 1.0)
    assert first is not None
    assert second is not None
    assert tickets.take(first, LIFETIME) is None
    assert tickets.take(second, LIFETIME) == "k1"


def test_tickets_are_bounded() -> None:
    tickets = Tickets(most=3, most_per_key=2)
    assert all(tickets.give("k1", 0.0) for _ in range(2))
    assert tickets.give("k1", 0.0) is None
    assert tickets.give("k2", 0.0)
    assert tickets.give("k3", 0.0) is None
    assert tickets.give("k1", LIFETIME)


def test_strange_text_is_no_ticket() -> None:
    assert Tickets().take("\ud800", 0.0) is None
