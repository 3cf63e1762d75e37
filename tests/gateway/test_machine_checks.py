"""How well a server would run on this machine, in sentences with the remedy."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from playhead.gateway import cli, gpu, machine_checks
from playhead.gateway.checks import Level
from playhead.gateway.settings import Settings

ON_GPU = Settings(model="qwen3-tts", weights="random:1.7b")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the kernel's files of this test are: none so far."""
    for name in ("SOMAXCONN", "CLOCK", "QUOTA", "QUOTA_V1"):
        monkeypatch.setattr(machine_checks, name, tmp_path / name)
    monkeypatch.setattr(machine_checks, "usable_cores", lambda: 4)
    return tmp_path


def test_cores_are_counted_by_process(machine: Path) -> None:
    assert machine_checks.cores(1).level is Level.OK
    assert machine_checks.cores(2).text == "4 cores for 2 processes"
    found = machine_checks.cores(3)
    assert found.level is Level.NOTE
    assert "start at most 2 with --workers, or take a larger machine" in found.text


def test_a_containers_limit_counts(machine: Path) -> None:
    assert machine_checks.cpu_quota() == math.inf
    (machine / "QUOTA").write_text("150000 100000\n")
    assert machine_checks.cpu_quota() == 1.5
    found = machine_checks.cores(1)
    assert found.level is Level.NOTE
    assert "1.5 cores (the container's limit; 4 are seen) for 1 process" in found.text
    assert found.text.endswith("allow the container more (--cpus)")
    (machine / "QUOTA").write_text("max 100000\n")
    assert machine_checks.cpu_quota() == math.inf


def test_a_limit_of_an_older_kernel(machine: Path) -> None:
    folder = machine / "QUOTA_V1"
    folder.mkdir()
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    (folder / "cpu.cfs_quota_us").write_text("-1\n")
    assert machine_checks.cpu_quota() == math.inf
    (folder / "cpu.cfs_quota_us").write_text("300000\n")
    assert machine_checks.cpu_quota() == 3.0


def test_the_backlog(machine: Path) -> None:
    assert "does not tell" in machine_checks.backlog(Settings()).text
    (machine / "SOMAXCONN").write_text("128\n")
    found = machine_checks.backlog(Settings())
    assert (found.level, "sysctl -w net.core.somaxconn=512" in found.text) == (Level.NOTE, True)
    (machine / "SOMAXCONN").write_text("4096\n")
    assert machine_checks.backlog(Settings()).level is Level.OK


@pytest.mark.parametrize(
    ("source", "level"),
    [("tsc", Level.OK), ("kvm-clock", Level.OK), ("hpet", Level.NOTE), ("acpi_pm", Level.NOTE)],
)
def test_the_clock(machine: Path, source: str, level: Level) -> None:
    assert "does not name" in machine_checks.clock_source(Settings()).text
    (machine / "CLOCK").write_text(f"{source}\n")
    found = machine_checks.clock_source(Settings())
    assert (found.level, source in found.text) == (level, True)


def torch_of(cuda: str | None, *, usable: bool) -> SimpleNamespace:
    return SimpleNamespace(
        __version__="2.11.0",
        version=SimpleNamespace(cuda=cuda),
        cuda=SimpleNamespace(is_available=lambda: usable),
    )


def test_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def check() -> tuple[Level, str]:
        found = machine_checks.torch_build(ON_GPU)
        return found.level, found.text

    assert "not needed" in machine_checks.torch_build(Settings()).text
    monkeypatch.setattr(machine_checks, "find_spec", lambda name: None)
    assert check() == (
        Level.FAULT,
        "torch and triton and transformers cannot be imported: pip install 'playhead[qwen]'",
    )
    monkeypatch.setattr(machine_checks, "find_spec", lambda name: object())
    for found, level, says in (
        (torch_of(None, usable=False), Level.FAULT, "a build without CUDA: install one"),
        (torch_of("13.0", usable=False), Level.FAULT, "driver for CUDA 13.0 or newer"),
        (torch_of("13.0", usable=True), Level.OK, "2.11.0 for CUDA 13.0"),
    ):
        monkeypatch.setitem(sys.modules, "torch", found)
        got, text = check()
        assert (got, says in text) == (level, True), text


def device(index: int, free: int) -> gpu.Device:
    total = 140 * 2**30
    return gpu.Device(index, f"GPU-{index}", "H200", "570.1", total - free, total, None)


def test_memory_of_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")

    def check(*free: int, weights: str = "random:1.7b") -> tuple[Level, str]:
        seen = [device(index, gib * 2**30) for index, gib in enumerate(free)]
        monkeypatch.setattr(gpu, "devices", lambda _: seen)
        found = machine_checks.gpu_memory(Settings(model="qwen3-tts", weights=weights, slots=512))
        return found.level, found.text

    assert check()[1] == "nothing to work out"
    assert check(130, weights="some/model")[1] == "nothing to work out"
    level, text = check(130, 130)
    assert level is Level.OK
    assert text.startswith("512 slots and weights take ")
    assert text.endswith(" of 130 GiB free on H200")
    level, text = check(16)
    assert level is Level.FAULT
    assert "streams would fit" in text
    assert text.endswith("Lower --slots or --context, or free memory")
    level, text = check(130, 16)
    assert (level, text.startswith("device 1: ")) == (Level.NOTE, True)


def test_the_doctor_looks_at_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--port", "0", "--max-connections", "100"]
    assert cli.main(["doctor", *flags, "--workers", "512"], {}) == 0
    out = capsys.readouterr().out
    assert "for 512 processes" in out
    for about in ("cores", "backlog", "clock", "torch", "gpu memory"):
        assert f" {about} " in out
    assert cli.main(["doctor", *flags, "--workers", "0"], {}) == 2
