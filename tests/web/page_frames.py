"""What one picture of the page costs, with speech and a crowd of fifty (`page_frames.py`).

Script time of each animation frame, and per frame the main thread's time in script, style and
layout, as the browser counts them. No GPU: what is painted is not in it. Prints one JSON object.
"""

import argparse
import json

import numpy as np
from browser_rig import DESKTOP, FLAGS, StubVisit, chromium, open_page
from playwright.sync_api import sync_playwright
from stub_server import Script, StubServer

TEXT = "one two three four five six seven eight nine ten " * 6
COUNTED = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
LISTENERS = 50


def measure(visit: StubVisit, seconds: float) -> dict[str, float]:
    """``visit``: a page that speaks, with a crowd. Milliseconds."""
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # not while others ran

    def counters() -> dict[str, float]:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return {metric["name"]: metric["value"] for metric in metrics}

    visit.js("frames_.length = 0")
    before = counters()
    visit.page.wait_for_timeout(1000 * seconds)
    visit.until("frames_.length >= 10")
    costs = visit.js("frames_")
    after = counters()
    frames = len(costs)
    spent = {
        name[: -len("Duration")].lower(): 1000 * (after[name] - before[name]) / frames
        for name in COUNTED
    }
    passed = after["Timestamp"] - before["Timestamp"]
    return {
        "frames_per_second": frames / passed,
        "median": float(np.median(costs)),
        "p95": float(np.quantile(costs, 0.95)),
        "worst": float(max(costs)),
        "layouts_per_second": (after["LayoutCount"] - before["LayoutCount"]) / passed,
        "layouts_per_frame": (after["LayoutCount"] - before["LayoutCount"]) / frames,
        **{f"{name}_per_frame": value for name, value in spent.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    with StubServer() as server, sync_playwright() as playwright:
        samples = round(24_000 * (seconds + 6))
        server.script = Script(samples=samples, pace=0.08, crowd=LISTENERS)
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        visit = open_page(
            browser, server.url, lambda page: StubVisit(page, server=server), viewport=DESKTOP
        )
        visit.until("document.querySelector('#crowd-note').textContent.startsWith('51 sessions')")
        visit.speak(TEXT, server.script)
        visit.until("positions.some((p) => p.consumed > 48000)")
        found = measure(visit, seconds)
        browser.close()
    print(json.dumps({key: round(value, 2) for key, value in found.items()}, indent=1))


if __name__ == "__main__":
    main()
