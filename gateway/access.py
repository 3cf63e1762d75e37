"""Who may use the gateway, and how much: the one door for every protocol that it speaks.

``admit`` turns what a client offers into a :class:`Grant`, or raises :class:`Denied` in words that
each protocol renders its own way. Event loop only.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from playhead.engine.spread import Spread
from playhead.gateway.access_keys import METRICS, SPEAK, ApiKey, KeyRing
from playhead.gateway.access_offer import Offer
from playhead.gateway.access_quota import (
    MAX_ACCOUNTS,
    MINUTE,
    Account,
    Accounts,
    Allowance,
    Quota,
    address_quota,
)
from playhead.gateway.access_tickets import LIFETIME, Tickets
from playhead.gateway.session_budget import TokenBucket

log: Final = logging.getLogger("playhead.gateway.access")

NOBODY: Final = ""
"""Owner of whatever belongs to no key: where none are asked for, all are one tenant."""
FAILURES_PER_MINUTE: Final = 10.0
RETRY: Final = 5.0


class Denied(Exception):
    """A client that is turned away: an HTTP status, a stable code, and words for its author."""

    def __init__(
        self, status: int, code: str, message: str, expected: str, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.expected = expected
        self.retry_after = retry_after  # seconds


@dataclass(frozen=True, slots=True)
class Grant:
    """A client that was let in. ``owner``: the id of its key, or :data:`NOBODY`.

    Call :meth:`enter` once its connection is served and :meth:`leave` when that is gone.
    """

    owner: str
    accounts: tuple[Account, ...]
    account: Account | None  # the key's, whose connections are counted here

    def allowance(self) -> Allowance:
        """What one more session of this client may use."""
        return Allowance(self.accounts)

    def enter(self) -> None:
        """A connection is served."""
        if self.account is not None:
            self.account.connections += 1

    def leave(self) -> None:
        """It is gone."""
        if self.account is not None:
            self.account.connections -= 1


def unmetered(owner: str) -> Grant:
    """For sessions that the server itself opens on behalf of ``owner``."""
    return Grant(owner, (), None)


class Access:
    """Keys, tickets and accounts. ``keys`` None: nobody is asked for a key.

    ``address_connections``: connections that one address may have; its other limits follow.
    ``wall``: seconds since the Unix epoch, for keys that expire.
    """

    def __init__(
        self, keys: KeyRing | None, *, address_connections: int, wall: Callable[[], float]
    ) -> None:
        self._keys = keys
        self._wall = wall
        self._address_quota: Quota = address_quota(address_connections)
        self._by_key = Accounts("key")
        self._by_address = Accounts("address")
        self._tickets = Tickets()
        self._failures: OrderedDict[str, TokenBucket] = OrderedDict()
        self._spread = Spread()

    @property
    def required(self) -> bool:
        """Whether clients must show a key or a ticket."""
        return self._keys is not None

    def replace(self, keys: KeyRing) -> None:
        """The key file has changed."""
        self._keys = keys

    def valid(self, owner: str) -> bool:
        """Whether sessions of ``owner`` may go on: its key is neither gone nor expired."""
        return self._keys is None or self._keys.usable(owner, self._wall()) is not None

    def admit(self, offer: Offer, address: str, now: float) -> Grant:
        """Let a client of ``address`` (see ``admission.address_key``) in. Raises Denied.

        Where no keys are asked for, what is offered is not looked at.
        """
        account = None
        if self._keys is not None:
            key = self._identify(offer, address, now)
            account = self._by_key.get(key.id, key.quota)
            if account.full():
                raise Denied(
                    429,
                    "connections_per_key",
                    "too many connections with this key",
                    f"at most {key.quota.connections} at a time",
                    self._spread(RETRY),
                )
        by_address = self._by_address.get(address, self._address_quota)
        accounts = (by_address,) if account is None else (account, by_address)
        return Grant(NOBODY if account is None else key.id, accounts, account)

    def ticket(self, offer: Offer, address: str, now: float) -> str:
        """A ticket for whoever shows a key, good for :data:`LIFETIME` seconds. Raises Denied."""
        if self._keys is None:
            raise Denied(404, "no_keys", "this server asks for no keys", "connect without a ticket")
        # A ticket that could buy tickets would live for ever.
        key = self._identify(Offer(key=offer.key or ""), address, now)
        text = self._tickets.give(key.id, now)
        if text is None:
            raise Denied(
                429,
                "tickets",
                "too many tickets of this key are open",
                f"each is good for {LIFETIME:g} seconds: use them, or wait",
                self._spread(RETRY),
            )
        return text

    def may_scrape(self, offer: Offer, address: str, now: float) -> bool:
        """Whether an operator's key is shown. Raises Denied for one that is not known."""
        if offer.key is None:
            return False
        self._identify(offer, address, now, METRICS)
        return True

    def _identify(self, offer: Offer, address: str, now: float, role: str = SPEAK) -> ApiKey:
        assert self._keys is not None
        wall = self._wall()
        found = None
        if offer.ticket is not None:
            owner = self._tickets.take(offer.ticket, now)
            found = self._keys.usable(owner, wall) if owner is not None else None
        elif offer.key is not None:
            found = self._keys.recognise(offer.key, wall)
        if found is None:
            raise self._failure(offer, address, now)
        if role not in found.roles:
            raise Denied(403, "role", "this key is not for that", f"a key with the role {role}")
        return found

    def _failure(self, offer: Offer, address: str, now: float) -> Denied:
        """One answer for unknown, wrong, used, revoked and expired: it helps nobody to guess.

        Only failures are slowed down. Were a right key refused too, whoever shares an address
        could lock its neighbours out.
        """
        if not offer.key and not offer.ticket:
            return Denied(
                401, "unauthorized", "no API key was sent", "Authorization: Bearer, then the key"
            )
        bucket = self._failures.get(address)
        if bucket is None:
            bucket = TokenBucket(FAILURES_PER_MINUTE / MINUTE, FAILURES_PER_MINUTE)
            self._failures[address] = bucket
            if len(self._failures) > MAX_ACCOUNTS:
                self._failures.popitem(last=False)
        if bucket.take(now):
            return Denied(
                401,
                "unauthorized",
                "the API key or ticket is not valid",
                "a key from `playhead keys add`, or a fresh ticket",
            )
        return Denied(
            429,
            "guesses",
            "too many wrong keys from this address",
            f"at most {FAILURES_PER_MINUTE:g} a minute",
            bucket.wait(),
        )
