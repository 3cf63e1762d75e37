"""What the playhead signal is worth: stalls against barge-in waste, signal by signal.

Simulates the same arrivals and listeners for each signal over a range of lead limits and several
seeds, then compares the signals at equal waste (seconds of audio sent and not yet heard), never at
an equal setting. Writes the raw rows as JSON and prints tables.

    python bench/urgency_frontier.py --out docs/data/urgency.json
"""

import argparse
import json
import platform
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from playhead.engine import costs
from playhead.engine.lead import LeadLimits
from playhead.engine.policy import PolicyConfig
from playhead.engine.sim_listener import Mix
from playhead.engine.simulator import Scenario, Simulator
from playhead.engine.types import Lane, Urgency

FIXED = (0.6, 0.8, 1.0, 1.2, 1.5, 2.0)
UNKNOWN = (1.2, 1.5, 2.0, 2.5)


@dataclass(frozen=True)
class Run:
    """One simulation to make."""

    listeners: str
    signal: str
    lead: float  # the fixed lead, or what an unknown listener gets when leads are learned
    seed: int
    rate: float
    cores: int
    seconds: float


def simulate(run: Run) -> dict[str, object]:
    """Make one run; a flat row."""
    learned = run.signal == "learned"
    lead = LeadLimits(unknown=run.lead) if learned else LeadLimits(fixed=run.lead)
    urgency = Urgency.REPORTED if learned else Urgency(run.signal)
    mix = {
        "ideal": Mix(ideal=True),
        "not ideal": Mix(),
        "not ideal, network new each utterance": Mix(sticky=False),
    }[run.listeners]
    policy = PolicyConfig(urgency, lead, max_live=100_000, max_utilisation=float("inf"))
    scenario = Scenario(
        costs.cpu(run.cores), policy, mix, run.rate, window=run.seconds, seed=run.seed
    )
    out = Simulator(scenario).run()
    chunks = sum(out.chunks.values()) or 1
    return asdict(run) | {
        "utterances": out.utterances,
        "stalled": out.stalled,
        "stalled_100": out.stalled_100,
        "worst_stall": round(out.worst_stall, 3),
        "waste": round(out.waste, 4),
        "urgent_share": round(out.chunks.get(Lane.URGENT, 0) / chunks, 4),
        "promoted": out.promoted,
        "ttfa_p95_ms": round(sorted(out.ttfa)[int(0.95 * len(out.ttfa))] * 1e3, 1),
        "digest": out.digest,
    }


def plan(args: argparse.Namespace) -> list[Run]:
    """Every run of the study."""
    runs = []
    for listeners in args.listeners:
        for signal in ("none", "estimated", "reported", "learned"):
            for lead in UNKNOWN if signal == "learned" else FIXED:
                runs += [
                    Run(listeners, signal, lead, seed, args.rate, args.cores, args.seconds)
                    for seed in range(1, args.seeds + 1)
                ]
    return runs


def pool(rows: list[dict[str, object]]) -> dict[tuple[str, str, float], dict[str, float]]:
    """Add up the seeds of each setting."""
    groups: dict[tuple[str, str, float], list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        groups[str(row["listeners"]), str(row["signal"]), float(str(row["lead"]))].append(row)
    out = {}
    for key, group in groups.items():
        total = sum(int(str(r["utterances"])) for r in group)
        out[key] = {
            "n": total,
            "waste": sum(float(str(r["waste"])) for r in group) / len(group),
            "stalled": sum(int(str(r["stalled"])) for r in group) / total,
            "stalled_100": sum(int(str(r["stalled_100"])) for r in group) / total,
            "urgent": sum(float(str(r["urgent_share"])) for r in group) / len(group),
        }
    return out


def at_waste(points: list[dict[str, float]], waste: float) -> float | None:
    """Share of stalled utterances at a given waste, between neighbouring settings."""
    points = sorted(points, key=lambda p: p["waste"])
    for low, high in pairwise(points):
        if low["waste"] <= waste <= high["waste"]:
            part = (waste - low["waste"]) / (high["waste"] - low["waste"])
            return low["stalled"] + part * (high["stalled"] - low["stalled"])
    return None


def report(rows: list[dict[str, object]]) -> str:
    """The tables, in Markdown."""
    pooled = pool(rows)
    lines = []
    for listeners in dict.fromkeys(key[0] for key in pooled):
        lines += [f"\nListeners: {listeners}\n"]
        lines += ["| signal | lead s | n | sent - heard, mean s | stalled | > 100 ms | urgent |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [
            f"| {signal} | {lead:g} | {p['n']:.0f} | {p['waste']:.2f} | {p['stalled']:.2%} "
            f"| {p['stalled_100']:.2%} | {p['urgent']:.1%} |"
            for (who, signal, lead), p in pooled.items()
            if who == listeners
        ]
        lines += ["\nAt equal waste (interpolated):\n"]
        lines += [
            "| sent - heard, s | none | estimated | reported | learned |",
            "|---|---|---|---|---|",
        ]
        for waste in (0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5):
            cells = []
            for signal in ("none", "estimated", "reported", "learned"):
                points = [p for (w, s, _), p in pooled.items() if (w, s) == (listeners, signal)]
                value = at_waste(points, waste)
                cells.append("-" if value is None else f"{value:.2%}")
            lines.append(f"| {waste:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=20.0, help="utterances a second")
    parser.add_argument("--cores", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--listeners",
        nargs="+",
        default=["ideal", "not ideal", "not ideal, network new each utterance"],
    )
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs) as executor:
        rows = list(executor.map(simulate, plan(args)))
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        head = {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
        }
        args.out.write_text(json.dumps({**head, "rows": rows}, indent=1) + "\n")
    print(report(rows))


if __name__ == "__main__":
    main()
