"""Faults without frames, and protocols that hold themselves no more."""

import asyncio
import gc
import weakref
from collections.abc import Generator
from typing import Any

import pytest
from playhead.gateway.hush import hushed
from playhead.gateway.letting_go import ENDED, UNUSED, forget_frames, let_go
from websockets.asyncio.messages import Assembler
from websockets.server import ServerProtocol


class Owner:
    """What a frame, a queue or a function may hold."""

    def choose(self, protocol: Any, offered: Any) -> None:
        """No subprotocol."""

    def pause(self) -> None:
        """Read no more."""


def chained(owner: Owner, how: str) -> BaseException:
    """A fault whose frames hold ``owner``, and that came of another one."""

    def fails() -> None:
        assert owner
        raise KeyError("the first")

    try:
        try:
            fails()
        except KeyError as first:
            if how == "cause":
                raise ValueError("the second") from first
            raise ValueError("the second")  # noqa: B904
    except ValueError as second:
        return second


@pytest.mark.parametrize("how", ["cause", "context"])
def test_faults_keep_their_words_and_lose_their_frames(how: str) -> None:
    owner = Owner()
    watched = weakref.ref(owner)
    fault = chained(owner, how)
    del owner
    assert watched() is not None
    forget_frames(fault)
    assert watched() is None
    assert fault.args == ("the second",)
    assert isinstance(fault.__context__, KeyError)


def test_no_fault_and_faults_that_name_each_other() -> None:
    forget_frames(None)
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    forget_frames(first)


@pytest.mark.parametrize("data", [b"", b"nonsense\r\n\r\n", b"GET / HT"])
@pytest.mark.parametrize("queued", [False, True])
def test_a_protocol_goes_with_its_last_name(data: bytes, queued: bool) -> None:
    async def main() -> None:
        owner = Owner()
        protocol = ServerProtocol(
            select_subprotocol=owner.choose, logger=hushed("websockets.server")
        )
        messages = Assembler(pause=owner.pause) if queued else UNUSED
        if data:
            protocol.receive_data(data)
        protocol.receive_eof()
        watched = weakref.ref(protocol), weakref.ref(owner)
        let_go(protocol, messages)
        assert protocol.handshake_exc is not None, "why it ended can still be read"
        del protocol, owner
        assert [there() for there in watched] == [None, None]

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


class KeepsItsFrame:
    """A generator as Python 3.12.3 has them: where no handler would notice that it is closed, its
    frame goes on holding what it held."""

    def __init__(self, own: Generator[None]) -> None:
        self._own = own

    def close(self) -> None:
        """Without effect."""


def test_a_parser_is_left_and_not_only_closed() -> None:
    gc.disable()
    try:
        protocol = ServerProtocol(logger=hushed("websockets.server"))
        protocol.receive_eof()
        parser: Any = KeepsItsFrame(protocol.parser)
        protocol.parser = parser
        let_go(protocol, UNUSED)
        watched = weakref.ref(protocol)
        del protocol, parser
        assert watched() is None
    finally:
        gc.enable()


def test_no_parser_takes_anything_after_that() -> None:
    protocol = ServerProtocol(logger=hushed("websockets.server"))
    let_go(protocol, UNUSED)
    assert next(ENDED, "ended") == "ended"
    with pytest.raises(StopIteration):
        protocol.receive_data(b"more")
