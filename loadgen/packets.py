"""What a shaped network does to IP packets between a client's and a server's namespace: pure.

The third byte of the server's address names the network; each TCP connection has a weather of its
own, drawn by seed in the order in which connections appear. Packets of one direction keep their
order. What does not fit into the queue is lost, and so is a share drawn by chance: unlike the
proxy (network.py), this is seen by TCP, which sends again and slows down.
"""

import math
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from playhead.loadgen.shaping import Conditions, Shaper, Weather

QUEUE = 128 * 1024
"""Bytes that wait for the line at most, each way of each connection."""
_IPV4, _TCP = 4, 6
_LEAST = 24  # bytes: a head without options, and two ports


class Flow(NamedTuple):
    """One TCP connection: the network's number and the ports of client and server."""

    network: int
    client: int
    server: int


@dataclass(slots=True)
class _Way:
    """One direction of one connection."""

    shaper: Shaper
    waiting: list[tuple[float, int]] = field(default_factory=list)  # release, bytes

    def queued(self, now: float) -> int:
        """Bytes that have not left yet."""
        self.waiting = [(at, size) for at, size in self.waiting if at > now]
        return sum(size for _, size in self.waiting)


class Network:
    """All connections through the two namespaces."""

    def __init__(self, networks: Sequence[Conditions], seed: int) -> None:
        self._networks = networks
        self._seed = seed
        self._flows: dict[Flow, tuple[_Way, _Way]] = {}
        self._chance = random.Random(f"loss {seed}")
        self.lost = 0  # packets

    def release(self, packet: bytes, up: bool, now: float) -> float | None:
        """When a packet given at ``now`` is there; ``None``: never. ``up``: from the client."""
        flow = flow_of(packet, up)
        if flow is None or flow.network >= len(self._networks):
            return None
        conditions = self._networks[flow.network]
        way = self._ways(flow, conditions, now)[not up]
        full = conditions.bandwidth < math.inf and way.queued(now) + len(packet) > QUEUE
        if full or self._chance.random() < conditions.loss:
            self.lost += 1
            return None
        at = way.shaper.release(len(packet), now)
        if math.isinf(at):
            return None
        way.waiting.append((at, len(packet)))
        return at

    def _ways(self, flow: Flow, conditions: Conditions, now: float) -> tuple[_Way, _Way]:
        if flow not in self._flows:
            number = len(self._flows)
            weather = Weather(conditions, random.Random(f"weather {self._seed} {number}"), now)
            up, down = (
                _Way(Shaper(conditions, weather, random.Random(f"{way} {self._seed} {number}")))
                for way in ("up", "down")
            )
            self._flows[flow] = up, down
        return self._flows[flow]


def flow_of(packet: bytes, up: bool) -> Flow | None:
    """The TCP connection of an IPv4 packet (RFC 791, RFC 9293); ``None`` for any other packet."""
    if len(packet) < _LEAST or packet[0] >> 4 != _IPV4 or packet[9] != _TCP:
        return None
    head = 4 * (packet[0] & 15)
    if len(packet) < head + 4:
        return None
    source, target = struct.unpack_from("!HH", packet, head)
    network = packet[18] if up else packet[14]
    return Flow(network, source, target) if up else Flow(network, target, source)
