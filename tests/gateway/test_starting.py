"""What a server answers while its model loads."""

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_runner import FakeRunner
from machine import AT_ONCE, PATIENCE, until
from playhead.engine.progress import Progress, Stage
from playhead.gateway import last_call, serve, starting
from playhead.gateway.access_guard import Guard
from playhead.gateway.last_call import queued
from playhead.gateway.listen import Listeners, listen
from playhead.gateway.settings import HTTP_OFF, Settings, SettingsError
from playhead.gateway.starting import MOST_HEAD, _WaitingRoom, answer, waiting
from ports import free_ports
from test_access_tls import client_context, issue

STAGE = Stage("capturing graphs", 0.4567)
REQUEST = b"GET /readyz HTTP/1.1\r\n\r\n"
MUCH = b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n" + bytes(9_000_000)


def split(data: bytes) -> tuple[int, dict[str, str], str]:
    head, _, body = data.decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    return int(first.split(" ")[1]), dict(line.split(": ", 1) for line in lines), body


def test_readiness_tells_stage_and_share() -> None:
    status, headers, body = split(answer(b"GET /readyz?x HTTP/1.1\r\nHost: a\r\n", STAGE, 12.34))
    assert status == 503
    assert headers["Retry-After"] == "2"
    assert headers["Connection"] == "close"
    assert int(headers["Content-Length"]) == len(body)
    load = {"stage": "capturing graphs", "done": 0.457, "seconds": 12.3}
    assert json.loads(body) == {"ready": False, "reason": "loading", "load": load}


@pytest.mark.parametrize(
    "line", [b"GET /healthz HTTP/1.1", b"GET /v1/session HTTP/1.1", b"POST / HTTP/1.1", b"\x16\x03"]
)
def test_everything_else_is_refused_with_the_reason(line: bytes) -> None:
    status, headers, body = split(answer(line + b"\r\n", STAGE, 1.0))
    assert status == 503
    assert headers["Retry-After"] == "2"
    assert json.loads(body)["message"] == "the server is starting: capturing graphs, 46%"


def test_head_gets_no_body() -> None:
    status, headers, body = split(answer(b"HEAD /readyz HTTP/1.1\r\n", STAGE, 1.0))
    assert (status, body) == (503, "")
    assert int(headers["Content-Length"]) > 0


def connect(listener: socket.socket) -> socket.socket:
    return socket.create_connection(listener.getsockname(), timeout=PATIENCE)


def ask(listener: socket.socket, request: bytes = REQUEST) -> bytes:
    with connect(listener) as client:
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(4096), b""))


def hung_up(client: socket.socket) -> bool:
    try:
        return not client.recv(10)
    except ConnectionError:
        return True


def opened() -> Listeners:
    return listen(Settings(port=0, http_port=0, agent_port=0))


@pytest.mark.slow
def test_all_ports_answer_and_are_given_back() -> None:
    settings = Settings()
    with opened() as listeners, waiting(listeners, Guard(settings)) as progress:
        assert listeners.http is not None
        assert listeners.agent is not None
        progress("reading the weights", 0.5)
        for listener in (listeners.sessions, listeners.http):
            status, _, body = split(ask(listener))
            assert (status, json.loads(body)["load"]["stage"]) == (503, "reading the weights")
        assert ask(listeners.agent, b"") == b"down#reading the weights\n"


@pytest.mark.slow
def test_who_comes_late_is_left_for_the_server() -> None:
    with opened() as listeners:
        with waiting(listeners, Guard(Settings())):
            ask(listeners.sessions)
        with connect(listeners.sessions) as client:
            listeners.sessions.setblocking(True)
            accepted, _ = listeners.sessions.accept()
            with accepted:
                client.sendall(b"for the server")
                assert accepted.recv(100) == b"for the server"


@pytest.mark.slow
def test_nobody_of_a_crowd_that_meets_the_end_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(starting, "PATIENCE", PATIENCE)
    with opened() as listeners, contextlib.ExitStack() as clients:
        crowd = meet_the_end(listeners, clients, last=False)
        serve_who_waits(listeners.sessions)
        answers = [client.recv(12) for client in crowd]
    assert set(answers) <= {b"HTTP/1.1 503", b"served"}
    assert not told(caplog)


@pytest.mark.slow
def test_where_loading_fails_nobody_of_the_crowd_is_lost_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(starting, "PATIENCE", PATIENCE)
    monkeypatch.setattr(last_call, "QUEUE", PATIENCE)
    with contextlib.ExitStack() as clients:
        with opened() as listeners:
            crowd = meet_the_end(listeners, clients, last=True)
        assert {client.recv(12) for client in crowd} == {b"HTTP/1.1 503"}


def meet_the_end(
    listeners: Listeners, clients: contextlib.ExitStack, *, last: bool
) -> list[socket.socket]:
    """A crowd that a room finds, in one turn of its loop, with the end of loading."""
    room = _WaitingRoom(Guard(Settings()))
    stands, goes_on = threading.Event(), threading.Event()

    def stand() -> None:
        stands.set()
        goes_on.wait(PATIENCE)

    room.open(listeners)
    ask(listeners.sessions)
    room._loop.call_soon_threadsafe(stand)
    assert stands.wait(PATIENCE)
    crowd = [clients.enter_context(connect(listeners.sessions)) for _ in range(100)]
    for client in crowd:
        client.sendall(REQUEST)
    room._last = last
    room._loop.call_soon_threadsafe(room._over.set)
    goes_on.set()
    room.close(last=last)
    return crowd


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def serve_who_waits(listener: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            accepted, _ = listener.accept()
            with accepted:
                accepted.setblocking(True)
                accepted.sendall(b"served")
                accepted.recv(100)


@pytest.mark.slow
def test_who_sends_much_behind_the_request_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "PATIENCE", PATIENCE)
    with opened() as listeners, waiting(listeners, Guard(Settings())):
        assert split(ask(listeners.sessions, MUCH))[0] == 503


@pytest.mark.slow
def test_who_says_nothing_does_not_keep_the_room_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(starting, "PATIENCE", 0.1)
    with opened() as listeners:
        with waiting(listeners, Guard(Settings())):
            client = connect(listeners.sessions)
            until(lambda: not queued(listeners.sessions))
        with client:
            assert hung_up(client)
    assert not told(caplog)


@pytest.mark.slow
def test_a_fault_while_loading_closes_the_waiting_room() -> None:
    with opened() as listeners:
        with pytest.raises(ZeroDivisionError), waiting(listeners, Guard(Settings())):
            raise ZeroDivisionError
        assert listeners.sessions.fileno() >= 0


@pytest.mark.slow
def test_a_voice_that_is_not_there_is_such_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = []

    @contextlib.contextmanager
    def watched(listeners: Listeners, guard: Guard) -> Iterator[Progress]:
        try:
            with waiting(listeners, guard) as progress:
                yield progress
        except SettingsError as fault:
            faults.append(str(fault))
            raise

    monkeypatch.setattr(serve, "waiting", watched)
    for whole_process in ("configure_logging", "keep_thresholds"):
        monkeypatch.setattr(serve, whole_process, lambda *_: None)
    settings = Settings(port=0, http_port=HTTP_OFF, voice="nobody's")
    assert serve.run(settings, FakeRunner) == serve.EXIT_USAGE
    (told,) = faults
    assert told.startswith('--voice="nobody\'s" is not usable: expected one of ')


@pytest.mark.slow
def test_who_says_nothing_or_too_much_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "PATIENCE", 0.2)
    with opened() as listeners, waiting(listeners, Guard(Settings())):
        for said in (b"", b"GET", b"x" * (2 * MOST_HEAD)):
            with connect(listeners.sessions) as client:
                client.sendall(said)
                assert hung_up(client)
        assert split(ask(listeners.sessions))[0] == 503


@pytest.mark.slow
def test_who_finds_no_room_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "MOST_OPEN", 4)
    monkeypatch.setattr(starting, "PATIENCE", PATIENCE)
    with opened() as listeners, waiting(listeners, Guard(Settings())):
        idle = [connect(listeners.sessions) for _ in range(4)]
        with connect(listeners.sessions) as client:
            client.sendall(REQUEST)
            until(lambda: queued(listeners.sessions) == 1)
            idle.pop().close()
            assert client.recv(12) == b"HTTP/1.1 503"
        assert listeners.http is not None
        assert split(ask(listeners.http))[0] == 503  # has room of its own
        for one in idle:
            one.close()


@pytest.fixture
def secure(tmp_path: Path) -> Guard:
    return Guard(Settings(**issue(tmp_path)))


@pytest.mark.slow
def test_tls_is_spoken_where_it_is_asked_for(secure: Guard) -> None:
    with (
        opened() as listeners,
        waiting(listeners, secure),
        connect(listeners.sessions) as plain,
        client_context().wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        client.sendall(REQUEST)
        assert client.recv(12) == b"HTTP/1.1 503"


@pytest.mark.slow
def test_who_sends_much_over_tls_is_answered_too(
    secure: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "PATIENCE", PATIENCE)
    with (
        opened() as listeners,
        waiting(listeners, secure),
        connect(listeners.sessions) as plain,
        client_context().wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        client.sendall(MUCH)
        assert client.recv(12) == b"HTTP/1.1 503"


@pytest.mark.slow
def test_a_server_that_loads_says_so_and_then_serves() -> None:
    with loading_server() as (process, port):
        status, load = readiness(port)
        assert (status, load["stage"], load["done"]) == (503, "loading the voice", 0.0)
        assert process.stdin is not None
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout is not None
        assert "is ready" in process.stdout.readline()
        assert readiness(port)[0] == 200
        process.terminate()
        assert process.wait(AT_ONCE) == 0


@contextlib.contextmanager
def loading_server() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server whose voice is loaded once it is told to, and its port."""
    port = free_ports()
    command = [sys.executable, "-c", SLOW_START, "serve", "--port", str(port), "--http-port", "off"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "loading\n"
            yield process, port
        finally:
            process.kill()


SLOW_START = """
import sys
from fake_runner import FakeRunner
from playhead.gateway import cli, serve

def load():
    print("loading", flush=True)
    sys.stdin.readline()
    return FakeRunner()

serve.load_voice = load
sys.exit(cli.main())
"""


def readiness(port: int) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE) as found:
            return found.status, json.load(found)["load"]
    except urllib.error.HTTPError as fault:
        return fault.code, json.load(fault)["load"]
