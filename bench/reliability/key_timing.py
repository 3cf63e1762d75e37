#!/usr/bin/env python3
"""Does the time that a wrong key takes tell how wrong it was? A t-test, 20,000 tries of each kind.

The kinds are tried in random order, each try with a guess of its own, and the processor time of the
thread is counted, so that other work on the machine is noise for all kinds alike. As in Reparaz,
Balasch and Verbauwhede, "Dude, is my code constant time?" (DATE 2017): values above a percentile
common to both are left out, Welch's t is taken, and |t| above 4.5 counts as a difference.

``--control`` judges a door that compares character by character instead: it must be found out.
"""

import argparse
import gc
import json
import random
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
from figures import command, machine
from playhead.gateway.access import Access, Denied
from playhead.gateway.access_keys import ApiKey, KeyRing, new_key
from playhead.gateway.access_offer import Offer

THRESHOLD = 4.5
KEPT = 0.95
"""Share of the values that is judged: what is slower was interrupted."""
KEYS = 50
HEAD = 12
"""Characters of a key before its secret."""
WALL = 1_800_000_000.0

Times = npt.NDArray[np.float64]
Guess = Callable[[str], str]


class LeakyRing(KeyRing):
    """What must not be: texts are kept, and compared up to the first difference."""

    def __init__(self, keys: Sequence[tuple[str, ApiKey]]) -> None:
        super().__init__(key for _, key in keys)
        self._texts = {key.id: (text, key) for text, key in keys}

    def recognise(self, presented: str, wall: float) -> ApiKey | None:
        text, key = self._texts.get(presented[3:11], ("", None))
        for shown, kept in zip(presented, text, strict=False):
            if shown != kept:
                return None
        return key


def _secret() -> str:
    return secrets.token_urlsafe(32)


KINDS: dict[str, Guess] = {
    "unknown id": lambda text: new_key("x", WALL)[0],
    "known id, another secret": lambda text: text[:HEAD] + _secret(),
    "known id, half of the secret": lambda text: text[: HEAD + 22] + _secret()[:21],
    "known id, all but the last character": lambda text: (
        text[:-1] + ("B" if text[-1] == "A" else "A")
    ),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two kinds; nanoseconds, and Welch's t."""

    one: str
    other: str
    mean: float
    error: float  # of the mean, one standard deviation
    t: float


def measure(ring: KeyRing, texts: Sequence[str], tries: int, seed: int) -> dict[str, Times]:
    """Nanoseconds of processor time of each try, float64 [tries] for each kind."""
    rng = random.Random(seed)
    order = [name for name in KINDS for _ in range(tries)]
    rng.shuffle(order)
    # All made beforehand, and copied: how one is made leaves traces in caches and in memory.
    made = [KINDS[name](rng.choice(texts)) for name in order]
    guesses = [Offer(key=guess.encode().decode()) for guess in made]
    access = Access(ring, address_connections=50, wall=lambda: WALL)
    times: dict[str, list[int]] = {name: [] for name in KINDS}
    gc.disable()
    for number, (name, offer) in enumerate(zip(order, guesses, strict=True)):
        now = number * 6.0  # an address may be wrong ten times a minute
        before = time.thread_time_ns()
        try:
            access.admit(offer, "192.0.2.1", now)
        except Denied:
            times[name].append(time.thread_time_ns() - before)
    gc.enable()
    assert all(len(found) == tries for found in times.values()), "a guess was let in"
    return {name: np.array(found, float) for name, found in times.items()}


def difference(one: str, other: str, times: dict[str, Times]) -> Difference:
    """Of two kinds, without the slowest values of both together."""
    a, b = times[one], times[other]
    limit = np.quantile(np.concatenate((a, b)), KEPT)
    a, b = a[a <= limit], b[b <= limit]
    error = float(np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))
    mean = float(b.mean() - a.mean())
    return Difference(one, other, mean, error, mean / error)


def judge(*, control: bool, tries: int, seed: int) -> list[Difference]:
    """Every two kinds."""
    keys = [new_key(f"key {number}", WALL) for number in range(KEYS)]
    ring = LeakyRing(keys) if control else KeyRing(key for _, key in keys)
    texts = [text for text, _ in keys]
    measure(ring, texts, min(tries, 500), seed)  # warm
    times = measure(ring, texts, tries, seed)
    for name, found in times.items():
        print(f"  {name:38} median {np.median(found) / 1e3:7.2f} µs of {len(found)}")
    return [difference(one, other, times) for one, other in combinations(KINDS, 2)]


def show(found: Sequence[Difference]) -> None:
    """A line for each."""
    for each in found:
        print(f"  {each.mean:+9.1f} ± {each.error:5.1f} ns  t {each.t:+8.2f}  ", end="")
        print(f"{each.one} -> {each.other}")


def main() -> int:
    """0 when the door tells nothing (with ``--control``: when the leak was found)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=20_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found = judge(control=arguments.control, tries=arguments.tries, seed=arguments.seed)
    show(found)
    worst = max(abs(each.t) for each in found)
    leaks = worst > THRESHOLD
    print(f"|t| at most {worst:.2f}: {'it tells' if leaks else 'it tells nothing'}")
    if arguments.out:
        told = {
            "machine": machine(),
            "command": command(),
            "tries": arguments.tries,
            "control": arguments.control,
        }
        told["differences"] = [asdict(each) for each in found]
        arguments.out.write_text(json.dumps(told, indent=1) + "\n")
    return int(leaks != arguments.control)


if __name__ == "__main__":
    sys.exit(main())
