"""Two network namespaces: what they need, and a run through them where they can be had."""

import sys
from pathlib import Path

import pytest
from interfaces import held
from playhead.gateway import cli as playhead
from playhead.loadgen import namespace
from playhead.loadgen.namespace import NoNamespaces, check, moved
from playhead.loadgen.record import load
from playhead.loadgen.servers import placed


def possible() -> str:
    """Why not; empty when they can be had."""
    try:
        with held(change=True), namespace.namespaces(0):
            return ""
    except NoNamespaces as error:
        return str(error)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("sys.platform", "darwin"), "needs Linux; --network proxy works anywhere"),
        (("os.geteuid", lambda: 1000), "needs root; --network proxy works without"),
        (("os.path.exists", lambda path: False), "needs /dev/net/tun: modprobe tun"),
    ],
)
def test_what_is_missing_is_said(
    change: tuple[str, object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(*change)
    with pytest.raises(NoNamespaces, match=says):
        check()


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_a_kernel_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *arguments: int) -> None:
        raise PermissionError(1, f"{name}: Operation not permitted")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("os.path.exists", lambda path: True)
    monkeypatch.setattr(namespace, "_call", refuse)
    with pytest.raises(NoNamespaces, match="unshare: Operation not permitted; use --network proxy"):
        namespace.namespaces(0).__enter__()


def test_each_network_has_an_address_of_the_server() -> None:
    assert moved("http://0.0.0.0:8080", "direct") == "http://10.77.0.1:8080"
    assert moved("ws://10.77.0.1:8080/v1/session", "shaky") == "ws://10.77.3.1:8080/v1/session"
    assert moved("http://h/", "home") == "http://10.77.1.1/"


def test_the_proxy_needs_no_place_of_its_own() -> None:
    with placed("proxy", 0) as net:
        assert net is None


def test_a_server_outside_is_out_of_reach(capsys: pytest.CaptureFixture[str]) -> None:
    assert playhead.main(["bench", "run", "--network", "namespace"]) == 2
    assert "needs a server inside: add --serve as last flag" in capsys.readouterr().err


@pytest.mark.slow
def test_a_whole_run_through_namespaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if missing := possible():
        pytest.skip(f"no network namespaces here: {missing}")
    flags = ["--seeds", "0", "--warmup", "0", "--window", "3", "--mix", "shaky", "--rate", "2"]
    more = ["--network", "namespace", "--out", str(tmp_path), "--serve", "--log-level", "error"]
    with held(change=True):
        assert playhead.main(["bench", "run", *flags, *more]) in (0, 1)
    (path,) = tmp_path.glob("*.jsonl")
    made = load(path)
    assert made.complete
    assert made.plan["network"] == "namespace"
    assert made.records
    assert [record.fault for record in made.records] == [""] * len(made.records)
    # The delay is 15 ms each way at least, and no proxy is there to make it.
    assert all((record.round_trip or 0) >= 0.03 for record in made.records)
    assert {record.network for record in made.records} <= {"home", "shaky"}
    assert made.metrics
