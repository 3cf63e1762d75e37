"""Packets between two namespaces: late, in order, lost; no device needed."""

import struct

import pytest
from playhead.loadgen.packets import QUEUE, Flow, Network, flow_of
from playhead.loadgen.shaping import Conditions


def packet(
    source: str = "10.77.255.254",
    target: str = "10.77.1.1",
    ports: tuple[int, int] = (40_000, 8_080),
    size: int = 100,
    kind: int = 6,
    options: int = 0,
) -> bytes:
    """IPv4 without checksums, which nobody looks at here."""
    addresses = [bytes(map(int, address.split("."))) for address in (source, target)]
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x45 + options, 0, size, 0, 0, 64, kind, 0, *addresses
    )  # fmt: skip
    return (head + bytes(4 * options) + struct.pack("!HH", *ports)).ljust(size, b"\0")


def back(**values: object) -> bytes:
    return packet("10.77.1.1", "10.77.255.254", (8_080, 40_000), **values)  # type: ignore[arg-type]


def test_both_directions_are_one_connection() -> None:
    assert flow_of(packet(), up=True) == flow_of(back(), up=False) == Flow(1, 40_000, 8_080)
    assert flow_of(packet(options=2), up=True) == Flow(1, 40_000, 8_080)


@pytest.mark.parametrize(
    "data",
    [
        packet()[:23],
        b"\x60" + packet()[1:],
        packet(kind=17),
        packet(options=10)[:30],
    ],
    ids=["short", "version 6", "UDP", "cut"],
)
def test_what_is_no_tcp_over_ipv4_goes_nowhere(data: bytes) -> None:
    assert flow_of(data, up=True) is None
    assert Network([Conditions()] * 2, 0).release(data, True, 1.0) is None


def test_a_network_that_is_not_known_is_none() -> None:
    assert Network([Conditions()], 0).release(packet(), True, 1.0) is None


def test_packets_are_delayed_by_their_own_network() -> None:
    network = Network([Conditions(), Conditions(delay=0.05)], 0)
    assert network.release(packet(), True, 1.0) == pytest.approx(1.05)
    assert network.release(back(), False, 2.0) == pytest.approx(2.05)
    assert network.release(packet(target="10.77.0.1"), True, 1.0) == 1.0


def test_jitter_does_not_change_the_order() -> None:
    network = Network([Conditions(), Conditions(delay=0.01, jitter=0.05)], 1)
    times = [network.release(packet(), True, 0.001 * number) for number in range(50)]
    assert all(time is not None for time in times)
    assert times == sorted(times)  # type: ignore[type-var]


def test_what_does_not_fit_the_queue_is_lost_until_it_has_drained() -> None:
    network = Network([Conditions(), Conditions(bandwidth=1e5)], 0)
    sizes = [network.release(packet(size=1_500), True, 0.0) for _ in range(100)]
    kept = [at for at in sizes if at is not None]
    assert len(kept) == QUEUE // 1_500
    assert network.lost == 100 - len(kept)
    assert network.release(back(size=1_500), False, 0.0) is not None, "each way has a queue"
    assert network.release(packet(size=1_500), True, kept[-1]) is not None


def test_a_share_is_lost_by_chance() -> None:
    network = Network([Conditions(), Conditions(loss=0.25)], 7)
    came = sum(network.release(packet(), True, float(n)) is not None for n in range(2_000))
    assert came == pytest.approx(1_500, abs=80)


def test_stalls_hold_back_a_connection_and_differ_between_connections() -> None:
    network = Network([Conditions(), Conditions(stall_every=2.0)], 3)
    late = {
        port: [
            at - now > 0.2
            for now in (0.1 * step for step in range(100))
            if (at := network.release(packet(ports=(port, 8_080)), True, now)) is not None
        ]
        for port in (1, 2)
    }
    assert any(late[1])
    assert any(late[2])
    assert late[1] != late[2]


def test_nothing_leaves_a_black_hole() -> None:
    network = Network([Conditions(), Conditions(black_hole_after=1.0)], 0)
    assert network.release(packet(), True, 10.0) == 10.0
    assert network.release(packet(), True, 11.5) is None


def test_one_seed_is_one_network() -> None:
    conditions = [Conditions(), Conditions(delay=0.01, jitter=0.02, loss=0.1, stall_every=1.0)]
    runs = [
        [Network(conditions, seed).release(packet(), True, t) for t in (0.0, 1.0, 2.0)]
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]
