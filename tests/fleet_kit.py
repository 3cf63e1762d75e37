"""Gateways as processes of their own, and the system's HAProxy before them with the shipped
configuration; listeners of the Python client that count what they miss.

Run as a program this is ``playhead serve`` with a voice that is a wave made at a set pace (by
sleeping), so that capacity is known and the cores stay free: ``fleet_kit.py PACE serve …``.
"""

import asyncio
import contextlib
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machine import PATIENCE
from ports import free_ports

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
RATE = 24_000


@dataclass
class Node:
    """One gateway process."""

    name: str
    pace: float  # seconds of sound that it makes a second
    port: int = field(default_factory=free_ports)
    agent: int = field(default_factory=free_ports)
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it; :meth:`ready` waits for it."""
        settings = ["--port", self.port, "--agent-port", self.agent, "--node", self.name]
        settings += ["--http-port", "off", "--max-connections-per-address", 4000]
        settings += ["--log-level", "error", "--drain-timeout", 60]
        command = [sys.executable, __file__, self.pace, "serve", *settings]
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def ready(self) -> None:
        """Wait until it serves."""
        assert self.process is not None
        assert self.process.stdout is not None
        assert "ready" in self.process.stdout.readline()

    def drain(self) -> int:
        """SIGTERM; its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)

    def stop(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def metric(self, name: str) -> float:
        """A value on /metrics, all labels added up."""
        text = fetch(f"http://127.0.0.1:{self.port}/metrics")
        pattern = rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$"
        return sum(float(value) for value in re.findall(pattern, text, flags=re.MULTILINE))


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def configuration(
    nodes: Sequence[Node], port: int, statistics: int, balance: str, most: int = 2000
) -> str:
    """The shipped configuration, for these nodes. ``balance``: slack, leastconn, roundrobin.
    ``most``: connections at a time."""
    text = SHIPPED.read_text().replace("bind :8080", f"bind 127.0.0.1:{port}")
    text = text.replace("maxconn 20000 ", f"maxconn {most} ")
    # Addresses need no resolver, and a machine without a network has no resolv.conf.
    text = re.sub(r"^resolvers names\n(?:    .*\n)+", "", text, flags=re.MULTILINE)
    text = text.replace("bind :8404", f"bind 127.0.0.1:{statistics}")
    head, template, _ = text.partition("    server-template")
    assert template
    if balance != "slack":
        head = head.replace("balance leastconn", f"balance {balance}")
        head = re.sub(r" agent-check agent-port \d+ agent-inter \w+", "", head)
    else:
        head = head.replace(" agent-port 8081", "")
    agent = balance == "slack"
    for node in nodes:
        extra = f" agent-port {node.agent}" if agent else ""
        head += f"    server {node.name} 127.0.0.1:{node.port}{extra}\n"
    return head


@dataclass
class Cluster:
    """Gateways behind one address."""

    nodes: list[Node]
    port: int
    statistics: int

    @property
    def url(self) -> str:
        """The front address."""
        return f"http://127.0.0.1:{self.port}"

    def seen(self) -> dict[str, dict[str, str]]:
        """What HAProxy says of each node: ``status``, ``weight``, ``agent_status`` and more."""
        text = fetch(f"http://127.0.0.1:{self.statistics}/;csv").removeprefix("# ")
        rows = csv.DictReader(text.splitlines())
        names = {node.name for node in self.nodes}
        return {row["svname"]: row for row in rows if row["svname"] in names}

    def wait(self, node: Node, up: bool = True) -> None:
        """Until HAProxy sends sessions to a node and knows its slack, or knows that it is gone."""
        for _ in range(round(PATIENCE / 0.05)):
            row = self.seen()[node.name]
            well = row["status"] == "UP" and row["agent_status"] in ("", "L7OK")
            if well if up else row["status"].startswith("DOWN"):
                return
            time.sleep(0.05)
        raise AssertionError(f"{node.name} is {row['status']}, {row['agent_status']}")


@contextlib.contextmanager
def cluster(paces: Sequence[float], balance: str = "slack") -> Iterator[Cluster]:
    """Gateways behind HAProxy, all of them up."""
    nodes = [Node(f"node-{number}", pace) for number, pace in enumerate(paces, 1)]
    found = Cluster(nodes, free_ports(), free_ports())
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for node in nodes:
            stack.callback(node.stop)
            node.start()
        for node in nodes:
            node.ready()
        file = Path(folder) / "haproxy.cfg"
        file.write_text(configuration(nodes, found.port, found.statistics, balance))
        command = [str(HAPROXY), "-db", "-f", str(file)]
        proxy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(proxy.wait)
        stack.callback(proxy.kill)
        until_answering(found.statistics)
        for node in nodes:
            found.wait(node)
        yield found


def until_answering(port: int) -> None:
    """Wait for HAProxy's page of statistics."""
    for _ in range(round(PATIENCE / 0.05)):
        with contextlib.suppress(OSError):
            fetch(f"http://127.0.0.1:{port}/;csv")
            return
        time.sleep(0.05)
    raise AssertionError("the balancer does not answer")


@dataclass
class Heard:
    """What one listener of the Python client got."""

    texts: Sequence[str]
    stalls: list[float] = field(default_factory=list)  # seconds, inside utterances
    silences: list[float] = field(default_factory=list)  # seconds, between them
    nodes: list[str] = field(default_factory=list)  # where its session was, in order
    outcomes: list[str] = field(default_factory=list)
    words: list[tuple[int, int]] = field(default_factory=list)  # utterance, where it starts

    @property
    def moved(self) -> int:
        """How often it went on at another node."""
        return max(0, len(self.nodes) - 1)

    @property
    def well(self) -> bool:
        """Every utterance was spoken to its end."""
        return self.outcomes == ["Done"] * len(self.texts)

    @property
    def missing(self) -> int:
        """Words of the texts that were never spoken."""
        wanted = {
            (number, found.start())
            for number, text in enumerate(self.texts)
            for found in re.finditer(r"\S+", text)
        }
        return len(wanted - set(self.words))

    @property
    def repeated(self) -> int:
        """Words that were spoken more than once."""
        return len(self.words) - len(set(self.words))


async def listen(url: str, heard: Heard, started: asyncio.Event) -> None:
    """Speak all texts and play them strictly: any moment without sound is a stall."""
    from playhead import client

    def noted(event: Any) -> None:
        if isinstance(event, client.Moved):
            note_node()

    def note_node() -> None:
        heard.nodes.append(voice.ready.token.rpartition(".")[0])

    end = None
    try:
        async with client.connect(url, on_event=noted) as voice:
            note_node()
            spoken = [voice.speak(text) for text in heard.texts]
            for number, utterance in enumerate(spoken):
                gaps = heard.silences
                async for part in utterance:
                    now = time.monotonic()
                    started.set()
                    if end is not None and now > end + 0.005 and len(part.pcm):
                        gaps.append(now - end)
                    end = max(now, end or 0.0) + len(part.pcm) / RATE
                    heard.words += [(number, word.char_start) for word in part.words]
                    gaps = heard.stalls
                heard.outcomes.append(type(await utterance.done()).__name__)
    except client.PlayheadError as error:
        heard.outcomes.append(f"{type(error).__name__}: {error}")


async def disturbed(
    url: str, texts: Sequence[str], count: int, act: Any, after: float = 2.0
) -> tuple[list[Heard], Any]:
    """``count`` listeners, and ``after`` seconds after all have begun ``act`` upon the cluster;
    what they heard, and what ``act`` gave."""
    found = [Heard(texts) for _ in range(count)]
    begun = [asyncio.Event() for _ in range(count)]
    tasks = [
        asyncio.create_task(listen(url, heard, event))
        for heard, event in zip(found, begun, strict=True)
    ]
    await asyncio.gather(*(asyncio.wait_for(event.wait(), PATIENCE) for event in begun))
    await asyncio.sleep(after)
    told = await asyncio.to_thread(act)
    await asyncio.gather(*tasks)
    return found, told


def serve_wave(pace: float, arguments: list[str]) -> int:
    """This process becomes one gateway."""
    from live import WaveRunner
    from playhead.gateway import cli, serve

    serve.load_voice = lambda: WaveRunner(pace)
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(serve_wave(float(sys.argv[1]), sys.argv[2:]))
