#!/usr/bin/env python3
"""1,000 random cuts of up to ten seconds: what comes out at the other end, by hash.

    bench/reliability/cuts.py [--cuts 1000] [--clients 50] [--longest 10] [--seed 1]

A server process with a known voice; every client speaks one long text in pieces while its cable is
reset, swallowed or left half-open at random moments. Exit status 0 when no sample was lost or came
twice.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from cuts import Tale, call  # noqa: E402
from kit import served  # noqa: E402

SENTENCE = "Cut me off and take me up again, and nothing shall be missing. "


async def play(url: str, args: argparse.Namespace) -> list[Tale]:
    each = -(-args.cuts // args.clients)
    text = SENTENCE * max(1, round(each * 2.2 / 0.075 / len(SENTENCE)))
    limit = each * (args.longest + 4) + len(text) * 0.075 + 60

    async def one(number: int) -> Tale:
        await asyncio.sleep(number * 0.2)  # a burst would be let in little by little
        seed = args.seed * 1000 + number
        return await call(url, text, seed, cuts=each, longest=args.longest, limit=limit)

    return await asyncio.gather(*map(one, range(args.clients)))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--longest", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.monotonic()
    with served("--max-connections-per-address", "1000", stderr=None) as (_, url):
        tales = asyncio.run(play(url, args))
    kinds = sum((tale.cuts for tale in tales), Counter())
    exact = sum(tale.exact for tale in tales)
    lost, repeated = sum(t.lost for t in tales), sum(t.repeated for t in tales)
    for tale in tales:
        if tale.fault:
            print("fault:", tale.fault)
    print(
        f"{sum(kinds.values())} cuts ({', '.join(f'{n} {k}' for k, n in kinds.items())}) of up to "
        f"{args.longest:g} s, {args.clients} clients, {time.monotonic() - began:.0f} s\n"
        f"resumed {sum(t.resumed for t in tales)} times in {sum(t.attempts for t in tales)} "
        f"attempts; messages lost {lost}, repeated {repeated}; "
        f"{exact} of {len(tales)} sounds equal by SHA-256"
    )
    return 0 if exact == len(tales) and not lost and not repeated else 1


if __name__ == "__main__":
    sys.exit(main())
