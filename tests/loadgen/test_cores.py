"""Processors of their own for the generator's processes."""

import os
import sys
from pathlib import Path

import pytest
from playhead.loadgen import cores as module
from playhead.loadgen.cores import cores, parse_cpus, pinned, split


def threads(*cores_: tuple[int, ...]) -> list[frozenset[int]]:
    return [frozenset(core) for core in cores_]


def test_a_core_counts_once_where_there_are_enough() -> None:
    made = split(threads((0, 1), (2, 3), (4, 5), (6, 7)), 2)
    assert (made.ours, made.others) == ((0, 2), (4, 5, 6, 7))
    far = split(threads((1, 9), (0, 8), (3, 11), (2, 10)), 2)
    assert (far.ours, far.others) == ((0, 1), (2, 3, 10, 11))


def test_where_cores_are_few_processors_are_taken() -> None:
    made = split(threads((0, 1), (2, 3)), 3)
    assert (made.ours, made.others) == ((0, 1, 2), (3,))
    assert split(threads((4,), (5,)), 1).ours == (4,)


@pytest.mark.parametrize("count", [0, 2, 3])
def test_servers_need_a_processor_too(count: int) -> None:
    with pytest.raises(ValueError, match=f"{count} of 2 processors that can be"):
        split(threads((0,), (1,)), count)


def test_the_systems_notation() -> None:
    assert parse_cpus("0-2,8\n") == {0, 1, 2, 8}
    with pytest.raises(ValueError, match="invalid literal"):
        parse_cpus("")


def test_cores_are_those_that_we_may_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "0").write_text("0-1\n")
    (tmp_path / "1").write_text("0-1\n")
    (tmp_path / "2").write_text("2-3\n")
    (tmp_path / "4").write_text("nonsense\n")
    monkeypatch.setattr(module, "_TOPOLOGY", str(tmp_path / "{}"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 4, 5})
    assert cores() == threads((0, 1), (2,), (4,), (5,))


def test_other_systems_do_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cores() == []


def test_a_thread_is_pinned_meanwhile() -> None:
    before = os.sched_getaffinity(0)
    with pinned(None):
        assert os.sched_getaffinity(0) == before
    with pinned(max(before)):
        assert os.sched_getaffinity(0) == {max(before)}
    assert os.sched_getaffinity(0) == before
