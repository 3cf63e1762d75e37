"""Whatever ends is freed by reference counts alone: the garbage collector finds nothing to do.

A server runs in this process with the collector off; its clients block in a thread. After each way
to end a session the collector is asked what it would have had to find.
"""

import asyncio
import contextlib
import ctypes
import gc
import logging
import ssl
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import GetSetDescriptorType
from typing import Any

import pytest
import trustme
import uvloop
from faulty import FaultyRunner
from harness import eventually
from live import live_gateway
from playhead.gateway.api.listener import open_api
from playhead.gateway.server import GatewayServer, bind
from ways_to_end import (
    HTTP_WAYS,
    SECURE,
    WAYS,
    Talker,
    Way,
    a_bye,
    a_bye_after_speech,
    a_cut,
    half_open,
    no_hello,
)

SETTINGS: dict[str, Any] = {
    "grace": 0.5,
    "close_timeout": 0.3,
    "slow_hold": 0.05,
    "slow_close": 0.3,
    "demo": "on",
}
HASTY: dict[str, Any] = {"grace": 0.2, "hello_timeout": 1.0, "open_timeout": 1.0}
CLIENTS = ("websockets.client", "websockets.sync.")


@contextlib.contextmanager
def counted_alone() -> Iterator[None]:
    """No garbage collection in this block."""
    gc.collect()
    gc.freeze()  # what was there before is not looked through again and again
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def of_an_array(thing: Any) -> bool:
    """Whether this is a type that ctypes makes for arrays of a length, or what such a type holds.
    libopus is given one for each length of audio, and the next of that length finds it again."""
    if isinstance(thing, tuple):
        return bool(thing) and all(isinstance(base, type) for base in thing)
    owner = thing.__objclass__ if isinstance(thing, GetSetDescriptorType) else thing
    if isinstance(owner, type):
        return issubclass(owner, ctypes.Array)
    return type(thing).__name__ == "StgDict"


def of_clients(things: Sequence[Any]) -> set[int]:
    """Those that the clients in this process hold, by id: sockets that fail leave cycles there."""
    known = {id(thing) for thing in things}
    left = [thing for thing in things if type(thing).__module__.startswith(CLIENTS)]
    found: set[int] = set()
    while left:
        thing = left.pop()
        if id(thing) in known and id(thing) not in found:
            found.add(id(thing))
            left += gc.get_referents(thing)
    return found


def left_over() -> Counter[str]:
    """What only the collector can free, by its kind."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    things = list(gc.garbage)
    gc.garbage.clear()
    theirs = of_clients(things)
    found = [type(it) for it in things if id(it) not in theirs and not of_an_array(it)]
    return Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in found)


async def ends(server: GatewayServer, way: Way, port: int) -> Counter[str]:
    """Go one way a few times, wait until nobody is there, and look."""

    def quiet() -> bool:
        return not (len(server.hub.registry) or server.caps.total or server.hub.routes)

    await asyncio.to_thread(way, port)
    await eventually(quiet)
    await asyncio.sleep(0.05)  # what ran last has to return
    return left_over()


def together(ways: Sequence[Way]) -> Way:
    """All of them at once."""

    def all_at_once(port: int) -> None:
        with ThreadPoolExecutor(len(ways)) as pool:
            for way in [pool.submit(way, port) for way in ways]:
                way.result()

    return all_at_once


async def all_ways(ways: Sequence[Way], **settings: Any) -> dict[str, Counter[str]]:
    """What the ways leave over together, and if they do, what each of them does."""
    async with live_gateway(FaultyRunner(200.0), **{**SETTINGS, **settings}) as server:
        all_at_once = together(ways)
        await asyncio.to_thread(all_at_once, server.port)  # what is made once for all
        with counted_alone():
            found = {"together": await ends(server, all_at_once, server.port)}
            if not found["together"]:
                return {}
            found |= {way.__name__: await ends(server, way, server.port) for way in ways}
    return {way: kinds for way, kinds in found.items() if kinds}


def test_sessions_that_end_leave_nothing_to_the_collector() -> None:
    assert uvloop.run(all_ways(WAYS)) == {}


def test_neither_do_those_that_time_ends() -> None:
    assert uvloop.run(all_ways([a_cut, no_hello, half_open], **HASTY)) == {}


def test_neither_do_those_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "both.pem"))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    # The client reads and writes in two threads, which one SSL object of Python 3.11 does not
    # bear: now and then it takes the tickets of TLS 1.3, which come unasked, for the end.
    trusting.maximum_version = ssl.TLSVersion.TLSv1_2
    pair = {"tls_cert": str(tmp_path / "both.pem"), "tls_key": str(tmp_path / "both.pem")}

    def way(end: Way) -> Way:
        def over_tls(port: int) -> None:
            SECURE[port] = trusting
            end(port)

        return over_tls

    try:
        assert uvloop.run(all_ways([way(a_bye), way(a_bye_after_speech)], **pair)) == {}
    finally:
        SECURE.clear()


def test_neither_do_requests_of_the_http_api(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> dict[str, Counter[str]]:
        async with live_gateway(FaultyRunner(200.0), **SETTINGS) as server:
            api = open_api(server)
            await api.start(bind("127.0.0.1", 0))
            with counted_alone():
                for way in HTTP_WAYS:
                    await ends(server, way, api.port)  # what is made once for all
                found = {way.__name__: await ends(server, way, api.port) for way in HTTP_WAYS}
            await api.stop()
            return {way: kinds for way, kinds in found.items() if kinds}

    assert uvloop.run(main()) == {}
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_drain_frees_all_that_spoke() -> None:
    async def main() -> Counter[str]:
        async with live_gateway(FaultyRunner(200.0), **SETTINGS) as server:

            def speak() -> None:
                with contextlib.ExitStack() as stack:
                    for _ in range(3):
                        talker = stack.enter_context(Talker(server.port))
                        talker.hello()
                        talker.send("text", text="This goes on and on. " * 9)
                        talker.until("audio")
                    server.hub.loop.call_soon_threadsafe(begun.set)
                    talker.closed()

            begun = asyncio.Event()
            with counted_alone():
                speaking = asyncio.create_task(asyncio.to_thread(speak))
                await begun.wait()
                await server.drain()
                await speaking
                del speaking
                return left_over()

    assert uvloop.run(main()) == {}
