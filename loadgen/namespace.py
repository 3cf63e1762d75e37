"""Two network namespaces with a user-space forwarder between them: Linux, root only.

Server and generator each live in a namespace of their own; nothing of the machine's own network is
touched, and both are gone when their last process is. The kernel's netem is not needed.
"""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from playhead.loadgen.shaping import IN_ORDER, ORDER

_TUN = "/dev/net/tun"
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET, unshare(2)
_TUN_SET = 0x400454CA  # TUNSETIFF, linux/if_tun.h
_TUN_RAW = 0x1001  # IFF_TUN | IFF_NO_PI
_SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x8914, 0x8916, 0x891C  # SIOCSIF..., netdevice(7)
_UP = 0x41  # IFF_UP | IFF_RUNNING
_CLIENT = "10.77.255.254"
_MASK = "255.255.0.0"


class NoNamespaces(RuntimeError):
    """Namespaces cannot be had; the message says why and what would help."""


@dataclass(slots=True)
class Net:
    """File descriptors of both namespaces; see :func:`inside`."""

    server: int = -1
    client: int = -1
    devices: list[int] = field(default_factory=list)  # the client's and the server's TUN


def check() -> None:
    """Raises :class:`NoNamespaces`."""
    if sys.platform != "linux":
        raise NoNamespaces("--network namespace needs Linux; --network proxy works anywhere")
    if os.geteuid() != 0:
        raise NoNamespaces("--network namespace needs root; --network proxy works without")
    if not os.path.exists(_TUN):
        raise NoNamespaces(f"--network namespace needs {_TUN}: modprobe tun, or --network proxy")


def moved(url: str, network: str) -> str:
    """``url`` at the server's address for one of the networks (shaping.py)."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit(parts._replace(netloc=_server(ORDER.index(network)) + port))


@contextlib.contextmanager
def namespaces(seed: int) -> Iterator[Net]:
    """Both namespaces, packets flowing between them. Raises :class:`NoNamespaces`."""
    check()
    net = Net()
    failed: list[OSError] = []
    # Namespaces belong to threads: one that only makes them leaves this one where it is.
    maker = threading.Thread(target=_make, args=(net, failed))
    maker.start()
    maker.join()
    try:
        if failed:
            raise NoNamespaces(f"--network namespace: {failed[0]}; use --network proxy")
        with _forwarding(net, seed):
            yield net
    finally:
        for each in (net.server, net.client, *net.devices):
            if each >= 0:
                os.close(each)


@contextlib.contextmanager
def inside(namespace: int) -> Iterator[None]:
    """Sockets that this thread makes, and processes that it starts, are in ``namespace``."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _enter(namespace)
        yield
    finally:
        _enter(own)
        os.close(own)


def _server(number: int) -> str:
    return f"10.77.{number}.1"


def _make(net: Net, failed: list[OSError]) -> None:
    try:
        net.client = new_namespace()
        net.devices.append(_device({"ph": _CLIENT}))
        net.server = new_namespace()
        addresses = {f"ph:{number}": _server(number) for number in range(1, len(IN_ORDER))}
        net.devices.append(_device({"ph": _server(0), **addresses}))
    except OSError as error:
        failed.append(error)


def new_namespace() -> int:
    """A descriptor of a new namespace with a loopback interface. The calling thread is in it then,
    so make a thread for it. Raises ``OSError``."""
    _call("unshare", _NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH22x", b"lo", _UP))
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def _device(addresses: dict[str, str]) -> int:
    """A TUN device in this thread's namespace, with its addresses by name."""
    device = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUN_SET, struct.pack("16sH22x", b"ph", _TUN_RAW))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, address in addresses.items():
            fcntl.ioctl(control, _SET_ADDRESS, _address(name, address))
            fcntl.ioctl(control, _SET_MASK, _address(name, _MASK))
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH22x", b"ph", _UP))
    return device


def _address(name: str, address: str) -> bytes:
    return struct.pack("16sHH4s16x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))


@contextlib.contextmanager
def _forwarding(net: Net, seed: int) -> Iterator[None]:
    command = [sys.executable, "-m", "playhead.loadgen.forwarder"]
    with subprocess.Popen(
        [*command, *map(str, net.devices), str(seed)], pass_fds=net.devices
    ) as process:
        try:
            yield
        finally:
            process.kill()


def _enter(namespace: int) -> None:
    _call("setns", namespace, _NEW_NETWORK)


def _call(name: str, *arguments: int) -> None:
    """A call of the C library that Python 3.11 does not offer. Raises ``OSError``."""
    library = ctypes.CDLL(None, use_errno=True)
    if library[name](*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
