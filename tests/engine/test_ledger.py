"""Service accounts: on one scale, without credit for idling, without leaks."""

import pytest
from playhead.engine.ledger import (
    ENTRANCE,
    FEW,
    GOES_STALE,
    MOST_OWED,
    SETTLED,
    ServiceLedger,
)


def test_service_adds_up_per_client() -> None:
    ledger = ServiceLedger()
    assert ledger.served("a") == 0.0
    ledger.join("a")
    ledger.join("b")
    ledger.serve("a", 1.5)
    ledger.serve("a", 0.5)
    ledger.serve("b", 0.25)
    assert (ledger.served("a"), ledger.served("b")) == (2.0, 0.25)


def test_a_newcomer_starts_at_the_least_served_of_the_others() -> None:
    ledger = ServiceLedger()
    for client in ("a", "b"):
        ledger.join(client)
    ledger.serve("a", 30.0)
    ledger.serve("b", 20.0)
    ledger.join("new")
    assert ledger.served("new") == ledger.served("b") == 20.0


def test_a_newcomer_that_can_be_heard_is_lifted_to_the_average() -> None:
    ledger = ServiceLedger()
    for client in ("a", "b"):
        ledger.join(client)
    ledger.serve("a", 20.5)
    ledger.serve("b", 20.0)
    ledger.join("new")
    ledger.serve("new", SETTLED / 2)
    assert ledger.served("new") == 20.0 + SETTLED / 2
    ledger.serve("new", SETTLED / 2)
    assert ledger.served("new") == pytest.approx(20.0 + SETTLED + 0.25)
    ledger.serve("new", 1.0)
    assert ledger.served("new") == pytest.approx(21.0 + SETTLED + 0.25), "once"


def test_a_newcomer_pays_little_for_those_who_were_served_much() -> None:
    ledger = ServiceLedger()
    for client in ("a", "b"):
        ledger.join(client)
    ledger.serve("a", 30.0)
    ledger.serve("b", 20.0)
    ledger.join("new")
    ledger.serve("new", 1.0)
    assert ledger.served("new") == 21.0 + ENTRANCE


def test_nothing_is_kept_of_newcomers_that_leave_at_once() -> None:
    ledger = ServiceLedger()
    ledger.join("stays")
    ledger.join("forgotten")
    ledger.leave("forgotten")
    ledger.forget("forgotten")
    assert set(ledger._entrance) == {"stays"}
    ledger.leave("stays")
    assert not ledger._entrance


def test_coming_again_and_again_under_new_names_pays_nothing() -> None:
    """Four take turns by a second of speech each; one of them is somebody new every time."""
    ledger = ServiceLedger()
    stay = ("a", "b", "c")
    for client in (*stay, "new 0"):
        ledger.join(client)
    had = 0.0
    for turn in range(400):
        new = f"new {turn}"
        who = min((*stay, new), key=ledger.served)
        ledger.serve(who, 1.0)
        had += who == new
        ledger.leave(new)
        ledger.forget(new)
        ledger.join(f"new {turn + 1}")
    assert had <= 1.02 * min(map(ledger.served, stay))


def test_idling_earns_no_credit_and_costs_none() -> None:
    ledger = ServiceLedger()
    ledger.join("a")
    ledger.join("b")
    ledger.leave("b")
    ledger.serve("a", 10.0)
    ledger.join("b")
    assert ledger.served("b") == 10.0
    ledger.serve("b", 5.0)
    ledger.leave("b")
    ledger.join("b")  # starting anew does not wipe what it has had
    assert ledger.served("b") == 15.0


def test_two_utterances_of_a_client_share_its_account() -> None:
    ledger = ServiceLedger()
    ledger.join("a")
    ledger.join("a")
    ledger.serve("a", 3.0)
    ledger.leave("a")
    ledger.join("b")
    assert ledger.served("b") == 3.0, "a is still being served"


def test_when_nobody_is_served_all_start_over() -> None:
    ledger = ServiceLedger()
    ledger.join("a")
    ledger.serve("a", 3.0)
    ledger.leave("a")
    assert ledger.served("a") == 0.0


def test_a_forgotten_client_is_gone() -> None:
    ledger = ServiceLedger()
    for client in ("a", "b"):
        ledger.join(client)
        ledger.serve(client, 4.0)
    ledger.leave("a")
    assert ledger.served("a") == 4.0
    ledger.forget("a")
    ledger.forget("never seen")
    assert ledger.served("a") == 0.0


def test_a_client_forgotten_while_it_is_served_goes_with_its_last_utterance() -> None:
    ledger = ServiceLedger()
    ledger.join("stays")
    for _ in range(2):
        ledger.join("a")
    ledger.serve("a", 4.0)
    ledger.forget("a")
    ledger.leave("a")
    assert ledger.served("a") == 4.0
    ledger.leave("a")
    assert ledger.served("a") == 0.0


def test_a_client_that_comes_back_before_it_is_gone_keeps_its_account() -> None:
    ledger = ServiceLedger()
    ledger.join("stays")
    ledger.join("a")
    ledger.serve("a", 4.0)
    ledger.forget("a")
    ledger.join("a")
    ledger.leave("a")
    ledger.leave("a")
    assert ledger.served("a") == 4.0


def test_leaving_without_having_joined_is_a_fault() -> None:
    with pytest.raises(KeyError):
        ServiceLedger().leave("a")


def test_who_is_being_served_is_counted() -> None:
    ledger = ServiceLedger()
    for client in ("a", "a", "b"):
        ledger.join(client)
    assert (ledger.live("a"), ledger.live("b"), ledger.live("c"), ledger.clients) == (2, 1, 0, 2)


def test_what_was_made_in_plenty_is_no_debt_for_ever() -> None:
    ledger = ServiceLedger()
    for client in ("much", "little"):
        ledger.join(client)
    for _ in range(3600):
        ledger.serve("much", 20.0)
        ledger.serve("little", 1.0)
    ledger.join("new")
    assert ledger.served("new") == ledger.served("little") == 3600.0
    assert 0.0 < ledger.served("much") - ledger.served("new") <= MOST_OWED + 20.0


def test_leaving_and_coming_back_wipes_no_debt() -> None:
    ledger = ServiceLedger()
    for client in ("a", "b"):
        ledger.join(client)
    for _ in range(10):
        ledger.serve("a", 5.0)
        ledger.serve("b", 1.0)
        ledger.leave("a")
        ledger.join("a")
    assert ledger.served("a") - ledger.served("b") > MOST_OWED / 2


def test_in_a_crowd_where_everybody_stands_is_not_worked_out_for_each_who_joins() -> None:
    ledger = ServiceLedger()
    crowd = [f"client {number}" for number in range(2 * FEW)]
    for client in crowd:
        ledger.join(client)
    for client in crowd:
        ledger.serve(client, 5.0)
    ledger.join("first")
    assert ledger.served("first") == 5.0
    for client in ("first", *crowd[: FEW // 8]):
        ledger.serve(client, 1.0)
    ledger.join("second")
    assert ledger.served("second") == 5.0
    for client in ("first", "second", *crowd):
        ledger.serve(client, 1.0)
    ledger.join("third")
    assert ledger.served("third") == 6.0


def test_where_a_crowd_stands_is_never_far_from_the_truth() -> None:
    ledger, exact = ServiceLedger(), dict[str, float]()
    for number in range(10 * FEW):
        client = f"client {number}"
        ledger.join(client)
        level = min(exact.values(), default=0.0)
        assert level - GOES_STALE - 1e-9 <= ledger.served(client) <= level + 1e-9
        exact[client] = ledger.served(client)
        poorest = min(exact, key=lambda name: exact[name])
        ledger.serve(poorest, GOES_STALE)
        exact[poorest] = ledger.served(poorest)


def test_who_is_ahead_is_told_against_the_average_of_those_being_served() -> None:
    ledger = ServiceLedger()
    assert ledger.ahead("a") == 0.0
    for client in ("a", "b", "gone"):
        ledger.join(client)
    ledger.leave("gone")
    ledger.serve("a", 0.4)
    ledger.serve("b", 0.2)
    assert ledger.ahead("a") == pytest.approx(0.1)
    assert ledger.ahead("b") == pytest.approx(-0.1)
