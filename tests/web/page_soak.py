"""Speak for minutes in one page and see whether its memory grows (`make soak-page`).

After a warm-up of a fifth of the time, the heap that is left after a collection, and the numbers of
DOM nodes and listeners, must stay as they are. Prints one JSON object; exit status 1 when something
grew.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from typing import Any

import numpy as np
from browser_rig import FLAGS, Visit, chromium, open_page
from memory import held, speak, watch_memory
from playwright.sync_api import sync_playwright

START = "import sys; from playhead.gateway.cli import main; sys.exit(main())"
TEXT = "One sentence after another, as long as it takes. Nothing of the last one may stay behind."
MOST_GROWTH = 0.10  # of the heap, from the warm-up to the end, along the line of best fit
MOST_NODES = 20


def speak_for(visit: Visit, seconds: float, every: float) -> list[dict[str, float]]:
    """Samples of a page that never stops speaking; each third sentence is interrupted."""
    session = watch_memory(visit)
    began, samples, spoken = time.monotonic(), [], 0
    while (now := time.monotonic() - began) < seconds:
        spoken += 1
        speak(visit, TEXT, cut_after=1500 if spoken % 3 == 0 else None)
        if not samples or now - samples[-1]["at"] >= every:
            samples.append({"at": round(now, 1), "spoken": spoken, **held(visit, session)})
    return samples


def judge(samples: list[dict[str, float]], seconds: float) -> dict[str, Any]:
    """Growth after the warm-up, by the line of best fit."""
    warm = [sample for sample in samples if sample["at"] >= seconds / 5]
    at = [sample["at"] for sample in warm]
    slope, start = np.polyfit(at, [sample["heap"] for sample in warm], 1)
    first = start + slope * at[0]
    growth = slope * (at[-1] - at[0]) / first
    ranges = {kind: spread(warm, kind) for kind in ("nodes", "listeners")}
    fits = growth < MOST_GROWTH and max(ranges.values()) < MOST_NODES
    return {"heap_growth": round(float(growth), 4), **ranges, "steady": bool(fits)}


def spread(samples: list[dict[str, float]], kind: str) -> float:
    values = [sample[kind] for sample in samples]
    return max(values) - min(values)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    seconds = 60 * parser.parse_args().minutes
    command = [sys.executable, "-c", START, "serve", "--port", "0", "--drain-timeout", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            found = next(filter(None, (re.search(r"http://\S+", x) for x in server.stdout)))
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
                visit = open_page(browser, found.group(), Visit)
                samples = speak_for(visit, seconds, seconds / 40)
                complaints = visit.complaints
                browser.close()
        finally:
            server.terminate()
    verdict = judge(samples, seconds)
    print(json.dumps({**verdict, "complaints": complaints, "samples": samples}, indent=1))
    return 0 if verdict["steady"] else 1


if __name__ == "__main__":
    sys.exit(main())
