"""Accounts of keys and addresses, and what a session may take from them."""

from dataclasses import replace

from playhead.engine.types import PLACE_KEPT
from playhead.gateway.access_quota import Account, Accounts, Allowance, Quota, address_quota

SMALL = Quota(connections=1, streams=2, characters_per_minute=600)


def account(name: str = "key", streams: int = 2) -> Account:
    return Account(name, replace(SMALL, streams=streams))


def test_characters_are_earned_by_the_second() -> None:
    one = account()
    assert one.wait(100.0) == 0.0
    one.spend(600)
    assert one.wait(100.0) == 0.0  # nothing is owed
    one.spend(20)
    assert one.wait(100.0) == 2.0
    assert one.wait(101.0) == 1.0
    assert one.wait(99.0) == 1.0  # clocks of two callers may be read out of order
    assert one.wait(102.0) == 0.0


def test_no_more_than_a_minute_is_saved_up() -> None:
    one = account()
    one.wait(0.0)
    one.wait(10_000.0)
    one.spend(700)
    assert one.wait(10_000.0) == 10.0


def test_a_smaller_quota_takes_effect_at_once() -> None:
    one = account()
    one.wait(0.0)
    one.quota = Quota(1, 1, 60)
    one.wait(0.0)
    one.spend(61)
    assert one.wait(0.0) == 1.0


def test_connections() -> None:
    one = account()
    assert one.idle
    assert not one.full()
    one.connections = 1
    assert one.full()
    assert not one.idle


def test_streams_of_all_sessions_count_together() -> None:
    shared = account()
    first, second, third = (Allowance((shared,)) for _ in range(3))
    first.speaking(True)
    first.speaking(True)
    second.speaking(True)
    assert shared.streams == 2
    assert first.stream(0.0) is None  # it speaks already
    excess = third.stream(0.0)
    assert excess is not None
    assert (excess.account, excess.limit, excess.most) == ("key", "streams", 2)
    assert excess.retry_after > 0
    first.speaking(False)
    first.speaking(False)
    assert third.stream(0.0) is None
    second.speaking(False)
    assert shared.idle


def test_the_narrowest_account_decides() -> None:
    wide, narrow = Account("key", Quota(9, 9, 6_000)), account("address")
    allowance = Allowance((wide, narrow))
    assert allowance.text(0.0) is None
    allowance.spend(610)
    excess = allowance.text(0.0)
    assert excess is not None
    assert (excess.account, excess.limit) == ("address", "characters_per_minute")
    assert excess.retry_after == 1.0
    assert Allowance().text(0.0) is None
    assert Allowance().stream(0.0) is None


def test_an_account_is_kept_while_it_is_used() -> None:
    accounts = Accounts("address", most=2)
    used = accounts.get("a", SMALL)
    used.connections = 1
    accounts.get("b", SMALL)
    accounts.get("c", SMALL)
    assert len(accounts) == 2
    assert accounts.get("a", SMALL) is used
    used_too = accounts.get("d", SMALL)
    used_too.streams = 1
    accounts.get("e", SMALL)
    assert len(accounts) == 3  # bounded by what is open, which has bounds of its own
    assert accounts.get("d", SMALL) is used_too


def test_an_account_follows_its_quota() -> None:
    accounts = Accounts("key")
    found = accounts.get("a", SMALL)
    assert accounts.get("a", address_quota(7)) is found
    assert found.quota == Quota(7, 7, 42_000)


def sessions(*accounts: Account, count: int = 2) -> tuple[list[Allowance], list[Allowance]]:
    """Sessions that speak, and a list of those that were made to give up."""
    made = [Allowance(accounts) for _ in range(count)]
    gave_up: list[Allowance] = []

    def end(allowance: Allowance) -> None:
        gave_up.append(allowance)
        allowance.speaking(False)

    for allowance in made:
        allowance.give_up = lambda now, which=allowance: end(which)  # type: ignore[misc]
        allowance.speaking(True)
    return made, gave_up


def test_the_stream_of_who_was_cut_off_for_long_can_be_had() -> None:
    shared = account()
    (first, second), gave_up = sessions(shared)
    second.cut_off(1.0)
    first.cut_off(2.0)
    newcomer = Allowance((shared,))
    assert newcomer.stream(1.0 + PLACE_KEPT - 0.1) is not None
    assert gave_up == []
    assert newcomer.stream(1.0 + PLACE_KEPT) is None
    assert gave_up == [second], "the one that is gone longest"
    newcomer.speaking(True)
    assert Allowance((shared,)).stream(1.9 + PLACE_KEPT) is not None
    first.back()
    assert Allowance((shared,)).stream(99.0) is not None
    assert gave_up == [second]


def test_who_cannot_give_up_keeps_its_stream() -> None:
    only = Allowance((account(streams=1),))
    only.speaking(True)
    only.cut_off(0.0)
    only.give_up(PLACE_KEPT)
    only.speaking(False)
    only.cut_off(1.0)
    assert only.stream(PLACE_KEPT) is None


def test_nobody_gives_up_for_who_is_refused_all_the_same() -> None:
    wide, narrow = account(streams=1), account(streams=1)
    (first,), gave_up = sessions(wide, count=1)
    first.cut_off(0.0)
    Allowance((narrow,)).speaking(True)
    assert Allowance((wide, narrow)).stream(PLACE_KEPT) is not None
    assert gave_up == []


def test_one_gives_up_for_both_accounts() -> None:
    key, address = account(), account()
    made, gave_up = sessions(key, address)
    for allowance in made:
        allowance.cut_off(0.0)
    assert Allowance((key, address)).stream(PLACE_KEPT) is None
    assert gave_up == made[:1]


def test_a_session_that_ends_gives_all_back_and_holds_nobody() -> None:
    account = Account("key", Quota(1, 1, 60))
    allowance = Allowance((account,))
    asked: list[float] = []
    allowance.give_up = asked.append  # type: ignore[method-assign]
    allowance.speaking(True)
    allowance.cut_off(0.0)
    allowance.close()
    assert (account.streams, account.cut_off) == (0, {})
    allowance.give_up(1.0)
    assert asked == []
