"""An ended session is told to its owner alone, for a time, and what is kept of all is bounded."""

import gc
import secrets
import tracemalloc

import pytest
from playhead.gateway.session_types import Outcome, Tombstone, digest
from playhead.gateway.tombstones import Tombstones

TOKEN = digest("token")


def stone(
    session: str, outcome: Outcome | None = None, *, expires: float = 600.0, text: str = "heard"
) -> Tombstone:
    return Tombstone(session, TOKEN, outcome or Outcome(1, 2, text[:2], text[2:]), expires)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(1, 0, "", ""),
        Outcome(3, 2**40, "Hello", " world"),
        Outcome(2**32 - 1, 2**53, "", "all of it"),
        Outcome(7, 9, "grün \U0001f600", "\ud800 alone, 日本"),
    ],
    ids=["nothing", "half", "unheard", "hostile"],
)
def test_what_was_heard_comes_back_as_it_was(outcome: Outcome) -> None:
    stones = Tombstones()
    stones.add(stone("s", outcome), "owner", 0.0)
    assert stones.get("s", "owner", 599.9) == stone("s", outcome)
    assert stones.get("s", "owner", 600.0) is None
    assert len(stones) == 0


def test_others_and_strangers_get_nothing() -> None:
    stones = Tombstones()
    stones.add(stone("s"), "k1", 0.0)
    assert stones.get("s", "k2", 0.0) is None
    assert stones.get("", "k1s", 0.0) is None
    assert stones.get("1s", "k", 0.0) is None
    assert stones.get("s", "k1", 0.0) is not None


def test_who_never_spoke_or_is_never_asked_for_is_not_kept() -> None:
    stones = Tombstones()
    stones.add(Tombstone("s", TOKEN, None, 600.0), "owner", 0.0)
    stones.add(stone("now", expires=5.0), "owner", 5.0)
    assert len(stones) == 0


def test_the_oldest_makes_room() -> None:
    stones = Tombstones(most=2)
    for name in "abc":
        stones.add(stone(name), "owner", 0.0)
    assert [stones.get(name, "owner", 0.0) is not None for name in "abc"] == [False, True, True]


def test_long_texts_make_room_too() -> None:
    stones = Tombstones(most_bytes=5_000)
    for name in "abc":
        stones.add(stone(name, text="x" * 2_000), "owner", 0.0)
    assert [stones.get(name, "owner", 0.0) is not None for name in "abc"] == [False, True, True]
    stones.add(stone("long", text="x" * 6_000), "owner", 0.0)
    assert len(stones) == 0  # more than all may have


def test_ten_thousand_take_two_megabytes() -> None:
    text = "This server has been talking for a while."
    stones = Tombstones()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(10_000):
            made = Tombstone(
                secrets.token_urlsafe(16),
                digest(secrets.token_urlsafe(16)),
                Outcome(1, 48_000, text[:20], text[20:]),
                600.0,
            )
            stones.add(made, "an owner", 0.0)
        del made
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(stones) == 10_000
    assert taken < 2_500_000, f"{taken / 10_000:.0f} bytes each"
