"""What is shipped: a source distribution, the wheel that is built from it, and that it serves."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from live import serve_process
from machine import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("codecs", "engine", "gateway", "loadgen", "web")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"),
    *(".coverage*", "bench-out", "node_modules", "*.wav"),
)
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"


@dataclass
class Built:
    """Both distributions, and the names of the files in them, below their first folder."""

    sdist: Path
    source: set[str]
    wheel: Path
    inside: set[str]


def build(kind: str, source: Path, target: Path) -> Path:
    """As pip does it, without the network: everything that is needed is in the dev extra."""
    command = [sys.executable, "-c", BUILD.format(kind), str(target)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The wheel is built from what the source distribution holds: it lacks what that lacks."""
    folder = tmp_path_factory.mktemp("packaging")
    for name in ("sdist", "unpacked", "wheel"):
        (folder / name).mkdir()
    shutil.copytree(ROOT, folder / "copy", ignore=LEFT_OUT)
    sdist = build("sdist", folder / "copy", folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    source = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*")}
    wheel = build("wheel", unpacked, folder / "wheel")
    with zipfile.ZipFile(wheel) as content:
        return Built(sdist, source, wheel, set(content.namelist()))


def tracked() -> list[str]:
    """What the repository holds; outside one, what lies here."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.splitlines() if listed.returncode == 0 else []
    return [name for name in names if (ROOT / name).exists()]


def test_source_distribution_holds_the_repository(built: Built) -> None:
    if not tracked():
        pytest.skip("no git here that says what belongs to the repository")
    of_git = {".gitignore", ".gitattributes"}
    assert sorted(set(tracked()) - of_git - built.source) == []


def test_wheel_holds_every_source_file_under_its_package(built: Built) -> None:
    for folder in SOURCES:
        for path in (ROOT / folder).rglob("*.py"):
            inside = path.relative_to(ROOT).as_posix().replace("gateway/client/", "client/")
            assert f"playhead/{inside}" in built.inside


def test_wheel_holds_nothing_else(built: Built) -> None:
    """Neither tests nor benchmarks, and no file twice."""
    assert {name.split("/")[0] for name in built.inside} == {
        "playhead",
        f"playhead-{PROJECT['version']}.dist-info",
    }
    assert not [name for name in built.inside if name.startswith("playhead/gateway/client/")]


def test_wheel_holds_the_demo_page_whole(built: Built) -> None:
    assert "playhead/web/index.html" in built.inside
    for path in (ROOT / "web").rglob("*"):
        # package.json tells Node.js how to read the scripts in the tests; no browser asks for it.
        if path.is_file() and path.suffix != ".pyc" and path.name != "package.json":
            assert f"playhead/{path.relative_to(ROOT).as_posix()}" in built.inside


@pytest.mark.parametrize("package", ["client", "codecs", "engine", "gateway", "loadgen"])
def test_wheel_says_that_it_is_typed(built: Built, package: str) -> None:
    assert f"playhead/{package}/py.typed" in built.inside


def test_wheel_carries_its_licences(built: Built) -> None:
    names = {Path(name).name for name in built.inside if "/licenses/" in name}
    assert names == {"LICENSE", "NOTICE"}


@dataclass
class Installed:
    """An environment that holds the wheel and nothing of this checkout."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str) -> str:
        """What a program of this environment prints."""
        done = subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """As ``pipx install`` does it: a new environment, the wheel, its program. The dependencies are
    not fetched again: they are found behind it, where these tests' are."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    target = folder / "bin" / "python"
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "--python", str(target), "install", *options]
    subprocess.run([*command, str(built.wheel)], check=True)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    made = Installed(folder, environment)
    own = made.run("python", "-c", "import site; print(site.getsitepackages()[0])").strip()
    # Lines of a .pth file are searched after the folder that holds it, and .pth files in there are
    # not read: the editable installation of this checkout stays out.
    Path(own, "dependencies.pth").write_text(str(Path(pytest.__file__).parent.parent))
    return made


def test_installed_program_tells_its_version_and_its_commands(installed: Installed) -> None:
    where = installed.run("python", "-c", "import playhead.web as it; print(it.__path__[0])")
    assert Path(where.strip()).is_relative_to(installed.folder)
    assert installed.run("playhead", "--version").strip() == PROJECT["version"]
    assert re.search(r"^ +serve ", installed.run("playhead", "--help"), flags=re.MULTILINE)
    assert "--port" in installed.run("playhead", "serve", "--help")


def test_installed_program_serves_the_page_and_speaks(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with serve_process(program=installed.folder / "bin" / "playhead") as url:
        page = fetched(url.replace("ws:", "http:") + "/")
        scripts = re.findall(r'(?:src|href)="([\w.-]+\.(?:js|css|svg))"', page.decode())
        assert len(scripts) >= 3
        for name in scripts:
            assert (
                fetched(f"{url.replace('ws:', 'http:')}/{name}")
                == (ROOT / "web" / name).read_bytes()
            )
        sound = tmp_path / "said.wav"
        installed.run("playhead", "say", "Installed.", "--url", url, "--out", str(sound))
    assert sound.stat().st_size > 24_000  # half a second of 16-bit samples


def fetched(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return bytes(answer.read())
