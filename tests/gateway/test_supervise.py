"""Several servers on one host: which ports and names they get, and that they are kept alive."""

import argparse
import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import AT_ONCE, PATIENCE
from playhead.gateway import cli, gpu, supervise
from playhead.gateway.settings import HTTP_OFF, Settings, SettingsError
from playhead.gateway.signals import STOPPING
from playhead.gateway.supervise import Backoff, Supervisor, Worker, without, workers

FOLDER = Path("/run/playhead")
SERVER = Path(__file__).with_name("fake_runner.py")


@contextlib.contextmanager
def kept_signals() -> Iterator[None]:
    """What handles signals afterwards is what did before."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def args(**given: str) -> argparse.Namespace:
    return argparse.Namespace(**({"workers": None, "gateways": None, "gpus": None} | given))


def device(index: int) -> gpu.Device:
    return gpu.Device(index, f"GPU-{index}", "H200", "570", 0, 1, None)


def test_ports_follow_each_other() -> None:
    team = workers(args(workers="2"), Settings(port=9000, node="host"), FOLDER)
    assert [worker.name for worker in team] == ["host-0", "host-1"]
    assert " ".join(team[1].flags) == (
        "--port 9001 --node host-1 --http-port 9003 --agent-port 9005"
    )
    assert team[1].environ == {}


def test_ports_may_be_given_off_or_free() -> None:
    chosen = Settings(port=9000, http_port=HTTP_OFF, agent_port=7000, node="h")
    (_, second) = workers(args(workers="2"), chosen, FOLDER)
    assert " ".join(second.flags) == "--port 9001 --node h-1 --http-port off --agent-port 7001"
    (only,) = workers(args(workers="1"), Settings(port=0, http_port=0, node="h"), FOLDER)
    assert " ".join(only.flags) == "--port 0 --node h-0 --http-port 0 --agent-port 0"
    (only,) = workers(args(workers="1"), Settings(port=0), FOLDER)
    assert re.fullmatch(r"[a-z0-9-]+-0", only.name)


def test_one_process_per_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "devices", lambda _: [device(0), device(1)])
    team = workers(args(gpus="all"), Settings(node="h"), FOLDER)
    assert [worker.environ["CUDA_VISIBLE_DEVICES"] for worker in team] == ["0", "1"]
    (only,) = workers(args(gpus="1"), Settings(node="h"), FOLDER)
    assert only.environ == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}


@pytest.mark.parametrize(
    ("given", "port", "says"),
    [
        ({"workers": "0"}, 8080, "--workers='0' is not usable: expected a number from 1 to 64"),
        ({"workers": "many"}, 8080, "expected a number from 1 to 64"),
        ({"workers": "2", "gpus": "all"}, 8080, "contradict"),
        ({"workers": "64"}, 65_500, "--port 65500 leaves no room for 64 processes"),
        ({"gpus": "2"}, 8080, "--gpus='2' is not usable: expected all, or some of 0, 1"),
        ({"gpus": "0,0"}, 8080, "--gpus='0,0' is not usable"),
        ({"gpus": "0,x"}, 8080, "--gpus='0,x' is not usable"),
    ],
)
def test_what_cannot_be_started_says_so(
    given: dict[str, str], port: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "devices", lambda _: [device(0), device(1)])
    with pytest.raises(SettingsError) as caught:
        workers(args(**given), Settings(port=port), FOLDER)
    assert says in str(caught.value)


def test_no_device_at_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "devices", lambda _: [])
    assert cli.main(["serve", "--gpus", "all"], {}) == 2
    assert "--gpus: no CUDA device is seen" in capsys.readouterr().err


def test_what_keeps_dying_is_started_ever_more_slowly() -> None:
    backoff = Backoff()
    assert [backoff.died(1.0) for _ in range(4)] == [0.0, 0.5, 1.0, 2.0]
    assert backoff.died(supervise.SETTLED) == 0.0
    assert [backoff.died(1.0) for _ in range(9)][-1] == supervise.LONGEST_PAUSE


def test_flags_of_the_supervisor_are_taken_out() -> None:
    line = ["serve", "--workers", "2", "--port=1", "--voice", "alto", "--port", "3", "--open"]
    assert without(line, "--workers", "--port") == ["serve", "--voice", "alto", "--open"]


def node(url: str) -> str:
    with urllib.request.urlopen(url + "readyz", timeout=PATIENCE) as answer:
        return str(answer.status)


def test_a_worker_that_dies_is_started_again_and_all_drain_together() -> None:
    command = [sys.executable, str(SERVER), "serve", "--workers", "2", "--port", "0"]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environ["PYTHONPATH"] = os.pathsep.join([str(SERVER.parent), *sys.path])
    with subprocess.Popen(
        [*command, "--http-port", "off"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    ) as process:
        assert process.stdout is not None
        try:
            ready = [process.stdout.readline() for _ in range(2)]
            urls = [line.rpartition(" ")[2].strip() for line in ready]
            assert [node(url) for url in urls] == ["200", "200"]
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGKILL)
            assert "is ready" in process.stdout.readline()
            process.terminate()
            out, err = process.communicate(timeout=AT_ONCE)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert out.count("is stopping") == 2
    assert re.search(r"playhead serve: \S+-\d ended with -9; again in 0 s\n", err)


def test_workers_that_cannot_start_end_the_supervisor() -> None:
    command = [sys.executable, str(SERVER), "serve", "--workers", "2", "--port", "0"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SERVER.parent), *sys.path])}
    done = subprocess.run(
        [*command, "--voice", "nobody"],
        capture_output=True,
        text=True,
        env=environ,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert "--voice='nobody' is not usable" in done.stderr


def ended(pid: str) -> bool:
    """Whether a process is gone, or waits for whoever adopted it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("flag", ["--workers", "--gateways"])
def test_nobody_outlives_a_supervisor_that_is_killed(flag: str) -> None:
    command = [sys.executable, str(SERVER), "serve", flag, "2", "--port", "0"]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environ["PYTHONPATH"] = os.pathsep.join([str(SERVER.parent), *sys.path])
    with subprocess.Popen(
        [*command, "--http-port", "off", "--drain-timeout", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environ,
    ) as process:
        assert process.stdout is not None
        try:
            assert all("is ready" in process.stdout.readline() for _ in range(2))
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        finally:
            process.kill()
        assert len(children) == (2 if flag == "--workers" else 3)
        until = time.monotonic() + AT_ONCE
        while not all(map(ended, children)) and time.monotonic() < until:
            time.sleep(0.05)
        left = [pid for pid in children if not ended(pid)]
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
        assert not left


ENDING = """
import os, signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
open(f"{sys.argv[0]}.{os.getpid()}", "x").close()
while not told:
    time.sleep(0.01)
kind, length = sys.argv[1:3]
end = time.monotonic() + float(length)
while time.monotonic() < end:
    time.sleep(0.01)
sys.exit(10 * (len(told) - 1))
"""


def test_engines_are_told_once_to_end_however_long_each_takes(tmp_path: Path) -> None:
    file = tmp_path / "ending.py"
    file.write_text(ENDING)

    async def main() -> int:
        team = [
            Worker("gateway", ("0.1",), {}),
            Worker("first", ("0.1",), {}, "engine"),
            Worker("second", ("0.6",), {}, "engine"),
        ]
        supervisor = Supervisor([sys.executable, str(file)], [], team)
        running = asyncio.create_task(supervisor.run())
        async with asyncio.timeout(PATIENCE):
            while len(list(tmp_path.iterdir())) < 1 + len(team):  # all of them can be told
                await asyncio.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)
        return await asyncio.wait_for(running, AT_ONCE)

    with kept_signals():
        assert asyncio.run(main()) == 0


def test_a_worker_that_is_being_started_when_all_stops_is_stopped() -> None:
    async def main() -> int:
        code = "import time; time.sleep(90)"
        supervisor = Supervisor([sys.executable, "-c", code], [], [Worker("late", (), {})])
        running = asyncio.create_task(supervisor.run())
        await asyncio.sleep(0)  # it runs to where the process is being made
        await asyncio.sleep(0)
        supervisor.stop()
        return await asyncio.wait_for(running, AT_ONCE)

    with kept_signals():
        assert asyncio.run(main()) == 0


def test_an_engine_that_takes_long_to_let_go_of_its_device_ends_well() -> None:
    command = [sys.executable, str(SERVER), "serve", "--gateways", "1", "--port", "0"]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1", "SLOW_END": "2"}
    environ["PYTHONPATH"] = os.pathsep.join([str(SERVER.parent), *sys.path])
    with subprocess.Popen(
        [*command, "--http-port", "off"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert "is ready" in process.stdout.readline()
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            engine = next(
                pid
                for pid in children
                if b"\0engine\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
            )
            process.terminate()
            assert any("lets go" in line for line in process.stderr)
            os.kill(int(engine), signal.SIGTERM)
            os.kill(int(engine), signal.SIGINT)
            _, err = process.communicate(timeout=AT_ONCE)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "ended with" not in err
