"""Prometheus with the shipped rules before a real server: what it scrapes, and who is missed.

Only the addresses and the waiting times differ from what is shipped.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from machine import PATIENCE
from ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "deploy" / "prometheus"
SERVER = ROOT / "tests" / "gateway" / "fake_runner.py"
PROGRAM = shutil.which("prometheus")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed (a Debian package)"),
]


def asked(port: int, path: str, **query: str) -> Any:
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)["data"]
    return None


def until(true: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "it never came to that: see above what Prometheus knew"
        time.sleep(0.1)
    return found


def at_once(folder: Path) -> None:
    """The shipped files, with targets in a file and hardly any waiting."""
    rules = (SHIPPED / "alerts.yml").read_text()
    rules = re.sub(r"for: \w+", "for: 1s", rules).replace("[10m:15s]", "[10m:1s]")
    (folder / "alerts.yml").write_text(rules)
    chosen = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
    chosen["global"] = {"scrape_interval": "1s", "evaluation_interval": "500ms"}
    for job in chosen["scrape_configs"]:
        if job.pop("dns_sd_configs", None):
            job["file_sd_configs"] = [{"files": ["targets.json"], "refresh_interval": "500ms"}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(chosen))


def forget(folder: Path, *ports: int) -> None:
    """What name services do: they know who is there."""
    targets = [{"targets": [f"127.0.0.1:{port}" for port in ports]}]
    (folder / "new.json").write_text(json.dumps(targets))
    (folder / "new.json").rename(folder / "targets.json")


@contextlib.contextmanager
def programs(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Two gateways before one engine, and Prometheus; its port and the gateways' first."""
    ports = free_ports(6), free_ports()  # the gateways' agents have the fifth and the sixth
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    environ["PYTHONPATH"] = os.pathsep.join([str(SERVER.parent), *sys.path])
    command = [sys.executable, str(SERVER), "serve", "--gateways", "2", "--port", str(ports[0])]
    with contextlib.ExitStack() as stack:
        serving = subprocess.Popen(
            [*command, "--http-port", "off"], stdout=subprocess.PIPE, text=True, env=environ
        )
        stack.callback(serving.wait, PATIENCE)
        stack.callback(serving.terminate)
        assert serving.stdout is not None
        assert all("is ready" in serving.stdout.readline() for _ in range(2))
        forget(folder, ports[0], ports[0] + 1)
        watching = subprocess.Popen(
            [
                str(PROGRAM),
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address=127.0.0.1:{ports[1]}",
            ],
            cwd=folder,
            stderr=(folder / "log").open("w"),
        )
        stack.callback(watching.wait)
        stack.callback(watching.kill)
        try:
            yield serving, ports[1], ports[0]
        except BaseException:
            print(known(ports[1]), (folder / "log").read_text()[-4000:], sep="\n")
            raise


def known(port: int) -> str:
    """What Prometheus knows of who is up: for whoever must find out why a test failed."""
    history = asked(port, "query", query="up[2m]") or {"result": []}
    found = [f"{series['metric']}: {series['values']}" for series in history["result"]]
    targets = (asked(port, "targets") or {"activeTargets": []})["activeTargets"]
    fields = ("scrapeUrl", "health", "lastScrape", "lastScrapeDuration", "lastError")
    found += [str({field: target[field] for field in fields}) for target in targets]
    return "\n".join([*found, str(asked(port, "alerts"))])


def remembered(folder: Path) -> str:
    """What the rule for fewer gateways than before compares with. It looks back in whole steps: how
    many answered between two of them only, it does not know."""
    groups = yaml.safe_load((folder / "alerts.yml").read_text())["groups"]
    rules = {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}
    _, _, before = str(rules["PlayheadFewer"]).partition("<")
    return before


def firing(port: int) -> set[tuple[str, str]]:
    found = (asked(port, "alerts") or {"alerts": []})["alerts"]
    return {
        (alert["labels"]["alertname"], alert["labels"].get("instance", ""))
        for alert in found
        if alert["state"] == "firing"
    }


def number(port: int, query: str) -> float | None:
    found = asked(port, "query", query=query)
    return float(found["result"][0]["value"][1]) if found and found["result"] else None


def test_a_gateway_that_is_gone_is_missed(tmp_path: Path) -> None:
    at_once(tmp_path)
    with programs(tmp_path) as (serving, port, first):
        until(lambda: number(port, 'count(up{job="playhead"} == 1)') == 2)
        until(lambda: number(port, remembered(tmp_path)) == 2)
        rules = until(lambda: evaluated(port))
        assert {rule["health"] for rule in rules} == {"ok"}
        assert len(rules) == len(re.findall("alert:", (SHIPPED / "alerts.yml").read_text()))
        # Two gateways, one engine, and its 64 places counted once.
        until(lambda: number(port, "sum(playhead_engine_max_utterances)") == 64)
        serving.send_signal(signal.SIGSTOP)  # nothing is started again
        try:
            os.kill(gateway(serving.pid, first), signal.SIGKILL)
            until(lambda: ("PlayheadDown", f"127.0.0.1:{first}") in firing(port))
            forget(tmp_path, first + 1)
            until(lambda: ("PlayheadFewer", "") in firing(port))
            until(lambda: number(port, "sum(playhead_engine_max_utterances)") == 64)
        finally:
            serving.send_signal(signal.SIGCONT)


def evaluated(port: int) -> list[dict[str, Any]]:
    """The rules, once all were looked at."""
    groups = (asked(port, "rules") or {"groups": []})["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return rules if all(rule["health"] != "unknown" for rule in rules) else []


def gateway(supervisor: int, port: int) -> int:
    """The process that serves a port."""
    mates = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0") for pid in mates}
    (found,) = (pid for pid, line in lines.items() if f"--port {port} " in " ".join(line))
    return int(found)
