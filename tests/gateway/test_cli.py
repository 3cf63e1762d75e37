"""The console command: what it prints, what it imports, and how it ends."""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_runner import FakeRunner
from machine import AT_ONCE, PATIENCE
from playhead.gateway import cli, serve
from playhead.gateway.messages import (
    Audio,
    Done,
    Draining,
    End,
    Failed,
    Hello,
    Ready,
    ServerMessage,
    Text,
)
from playhead.gateway.protocol import Wire
from playhead.gateway.settings import Settings
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

SERVER = Path(__file__).with_name("fake_runner.py")
ENVIRON = {
    **os.environ,
    "PYTHONUNBUFFERED": "1",
    "PYTHONPATH": os.pathsep.join([str(SERVER.parent), *sys.path]),
}


@contextmanager
def serving(*flags: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server process with the real engine and a fake voice, and its port."""
    command = [sys.executable, str(SERVER), "serve", "--port", "0", "--http-port", "off", *flags]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRON
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.fullmatch(
                r"playhead with voice alto is ready: http://127\.0\.0\.1:(\d+)/\n", line
            )
            assert found, line
            yield process, int(found[1])
        finally:
            process.kill()


class Session:
    """A blocking client."""

    def __init__(self, socket_: ClientConnection) -> None:
        self.socket = socket_
        self.wire = Wire("msgpack")
        self.samples = 0

    def send(self, *messages: Hello | Text | End) -> None:
        for message in messages:
            self.socket.send(self.wire.encode_client(message))

    def until(self, kind: type[ServerMessage]) -> ServerMessage:
        while True:
            message = self.wire.decode_server(self.socket.recv(timeout=PATIENCE))
            if isinstance(message, Audio):
                self.samples += message.samples
            if isinstance(message, kind):
                return message


@contextmanager
def connected(port: int) -> Iterator[Session]:
    """A client of the server on ``port``."""
    with connect(
        f"ws://127.0.0.1:{port}/v1/session",
        subprotocols=[Subprotocol("playhead.v1.msgpack")],
        compression=None,
    ) as socket_:
        yield Session(socket_)


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status and what else was printed."""
    out, err = process.communicate(timeout=AT_ONCE)
    return process.returncode, out, err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 1012), (signal.SIGINT, 1001)])
def test_a_signal_lets_speech_end(number: signal.Signals, code: int) -> None:
    with serving() as (process, port), connected(port) as session:
        session.send(Hello(), Text("one two three "))
        session.until(Audio)
        process.send_signal(number)
        session.until(Draining)
        session.send(End())
        done = session.until(Done)
        assert isinstance(done, Done)
        assert done.samples == session.samples == 3 * 1920
        status, out, err = end(process)
        assert status == 0
        assert out == "playhead is stopping: speech may go on for 30 s (once more: stop now)\n"
        assert err == ""
        session.socket.close()
        assert session.socket.close_code == code


def test_a_second_signal_stops_now() -> None:
    with serving() as (process, port), connected(port) as session:
        session.send(Hello(), Text("one two three "))
        session.until(Audio)
        process.terminate()
        session.until(Draining)
        process.terminate()
        failed = session.until(Failed)
        assert isinstance(failed, Failed)
        assert failed.code == "draining"
        assert end(process)[0] == 0


def test_it_stops_without_a_fault_though_nobody_reads_what_it_prints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(ENVIRON, "PYTHONUNBUFFERED")
    with serving() as (process, _):
        assert process.stdout is not None
        process.stdout.close()
        process.terminate()
        assert process.wait(AT_ONCE) == 0


def test_the_flags_reach_the_engine_and_the_session() -> None:
    flags = ("--urgency", "none", "--voice", "alto", "--grace", "3")
    with serving(*flags) as (process, port), connected(port) as session:
        session.send(Hello())
        ready = session.until(Ready)
        assert isinstance(ready, Ready)
        assert (ready.voice, ready.grace) == ("alto", 3000.0)
        session.send(Text("one "), End())
        audio = session.until(Audio)
        assert isinstance(audio, Audio)
        assert audio.slack is None
        process.terminate()
        assert end(process)[0] == 0


@pytest.fixture
def failing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs a command line that must fail before it serves: exit status and error output."""
    monkeypatch.setattr(serve, "configure_logging", lambda *_: None)
    monkeypatch.setattr(serve, "load_voice", FakeRunner)

    def run(*arguments: str) -> tuple[int, str]:
        try:
            status = cli.main(list(arguments), {})
        except SystemExit as exit_:
            status = int(str(exit_.code))
        printed = capsys.readouterr()
        assert printed.out == ""
        return status, printed.err

    return run


def test_a_taken_port_is_a_clear_error(failing: Callable[..., tuple[int, str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, error = failing("serve", "--port", str(port))
    assert status == 1
    assert error == (
        f"playhead serve: port {port} of 127.0.0.1 is in use: stop the other server, or "
        "choose another port with --port (0 takes any free one)\n"
    )


def test_a_voice_that_cannot_be_prepared(
    failing: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> FakeRunner:
        raise serve.StartError("the voice cannot be prepared: no space left")

    monkeypatch.setattr(serve, "load_voice", load)
    status, error = failing("serve", "--port", "0")
    assert (status, error) == (
        1,
        "playhead serve: the voice cannot be prepared: no space left\n",
    )


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["serve", "--voice", "bass"], 2, "--voice='bass' is not usable: expected one of alto,"),
        (["serve", "--host", "0.0.0.0"], 2, "add --open"),
        (["serve", "--port", "many"], 2, "--port='many' is not usable"),
        (["serve", "--host", "192.0.2.1", "--open"], 1, "cannot listen on --host"),
        (["serve", "--colour", "red"], 2, "unrecognized arguments: --colour red"),
        ([], 2, "required: command"),
    ],
)
def test_what_cannot_work_says_so(
    failing: Callable[..., tuple[int, str]], arguments: list[str], status: int, says: str
) -> None:
    found, error = failing(*arguments)
    assert (found, says in error) == (status, True), error
    assert "Traceback" not in error


def fake_module(name: str, monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """Stands in for the module of a subcommand; returns what it was run with."""
    ran: list[argparse.Namespace] = []
    module = types.ModuleType(name)

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--own")

    def run(args: argparse.Namespace) -> int:
        ran.append(args)
        return 7

    vars(module).update(add_arguments=add_arguments, run=run)
    monkeypatch.setitem(sys.modules, name, module)
    parent, _, child = name.rpartition(".")
    monkeypatch.setattr(sys.modules[parent], child, module, raising=False)
    return ran


@pytest.mark.parametrize(
    ("command", "name"),
    [("say", "playhead.client.say"), ("simulate", "playhead.engine.simulate")],
)
def test_other_commands_are_delegated(
    command: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import playhead.client
    import playhead.engine

    assert playhead.client
    assert playhead.engine
    ran = fake_module(name, monkeypatch)
    assert cli.main([command, "--own", "x"]) == 7
    assert [args.own for args in ran] == ["x"]


@pytest.mark.parametrize(("fault", "status"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_an_interrupted_command_is_quiet(fault: type[BaseException], status: int) -> None:
    code = (
        "import sys, playhead.engine.simulate as simulate\n"
        "from playhead.gateway.cli import main\n"
        f"def run(args): raise {fault.__name__}\n"
        "simulate.run = run\n"
        "sys.exit(main(['simulate']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ((["--help"], "simulate"), (["--version"], "0."), (["serve", "-h"], "--port"))
    for flags, says in asked:
        with pytest.raises(SystemExit) as caught:
            cli.main(flags)
        assert caught.value.code == 0
        assert says in capsys.readouterr().out


def test_help_loads_neither_model_nor_server() -> None:
    code = (
        "import sys\nfrom playhead.gateway.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'onnxruntime', 'websockets', 'uvloop', 'soxr', 'prometheus_client'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("127.0.0.1", 8080, "http://127.0.0.1:8080/"),
        ("0.0.0.0", 80, "http://127.0.0.1:80/"),
        ("::", 81, "http://[::1]:81/"),
        ("::1", 82, "http://[::1]:82/"),
    ],
)
def test_page_address(host: str, port: int, address: str) -> None:
    assert serve.page_address(host, port) == address


def test_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []

    def run(settings: Settings) -> int:
        seen.append(settings)
        return 0

    monkeypatch.setattr(serve, "run", run)
    assert cli.main(["serve"], {"PLAYHEAD_PORT": "1234"}) == 0
    assert seen == [Settings(port=1234)]
