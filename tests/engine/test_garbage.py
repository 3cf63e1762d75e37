"""Garbage is looked for when there must be some, and while somebody speaks when there is much."""

import pytest
from playhead.engine import garbage
from playhead.engine.garbage import EACH, FLOOR, GUARD, Keeper, due


@pytest.mark.parametrize(
    ("grown", "come", "speaking", "expected"),
    [
        (0, 0, False, False),
        (FLOOR - 1, 0, False, False),
        (FLOOR, 0, False, True),
        (FLOOR, 0, True, False),
        (GUARD * FLOOR - 1, 0, True, False),
        (GUARD * FLOOR, 0, True, True),
        (10_000 * EACH + FLOOR - 1, 10_000, False, False),  # all of it may be theirs
        (10_000 * EACH + FLOOR, 10_000, False, True),
        (10_000 * EACH + GUARD * FLOOR - 1, 10_000, True, False),
        (10_000 * EACH + GUARD * FLOOR, 10_000, True, True),
    ],
)
def test_when(grown: int, come: int, speaking: bool, expected: bool) -> None:
    assert due(grown, come, speaking=speaking) is expected


class FakeGc:
    """Counts, and takes a quarter of a second for each collection."""

    def __init__(self) -> None:
        self.count = 0
        self.now = 100.0
        self.done: list[str] = []

    def get_count(self) -> tuple[int, int, int]:
        return self.count, 7, 7

    def collect(self) -> int:
        self.done.append("collect")
        self.now += 0.25 * (1 + self.done.count("collect") % 2)
        found, self.count = self.count // 2, 0
        return found

    def freeze(self) -> None:
        self.done.append("freeze")

    def disable(self) -> None:
        self.done.append("disable")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeGc:
    fake = FakeGc()
    monkeypatch.setattr(garbage, "gc", fake)
    return fake


def test_settled_means_off_and_what_is_here_set_aside(fake: FakeGc) -> None:
    garbage.settle()
    assert fake.done == ["disable", "collect", "freeze"]


def test_a_keeper_looks_when_it_is_due(fake: FakeGc, caplog: pytest.LogCaptureFixture) -> None:
    asked = []

    def speaking() -> bool:
        asked.append(speaks)
        return speaks

    living, speaks = 10, True
    keeper = Keeper(lambda: living, speaking, now=lambda: fake.now)
    fake.count = FLOOR + 10 * EACH - 1
    assert keeper.look() == 0.0
    assert asked == [], "who speaks is asked only when it matters"
    fake.count += 1
    assert keeper.look() == 0.0
    assert asked == [True]
    speaks = False
    assert keeper.look() == 0.5
    assert (keeper.looks, keeper.freed, keeper.longest) == (1, (FLOOR + 10 * EACH) // 2, 0.5)
    assert keeper.grown() == 0
    living, speaks = 0, True
    fake.count = GUARD * FLOOR
    assert keeper.look() == 0.25
    assert keeper.looks == 2
    assert keeper.longest == 0.5, "the longest, not the latest"
    assert fake.done == ["collect", "collect"]
    assert "50000 containers more than 10 who have come may hold: 26250 were" in caplog.text


def test_who_was_here_at_the_last_look_holds_nothing_that_came_since(fake: FakeGc) -> None:
    living = 10_000
    keeper = Keeper(lambda: living, lambda: False, now=lambda: fake.now)
    fake.count = FLOOR + living * EACH
    assert keeper.look() > 0.0, "all of them have come since the start"
    fake.count = FLOOR
    assert keeper.look() > 0.0
    living = 10_100
    fake.count = FLOOR + 100 * EACH - 1
    assert keeper.look() == 0.0
    fake.count += 1
    assert keeper.look() > 0.0


def test_a_crowd_that_goes_and_comes_again_is_no_reason_to_look(fake: FakeGc) -> None:
    living = 10_000
    keeper = Keeper(lambda: living, lambda: False, now=lambda: fake.now)
    fake.count = FLOOR + living * EACH
    assert keeper.look() > 0.0
    living, fake.count = 0, 0  # what they held is freed, and the count is never below zero
    assert keeper.look() == 0.0
    living, fake.count = 10_000, 10_000 * EACH + FLOOR - 1
    assert keeper.look() == 0.0
    fake.count += 1
    assert keeper.look() > 0.0
    assert keeper.looks == 2
