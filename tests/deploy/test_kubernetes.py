"""The manifests: valid by Kubernetes' own schemas, and consistent with the program."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from playhead.engine.models.qwen3_tts.startup import CAPTURE_LIMIT
from playhead.gateway.settings import DEFAULTS, OPTIONS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
ADAPTER = DEPLOY / "kubernetes" / "prometheus-adapter.yaml"  # values of a chart, no object
ROUTES = DEPLOY / "kubernetes" / "gateway-api.yaml"  # kinds that Kubernetes itself lacks
FILES = sorted(set((DEPLOY / "kubernetes").glob("*.yaml")) - {ADAPTER, ROUTES})
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    (path.name, found) for path in FILES for found in yaml.safe_load_all(path.read_text())
]
IDS = [f"{name}-{found['kind']}-{found['metadata']['name']}" for name, found in OBJECTS]
OLDEST, NEWEST = "1.29", "1.37"


SLOWEST_SPEECH = 15.0  # characters a second
LONGEST_UTTERANCE = 20_000 / SLOWEST_SPEECH
LOADING = 2 * CAPTURE_LIMIT + 240
"""Two plans of graphs that are given up, and weights from a slow disk."""


def container_of(name: str) -> dict[str, Any]:
    (deployment,) = [d for d in of_kind("Deployment") if d["metadata"]["name"] == name]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [found for _, found in OBJECTS if found["kind"] == kind]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("found", [found for _, found in OBJECTS], ids=IDS)
def test_objects_fit_the_schemas(found: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(found, version, strict=True)


def test_a_wrong_field_would_be_noticed() -> None:
    wrong = {**of_kind("Deployment")[0], "spec": {"replica": 3}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


def test_kustomize_builds_it() -> None:
    for name in KUSTOMIZATION["resources"]:
        assert (DEPLOY / name).exists()
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    done = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    built = list(yaml.safe_load_all(done.stdout))
    (config,) = [found for found in built if found["kind"] == "ConfigMap"]
    assert config["data"]["haproxy.cfg"] == (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
    assert {"gateway", "balancer"} <= {found["metadata"]["name"] for found in built}


@pytest.mark.parametrize("deployment", of_kind("Deployment"), ids=lambda d: d["metadata"]["name"])
def test_pods_are_locked_down(deployment: dict[str, Any]) -> None:
    pod = deployment["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels.items() >= deployment["spec"]["selector"]["matchLabels"].items()


@pytest.mark.parametrize("name", ["gateway", "gateway-gpu"])
def test_gateways_are_set_up_with_settings_that_exist(name: str) -> None:
    (deployment,) = [d for d in of_kind("Deployment") if d["metadata"]["name"] == name]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    settings = {entry["name"]: entry["value"] for entry in container["env"]}
    known = {"PLAYHEAD_" + option.name.upper(): option for option in OPTIONS}
    for variable, value in settings.items():
        known[variable].parse(value)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert str(ports["agent"]) == settings["PLAYHEAD_AGENT_PORT"]
    grace = pod["terminationGracePeriodSeconds"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert grace > float(settings["PLAYHEAD_DRAIN_TIMEOUT"]) + pause + 10
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def patience(probe: dict[str, Any]) -> float:
    """Seconds of failures that a probe bears."""
    return float(probe["periodSeconds"] * probe["failureThreshold"])


@pytest.mark.parametrize(("name", "loading"), [("gateway", 60.0), ("gateway-gpu", LOADING)])
def test_probes_leave_the_time_that_loading_takes(name: str, loading: float) -> None:
    container = container_of(name)
    startup = container["startupProbe"]
    assert startup["httpGet"]["path"] == "/healthz", "503 while it loads"
    assert patience(startup) >= loading
    assert patience(container["livenessProbe"]) >= 20, "a busy machine is no dead process"
    assert patience(container["readinessProbe"]) <= 5, "a full process is known at once"


@pytest.mark.parametrize("name", ["gateway", "gateway-gpu", "balancer"])
def test_pods_have_the_time_to_drain(name: str) -> None:
    (deployment,) = [d for d in of_kind("Deployment") if d["metadata"]["name"] == name]
    pod = deployment["spec"]["template"]["spec"]
    container = container_of(name)
    settings = {entry["name"]: entry["value"] for entry in container.get("env", ())}
    drain = float(settings.get("PLAYHEAD_DRAIN_TIMEOUT", 0.0))
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    pause = float(re.findall(r"\d+", command[-1])[-1])
    assert pod["terminationGracePeriodSeconds"] >= drain + pause + 10
    assert drain + pause > LONGEST_UTTERANCE


def test_a_disruption_takes_one_pod_at_a_time() -> None:
    deployments = {d["metadata"]["name"]: d["spec"] for d in of_kind("Deployment")}
    for budget in of_kind("PodDisruptionBudget"):
        spec = budget["spec"]
        chosen = spec["selector"]["matchLabels"].items()
        covered = [
            name
            for name, found in deployments.items()
            if chosen <= found["template"]["metadata"]["labels"].items()
        ]
        assert covered, "a budget for nobody"
        for name in covered:
            replicas = deployments[name]["replicas"]
            left = spec.get("minAvailable", replicas - spec.get("maxUnavailable", 0))
            assert 1 <= left < replicas, f"{name}: one must go, and one must stay"


def test_the_balancer_reaches_every_gateway() -> None:
    (service,) = [s for s in of_kind("Service") if s["metadata"]["name"] == "gateway"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    config = (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
    (template,) = re.findall(r"server-template node \d+ (\S+):(\d+)", config)
    assert template == ("gateway", "8080")
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert f"agent-port {ports['agent']}" in config


def test_the_gateway_api_opens_the_same_door_as_the_ingress() -> None:
    """Against its own schemas it is checked by scripts/check-gateway-api, which needs npm."""
    gateway, route = yaml.safe_load_all(ROUTES.read_text())
    (ingress,) = of_kind("Ingress")
    (service,) = [s for s in of_kind("Service") if s["metadata"]["name"] == "balancer"]
    assert (gateway["kind"], route["kind"]) == ("Gateway", "HTTPRoute")
    assert gateway["apiVersion"] == route["apiVersion"] == "gateway.networking.k8s.io/v1"
    (listener,) = gateway["spec"]["listeners"]
    assert (listener["protocol"], listener["tls"]["mode"]) == ("HTTPS", "Terminate")
    (secret,) = listener["tls"]["certificateRefs"]
    assert secret["name"] == ingress["spec"]["tls"][0]["secretName"]
    assert (
        [listener["hostname"]] == route["spec"]["hostnames"] == ingress["spec"]["tls"][0]["hosts"]
    )
    (parent,) = route["spec"]["parentRefs"]
    assert parent == {"name": gateway["metadata"]["name"], "sectionName": listener["name"]}
    (rule,) = route["spec"]["rules"]
    assert rule["timeouts"] == {"request": "0s", "backendRequest": "0s"}, "a WebSocket has no end"
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
    (backend,) = rule["backendRefs"]
    (port,) = service["spec"]["ports"]
    assert backend == {"name": "balancer", "port": port["port"]}


def test_websockets_outlive_the_pause_between_pings() -> None:
    (ingress,) = of_kind("Ingress")
    notes = ingress["metadata"]["annotations"]
    quiet = DEFAULTS.ping_interval + DEFAULTS.ping_timeout
    for name in ("proxy-read-timeout", "proxy-send-timeout"):
        assert float(notes[f"nginx.ingress.kubernetes.io/{name}"]) > quiet
    config = (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
    (tunnel,) = re.findall(r"timeout tunnel (\d+)s", config)
    assert float(tunnel) > quiet


def test_scaling_goes_by_slack() -> None:
    (scaler,) = of_kind("HorizontalPodAutoscaler")
    (metric,) = scaler["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "playhead_taken"
    (rule,) = yaml.safe_load(ADAPTER.read_text())["rules"]["custom"]
    assert rule["name"]["as"] == "playhead_taken"
    assert rule["seriesQuery"].startswith("playhead_slack_ratio")
    budgets = {budget["metadata"]["name"] for budget in of_kind("PodDisruptionBudget")}
    assert budgets == {"gateway", "balancer"}
