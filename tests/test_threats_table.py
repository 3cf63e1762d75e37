"""Every row of docs/threats.md is there, and every test that it names."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
TEXT = (TESTS.parent / "docs" / "threats.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \|.*\| ([^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
THREATS, FAULTS = 44, 20


def rows() -> list[tuple[int, str]]:
    return [(int(number), tests) for number, tests in ROW.findall(TEXT)]


def test_all_rows_are_there_and_each_names_its_tests() -> None:
    numbers = [number for number, _ in rows()]
    assert numbers == [*range(1, THREATS + 1), *range(1, FAULTS + 1)]
    for number, tests in rows():
        assert NAMED.findall(tests), number
        assert re.sub(NAMED, "", tests).strip(", ") == "", f"row {number} names what is no test"


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(TEXT))))
def test_a_test_that_is_named_exists(file: str, name: str) -> None:
    source = (TESTS / file).read_text(encoding="utf-8")
    assert re.search(rf"^(async )?(def|class) {name}\b", source, re.MULTILINE), f"{file}::{name}"
