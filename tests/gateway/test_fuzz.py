"""The committed corpus of each fuzzer, and what it must hold (bench/reliability/fuzz.py runs on
from there, guided by coverage)."""

import random
from pathlib import Path

import pytest
from fuzz_targets import TARGETS, mutate

CORPUS = Path(__file__).resolve().parent.parent / "vectors" / "fuzz"
MUTATIONS = 400


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_survived(name: str) -> None:
    found = sorted((CORPUS / name).iterdir())
    assert len(found) >= 5
    for path in found:
        TARGETS[name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_of_the_corpus_are_survived(name: str) -> None:
    chance = random.Random(7)
    seeds = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    for _ in range(MUTATIONS):
        TARGETS[name](mutate(chance.choice(seeds), seeds, chance))
