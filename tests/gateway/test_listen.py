"""Both ports are bound before anything slow, and a fault names the flag that mends it."""

import socket

import pytest
from playhead.gateway.listen import ListenError, listen
from playhead.gateway.settings import HTTP_OFF, Settings
from ports import free_ports


def test_the_api_is_next_to_the_sessions() -> None:
    port = free_ports(2)
    with listen(Settings(port=port)) as listeners:
        assert listeners.http is not None
        assert listeners.http.getsockname()[1] == port + 1


def test_the_api_steps_over_the_port_of_the_agent() -> None:
    port = free_ports(3)
    with listen(Settings(port=port, agent_port=port + 1)) as listeners:
        assert listeners.http is not None
        assert listeners.agent is not None
        assert listeners.agent.getsockname()[1] == port + 1
        assert listeners.http.getsockname()[1] == port + 2


def test_a_port_of_the_systems_choice_goes_for_both() -> None:
    with listen(Settings(port=0)) as listeners:
        assert listeners.http is not None
        assert listeners.http.getsockname()[1] not in (0, listeners.sessions.getsockname()[1])


def test_the_api_can_be_off() -> None:
    with listen(Settings(port=0, http_port=HTTP_OFF)) as listeners:
        assert listeners.http is None


def test_a_taken_port_is_told_with_its_flag() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=rf"port {port} .* with --http-port .* off does"):
            listen(Settings(port=0, http_port=port))
        with pytest.raises(ListenError, match=rf"port {port} .* with --port \(0 takes any"):
            listen(Settings(port=port))


def test_other_faults_are_told_as_they_are() -> None:
    with pytest.raises(ListenError, match=r"cannot listen on --host 192\.0\.2\.1 --port 0"):
        listen(Settings(host="192.0.2.1", port=0, open=True))
