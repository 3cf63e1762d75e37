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

CHANGES = """() => {
  window.changes_ = 0;  // of what is on the page, each before the next layout at the earliest
  window.numbers_ = 0;  // pictures that changed words or numbers as well; not the text's own words
  window.words_ = 0;  // pictures that changed those
  const watch = new MutationObserver(() => { changes_ += 1; });
  watch.observe(document, {
    subtree: true, childList: true, characterData: true, attributes: true,
  });
  const next = window.requestAnimationFrame;
  window.requestAnimationFrame = (draw) => next((time) => {
    draw(time);
    const made = watch.takeRecords();
    if (made.length > 0) changes_ += 1;
    const outside = ({ target }) =>
      (target.closest ? target : target.parentElement).closest('#said') === null;
    if (made.some(outside)) numbers_ += 1;
    if (!made.every(outside)) words_ += 1;
  });
}"""


def measure(visit: StubVisit, seconds: float) -> dict[str, float]:
    """``visit``: a page that speaks, with a crowd. Milliseconds."""
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # not while others ran

    def counters() -> dict[str, float]:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return {metric["name"]: metric["value"] for metric in metrics}

    visit.page.evaluate(CHANGES)
    visit.js("frames_.length = changes_ = numbers_ = words_ = 0")
    before = counters()
    visit.page.wait_for_timeout(1000 * seconds)
    visit.until("frames_.length >= 10")
    after = counters()
    costs, changes, numbers, words = visit.js("[frames_, changes_, numbers_, words_]")
    frames = len(costs)
    spent = {
        name[: -len("Duration")].lower(): 1000 * (after[name] - before[name]) / frames
        for name in COUNTED
    }
    passed = after["Timestamp"] - before["Timestamp"]
    layouts = after["LayoutCount"] - before["LayoutCount"]
    return {
        "frames_per_second": frames / passed,
        "median": float(np.median(costs)),
        "p95": float(np.quantile(costs, 0.95)),
        "worst": float(max(costs)),
        "layouts_per_frame": layouts / frames,
        "layouts_per_change": layouts / max(1, changes),
        "numbers_per_second": numbers / passed,
        "words_per_second": words / passed,
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
