"""Carries packets between two TUN devices, late and with losses (packets.py). Its own process:
``python -m playhead.loadgen.forwarder CLIENT_FD SERVER_FD SEED``, until it is terminated.
"""

import heapq
import os
import select
import sys
from itertools import count

from playhead.engine.clock import monotonic
from playhead.loadgen.packets import Network
from playhead.loadgen.shaping import IN_ORDER, Conditions

_MTU = 1_500
_AT_ONCE = 64  # packets read before what is due is written
_IDLE = 1.0


def forward(client: int, server: int, networks: list[Conditions], seed: int) -> None:
    """Never returns. Raises ``OSError`` when a device is gone."""
    line = Line(client, server, Network(networks, seed))
    while True:
        ready, _, _ = select.select([client, server], [], [], line.pause(monotonic()))
        for device in ready:
            line.take(device, monotonic())
        line.deliver(monotonic())


class Line:
    """Packets that are under way between the two devices."""

    def __init__(self, client: int, server: int, network: Network) -> None:
        self._client = client
        self._server = server
        self._network = network
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._ids = count()

    def pause(self, now: float) -> float:
        """Seconds until something is due."""
        return max(0.0, self._waiting[0][0] - now) if self._waiting else _IDLE

    def take(self, device: int, now: float) -> None:
        """Read what ``device`` has."""
        up = device == self._client
        other = self._server if up else self._client
        for packet in _read(device):
            at = self._network.release(packet, up, now)
            if at is not None:
                heapq.heappush(self._waiting, (at, next(self._ids), other, packet))

    def deliver(self, now: float) -> None:
        """Write what is due."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, device, packet = heapq.heappop(self._waiting)
            os.write(device, packet)


def _read(device: int) -> list[bytes]:
    packets: list[bytes] = []
    try:
        while len(packets) < _AT_ONCE:
            packets.append(os.read(device, _MTU))
    except BlockingIOError:
        pass
    return packets


if __name__ == "__main__":
    forward(int(sys.argv[1]), int(sys.argv[2]), list(IN_ORDER), int(sys.argv[3]))
