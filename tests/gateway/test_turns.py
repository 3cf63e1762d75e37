"""Everybody has one turn in each round, whoever joins waits for the next, and none is forgotten."""

import asyncio
from collections.abc import Callable

import pytest
from playhead.gateway.turns import SHARE, Turns


class Worker:
    """Who has ``left`` things to do, each as much as ``size`` messages, one a turn."""

    def __init__(
        self, turns: Turns, log: list[str], name: str, left: int = 1, size: int = 1
    ) -> None:
        self._turns, self._log, self._name = turns, log, name
        self._left, self._size = left, size
        self.during: Callable[[], None] = lambda: None

    def turn(self) -> int:
        self._left -= 1
        self._log.append(self._name)
        self.during()
        if self._left:
            self._turns.add(self)
        return self._size


def test_all_take_turns_until_nobody_has_anything_to_do() -> None:
    async def main() -> list[str]:
        turns, log = Turns(asyncio.get_running_loop()), list[str]()
        for name, left in (("a", 3), ("b", 1), ("c", 2)):
            turns.add(Worker(turns, log, name, left))
        assert log == []
        await asyncio.sleep(0)
        assert "".join(log) == "abc"  # one round, then others of the loop
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        turns.add(Worker(turns, log, "d"))
        await asyncio.sleep(0)
        return log

    assert "".join(asyncio.run(main())) == "abcacad"


def test_who_joins_during_a_round_has_its_turn_in_the_next() -> None:
    async def main() -> list[str]:
        turns, log = Turns(asyncio.get_running_loop()), list[str]()
        first, late = Worker(turns, log, "first"), Worker(turns, log, "late")
        turns.add(first)
        first.during = lambda: turns.add(late)
        await asyncio.sleep(0)
        assert log == ["first"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return log

    assert asyncio.run(main()) == ["first", "late"]


def test_others_of_the_loop_have_their_turn_between_a_few_and_the_next_few() -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        turns, log = Turns(loop), list[str]()

        def sound() -> None:
            log.append("s")
            loop.call_soon(sound)

        for _ in range(2 * SHARE + 3):
            turns.add(Worker(turns, log, "m"))
        loop.call_soon(sound)
        for _ in range(4):
            await asyncio.sleep(0)
        return log.copy()

    few = SHARE * "m" + "s"
    assert "".join(asyncio.run(main())) == 2 * few + "mmms" + "s"


@pytest.mark.parametrize("size", [0, 1, 3, 4, 16, 65])
def test_a_go_ends_once_as_much_as_a_share_is_done_whosever_it_is(size: int) -> None:
    async def main() -> int:
        turns, log = Turns(asyncio.get_running_loop()), list[str]()
        for _ in range(40):
            turns.add(Worker(turns, log, "m", 3, size))
        await asyncio.sleep(0)
        return len(log)

    done = asyncio.run(main()) * max(1, size)
    assert SHARE <= done < SHARE + max(1, size)


def test_a_turn_that_fails_is_one_s_own_affair() -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        faults: list[object] = []
        loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
        turns, log = Turns(loop), list[str]()

        def fail() -> None:
            raise ZeroDivisionError

        for name in ("a", "bad", "c"):
            worker = Worker(turns, log, name, 2)
            turns.add(worker)
            if name == "bad":
                worker.during = fail
        for _ in range(6):
            await asyncio.sleep(0)
        assert [type(fault) for fault in faults] == [ZeroDivisionError]
        return log

    assert sorted(asyncio.run(main())) == ["a", "a", "bad", "c", "c"]
