"""Every command in the documentation is one that exists: flags, targets, scripts, services."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from playhead.gateway import cli
from playhead.gateway.settings import OPTIONS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


PROGRAMS = r"(?:\S*/)?(playhead|make|docker|promtool|kubectl|python|scripts/\S+)\b"


def blocks(text: str) -> list[str]:
    """Lines of fenced blocks that are shell commands."""
    found = []
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        if language in ("", "bash", "sh", "shell", "console"):
            joined = body.replace("\\\n", " ")
            found += [line.strip() for line in joined.splitlines()]
    return found


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        inline = re.findall(r"`(playhead [a-z]+(?: [^`\n]*)?)`", text)
        for line in [*blocks(text), *inline]:
            line = re.sub(r"\s+#.*$| {2,}.*$", "", line).removeprefix("$ ").strip()
            if re.match(PROGRAMS, line):
                found.append((page.name, line))
    return sorted(set(found))


COMMANDS = commands()


def words_of(line: str) -> list[str]:
    words = shlex.split(line.partition(" | ")[0].partition(" > ")[0].partition(" & ")[0])
    return [word for word in words if word not in ("...", "…")]


def check_playhead(words: list[str]) -> None:
    """The real parser takes it. Names in capitals stand for something."""
    if len(words) == 2:  # the name of a command, not a call
        words = [*words, "--help"]
    given = ["1" if re.fullmatch(r"[A-Z_]+|N", word) else word for word in words[1:]]
    status: Any = 0
    try:
        cli._parser(given).parse_args(given)
    except SystemExit as left:
        status = left.code
    assert not status, f"playhead {' '.join(given)}"


def check_make(words: list[str]) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for word in words[1:]:
        assert "=" in word or word in targets, word


def check_docker(words: list[str]) -> None:
    if words[1:2] != ["compose"]:
        return
    services: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    profiles = {profile for service in services.values() for profile in service.get("profiles", ())}
    rest = words[2:]
    for at, word in enumerate(rest):
        if word == "--profile":
            assert rest[at + 1] in profiles
        elif word == "--scale":
            assert rest[at + 1].partition("=")[0] in services
        elif not word.startswith("-") and rest[at - 1] not in ("--profile", "--scale"):
            assert word in services or word in ("up", "down", "config", "build", "logs", "ps"), word


def check_file(words: list[str]) -> None:
    for word in words:
        if word.startswith(("bench/", "scripts/", "deploy/", "tests/")):
            assert (ROOT / word).exists(), word
    if words[0] == "python" and words[1:2] == ["-m"]:
        name = words[2].removeprefix("playhead.").replace(".", "/")
        if words[2].startswith("playhead."):
            assert (ROOT / f"{name}.py").exists(), words[2]


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 30
    assert {"operations.md", "README.md", "troubleshooting.md"} <= {page for page, _ in COMMANDS}


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=[f"{p}: {c}"[:90] for p, c in COMMANDS])
def test_a_command_exists(page: str, line: str) -> None:
    words = words_of(line)
    program = words[0].rpartition("/")[2]
    check_file(words)
    if program == "playhead":
        check_playhead(words)
    elif program == "make":
        check_make(words)
    elif program == "docker":
        check_docker(words)


def test_the_picture_is_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "picture"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_dependency_is_in_the_list_of_licences() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "docs" / "licences.md").read_text()
    listed = set(re.findall(r"^\| (\S+) \|", text, re.MULTILINE))
    for requirement in project["dependencies"]:
        name = re.split(r"[^\w-]", requirement)[0].lower().replace("_", "-")
        assert name in listed, f"{name}: run scripts/licences"


@pytest.mark.parametrize("name", [option.name for option in OPTIONS if not option.flag])
def test_a_variable_without_a_flag_is_documented(name: str) -> None:
    """No --help shows it."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert f"`PLAYHEAD_{name.upper()}`" in text
