"""Many gateways behind one address: balance with one slow node, drain one, kill one.

Three `playhead serve` processes on ports of this machine and the system's HAProxy before them,
with the configuration that is shipped (deploy/haproxy/haproxy.cfg). Their voice is a wave that is
made at a set pace (by sleeping), so that capacity is known and the cores stay free for sockets.

    python bench/scale_out.py --out docs/data/scale_out.json
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
RATE, FRAME = 24_000, 300
FRAMES_PER_CHARACTER = 6  # 75 ms: about the pace of speech
SENTENCE = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
TEXTS = (SENTENCE * 2, SENTENCE, SENTENCE, SENTENCE)  # 12 and three times 6 seconds


# ---------------------------------------------------------------- one node


@dataclass
class _State:
    text: str = ""
    frames: int = 0
    ended: bool = False

    @property
    def left(self) -> int:
        return len(self.text) * FRAMES_PER_CHARACTER - self.frames


class PacedRunner:
    """A model (`engine.types.Runner`) that makes ``pace`` seconds of sound a second and worker."""

    def __init__(self, pace: float) -> None:
        from playhead.engine.types import ModelInfo

        self.info = ModelInfo("paced", ("wave",), RATE, FRAME, (8, 16, 32), 64)
        self._pace = pace
        self._states: dict[int, _State] = {}

    def open(self, request: Any) -> None:
        self._states[request.utterance] = _State()

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> bool:
        state = self._states[utterance]
        state.text += delta
        state.ended = state.ended or end
        return state.left > 0 or state.ended

    def step(self, utterances: Sequence[int]) -> list[Any]:
        return [self._step(utterance) for utterance in utterances]

    def _step(self, utterance: int) -> Any:
        from playhead.engine.types import StepResult, Word

        state = self._states[utterance]
        ended = state.ended
        frames = min(self.info.step_frames, state.left)
        first, state.frames = state.frames, state.frames + frames
        done = state.left == 0
        low, high = -(-first // FRAMES_PER_CHARACTER), -(-state.frames // FRAMES_PER_CHARACTER)
        words = tuple(
            Word(found[0], found.start() * FRAME * FRAMES_PER_CHARACTER, found.start(), found.end())
            for found in re.finditer(r"\S+", state.text)
            if low <= found.start() < high
        )
        return StepResult(utterance, frames, done and ended, done, done and ended, words)

    def decode(self, chunks: Sequence[Any]) -> list[Any]:
        frames = sum(chunk.frames for chunk in chunks)
        time.sleep(frames * FRAME / RATE / self._pace)
        return [np.zeros(chunk.frames * FRAME, np.float32) for chunk in chunks]

    def close(self, utterance: int) -> None:
        self._states.pop(utterance, None)


def serve_node(pace: float, arguments: list[str]) -> int:
    """This process becomes one gateway."""
    from playhead.gateway import cli, serve

    serve.load_voice = lambda: PacedRunner(pace)
    return cli.main(["serve", *arguments])


# ---------------------------------------------------------------- the machine


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@dataclass
class Node:
    """One gateway process."""

    name: str
    pace: float
    port: int = field(default_factory=free_port)
    agent: int = field(default_factory=free_port)
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        settings = ["--port", self.port, "--agent-port", self.agent, "--node", self.name]
        settings += ["--http-port", "off", "--max-connections-per-address", 4000]
        settings += ["--log-level", "error", "--drain-timeout", 60]
        command = [sys.executable, __file__, "--serve", self.pace, *settings]
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        assert "ready" in self.process.stdout.readline()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def metric(self, name: str) -> float:
        """A value on /metrics, all labels added up."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        pattern = rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$"
        return sum(float(value) for value in re.findall(pattern, text, flags=re.MULTILINE))


def configuration(nodes: Sequence[Node], port: int, balance: str) -> str:
    """The shipped configuration, for these nodes. ``balance``: slack, leastconn, roundrobin."""
    text = SHIPPED.read_text().replace("bind :8080", f"bind 127.0.0.1:{port}")
    text = text.replace("maxconn 20000 ", "maxconn 2000 ")
    text = text.replace("bind :8404", f"bind 127.0.0.1:{free_port()}")
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


@contextlib.contextmanager
def cluster(paces: Sequence[float], balance: str) -> Iterator[tuple[list[Node], str]]:
    """Gateways behind HAProxy; yields them and the front address."""
    nodes = [Node(f"node-{number}", pace) for number, pace in enumerate(paces, 1)]
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for node in nodes:
            stack.callback(node.stop)
            node.start()
        file = Path(folder) / "haproxy.cfg"
        file.write_text(configuration(nodes, port, balance))
        command = [shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", str(file)]
        proxy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(proxy.wait)
        stack.callback(proxy.kill)
        _until_ready(port)
        yield nodes, f"http://127.0.0.1:{port}"


def _until_ready(port: int) -> None:
    for _ in range(100):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1).close()
            time.sleep(2.0)  # the first answers of all agents
            return
        time.sleep(0.1)
    raise RuntimeError("the balancer does not answer")


# ---------------------------------------------------------------- listeners


@dataclass
class Heard:
    """What one listener of the Python client got."""

    stalls: list[float] = field(default_factory=list)  # seconds, inside utterances
    silences: list[float] = field(default_factory=list)  # seconds, between them
    moved: int = 0
    outcomes: list[str] = field(default_factory=list)
    words: list[tuple[int, int]] = field(default_factory=list)  # utterance, where it starts


async def listen(url: str, heard: Heard, started: asyncio.Event) -> None:
    """Speak all texts and play them strictly: any moment without sound is a stall."""
    from playhead import client

    def noted(event: Any) -> None:
        heard.moved += isinstance(event, client.Moved)

    end = None
    try:
        async with client.connect(url, on_event=noted) as voice:
            spoken = [voice.speak(text) for text in TEXTS]
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


def missing(heard: Heard) -> int:
    """Words of the texts that were never spoken."""
    wanted = {
        (number, found.start())
        for number, text in enumerate(TEXTS)
        for found in re.finditer(r"\S+", text)
    }
    return len(wanted - set(heard.words))


def repeated(heard: Heard) -> int:
    return len(heard.words) - len(set(heard.words))


async def disturbed(url: str, count: int, act: Any) -> tuple[list[Heard], dict[str, Any]]:
    """``count`` listeners, and after all have begun ``act`` upon the cluster."""
    found = [Heard() for _ in range(count)]
    begun = [asyncio.Event() for _ in range(count)]
    tasks = [
        asyncio.create_task(listen(url, heard, event))
        for heard, event in zip(found, begun, strict=True)
    ]
    await asyncio.gather(*(asyncio.wait_for(event.wait(), 20) for event in begun))
    await asyncio.sleep(2.0)
    told = await asyncio.to_thread(act)
    await asyncio.gather(*tasks)
    return found, told


def summary(found: Sequence[Heard]) -> dict[str, Any]:
    stalls = [stall for heard in found for stall in heard.stalls]
    return {
        "listeners": len(found),
        "done": sum(heard.outcomes == ["Done"] * len(TEXTS) for heard in found),
        "other outcomes": sorted({o for h in found for o in h.outcomes if o != "Done"}),
        "moved": sum(heard.moved for heard in found),
        "stalled listeners": sum(bool(heard.stalls) for heard in found),
        "worst stall ms": round(1000 * max(stalls, default=0.0)),
        "longest silence between utterances ms": round(
            1000 * max((s for heard in found for s in heard.silences), default=0.0)
        ),
        "words missing": sum(missing(heard) for heard in found),
        "words repeated": sum(repeated(heard) for heard in found),
        "most repeated for one": max(repeated(heard) for heard in found),
    }


# ---------------------------------------------------------------- experiments


def balance(kind: str, rate: float, window: float) -> dict[str, Any]:
    """Two fast nodes and one slow one, under the load generator."""
    with cluster((8.0, 8.0, 2.0), kind) as (nodes, url), tempfile.TemporaryDirectory() as out:
        playhead = Path(sys.executable).with_name("playhead")
        command = [str(playhead), "bench", "run", "--url", url, "--rate", str(rate), "--seeds", "0"]
        command += ["--warmup", "8", "--window", str(window), "--mix", "strict", "--out", out]
        command += ["--texts", "conversation", "--codec", "mulaw", "--sample-rate", "8000"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        (report,) = [json.loads(path.read_text()) for path in Path(out).glob("report.json")]
        rate = report["rates"][0]
        judged = {name: rate[name] for name in ("utterances", "faults", "ttfa", "strict", "causes")}
        spoken = {node.name: node.metric("playhead_utterances_total") for node in nodes}
        refused = {node.name: node.metric("playhead_engine_refused_total") for node in nodes}
        stalls = {node.name: node.metric("playhead_stalls_total") for node in nodes}
    print(done.stdout[-1500:], done.stderr[-800:], sep="\n")
    return {"spoken": spoken, "refused": refused, "stalls": stalls, "judged": judged}


def drain(count: int) -> dict[str, Any]:
    """SIGTERM to one of three nodes while all speak."""
    with cluster((8.0, 8.0, 8.0), "slack") as (nodes, url):
        process = nodes[1].process
        assert process is not None

        def act() -> dict[str, Any]:
            process.send_signal(signal.SIGTERM)
            asked = time.monotonic()
            status = process.wait(90)
            return {"exit status": status, "seconds to exit": round(time.monotonic() - asked, 1)}

        found, told = asyncio.run(disturbed(url, count, act))
    return summary(found) | told


def kill(count: int) -> dict[str, Any]:
    """SIGKILL to one of three nodes while all speak."""
    with cluster((8.0, 8.0, 8.0), "slack") as (nodes, url):

        def act() -> dict[str, Any]:
            held = nodes[1].metric("playhead_connections")
            nodes[1].stop()
            return {"connections of the killed": held}

        found, told = asyncio.run(disturbed(url, count, act))
    return summary(found) | told


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        return serve_node(float(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--rate", type=float, default=2.5, help="utterances a second")
    parser.add_argument("--window", type=float, default=25.0, help="seconds measured")
    parser.add_argument("--listeners", type=int, default=18, help="of drain and kill")
    parser.add_argument("--only", choices=["balance", "drain", "kill"])
    args = parser.parse_args()
    version = subprocess.run(["haproxy", "-v"], capture_output=True, text=True, check=True).stdout
    result: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "python": platform.python_version(),
        "haproxy": version.splitlines()[0],
        "command": " ".join(["python", "bench/scale_out.py", *sys.argv[1:]]),
    }
    if args.only in (None, "drain"):
        result["drain"] = drain(args.listeners)
        print("drain", result["drain"])
    if args.only in (None, "kill"):
        result["kill"] = kill(args.listeners)
        print("kill", result["kill"])
    if args.only in (None, "balance"):
        kinds = ("roundrobin", "leastconn", "slack")
        result["balance"] = {kind: balance(kind, args.rate, args.window) for kind in kinds}
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
