"""A real cable that is pulled in mid-speech, and a client whose address changes: the quick form of
``bench/reliability/unplug.py``."""

import asyncio
import contextlib
from functools import partial

import pytest
from interfaces import held
from kit import served
from machine import PATIENCE
from playhead.client import link, vigil
from playhead.loadgen.namespace import inside
from unplugged import Event, Listener, Met, events, live_through
from wire import NEAR, SERVER, NoWire, Wire, laid

FLAGS = ("--host", "0.0.0.0", "--open", "--http-port", "off")
TEXT = "Carry me out of the house and let me hear the rest."


def wire_or_skip(stack: contextlib.ExitStack) -> Wire:
    stack.enter_context(held(change=True))
    try:
        return stack.enter_context(laid())
    except NoWire as fault:
        pytest.skip(f"no cable can be pulled here: {fault}")


@pytest.mark.slow
def test_a_pulled_cable_and_another_address_cost_no_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The client asks sooner than it would, and gives up sooner.
    monkeypatch.setattr(vigil, "SILENCE", 0.3)
    monkeypatch.setattr(link, "PATIENCE", 0.5)
    # The library's own keepalive, which would find out after 40 s, is off.
    without = partial(link.websocket_connect, ping_interval=None)
    monkeypatch.setattr(link, "websocket_connect", without)
    listener = Listener(TEXT, rate=2.0)
    planned = [Event(0.2, NEAR, 0.4), Event(0.2, None, 0.0)]
    with contextlib.ExitStack() as stack:
        wire = wire_or_skip(stack)
        with inside(wire.server):
            _, near = stack.enter_context(served(*FLAGS, FAULTY_PACE="2000"))
        url = near.replace("127.0.0.1", SERVER)

        async def main() -> list[Met]:
            async with asyncio.timeout(PATIENCE):
                return await live_through(url, wire, planned, [listener], 1)

        met = wire.run(main)
    assert [each.event for each in met] == planned
    assert (listener.fault, listener.exact) == ("", True)
    assert listener.resumed >= 1, "its address had gone"


def test_where_no_cable_can_be_pulled_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    with pytest.raises(NoWire, match="needs `ip`: install iproute2"), laid():
        pass
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(NoWire, match="need root"), laid():
        pass
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(NoWire, match="are Linux's"), laid():
        pass


def test_the_same_seed_pulls_in_the_same_way() -> None:
    assert events(3, 5, 2, 10.0) == events(3, 5, 2, 10.0)
    assert events(3, 5, 2, 10.0) != events(4, 5, 2, 10.0)
    assert sum(event.end is None for event in events(3, 5, 2, 10.0)) == 2
