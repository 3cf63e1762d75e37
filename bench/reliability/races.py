#!/usr/bin/env python3
"""500 races for a session over real sockets: who has it in the end, and what came of its sound.

    bench/reliability/races.py [--seed 1] [--scale 1.0] [--only "KIND NUMBER"] [--out FILE]

Several sockets show the same token at the same instant, one after the other, or while the session
is closed, at its utterance's end, at the end of its grace time, loses its key, or its server is
told to go. Each race must end with one socket that has the session (or with none, where it ends),
all others closed in the documented way, the text's whole sound equal by SHA-256, each message the
same wherever it came, and nothing left at the server. The seed decides what each race is, not how
the machine runs it; --only runs one again, as often as --times says. Exit status 0 when all went
so.
"""

import argparse
import asyncio
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from figures import save  # noqa: E402
from kit import served  # noqa: E402
from playhead.gateway.access_file import edit  # noqa: E402
from playhead.gateway.access_keys import ApiKey, KeyRing, new_key  # noqa: E402
from races import Race, Verdict, nothing_left  # noqa: E402
from races_plan import Kind, Times, plan  # noqa: E402

SHARES = {
    Kind.TWINS: 140,
    Kind.NEWEST: 80,
    Kind.CLOSE: 80,
    Kind.END: 80,
    Kind.GRACE: 40,
    Kind.REVOKED: 40,
    Kind.DRAIN: 40,
}
AT_A_TIME = 20
GRACE = 1.0
WALL = 1_800_000_000.0
FLAGS = (
    *("--http-port", "off", "--lead", "0.3", "--drain-timeout", "20"),
    *("--max-connections-per-address", "2000"),
)
VARIABLES = {
    "FAULTY_PACE": "2000",
    "FAULTY_BATCH": "32",
    "PLAYHEAD_HELLO_TIMEOUT": "60",  # hands are shaken long before
}
TIMES = {Kind.GRACE: Times(grace=GRACE), Kind.REVOKED: Times(words=24)}


@dataclass
class House:
    """A server process that is raced at, and what it left behind."""

    process: "subprocess.Popen[str]"
    url: str
    seed: int
    before: int  # descriptors
    verdicts: list[Verdict] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def descriptors(self) -> int:
        """Open ones of the process."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    async def race(self, kind: Kind, number: int, **options: Any) -> None:
        """One race."""
        race = Race(self.url, plan(self.seed, kind, number, TIMES.get(kind, Times())), **options)
        self.verdicts.append(await race.run())

    async def few_at_a_time(self, races: Sequence[tuple[Kind, int]]) -> None:
        """So that they are quick, and meet each other."""
        gate = asyncio.Semaphore(AT_A_TIME)

        async def one(kind: Kind, number: int) -> None:
            async with gate:
                await self.race(kind, number)

        await asyncio.gather(*(one(*each) for each in races))

    async def clean(self) -> None:
        """Nothing may be left, and no descriptors more than before."""
        try:
            await nothing_left(self.url)
        except TimeoutError as fault:
            self.faults.append(str(fault))
        for _ in range(200):
            if self.descriptors <= self.before:
                return
            await asyncio.sleep(0.05)
        self.faults.append(f"{self.descriptors - self.before} descriptors are left")


@contextlib.contextmanager
def house(seed: int, *flags: str) -> Iterator[House]:
    """A server with a voice that costs little."""
    with served(*FLAGS, *flags, stderr=None, **VARIABLES) as (process, url):
        found = House(process, url, seed, 0)
        asyncio.run(nothing_left(url))  # the first answers open what stays open
        found.before = found.descriptors
        yield found


def among_themselves(seed: int, races: Sequence[tuple[Kind, int]], *flags: str) -> House:
    """Races that need nothing but their clients."""

    async def main(at: House) -> None:
        await at.few_at_a_time(races)
        await at.clean()

    with house(seed, *flags) as at:
        asyncio.run(main(at))
    return at


def against_revocation(seed: int, numbers: Sequence[int]) -> House:
    """A key for each, revoked in the key file while its session returns and returns."""
    made = {number: new_key(f"client {number}", WALL) for number in numbers}
    valid = {number: key for number, (_, key) in made.items()}

    async def main(at: House, path: Path) -> None:
        async def one(number: int) -> None:
            async def revoke() -> None:
                del valid[number]
                write(path, valid)

            await at.race(Kind.REVOKED, number, strike=revoke, key=made[number][0])

        await asyncio.gather(*map(one, numbers))
        await at.clean()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.json"
        write(path, valid)
        with house(seed, "--keys", str(path)) as at:
            asyncio.run(main(at, path))
    return at


def write(path: Path, keys: dict[int, ApiKey]) -> None:
    """The key file, as `playhead keys` does it."""
    with edit(path) as put:
        put(KeyRing(keys.values()))


def against_a_drain(seed: int, numbers: Sequence[int]) -> House:
    """All together: a process can be told to go once."""

    async def main(at: House) -> None:
        together = asyncio.Barrier(len(numbers))

        async def go() -> None:
            if not at.faults:
                at.faults.append("told")
                at.process.terminate()

        races = (at.race(Kind.DRAIN, n, start=together.wait, strike=go) for n in numbers)
        await asyncio.gather(*races)
        status = await asyncio.to_thread(at.process.wait, 30)
        at.faults = [f"the process ended with status {status}"] if status else []

    with house(seed) as at:
        asyncio.run(main(at))
    return at


def every(args: argparse.Namespace) -> Iterator[House]:
    """All houses, one after the other."""
    numbers = {kind: range(round(share * args.scale)) for kind, share in SHARES.items()}
    if args.only:
        kind, _, number = args.only.partition(" ")
        numbers = dict.fromkeys(Kind, range(0)) | {Kind[kind]: [int(number)] * args.times}
    plain = [
        (kind, n) for kind in (Kind.TWINS, Kind.NEWEST, Kind.CLOSE, Kind.END) for n in numbers[kind]
    ]
    random.Random(args.seed).shuffle(plain)
    if plain:
        yield among_themselves(args.seed, plain)
    if numbers[Kind.GRACE]:
        late = [(Kind.GRACE, number) for number in numbers[Kind.GRACE]]
        yield among_themselves(args.seed, late, "--grace", f"{GRACE:g}")
    if numbers[Kind.REVOKED]:
        yield against_revocation(args.seed, numbers[Kind.REVOKED])
    for first in range(0, len(numbers[Kind.DRAIN]), AT_A_TIME):
        yield against_a_drain(args.seed, numbers[Kind.DRAIN][first : first + AT_A_TIME])


def table(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """A row for each kind."""
    rows = []
    for kind in Kind:
        here = [verdict for verdict in verdicts if verdict.plan.kind is kind]
        ends = Counter(end for verdict in here for end in verdict.ends[1:])
        row = {"against": str(kind), "races": len(here), "sockets": sum(ends.values()) + len(here)}
        row |= {"won": sum(v.won for v in here), "whole": sum(v.whole for v in here)}
        row |= {"not as promised": sum(bool(v.faults) for v in here), "ends": dict(ends)}
        rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="1: 500 races")
    parser.add_argument("--only", help='one race, for example "TWINS 17"')
    parser.add_argument("--times", type=int, default=20, help="how often that one is run")
    parser.add_argument("--out")
    args = parser.parse_args()
    began = time.monotonic()
    houses = list(every(args))
    verdicts = [verdict for at in houses for verdict in at.verdicts]
    bad = [verdict for verdict in verdicts if verdict.faults]
    for verdict in bad:
        print(f"{verdict.plan.kind.name} {verdict.plan.number}: {verdict.faults} {verdict.ends}")
    left = [fault for at in houses for fault in at.faults]
    figures = {"races": len(verdicts), "seconds": round(time.monotonic() - began, 1)}
    figures |= {"not_as_promised": len(bad), "left_behind": left, "table": table(verdicts)}
    save(args.out, figures)
    return int(bool(bad or left))


if __name__ == "__main__":
    sys.exit(main())
