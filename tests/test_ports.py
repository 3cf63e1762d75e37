"""Ports that were chosen are free, and nobody else's until this process ends."""

import socket
import subprocess
import sys
from pathlib import Path

import ports
import pytest


def test_all_of_the_neighbours_are_free() -> None:
    first = ports.free_ports(6)
    listeners = [socket.create_server(("127.0.0.1", first + number)) for number in range(6)]
    for listener in listeners:
        listener.close()


def test_the_system_gives_none_of_them_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert ports.free_ports() < ports._given_out() <= listener.getsockname()[1]


def test_a_port_that_somebody_has_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ports.free_ports(3)
    monkeypatch.setattr(ports, "LOWEST", first)
    monkeypatch.setattr(ports, "_given_out", lambda: first + 4)  # these three or none
    monkeypatch.setattr(ports, "_name", lambda _: socket.socket(socket.AF_UNIX))
    assert ports.free_ports(3) == first
    with (
        socket.create_server(("127.0.0.1", first + 1)),
        pytest.raises(AssertionError, match="no 3 free ports side by side"),
    ):
        ports.free_ports(3)


@pytest.mark.skipif(sys.platform != "linux", reason="names without files are Linux's")
def test_another_process_chooses_others() -> None:
    port = ports.free_ports()
    program = (
        f"import ports; ports.LOWEST = {port}; ports._given_out = lambda: {port + 2};"
        "ports.free_ports()"
    )
    folder = Path(ports.__file__).parent
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    assert "no 1 free ports" in ended.stderr
