"""The shipped balancer: HAProxy with deploy/haproxy/haproxy.cfg before two real gateways.

One cluster serves all tests, in order; each leaves both gateways up.
"""

import asyncio
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from fleet_kit import HAPROXY, Cluster, Heard, Node, cluster, disturbed, fetch, listen
from machine import PATIENCE
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        HAPROXY is None, reason="HAProxy is not installed (scripts/install-system-packages does)"
    ),
]
TEXT = "one two three four five six seven eight nine ten eleven tw"
"""4.4 seconds: longer than the lead, so that some of it is still to be made when a node goes."""


@pytest.fixture(scope="module")
def fleet() -> Iterator[Cluster]:
    with cluster((8.0, 8.0)) as found:
        yield found


async def handshake(fleet: Cluster, query: str = "") -> ClientConnection:
    url = fleet.url.replace("http", "ws") + "/v1/session" + query
    return await connect(url, subprotocols=[Subprotocol("playhead.v1.json")])


async def nodes_of(fleet: Cluster, queries: list[str]) -> list[str]:
    """The node that answers each of these handshakes, all open at once."""
    sockets = await asyncio.gather(*(handshake(fleet, query) for query in queries))
    names = [str(socket.response.headers["Playhead-Node"]) for socket in sockets if socket.response]
    await asyncio.gather(*(socket.close() for socket in sockets))
    return names


async def nodes_while_alike(fleet: Cluster, count: int) -> list[str]:
    """The nodes of so many sessions, opened while both nodes weigh the same and have no others.
    A busy machine that keeps one of them waiting takes slack from it, and so weight."""
    async with asyncio.timeout(PATIENCE):
        while True:
            before = await asyncio.to_thread(fleet.seen)
            names = await nodes_of(fleet, [""] * count)
            after = await asyncio.to_thread(fleet.seen)
            seen = (before, after)
            weights = [int(row["weight"]) for rows in seen for row in rows.values()]
            idle = all(row["scur"] == "0" for row in before.values())
            if idle and min(weights) > 0.9 * max(weights):  # an eighth would move one of sixteen
                return names
            await asyncio.sleep(0.1)


def test_a_session_returns_to_the_node_that_knows_it(fleet: Cluster) -> None:
    # Drawn by lot they would be even once in five times.
    assert Counter(asyncio.run(nodes_while_alike(fleet, 16))) == {"node-1": 8, "node-2": 8}

    async def main() -> None:
        for name in ("node-1", "node-2"):
            assert await nodes_of(fleet, [f"?node={name}"] * 5) == [name] * 5
        strangers = Counter(await nodes_of(fleet, ["?node=of-another-house"] * 4))
        assert sum(strangers.values()) == 4

    asyncio.run(main())


def test_a_node_s_own_figures_are_not_for_everybody(fleet: Cluster) -> None:
    assert '"ready": true' in fetch(f"{fleet.url}/readyz")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        fetch(f"{fleet.url}/metrics")


def test_the_busier_node_weighs_less(fleet: Cluster) -> None:
    # A busy machine makes both of them late, and takes slack from both.
    def alike(first: int, second: int) -> bool:
        return abs(first - second) <= 10

    async def main() -> None:
        await until_weights(fleet, alike)
        busy = [Heard((TEXT,) * 4) for _ in range(6)]
        begun = [asyncio.Event() for _ in busy]
        url = fleet.url + "/v1/session?node=node-1"
        tasks = []
        for heard, event in zip(busy, begun, strict=True):
            tasks.append(asyncio.create_task(listen(url, heard, event)))
            await asyncio.sleep(0.2)  # six in one moment are more than this voice lets in
        await asyncio.gather(*(asyncio.wait_for(event.wait(), PATIENCE) for event in begun))
        await until_weights(fleet, lambda first, second: first < 80 and second > first + 10)
        names = Counter(await nodes_of(fleet, [""] * 6))
        assert names["node-2"] == 6, "new sessions go where there is slack, and to fewer listeners"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await until_weights(fleet, alike)

    asyncio.run(main())


def assert_those_of_the_one_went(found: list[Heard], gone: Node, left: Node) -> None:
    """The sessions of the node that went were on the other after it, once each; those of the other
    stayed where they were. There were some of both."""
    were = [tuple(heard.nodes) for heard in found]
    assert set(were) == {(gone.name, left.name), (left.name,)}


def test_draining_one_node_loses_nothing(fleet: Cluster) -> None:
    first, second = fleet.nodes

    def act() -> tuple[int, list[str]]:
        status = first.drain()
        return status, asyncio.run(nodes_of(fleet, [""] * 3))

    found, (status, names) = asyncio.run(disturbed(fleet.url, (TEXT,), 4, act, after=0.5))
    assert status == 0
    assert names == [second.name] * 3
    for heard in found:
        assert heard.well, heard.outcomes
        assert (heard.missing, heard.repeated) == (0, 0)
    assert_those_of_the_one_went(found, first, second)
    first.start()
    first.ready()
    fleet.wait(first)


def test_a_killed_node_costs_a_repeated_word(fleet: Cluster) -> None:
    first, second = fleet.nodes
    found, _ = asyncio.run(disturbed(fleet.url, (TEXT,), 4, second.stop, after=0.5))
    for heard in found:
        assert heard.well, heard.outcomes
        assert heard.missing == 0
        assert heard.repeated <= 1
    assert_those_of_the_one_went(found, second, first)
    fleet.wait(second, up=False)
    assert asyncio.run(nodes_of(fleet, ["?node=node-2"] * 2)) == [first.name] * 2


def weights(fleet: Cluster) -> tuple[int, int]:
    seen = fleet.seen()
    return int(seen["node-1"]["weight"]), int(seen["node-2"]["weight"])


async def until_weights(fleet: Cluster, wanted: Callable[[int, int], bool]) -> None:
    for _ in range(round(PATIENCE / 0.1)):
        if wanted(*await asyncio.to_thread(weights, fleet)):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(weights(fleet))
