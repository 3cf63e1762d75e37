#!/usr/bin/env python3
"""What a lead that covers the machine's own pauses is worth, and what it costs at a barge-in.

    bench/reliability/pauses.py [--seconds 120] [--rate 3]

The real scheduler in virtual time, steady networks, a machine that stands still for 0.2 to 0.8 s
some times a minute. Held: seconds of speech sent and not yet heard, on average.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reliability")]

from pausing import play, without_floor  # noqa: E402
from playhead.engine import costs  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--rate", type=float, default=3.0)
    args = parser.parse_args()
    print("pauses a minute  floor  utterances  stalled  > 100 ms  worst s  held s")
    for a_minute in (1e-6, 2.0, 4.0, 8.0):
        for floor, run in (("no", without_floor), ("yes", play)):
            out = run(costs.cpu(2), args.rate, args.seconds, a_minute)
            print(
                f"{a_minute:>15.0f}  {floor:>5}  {out.utterances:>10}  "
                f"{out.share(out.stalled):>7.2%}  {out.share(out.stalled_100):>8.2%}  "
                f"{out.worst_stall:>7.2f}  {out.waste:>6.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
