"""Speak for minutes in one page and see whether its memory grows (`make soak-page`).

After a warm-up of a fifth of the time, the heap that is left after a collection, and the number of
DOM nodes, must stay as they are. Prints one JSON object; exit status 1 when something grew.
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
from playwright.sync_api import CDPSession, sync_playwright

START = "import sys; from playhead.gateway.cli import main; sys.exit(main())"
TEXT = "One sentence after another, as long as it takes. Nothing of the last one may stay behind."
MOST_GROWTH = 0.10  # of the heap, from the warm-up to the end, along the line of best fit
MOST_NODES = 200


def measure(session: CDPSession) -> dict[str, float]:
    """Bytes in use after a collection, and nodes."""
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    values = {metric["name"]: metric["value"] for metric in metrics}
    return {"heap": values["JSHeapUsedSize"], "nodes": values["Nodes"]}


def speak_for(visit: Visit, seconds: float, every: float) -> list[dict[str, float]]:
    """Samples of a page that never stops speaking; each third sentence is interrupted."""
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("Performance.enable")
    began, samples, spoken = time.monotonic(), [], 0
    while (now := time.monotonic() - began) < seconds:
        visit.ask(TEXT)
        spoken += 1
        if spoken % 3 == 0:
            visit.page.wait_for_timeout(1500)
            visit.page.keyboard.press("Escape")
            visit.until_status("Interrupted", 60)
        else:
            visit.until_status("Finished.", 60)
        if not samples or now - samples[-1]["at"] >= every:
            visit.js("captured.length = capturedAt.length = received.length = frames_.length = 0")
            samples.append({"at": round(now, 1), "spoken": spoken, **measure(session)})
    return samples


def judge(samples: list[dict[str, float]], seconds: float) -> dict[str, Any]:
    """Growth after the warm-up, by the line of best fit."""
    warm = [sample for sample in samples if sample["at"] >= seconds / 5]
    at = [sample["at"] for sample in warm]
    slope, start = np.polyfit(at, [sample["heap"] for sample in warm], 1)
    first = start + slope * at[0]
    growth = slope * (at[-1] - at[0]) / first
    nodes = max(s["nodes"] for s in warm) - min(s["nodes"] for s in warm)
    fits = growth < MOST_GROWTH and nodes < MOST_NODES
    return {"heap_growth": round(float(growth), 4), "node_range": nodes, "steady": bool(fits)}


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
