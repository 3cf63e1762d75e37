"""Everybody has one turn in each round, whoever joins waits for the next, and none is forgotten."""

import asyncio
from collections.abc import Callable

from playhead.gateway.turns import SHARE, Turns


class Worker:
    def __init__(self, name: str, left: int, log: list[str], during: Callable[[], None]) -> None:
        self._name, self._left, self._log, self._during = name, left, log, during

    def turn(self) -> bool:
        self._left -= 1
        self._log.append(self._name)
        self._during()
        return self._left > 0


def nothing() -> None:
    pass


def test_all_take_turns_until_nobody_has_anything_to_do() -> None:
    async def main() -> list[str]:
        turns, log = Turns(asyncio.get_running_loop()), list[str]()
        for name, left in (("a", 3), ("b", 1), ("c", 2)):
            turns.add(Worker(name, left, log, nothing))
        assert log == []
        await asyncio.sleep(0)
        assert "".join(log) == "abc"  # one round, then others of the loop
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        turns.add(Worker("d", 1, log, nothing))
        await asyncio.sleep(0)
        return log

    assert "".join(asyncio.run(main())) == "abcacad"


def test_who_joins_during_a_round_has_its_turn_in_the_next() -> None:
    async def main() -> list[str]:
        turns, log = Turns(asyncio.get_running_loop()), list[str]()
        late = Worker("late", 1, log, nothing)
        turns.add(Worker("first", 1, log, lambda: turns.add(late)))
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
            turns.add(Worker("m", 1, log, nothing))
        loop.call_soon(sound)
        for _ in range(4):
            await asyncio.sleep(0)
        return log.copy()

    few = SHARE * "m" + "s"
    assert "".join(asyncio.run(main())) == 2 * few + "mmms" + "s"


def test_a_turn_that_fails_is_one_s_own_affair() -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        faults: list[object] = []
        loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
        turns, log = Turns(loop), list[str]()

        def fail() -> None:
            raise ZeroDivisionError

        for name, during in (("a", nothing), ("bad", fail), ("c", nothing)):
            turns.add(Worker(name, 2, log, during))
        for _ in range(6):
            await asyncio.sleep(0)
        assert [type(fault) for fault in faults] == [ZeroDivisionError]
        return log

    assert sorted(asyncio.run(main())) == ["a", "a", "bad", "c", "c"]
