"""Sessions and tombstones are kept as long as they should be, and no longer."""

from dataclasses import dataclass

from playhead.gateway.registry import Registry, new_secret
from playhead.gateway.session import Tombstone
from playhead.gateway.session_types import Outcome, digest

DIGEST = digest("token")


@dataclass
class Host:
    id: str


def stone(session: str, expires: float = 15.0) -> Tombstone:
    return Tombstone(session, DIGEST, Outcome(1, 2, "he", "ard"), expires)


def test_secrets_are_long_and_different() -> None:
    made = {new_secret() for _ in range(1000)}
    assert len(made) == 1000
    assert all(len(secret) == 22 for secret in made)  # 128 bits in base 64


def test_sessions_live_until_they_are_buried() -> None:
    registry: Registry[Host] = Registry()
    host = Host("a")
    registry.add(host)
    assert registry.get("a") is host
    assert list(registry) == [host]
    registry.bury(stone("a"), "k1", now=5.0)
    assert registry.get("a") is None
    assert len(registry) == 0
    assert registry.tombstone("a", "k1", now=14.9) == stone("a")
    assert registry.tombstone("a", "k1", now=15.0) is None


def test_a_session_may_be_forgotten_without_a_trace() -> None:
    registry: Registry[Host] = Registry()
    registry.add(Host("a"))
    registry.discard("a")
    registry.discard("a")
    assert registry.get("a") is None
    assert registry.tombstone("a", "k1", now=0.0) is None


def test_walking_survives_the_end_of_a_session() -> None:
    registry: Registry[Host] = Registry()
    for name in "abc":
        registry.add(Host(name))
    for host in registry:
        registry.discard(host.id)
    assert len(registry) == 0


def test_the_ended_session_of_another_does_not_exist() -> None:
    registry: Registry[Host] = Registry()
    registry.bury(stone("a"), "k1", now=0.0)
    assert registry.tombstone("a", "k2", now=0.0) is None
    assert registry.tombstone("a", "", now=0.0) is None
    assert registry.tombstone("a", "k1", now=0.0) == stone("a")


def test_a_session_that_never_spoke_leaves_nothing() -> None:
    registry: Registry[Host] = Registry()
    registry.add(Host("a"))
    registry.bury(Tombstone("a", DIGEST, None, 15.0), "k1", now=0.0)
    assert registry.get("a") is None
    assert registry.tombstone("a", "k1", now=0.0) is None
