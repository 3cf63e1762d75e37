"""Accounts of keys and addresses, and what a session may take from them."""

from playhead.gateway.access_quota import Account, Accounts, Allowance, Quota, address_quota

SMALL = Quota(connections=1, streams=2, characters_per_minute=600)


def account(name: str = "key") -> Account:
    return Account(name, SMALL)


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
    assert first.stream() is None  # it speaks already
    excess = third.stream()
    assert excess is not None
    assert (excess.account, excess.limit, excess.most) == ("key", "streams", 2)
    assert excess.retry_after > 0
    first.speaking(False)
    first.speaking(False)
    assert third.stream() is None
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
    assert Allowance().stream() is None


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
