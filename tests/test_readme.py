"""The README keeps its promises: its commands exist, its links lead somewhere, its program runs."""

import os
import re
import subprocess
import sys
import wave
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "hello.py"
PLAYHEAD = Path(sys.executable).with_name("playhead")
FIRST_SCREEN = 40  # lines


def example_in_readme() -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    return code


def test_example_is_the_file_that_runs() -> None:
    assert example_in_readme() == EXAMPLE.read_text(encoding="utf-8")


def test_example_has_ten_lines_of_code() -> None:
    lines = [line for line in example_in_readme().splitlines() if line.strip()]
    assert 3 <= len(lines) <= 10


def test_first_screen_says_how_to_run_and_how_to_program() -> None:
    head = "\n".join(README.splitlines()[:FIRST_SCREEN])
    for needed in ("make run", "make test", example_in_readme()):
        assert needed in head


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_exist(document: str) -> None:
    named = set(re.findall(r"\bmake ([a-z]+)\b +#", (ROOT / document).read_text()))
    rules = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert named
    assert named <= rules


@pytest.mark.parametrize("document", sorted(p.name for p in ROOT.glob("*.md")))
def test_links_lead_to_files(document: str) -> None:
    check_links(ROOT / document)


@pytest.mark.parametrize("document", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_links_in_docs_lead_to_files(document: str) -> None:
    check_links(ROOT / "docs" / document)


def check_links(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (document.parent / link).exists()] == []


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A real server on a free port of this machine; its address as ws://HOST:PORT."""
    command = [PLAYHEAD, "serve", "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        seen = []
        try:
            for line in process.stdout:
                seen.append(line)
                if found := re.search(r"http://([\d.]+:\d+)", line):
                    yield f"ws://{found[1]}"
                    break
            else:
                pytest.fail("the server ended early: " + "".join(seen))
        finally:
            process.terminate()
            process.stdout.read()


@pytest.mark.slow
def test_example_speaks(server: str, tmp_path: Path) -> None:
    program = tmp_path / "hello.py"
    program.write_text(example_in_readme().replace("ws://127.0.0.1:8080", server))
    result = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert result.returncode == 0, result.stderr
    assert_speech(*tmp_path.glob("*.wav"))


@pytest.mark.slow
def test_say_writes_what_readme_says(server: str, tmp_path: Path) -> None:
    (line,) = re.findall(r"^\.venv/bin/playhead (say \".*)$", README, flags=re.MULTILINE)
    command = f"{PLAYHEAD} {line} --url {server}"
    result = subprocess.run(
        command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert result.returncode == 0, result.stderr
    assert_speech(*tmp_path.glob("*.wav"))


def assert_speech(path: Path) -> None:
    """16-bit, more than half a second, and not silence."""
    with wave.open(str(path)) as file:
        assert file.getnframes() > file.getframerate() // 2
        samples = array("h", file.readframes(file.getnframes()))
    assert max(samples) > 1000
