"""Who is let in, on whose account, and what those hear who are not."""

import pytest
from playhead.gateway.access import NOBODY, Access, Denied, Grant, unmetered
from playhead.gateway.access_keys import METRICS, KeyRing, new_key
from playhead.gateway.access_offer import Offer
from playhead.gateway.access_quota import Quota
from playhead.gateway.access_tickets import MAX_PER_KEY

WALL = 1_800_000_000.0


class Door:
    """An Access with one key, and a wall clock that can be turned."""

    def __init__(self, **options: object) -> None:
        self.wall = WALL
        self.text, self.key = new_key("a client", WALL, **options)  # type: ignore[arg-type]
        self.access = Access(KeyRing([self.key]), address_connections=50, wall=lambda: self.wall)

    def denied(self, offer: Offer, address: str = "a", now: float = 0.0) -> Denied:
        with pytest.raises(Denied) as caught:
            self.access.admit(offer, address, now)
        return caught.value


def test_without_keys_everybody_is_one_tenant() -> None:
    access = Access(None, address_connections=3, wall=lambda: WALL)
    assert not access.required
    grant = access.admit(Offer(key="whatever"), "a", 0.0)
    assert grant.owner == NOBODY
    assert [account.quota.streams for account in grant.accounts] == [3]
    assert access.admit(Offer(), "a", 0.0).accounts == grant.accounts
    assert access.admit(Offer(), "b", 0.0).accounts != grant.accounts
    assert access.valid(NOBODY)
    grant.enter()
    grant.leave()
    with pytest.raises(Denied) as caught:
        access.ticket(Offer(), "a", 0.0)
    assert (caught.value.status, caught.value.code) == (404, "no_keys")


def test_a_key_is_let_in_on_its_own_account_and_its_address() -> None:
    door = Door()
    assert door.access.required
    here = door.access.admit(Offer(key=door.text), "a", 0.0)
    there = door.access.admit(Offer(key=door.text), "b", 0.0)
    assert here.owner == there.owner == door.key.id
    assert here.accounts[0] is there.accounts[0]
    assert here.accounts[1] is not there.accounts[1]


@pytest.mark.parametrize("offer", [Offer(), Offer(key=""), Offer(ticket="")])
def test_nothing_shown(offer: Offer) -> None:
    denied = Door().denied(offer)
    assert (denied.status, denied.code, denied.message) == (
        401,
        "unauthorized",
        "no API key was sent",
    )


def test_unknown_wrong_used_revoked_and_expired_sound_alike() -> None:
    door = Door(expires=WALL + 100)
    ticket = door.access.ticket(Offer(key=door.text), "a", 0.0)
    door.access.admit(Offer(ticket=ticket), "a", 0.0)
    told = [
        door.denied(Offer(key=new_key("other", WALL)[0]), "b"),
        door.denied(Offer(key=door.text[:-1] + "!"), "c"),
        door.denied(Offer(ticket=ticket), "d"),
        door.denied(Offer(ticket="pht_unknown"), "e"),
    ]
    door.wall = WALL + 100
    told.append(door.denied(Offer(key=door.text), "f"))
    door.access.replace(KeyRing())
    told.append(door.denied(Offer(key=door.text), "g"))
    assert {(found.status, found.code, found.message, found.expected) for found in told} == {
        (
            401,
            "unauthorized",
            "the API key or ticket is not valid",
            "a key from `playhead keys add`, or a fresh ticket",
        )
    }


def test_guesses_are_slowed_down_but_a_right_key_never_is() -> None:
    door = Door()
    wrong = Offer(key="ph_nonsense")
    assert [door.denied(wrong).status for _ in range(12)] == [401] * 10 + [429] * 2
    assert door.denied(wrong).retry_after == 6.0
    assert door.denied(wrong, "another").status == 401
    assert door.access.admit(Offer(key=door.text), "a", 0.0).owner == door.key.id
    assert door.denied(wrong, now=6.0).status == 401


def test_memory_of_guesses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playhead.gateway.access.MAX_ACCOUNTS", 3)
    door = Door()
    for _ in range(11):
        door.denied(Offer(key="x"), "first")
    for address in "bcd":
        door.denied(Offer(key="x"), address)
    assert door.denied(Offer(key="x"), "first").status == 401  # forgotten


def test_connections_of_a_key() -> None:
    door = Door(quota=Quota(2, 2, 100))
    grants = [door.access.admit(Offer(key=door.text), "a", 0.0) for _ in range(2)]
    for grant in grants:
        grant.enter()
    denied = door.denied(Offer(key=door.text))
    assert (denied.status, denied.code) == (429, "connections_per_key")
    assert denied.retry_after
    grants[0].leave()
    assert door.access.admit(Offer(key=door.text), "a", 0.0)


def test_a_ticket_stands_for_its_key() -> None:
    door = Door()
    ticket = door.access.ticket(Offer(key=door.text), "a", 0.0)
    assert door.access.admit(Offer(ticket=ticket), "elsewhere", 1.0).owner == door.key.id


def test_a_ticket_of_a_key_that_was_revoked_since() -> None:
    door = Door()
    ticket = door.access.ticket(Offer(key=door.text), "a", 0.0)
    door.access.replace(KeyRing())
    assert door.denied(Offer(ticket=ticket)).status == 401


def test_a_ticket_buys_no_ticket() -> None:
    door = Door()
    ticket = door.access.ticket(Offer(key=door.text), "a", 0.0)
    with pytest.raises(Denied) as caught:
        door.access.ticket(Offer(ticket=ticket), "a", 0.0)
    assert caught.value.status == 401


def test_open_tickets_are_bounded() -> None:
    door = Door()
    for _ in range(MAX_PER_KEY):
        door.access.ticket(Offer(key=door.text), "a", 0.0)
    with pytest.raises(Denied) as caught:
        door.access.ticket(Offer(key=door.text), "a", 0.0)
    assert (caught.value.status, caught.value.code) == (429, "tickets")


def test_roles() -> None:
    door = Door(roles=(METRICS,))
    denied = door.denied(Offer(key=door.text))
    assert (denied.status, denied.code) == (403, "role")
    assert door.access.may_scrape(Offer(key=door.text), "a", 0.0)
    assert not door.access.may_scrape(Offer(), "a", 0.0)
    speaker = Door()
    with pytest.raises(Denied):
        speaker.access.may_scrape(Offer(key=speaker.text), "a", 0.0)


def test_validity_follows_the_key() -> None:
    door = Door(expires=WALL + 10)
    assert door.access.valid(door.key.id)
    assert not door.access.valid(NOBODY)
    door.wall += 10
    assert not door.access.valid(door.key.id)


def test_an_allowance_uses_all_accounts() -> None:
    door = Door()
    grant: Grant = door.access.admit(Offer(key=door.text), "a", 0.0)
    grant.allowance().speaking(True)
    assert [account.streams for account in grant.accounts] == [1, 1]


def test_what_the_server_opens_itself_is_on_nobodys_account() -> None:
    grant = unmetered("the crowd")
    assert (grant.owner, grant.accounts, grant.account) == ("the crowd", (), None)
    grant.enter()
    grant.leave()
