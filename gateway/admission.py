"""Who may connect: origins of pages, and how many connections at once. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

from playhead.gateway.settings import is_loopback


def origin_allowed(
    origin: str | None, host: str, allowed: tuple[str, ...], *, allow_remote: bool
) -> bool:
    """Whether a page of ``origin`` may open a session at a server addressed as ``host``.

    No origin means that the client is no browser. Pages of this machine are welcome. Pages of
    the same origin are, too; but where only this machine is served, a name that is not of this
    machine in ``host`` is another site's name pointed here (DNS rebinding). All else must be in
    ``allowed``, compared whole (RFC 6454 section 4).
    """
    if origin is None:
        return True
    origin = origin.lower()
    try:
        parts = urlsplit(origin)
        page_host, page_port = parts.hostname, parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not page_host or origin != _bare(origin):
        return False
    if origin in allowed or is_loopback(page_host):
        return True
    same = parts.netloc == host.lower()
    default_port = {"http": 80, "https": 443}[parts.scheme]
    if page_port is None and host.lower() == f"{parts.netloc}:{default_port}":
        same = True
    return same and (allow_remote or _is_address(page_host))


def _bare(origin: str) -> str:
    parts = urlsplit(origin)
    return "" if "@" in parts.netloc else f"{parts.scheme}://{parts.netloc}"


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def address_key(address: str) -> str:
    """What counts as one client address: an IPv4 address, or the /64 of an IPv6 one."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(IPv6Address(int(parsed) >> 64 << 64)) + "/64"
    return str(parsed)


@dataclass(slots=True)
class ConnectionCaps:
    """Counts open connections, half-open ones included, in all and by address key."""

    total_limit: int
    address_limit: int
    total: int = 0
    by_address: Counter[str] = field(default_factory=Counter)

    def enter(self, key: str) -> None:
        """A connection was accepted."""
        self.total += 1
        self.by_address[key] += 1

    def leave(self, key: str) -> None:
        """A connection is gone."""
        self.total -= 1
        self.by_address[key] -= 1
        if not self.by_address[key]:
            del self.by_address[key]

    def refusal(self, key: str) -> str | None:
        """The reason not to serve a connection that was entered under ``key``, or None."""
        if self.total > self.total_limit:
            return "connections"
        if self.by_address[key] > self.address_limit:
            return "connections_per_address"
        return None

    @property
    def flooded(self) -> bool:
        """More sockets than even polite refusals are worth."""
        return self.total > self.total_limit + self.total_limit // 10 + 100
