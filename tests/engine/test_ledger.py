"""Service accounts: on one scale, without credit for idling, without leaks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    assert set(ledger._newcomers) == {"stays"}
    assert not ledger._vacant, "it was no further than all others"
    ledger.leave("stays")
    assert not ledger._newcomers


def two_at_ten() -> ServiceLedger:
    """Two that have come long ago."""
    ledger = ServiceLedger()
    for client in ("a", "b"):
        ledger.join(client)
    for client in ("a", "b"):
        ledger.serve(client, 10.0)
    return ledger


def gone_at(ledger: ServiceLedger, client: str, seconds: float) -> None:
    """One comes, is served and goes for good."""
    ledger.join(client)
    ledger.serve(client, seconds)
    ledger.leave(client)
    ledger.forget(client)


def test_a_newcomer_starts_with_all_and_soon_stands_where_one_stood_that_left() -> None:
    ledger = two_at_ten()
    gone_at(ledger, "gone", 0.5)
    ledger.join("new")
    assert ledger.served("new") == 10.0
    ledger.serve("new", SETTLED)
    assert ledger.served("new") == pytest.approx(10.5 + SETTLED)
    ledger.join("next")
    ledger.serve("next", SETTLED)
    assert ledger.served("next") < 10.5 + SETTLED, "each place is taken once"


def test_what_is_made_for_one_that_has_left_is_on_who_came_meanwhile() -> None:
    ledger = two_at_ten()
    ledger.join("leaves")
    ledger.forget("leaves")  # a lane still works for it
    ledger.join("new")
    ledger.serve("leaves", 0.4)
    ledger.leave("leaves")
    assert ledger.served("new") == 10.0
    ledger.serve("new", SETTLED)
    assert ledger.served("new") == pytest.approx(10.4 + SETTLED)


def test_who_leaves_before_it_has_paid_leaves_that_to_the_next() -> None:
    ledger = two_at_ten()
    for name in range(3):
        gone_at(ledger, f"gone {name}", 0.3)
    ledger.join("new")
    assert ledger.served("new") == pytest.approx(10.0 + 0.9 - SETTLED), "more is not lent"
    ledger.serve("new", SETTLED)
    assert ledger.served("new") == pytest.approx(10.9 + SETTLED)


def test_one_that_waits_already_is_put_back_when_more_is_owed_than_is_lent() -> None:
    ledger = two_at_ten()
    ledger.join("leaves")
    ledger.forget("leaves")
    ledger.join("new")
    ledger.serve("leaves", 5.0)
    ledger.leave("leaves")
    assert ledger.served("new") == pytest.approx(10.0 + ENTRANCE - SETTLED), "and no more than that"


def test_a_place_that_all_have_passed_is_nobodys() -> None:
    ledger = two_at_ten()
    gone_at(ledger, "gone", 0.5)
    for client in ("a", "b"):
        ledger.serve(client, 1.0)
    ledger.join("new")
    ledger.serve("new", SETTLED)
    assert ledger.served("new") == pytest.approx(11.0 + SETTLED)


def test_one_that_never_spoke_leaves_no_place() -> None:
    ledger = two_at_ten()
    ledger.join("new")
    ledger.forget("never spoke")
    ledger.serve("new", SETTLED)
    assert ledger.served("new") == pytest.approx(10.0 + SETTLED)


def test_places_are_not_kept_without_bound() -> None:
    ledger = two_at_ten()
    crowd = [f"crowd {number}" for number in range(2 * FEW)]
    for client in crowd:
        ledger.join(client)
        ledger.serve(client, 2 * SETTLED)
    for client in crowd:
        ledger.leave(client)
        ledger.forget(client)
    assert len(ledger._vacant) == FEW
    for client in ("a", "b"):
        ledger.leave(client)
    assert not ledger._vacant, "and none when nobody is served"


@settings(deadline=None, max_examples=60)
@given(
    stay=st.integers(1, 6),
    come=st.integers(1, 6),
    chunk=st.sampled_from((0.1, 0.2, 0.4)),
    every=st.integers(1, 60),
    late=st.booleans(),
)
def test_coming_again_and_again_under_new_names_pays_nothing(
    stay: int, come: int, chunk: float, every: int, late: bool
) -> None:
    """All take turns by a chunk. Some are somebody new after so many ``every``, whether or not it
    was their turn; ``late``: what is made for them then is made for nobody."""
    ledger = ServiceLedger()
    names = [f"new {seat}" for seat in range(come)]
    stays = [f"stays {number}" for number in range(stay)]
    for client in (*stays, *names):
        ledger.join(client)
    had = dict.fromkeys((*range(come), *stays), 0.0)
    for turn in range(1_200):
        client = min((*stays, *names), key=ledger.served)
        who = names.index(client) if client in names else client
        had[who] += chunk
        if turn % every:
            ledger.serve(client, chunk)
            continue
        gone = turn // every % come
        old, names[gone] = names[gone], f"new {gone} {turn}"
        if not late:
            ledger.serve(client, chunk)
        ledger.forget(old)
        if not late:
            ledger.leave(old)
        ledger.join(names[gone])
        if late:
            ledger.serve(client, chunk)
            ledger.leave(old)
    came = sum(had[seat] for seat in range(come)) / come
    remained = sum(had[client] for client in stays) / stay
    assert came <= 1.02 * remained + ENTRANCE


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
