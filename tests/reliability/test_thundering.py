"""All clients of a server that is killed come back to its successor, and soon speak as before.

With 1,000 of them: ``bench/reliability/thundering.py``.
"""

import asyncio
import contextlib
import random
import time

import pytest
from kit import served
from machine import PATIENCE, eventually, kept_waiting
from ports import free_ports
from returning import Member

FLAGS = ("--max-connections-per-address", "1000", "--http-port", "off")
MANY = 40
SOON = 10.0
"""Seconds."""


@pytest.mark.slow
def test_a_house_that_loses_its_server_speaks_again_within_ten_seconds() -> None:
    members = [Member(random.Random(number), gap=0.3, words=2) for number in range(MANY)]

    async def main(stack: contextlib.ExitStack) -> float:
        flags = [*FLAGS, "--port", str(free_ports())]  # nobody else's while it is free
        process, url = stack.enter_context(served(*flags, FAULTY_PACE="2000", FAULTY_BATCH="32"))
        over = asyncio.Event()
        talking = [asyncio.create_task(member.talk(url, over)) for member in members]
        await eventually(lambda: all(member.starts or member.lost for member in members))
        process.kill()
        process.wait()
        again = served(*flags, FAULTY_PACE="2000", FAULTY_BATCH="32")
        await asyncio.to_thread(stack.enter_context, again)
        back = time.monotonic()

        def spoke(member: Member) -> bool:
            return any(start.asked > back for start in member.starts)

        await eventually(lambda: all(spoke(member) or member.lost for member in members))
        took = time.monotonic() - back
        over.set()
        await asyncio.wait(talking, timeout=PATIENCE)
        return took

    with contextlib.ExitStack() as stack, kept_waiting() as kept:
        took = asyncio.run(main(stack))
    assert [member.lost for member in members if member.lost] == []
    assert all(len(member.moved) == 1 for member in members)
    assert took <= SOON + kept.in_turn
