"""What somebody sees and hears who opens the page for the first time (`first_visit.py`).

Four visitors, each in a browser context without a cache: a desktop, one who presses Speak before
the page is connected, one whose requests take 150 ms longer (files; Chromium delays no WebSocket),
and a phone whose processor is four times slower (Chromium's throttling of the page's threads; the
audio thread is not throttled). Times from the start of the navigation, in milliseconds. Prints one
JSON object; exit status 1 when anything was complained about.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from browser_rig import DESKTOP, FLAGS, FRAMES, PHONE, SHIFTS, WATCH, Visit, chromium
from machine import PATIENCE
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

START = "import sys; from playhead.gateway.cli import main; sys.exit(main())"
SLOWER = 4.0
FARTHER = 150.0  # ms
TRAPS = """
  window.trapped = [];
  addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
    trapped.push(`${violatedDirective} ${blockedURI}`));
  addEventListener('unhandledrejection', ({ reason }) => trapped.push(String(reason)));
"""
FIRST_SOUND = """() => {
  const at = captured.findIndex((block) => block.some((sample) => Math.abs(sample) > 1e-4));
  return at < 0 ? null : capturedAt[at];
}"""
OPEN = "document.querySelector('#link').dataset.state === 'open'"


@dataclass
class Visitor:
    """A page that is opened for the first time, and what went wrong with it."""

    page: Page
    origin: str
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def come(cls, browser: Browser, url: str, size: ViewportSize) -> "Visitor":
        context = browser.new_context(viewport=size)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        visitor = cls(page, url.rstrip("/"))
        for script in (SHIFTS, FRAMES, TRAPS):
            page.add_init_script(script)
        page.on("console", lambda told: visitor._told(told.type, told.text))
        page.on("pageerror", lambda error: visitor.wrong.append(f"error: {error}"))
        page.on("requestfailed", lambda asked: visitor.wrong.append(f"failed: {asked.url}"))
        page.on("response", lambda answer: visitor._answered(answer.status, answer.url))
        return visitor

    def _told(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.wrong.append(f"{kind}: {text}")

    def _answered(self, status: int, url: str) -> None:
        if status >= 400:
            self.wrong.append(f"{status}: {url}")
        if not url.startswith((self.origin, self.origin.replace("http", "ws"))):
            self.wrong.append(f"from elsewhere: {url}")

    def complaints(self) -> list[str]:
        """All of it, with what the page itself was told about its policy."""
        return self.wrong + list(self.page.evaluate("trapped"))


def speak_at_once(visitor: Visitor, url: str, *, wait: bool) -> dict[str, Any]:
    """Press Speak as soon as there is a button, or with ``wait`` when the page is connected."""
    page = visitor.page
    visit = Visit(page)
    page.goto(url, wait_until="commit")
    visit.until("window.playhead !== undefined")
    page.evaluate(WATCH)
    if wait:
        visit.until(OPEN)
    pressed = page.evaluate("performance.now()")
    page.click("#speak")
    visit.until(f"({FIRST_SOUND})() !== null")
    heard = page.evaluate(FIRST_SOUND)
    visit.until("performance.getEntriesByName('first-contentful-paint').length === 1")
    paints = page.evaluate(
        "performance.getEntriesByType('paint').map(({ name, startTime }) => [name, startTime])"
    )
    return {
        "first_paint": round(dict(paints)["first-contentful-paint"]),
        "pressed": round(pressed),
        "first_sound": round(heard),
        "from_press_to_sound": round(heard - pressed),
        "layout_shift": round(sum(value for value, *_ in page.evaluate("shifts")), 5),
        "requests": page.evaluate("performance.getEntriesByType('resource').length"),
        "kilobytes": round(
            page.evaluate(
                "performance.getEntriesByType('resource')"
                ".reduce((sum, { transferSize }) => sum + transferSize, 0)"
            )
            / 1000
        ),
    }


def from_afar(visitor: Visitor, url: str) -> dict[str, Any]:
    """Every request takes longer."""
    session = visitor.page.context.new_cdp_session(visitor.page)
    session.send("Network.enable")
    limits = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
    session.send("Network.emulateNetworkConditions", {**limits, "latency": FARTHER})
    return speak_at_once(visitor, url, wait=True)


def slow_phone(visitor: Visitor, url: str) -> dict[str, Any]:
    """A phone with a slow processor: whether it speaks without a gap, and its pictures a second."""
    session = visitor.page.context.new_cdp_session(visitor.page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    found = speak_at_once(visitor, url, wait=True)
    visit = Visit(visitor.page)
    visit.js("frames_.length = 0")
    began = visit.js("performance.now()")
    visit.until_status("Finished.")
    seconds = (visit.js("performance.now()") - began) / 1000
    costs = visit.js("frames_")
    last = visit.js("positions.at(-1)")
    return found | {
        "seconds": round(seconds, 1),
        "underruns": last["underruns"],
        "frames_per_second": round(len(costs) / seconds, 1),
        "script_per_frame_median": round(float(np.median(costs)), 2),
        "script_per_frame_p95": round(float(np.quantile(costs, 0.95)), 2),
    }


VISITORS: tuple[tuple[str, ViewportSize, Callable[[Visitor, str], dict[str, Any]]], ...] = (
    ("desktop", DESKTOP, partial(speak_at_once, wait=True)),
    ("impatient", DESKTOP, partial(speak_at_once, wait=False)),
    ("far", DESKTOP, from_afar),
    ("slow_phone", PHONE, slow_phone),
)


def measure(
    browser: Browser, url: str, only: Sequence[str] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """What each visitor went through, and all complaints."""
    report: dict[str, Any] = {}
    wrong: list[str] = []
    for name, size, go in VISITORS:
        if only is not None and name not in only:
            continue
        visitor = Visitor.come(browser, url, size)
        report[name] = go(visitor, url)
        wrong += visitor.complaints()
        visitor.page.context.close()
    return report, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[name for name, *_ in VISITORS])
    only = parser.parse_args().only
    command = [sys.executable, "-c", START, "serve", "--port", "0", "--drain-timeout", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = next(filter(None, (re.search(r"http://\S+", x) for x in server.stdout))).group()
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
                report, wrong = measure(browser, url, only)
                browser.close()
        finally:
            server.terminate()
    print(json.dumps({**report, "complaints": wrong}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
