"""What keeps a server from starting, said in one sentence with its remedy; `playhead doctor`."""

import re
import resource
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from playhead.codecs import opus
from playhead.engine.models.hibari import split
from playhead.gateway import checks, cli, gpu
from playhead.gateway.checks import Level
from playhead.gateway.models import StartError, load_voice, open_model
from playhead.gateway.settings import Settings


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Descriptor limits of 1024 and 4096; what they were set to."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: asked.append(pair))
    return asked


def test_too_few_descriptors(limits: list[tuple[int, int]]) -> None:
    found = checks.descriptors(Settings())
    assert found.level is Level.FAULT
    assert "--max-connections 5000 needs 5700" in found.text
    assert "may open 4096" in found.text
    lower = re.search(r"lower --max-connections to (\d+)", found.text)
    assert lower
    assert checks.descriptors(Settings(max_connections=int(lower[1]))).level is Level.OK
    assert limits == [(checks.SPARE + int(lower[1]) * 11 // 10, 4096)]


def test_a_limit_that_is_wide_enough_is_left_alone(
    limits: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checks.descriptors(Settings(max_connections=100)).level is Level.OK
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert checks.descriptors(Settings()).level is Level.OK
    monkeypatch.setattr(sys, "platform", "win32")
    assert checks.descriptors(Settings()).level is Level.OK
    assert limits == []


def test_a_server_does_not_start_with_too_few(limits: list[tuple[int, int]]) -> None:
    with pytest.raises(StartError, match=r"--max-connections 5000 needs"):
        open_model(Settings(), lambda: pytest.fail("too late"))  # type: ignore[arg-type,return-value]


def test_a_taken_and_a_free_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        found = checks.ports(Settings(port=number))
    assert found.level is Level.FAULT
    assert f"port {number} of 127.0.0.1 is in use" in found.text
    assert checks.ports(Settings(port=0)).level is Level.OK


def test_the_voice_in_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path / "a" / "b"))
    found = checks.voice_cache(Settings())
    assert (found.level, "will be prepared" in found.text) == (Level.OK, True)
    monkeypatch.setattr(split, "prepared", lambda: True)
    assert "prepared in" in checks.voice_cache(Settings()).text
    other = Settings(model="qwen3-tts", weights="random:1.7b")
    assert "not needed" in checks.voice_cache(other).text


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("PLAYHEAD_CACHE", str(file / "below"))
    found = checks.voice_cache(Settings())
    assert found.level is Level.FAULT
    assert "name a writable folder with PLAYHEAD_CACHE" in found.text
    with pytest.raises(StartError, match=r"name a writable folder with PLAYHEAD_CACHE"):
        load_voice()


def test_a_cache_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 2**20))
    found = checks.voice_cache(Settings())
    assert (found.level, "5 MiB free" in found.text) == (Level.FAULT, True)


def test_weights(tmp_path: Path) -> None:
    def check(weights: str) -> checks.Finding:
        return checks.weights(Settings(model="qwen3-tts", weights=weights))

    assert checks.weights(Settings()).level is Level.OK
    assert check("random:0.6b").level is Level.OK
    assert "hub id" in check("org/model").text
    found = check(str(tmp_path))
    assert (found.level, "No such file or directory: config.json" in found.text) == (
        Level.FAULT,
        True,
    )
    (tmp_path / "config.json").write_text("{}")
    assert check(str(tmp_path)).level is Level.OK
    assert list(checks.faults(Settings(model="qwen3-tts", weights="/none"))) == [
        check("/none").text
    ]


def test_libopus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opus, "unavailable", lambda: "install libopus0")
    found = checks.libopus(Settings())
    assert (found.level, "install libopus0" in found.text) == (Level.NOTE, True)
    monkeypatch.setattr(opus, "unavailable", lambda: None)
    assert checks.libopus(Settings()).level is Level.OK


def test_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(kind: str) -> None:
        raise ValueError("no output device")

    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert "pip install 'playhead[play]'" in checks.audio_device(Settings()).text
    monkeypatch.setitem(sys.modules, "sounddevice", SimpleNamespace(query_devices=absent))
    assert "no output device" in checks.audio_device(Settings()).text
    working = SimpleNamespace(query_devices=lambda kind: {})
    monkeypatch.setitem(sys.modules, "sounddevice", working)
    assert checks.audio_device(Settings()).level is Level.OK


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(*found: gpu.Device) -> None:
        monkeypatch.setattr(gpu, "devices", lambda _: list(found))

    on_gpu = Settings(model="qwen3-tts", weights="random:1.7b")
    seen()
    assert checks.accelerators(Settings()).level is Level.NOTE
    found = checks.accelerators(on_gpu)
    assert (found.level, "no CUDA device is seen" in found.text) == (Level.FAULT, True)
    seen(gpu.Device(0, "GPU-1", "H200", "535.1", 0, 2**37, None))
    assert "driver 535.1 is too old: install 550" in checks.accelerators(on_gpu).text
    seen(gpu.Device(0, "GPU-1", "H200", "570.1", 2**30, 2**37, 0.5))
    found = checks.accelerators(on_gpu)
    assert (found.level, "H200 with 127 GiB free" in found.text) == (Level.OK, True)


def test_the_doctor_prints_every_check(
    capsys: pytest.CaptureFixture[str], limits: list[tuple[int, int]]
) -> None:
    assert cli.main(["doctor", "--port", "0", "--max-connections", "100"], {}) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) > len(checks.ALL) + 1
    assert out.endswith("Ready to serve.\n")


def test_the_doctor_finds_faults(
    capsys: pytest.CaptureFixture[str], limits: list[tuple[int, int]]
) -> None:
    assert cli.main(["doctor", "--port", "0"], {}) == 1
    out = capsys.readouterr().out
    assert "FAULT descriptors" in out
    assert re.search(r"\n1 of \d+ checks found a fault\.\n$", out)
    assert cli.main(["doctor", "--port", "many"], {}) == 2
    assert "playhead doctor: --port='many'" in capsys.readouterr().err
