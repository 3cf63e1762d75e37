"""Rules and dashboards speak of metrics that exist, and rules fire when they should."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness import gateway
from playhead.gateway.gpu import GpuCollector
from prometheus_client import Metric

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]


@pytest.fixture(scope="module")
def shown() -> str:
    """What a gateway with a device shows."""

    async def main() -> str:
        async with gateway() as running:
            running.server.metrics.registry.register(Devices())
            return (await running.server.metrics.written()).decode()

    return asyncio.run(main())


class Devices(GpuCollector):
    """One, without its driver."""

    def __init__(self) -> None:
        super().__init__(None, {})

    def collect(self) -> Iterator[Metric]:
        for family in super().collect():
            family.add_sample(family.name, {"gpu": "0"}, 0.5)
            yield family


@pytest.fixture(scope="module")
def names(shown: str) -> set[str]:
    """Every series name that a gateway can show."""
    # A family whose labels nobody has used yet has a type and no samples.
    return set(re.findall(r"^(?:# TYPE )?([a-z0-9_]+)", shown, flags=re.MULTILINE))


def used(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:playhead|process)_[a-z0-9_]+", expression))


def test_alerts_use_metrics_that_exist(names: set[str]) -> None:
    assert RULES
    for rule in RULES:
        assert used(rule["expr"]) <= names, rule["alert"]


def test_alerts_say_what_to_do() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    headings = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    }
    for rule in RULES:
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert file == "docs/troubleshooting.md"
        assert anchor in headings, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_every_alert_has_a_test() -> None:
    tests = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
    tested = {case["alertname"] for test in tests for case in test["alert_rule_test"]}
    assert tested == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
    ],
)
def test_prometheus_accepts_the_files(arguments: tuple[str, ...]) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian: package prometheus)")
    done = subprocess.run(
        ["promtool", *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def panels(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["panels"]
    return found


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_dashboards_use_metrics_that_exist(path: Path, names: set[str]) -> None:
    asked = [target["expr"] for panel in panels(path) for target in panel.get("targets", ())]
    assert asked
    for expression in asked:
        assert used(expression), expression
        assert used(expression) <= names, expression
        assert expression.count("(") == expression.count(")"), expression


OF_EVERY_TARGET = {"instance", "job", "le"}
LATER = {"playhead_session_events": {"event"}}  # no series before something happens


def labels_of(name: str, text: str) -> set[str]:
    found = re.findall(rf"^{name}(?:_total|_bucket|_count|_sum)?{{(.*)}} ", text, re.MULTILINE)
    return LATER.get(name, set()) | {
        label for labels in found for label in re.findall(r'(\w+)="', labels)
    }


def asked_labels() -> Iterator[tuple[str, set[str]]]:
    """Every expression of dashboards and rules, and the labels that it sums by or shows."""
    for rule in RULES:
        told = str(rule["annotations"]["summary"])
        yield rule["expr"], set(re.findall(r"\$labels\.(\w+)", told))
    for path in DASHBOARDS:
        for target in (t for panel in panels(path) for t in panel.get("targets", ())):
            yield target["expr"], set(re.findall(r"{{(\w+)}}", target.get("legendFormat", "")))


def test_what_is_summed_by_is_a_label_of_what_is_summed(shown: str) -> None:
    for expression, told in asked_labels():
        kept = {
            label
            for by in re.findall(r"by ?\(([^)]*)\)", expression)
            for label in re.split(", ?", by)
        }
        has = OF_EVERY_TARGET.union(*(labels_of(base(name), shown) for name in used(expression)))
        assert kept <= has, expression
        assert told <= has, expression


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_dashboards_are_laid_out(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in panels(path)]
    assert len(ids) == len(set(ids))
    for panel in panels(path):
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] in ("row", "timeseries")
        if panel["type"] == "timeseries":
            assert panel["datasource"]["uid"] == "prometheus"


def test_provisioning_names_what_is_there() -> None:
    folder = ROOT / "deploy" / "grafana" / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "prometheus.yml").read_text())[
        "datasources"
    ]
    assert source["uid"] == "prometheus"
    # What Grafana's documentation of provisioning asks for.
    assert {"name", "type", "access", "url"} <= source.keys()
    assert source["access"] in ("proxy", "direct")
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((folder / "dashboards" / "playhead.yml").read_text())["providers"]
    assert (provider["type"], bool(provider["name"])) == ("file", True)
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        assert board["uid"], "links to it would break with every start"
        assert board.get("id") is None, "a number of another Grafana's database"
        assert board["schemaVersion"] >= 30
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    mounted = [volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"]]
    assert ["./deploy/grafana/dashboards", provider["options"]["path"]] in mounted


def base(name: str) -> str:
    return re.sub(r"_(bucket|sum|count|total|created)$", "", name)


UNSHOWN = {
    "playhead_build_info",  # what instances are chosen by
    "playhead_lane_items",  # the sum of the batches, which are shown
    "playhead_loop_lag_last_seconds",  # one sample of what is shown as a distribution
    "playhead_background_multiprocessors",  # off by default, and of no use beside other settings
    "playhead_background_switches",
    "playhead_garbage_collections",  # none: any is seen by the longest pause
    "playhead_garbage_collected_objects",
    "playhead_garbage_grown_objects",
    "playhead_gpu_memory_bytes",  # what the memory in use is held against by an alert
}


def test_every_metric_of_ours_is_on_the_dashboard_and_explained(names: set[str]) -> None:
    asked = [t["expr"] for path in DASHBOARDS for p in panels(path) for t in p.get("targets", ())]
    shown = {base(name) for expression in asked for name in used(expression)}
    told = (ROOT / "docs" / "operations.md").read_text()
    ours = {base(name) for name in names if name.startswith("playhead_")}
    assert ours >= UNSHOWN
    for name in ours:
        assert (name in shown) is not (name in UNSHOWN), name
        assert name in told, f"{name} is not explained"
