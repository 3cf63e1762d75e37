"""What accompanies the sources: the container files, scripts, and claims. See test_packaging."""

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("codecs", "engine", "gateway", "loadgen", "web")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirement_name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0].lower()


def test_helpers_of_tests_have_names_of_their_own() -> None:
    """All their folders are on one path: of two with one name, one would be found for both."""
    folders = [ROOT / folder for folder in PROJECT["tool"]["pytest"]["ini_options"]["pythonpath"]]
    names = [
        path.name
        for folder in folders
        for path in folder.glob("*.py")
        if not path.name.startswith(("test_", "conftest", "__init__"))
    ]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


def test_what_names_its_interpreter_can_be_run_as_a_command_and_nothing_else_can() -> None:
    """The documents show such scripts as plain commands."""
    files = [path for folder in ("bench", "scripts") for path in (ROOT / folder).rglob("*")]
    found = {
        path.relative_to(ROOT).as_posix(): (path.read_bytes()[:2] == b"#!", path.stat().st_mode)
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert [name for name, (says, mode) in found.items() if says != bool(mode & 0o100)] == []


def test_every_source_folder_is_a_declared_package() -> None:
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for folder in SOURCES
        for path in (ROOT / folder).rglob("__init__.py")
    }
    setuptools = PROJECT["tool"]["setuptools"]
    assert set(setuptools["package-dir"].values()) == folders
    assert set(setuptools["package-dir"]) == set(setuptools["packages"])


def test_every_dependency_gives_its_reason() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    requirements = [*PROJECT["project"]["dependencies"], *itertools.chain(*extras)]
    lines = text("pyproject.toml").partition("[project]")[2].splitlines()
    for requirement in requirements:
        found = [line for line in lines if f'"{requirement}"' in line]
        assert found
        assert all("#" in line for line in found), f"{requirement}: say beside it what it is for"


def test_the_voice_needs_no_accelerator_library() -> None:
    names = {requirement_name(name) for name in PROJECT["project"]["dependencies"]}
    assert names.isdisjoint({"torch", "transformers", "triton"})


def test_version_is_the_newest_in_the_changelog() -> None:
    (newest, *_) = re.findall(r"^## (\d\S*)", text("CHANGELOG.md"), flags=re.MULTILINE)
    assert newest == PROJECT["project"]["version"]


def test_notice_names_the_bundled_voice_and_its_version() -> None:
    (voice,) = (name for name in PROJECT["project"]["dependencies"] if "hibari-tts" in name)
    assert voice.replace("==", " ") in text("NOTICE")


# Container files. No engine runs in the tests: they are read, not built.


def test_image_runs_unprivileged_and_stops_by_signal() -> None:
    dockerfile = text("Dockerfile")
    final = dockerfile.rsplit("\nFROM ", 1)[1]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", final, flags=re.MULTILINE)
    assert re.search(r"^STOPSIGNAL SIGTERM$", final, flags=re.MULTILINE)
    for instruction in ("ENTRYPOINT", "CMD"):
        # The exec form: a shell would keep the signal to itself.
        assert re.search(rf"^{instruction} \[", final, flags=re.MULTILINE)
    assert "/healthz" in final


def test_image_copies_only_what_the_build_context_lets_through() -> None:
    allowed = {line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")}
    copied: set[str] = set()
    for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text("Dockerfile"), flags=re.MULTILINE):
        copied |= set(line.split())
    assert copied == allowed
    assert set(SOURCES) <= copied


def test_image_command_line_is_one_that_the_server_accepts() -> None:
    (command,) = re.findall(r"^CMD (\[.+\])$", text("Dockerfile"), flags=re.MULTILINE)
    arguments = yaml.safe_load(command)
    playhead = Path(sys.executable).with_name("playhead")
    result = subprocess.run(
        [playhead, *arguments, "--help"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    for option in (word for word in arguments if word.startswith("--")):
        assert option in result.stdout


# Scripts.


def find_python(folder: Path, **versions: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/find-python where only the given fake interpreters are to be found."""
    for name, script in versions.items():
        fake = folder / name
        fake.write_text(f"#!/bin/bash\n{script}\n")
        fake.chmod(0o755)
    return subprocess.run(
        ["/bin/bash", str(ROOT / "scripts" / "find-python")],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_find_python_says_what_is_needed_when_there_is_none(tmp_path: Path) -> None:
    result = find_python(tmp_path, python3="exit 1")
    assert result.returncode == 1
    assert "Python 3.11 or newer" in result.stderr


def test_find_python_names_the_package_that_makes_environments(tmp_path: Path) -> None:
    result = find_python(tmp_path, python3='[[ "$2" == *ensurepip* ]] && exit 1; exit 0')
    assert result.returncode == 1
    assert "install python3-venv" in result.stderr


def test_find_python_passes_over_a_shim_that_refuses_to_start(tmp_path: Path) -> None:
    result = find_python(tmp_path, **{"python3.11": "exit 127", "python3": "exit 0"})
    assert result.returncode == 0
    assert result.stdout.strip() == str(tmp_path / "python3")
