"""How much one key, or one address, may use at a time. Pure; times are monotonic seconds."""

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from playhead.engine.types import PLACE_KEPT

MINUTE: Final = 60.0
MAX_ACCOUNTS: Final = 10_000
CHARACTERS_PER_STREAM: Final = 6_000
"""Code points a minute that an address gets per connection it may have: six times what a listener
can hear, which leaves room for interrupting and starting over."""


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of one account. A stream is a session that has something to speak."""

    connections: int
    streams: int
    characters_per_minute: int


KEY_QUOTA: Final = Quota(connections=20, streams=20, characters_per_minute=120_000)
UNLIMITED: Final = Quota(10**9, 10**9, 10**9)


def address_quota(connections: int) -> Quota:
    """What one address may use that may have so many connections."""
    return Quota(connections, connections, connections * CHARACTERS_PER_STREAM)


@dataclass(slots=True, eq=False)
class Account:
    """What one key or one address uses now. The limits may be replaced at any time."""

    name: str  # "key" or "address": what a refusal names
    quota: Quota
    connections: int = 0
    streams: int = 0
    #: Those that speak and whose clients are gone, since when; who is gone longest comes first.
    cut_off: "dict[Allowance, float]" = field(default_factory=dict)
    _saved: float = math.inf  # characters that may be used at once; negative: owed
    _at: float = field(default=-math.inf)

    @property
    def idle(self) -> bool:
        """Nothing is open."""
        return not self.connections and not self.streams

    def full(self) -> bool:
        """No further connection is allowed."""
        return self.connections >= self.quota.connections

    def spare(self, now: float) -> "Allowance | None":
        """Who was cut off for so long that its stream may be had."""
        allowance, since = next(iter(self.cut_off.items()), (None, now))
        return allowance if now - since >= PLACE_KEPT else None

    def wait(self, now: float) -> float:
        """Seconds until text is taken again; 0: now."""
        rate = self.quota.characters_per_minute / MINUTE
        saved = min(self.quota.characters_per_minute, self._saved)
        if now > self._at:
            saved = min(self.quota.characters_per_minute, saved + (now - self._at) * rate)
            self._at = now
        self._saved = saved
        # One message may overdraw: whoever is not in debt is served, whatever its length.
        return max(0.0, -saved / rate)

    def spend(self, characters: int) -> None:
        """Book text that was taken, after :meth:`wait` gave 0."""
        self._saved -= characters


class Accounts:
    """One account per name, made when first asked for. Idle ones are forgotten, oldest first."""

    def __init__(self, kind: str, *, most: int = MAX_ACCOUNTS) -> None:
        self._kind = kind
        self._most = most
        self._found: OrderedDict[str, Account] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, name: str, quota: Quota) -> Account:
        """The account of ``name``, from now on with ``quota``."""
        account = self._found.get(name)
        if account is None:
            account = self._found[name] = Account(self._kind, quota)
            self._forget()
        account.quota = quota
        self._found.move_to_end(name)
        return account

    def _forget(self) -> None:
        if len(self._found) <= self._most:
            return
        # Those in use are few: each holds a connection, and connections are bounded.
        newest = next(reversed(self._found))
        for name, account in self._found.items():
            if account.idle and name != newest:
                del self._found[name]
                return


@dataclass(frozen=True, slots=True)
class Excess:
    """Why something is refused: whose limit, which, and when to try again (seconds)."""

    account: str
    limit: str
    most: int
    retry_after: float


def _keep(now: float) -> None:
    """Who gives up nothing."""


class Allowance:
    """What one session may use, out of its key's and its address's accounts.

    ``give_up`` is called when others of an account need the stream of a session whose client is
    cut off: its speech must end then.
    """

    __slots__ = ("_accounts", "_cut_off", "_speaking", "give_up")

    def __init__(self, accounts: tuple[Account, ...] = ()) -> None:
        self.give_up: Callable[[float], None] = _keep
        self._accounts = accounts
        self._speaking = False
        self._cut_off: float | None = None

    def stream(self, now: float) -> Excess | None:
        """Why this session may not begin to speak; None: it may, or already does."""
        if self._speaking:
            return None
        full = [a for a in self._accounts if a.streams >= a.quota.streams]
        for account in full:
            if account.spare(now) is None:
                return Excess(account.name, "streams", account.quota.streams, 1.0)
        for account in full:
            # Who gave up in one account may have done so in the other as well.
            spare = account.spare(now) if account.streams >= account.quota.streams else None
            if spare is not None:
                spare.give_up(now)
        return None

    def text(self, now: float) -> Excess | None:
        """Why text is not taken now; None: it is, then book it with :meth:`spend`."""
        for account in self._accounts:
            if wait := account.wait(now):
                most = account.quota.characters_per_minute
                return Excess(account.name, "characters_per_minute", most, wait)
        return None

    def spend(self, characters: int) -> None:
        """Book text that was taken."""
        for account in self._accounts:
            account.spend(characters)

    def speaking(self, speaking: bool) -> None:
        """The session has something to speak, or no more. Repeating it changes nothing."""
        if speaking == self._speaking:
            return
        self._speaking = speaking
        for account in self._accounts:
            account.streams += 1 if speaking else -1
        self._note()

    def close(self) -> None:
        """The session has ended."""
        self.speaking(False)
        self.give_up = _keep

    def cut_off(self, now: float) -> None:
        """The session's client is gone, and may come back."""
        self._cut_off = now
        self._note()

    def back(self) -> None:
        """It is there again."""
        self._cut_off = None
        self._note()

    def _note(self) -> None:
        for account in self._accounts:
            account.cut_off.pop(self, None)
            if self._speaking and self._cut_off is not None:
                account.cut_off[self] = self._cut_off
