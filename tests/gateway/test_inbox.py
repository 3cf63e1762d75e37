"""Frames to messages, a few at a time."""

import asyncio
import logging

import pytest
from playhead.gateway.inbox import MOST_WAITING, QUEUE, READ_BURST, SHORT, Inbox
from playhead.gateway.turns import SHARE, Turns
from websockets.frames import Frame, Opcode


class Source:
    """A peer that writes down what is asked of it."""

    def __init__(self) -> None:
        self.id = "peer"
        self.failed = False
        self.turns = Turns(asyncio.get_running_loop())
        self.reasons = 0
        self.end: tuple[int, str] | None = None

    def pause(self, reason: int) -> None:
        self.reasons |= reason

    def resume(self, reason: int) -> None:
        self.reasons &= ~reason

    def fail(self, code: int, reason: str) -> None:
        self.failed = True
        self.end = (code, reason)


def text(data: bytes, *, fin: bool = True, opcode: Opcode = Opcode.TEXT) -> Frame:
    return Frame(opcode, data, fin)


def test_messages_come_in_order_and_a_few_at_a_time() -> None:
    async def main() -> None:
        source, taken = Source(), list[bytes | str]()
        inbox = Inbox(source, taken.append)
        for number in range(20):
            inbox.add(text(str(number).encode()))
        assert taken == []
        assert source.reasons == QUEUE
        await asyncio.sleep(0)
        assert len(taken) == READ_BURST
        while source.reasons:
            await asyncio.sleep(0)
        assert taken == [str(number) for number in range(20)]
        inbox.add(text(b"later", opcode=Opcode.BINARY))
        await asyncio.sleep(0)
        assert taken[-1] == b"later"

    assert MOST_WAITING < 20
    asyncio.run(main())


@pytest.mark.parametrize("opcode", [Opcode.TEXT, Opcode.BINARY])
def test_a_long_message_counts_as_several(opcode: Opcode) -> None:
    async def main() -> None:
        source, taken = Source(), list[bytes | str]()
        inbox = Inbox(source, taken.append)
        for size in (10, SHORT * READ_BURST, 10, SHORT, SHORT * 2, SHORT - 1):
            inbox.add(text(bytes(size), opcode=opcode))
        counts = [inbox.turn(), inbox.turn(), inbox.turn()]
        assert counts == [1 + READ_BURST + 1, 1 + 2 + 3, 1]
        assert [len(each) for each in taken[-2:]] == [SHORT * 2, SHORT - 1]
        assert inbox.turn() == 0

    asyncio.run(main())


def test_many_who_send_much_at_once_have_a_share_of_messages_in_a_go() -> None:
    async def main() -> int:
        source, taken = Source(), list[bytes | str]()
        for _ in range(16):
            inbox = Inbox(source, taken.append)
            for _ in range(MOST_WAITING):
                inbox.add(text(b"{}"))
        await asyncio.sleep(0)
        return len(taken)

    assert asyncio.run(main()) == SHARE


def test_fragments_are_joined() -> None:
    async def main() -> None:
        source, taken = Source(), list[bytes | str]()
        inbox = Inbox(source, taken.append)
        inbox.add(text("gr\u00fc".encode()[:3], fin=False))
        inbox.add(text("\u00fc".encode()[1:], fin=False, opcode=Opcode.CONT))
        inbox.add(text(b"n", opcode=Opcode.CONT))
        inbox.add(text(b"\xff", fin=False, opcode=Opcode.BINARY))
        inbox.add(text(b"", opcode=Opcode.CONT))
        inbox.drain()
        assert taken == ["gr\u00fcn", b"\xff"]

    asyncio.run(main())


def test_text_that_is_not_utf_8() -> None:
    async def main() -> None:
        source = Source()
        inbox = Inbox(source, lambda message: None)
        inbox.add(text(b"ok"))
        inbox.add(text(b"\xed\xa0\x80"))
        assert source.end is not None
        assert source.end[0] == 1007
        assert "position 0" in source.end[1]

    asyncio.run(main())


def test_a_fault_ends_the_connection_and_what_waits_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        source, calls = Source(), list[bytes | str]()

        def broken(message: bytes | str) -> None:
            calls.append(message)
            raise RuntimeError("a bug")

        inbox = Inbox(source, broken)
        for _ in range(3):
            inbox.add(text(b"x"))
        await asyncio.sleep(0)
        assert calls == ["x"]
        assert source.end == (1011, "internal_error")

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert caplog.text.count("RuntimeError: a bug") == 1
