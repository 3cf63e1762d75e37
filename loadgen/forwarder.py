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
    network = Network(networks, seed)
    waiting: list[tuple[float, int, int, bytes]] = []
    ids = count()
    while True:
        pause = max(0.0, waiting[0][0] - monotonic()) if waiting else _IDLE
        ready, _, _ = select.select([client, server], [], [], pause)
        for device in ready:
            other = server if device == client else client
            for packet in _read(device):
                at = network.release(packet, device == client, monotonic())
                if at is not None:
                    heapq.heappush(waiting, (at, next(ids), other, packet))
        while waiting and waiting[0][0] <= monotonic():
            _, _, device, packet = heapq.heappop(waiting)
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
