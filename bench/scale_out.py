"""Many gateways behind one address: balance with one slow node, drain one, kill one.

Three `playhead serve` processes on ports of this machine and the system's HAProxy before them,
with the configuration that is shipped (deploy/haproxy/haproxy.cfg). Their voice is a wave that is
made at a set pace (by sleeping), so that capacity is known and the cores stay free for sockets.

    python bench/scale_out.py --out docs/data/scale_out.json
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))

from fleet_kit import HAPROXY, Heard, cluster, disturbed  # noqa: E402

SENTENCE = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
TEXTS = (SENTENCE * 2, SENTENCE, SENTENCE, SENTENCE)  # 12 and three times 6 seconds


def summary(found: Sequence[Heard]) -> dict[str, Any]:
    stalls = [stall for heard in found for stall in heard.stalls]
    return {
        "listeners": len(found),
        "done": sum(heard.well for heard in found),
        "other outcomes": sorted({o for h in found for o in h.outcomes if o != "Done"}),
        "moved": sum(heard.moved for heard in found),
        "stalled listeners": sum(bool(heard.stalls) for heard in found),
        "worst stall ms": round(1000 * max(stalls, default=0.0)),
        "longest silence between utterances ms": round(
            1000 * max((s for heard in found for s in heard.silences), default=0.0)
        ),
        "words missing": sum(heard.missing for heard in found),
        "words repeated": sum(heard.repeated for heard in found),
        "most repeated for one": max(heard.repeated for heard in found),
    }


# ---------------------------------------------------------------- experiments


def balance(kind: str, rate: float, window: float) -> dict[str, Any]:
    """Two fast nodes and one slow one, under the load generator."""
    with cluster((8.0, 8.0, 2.0), kind) as found, tempfile.TemporaryDirectory() as out:
        playhead = Path(sys.executable).with_name("playhead")
        command = [
            str(playhead),
            "bench",
            "run",
            "--url",
            found.url,
            "--rate",
            str(rate),
            "--seeds",
            "0",
        ]
        command += ["--warmup", "8", "--window", str(window), "--mix", "strict", "--out", out]
        command += ["--texts", "conversation", "--codec", "mulaw", "--sample-rate", "8000"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        (report,) = [json.loads(path.read_text()) for path in Path(out).glob("report.json")]
        rate = report["rates"][0]
        judged = {name: rate[name] for name in ("utterances", "faults", "ttfa", "strict", "causes")}
        spoken = {node.name: node.metric("playhead_utterances_total") for node in found.nodes}
        refused = {node.name: node.metric("playhead_engine_refused_total") for node in found.nodes}
        stalls = {node.name: node.metric("playhead_stalls_total") for node in found.nodes}
    print(done.stdout[-1500:], done.stderr[-800:], sep="\n")
    return {"spoken": spoken, "refused": refused, "stalls": stalls, "judged": judged}


def drain(count: int) -> dict[str, Any]:
    """SIGTERM to one of three nodes while all speak."""
    with cluster((8.0, 8.0, 8.0)) as fleet:

        def act() -> dict[str, Any]:
            asked = time.monotonic()
            status = fleet.nodes[1].drain()
            return {"exit status": status, "seconds to exit": round(time.monotonic() - asked, 1)}

        found, told = asyncio.run(disturbed(fleet.url, TEXTS, count, act))
    return summary(found) | told


def kill(count: int) -> dict[str, Any]:
    """SIGKILL to one of three nodes while all speak."""
    with cluster((8.0, 8.0, 8.0)) as fleet:

        def act() -> dict[str, Any]:
            held = fleet.nodes[1].metric("playhead_connections")
            fleet.nodes[1].stop()
            return {"connections of the killed": held}

        found, told = asyncio.run(disturbed(fleet.url, TEXTS, count, act))
    return summary(found) | told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="JSON file")
    parser.add_argument("--rate", type=float, default=2.5, help="utterances a second")
    parser.add_argument("--window", type=float, default=25.0, help="seconds measured")
    parser.add_argument("--listeners", type=int, default=18, help="of drain and kill")
    parser.add_argument("--only", choices=["balance", "drain", "kill"])
    args = parser.parse_args()
    version = subprocess.run(
        [str(HAPROXY), "-v"], capture_output=True, text=True, check=True
    ).stdout
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
