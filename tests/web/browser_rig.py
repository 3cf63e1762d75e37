"""The page in headless Chromium, with a server behind it."""

import base64
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Browser, Page, ViewportSize
from stub_server import Script, StubServer

PHONE = ViewportSize(width=390, height=844)
DESKTOP = ViewportSize(width=1200, height=900)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


GESTURES = "--autoplay-policy=no-user-gesture-required"
FLAGS_WITH_GESTURES = tuple(flag for flag in FLAGS if flag != GESTURES)


def chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (path := shutil.which(name)) is not None:
            return path
    return None


@dataclass
class Visit:
    """The page in a browser, and what it complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def js(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def until(self, expression: str, seconds: float = 15.0) -> None:
        """Poll from outside: a strict policy forbids the page to evaluate strings."""
        end = time.monotonic() + seconds
        while not self.js(expression):
            if time.monotonic() > end:
                pytest.fail(
                    f"not within {seconds} s: {expression}; the page says {self.status!r}, "
                    f"notice {self.notice!r}"
                )
            self.page.wait_for_timeout(20)

    @property
    def status(self) -> str:
        return self.page.inner_text("#status")

    @property
    def notice(self) -> str:
        return self.page.text_content("#notice-text") or ""

    def ask(self, text: str) -> None:
        self.page.fill("#text", text)
        self.js("window.positions = []")
        self.page.click("#speak")

    def until_status(self, start: str, seconds: float = 15.0) -> None:
        self.until(f"document.querySelector('#status').textContent.startsWith('{start}')", seconds)

    def finish(self) -> None:
        self.until_status("Finished.")


@dataclass
class StubVisit(Visit):
    """… with the scripted server behind it."""

    server: StubServer = field(kw_only=True)

    def speak(self, text: str, script: Script | None = None) -> None:
        self.server.script = script or Script()
        self.server.received.clear()
        self.ask(text)


PACKED = """(name) => {
  let text = '';
  for (const block of window[name]) text += String.fromCharCode(...new Uint8Array(block.buffer));
  return btoa(text);
}"""

SHIFTS = """
  window.shifts = [];
  new PerformanceObserver((list) => {
    const jumps = list.getEntries().filter(({ hadRecentInput }) => !hadRecentInput);
    for (const { value, sources } of jumps) {
      shifts.push([value, ...sources.map(({ node }) => node?.id || node?.className)]);
    }
  }).observe({ type: 'layout-shift', buffered: true });
"""

FRAMES = """
  window.frames_ = [];
  const next = requestAnimationFrame;
  window.requestAnimationFrame = (draw) => next((time) => {
    const began = performance.now();
    draw(time);
    frames_.push(performance.now() - began);
  });
"""

V = TypeVar("V", bound=Visit)

WATCH = """() => {
  window.positions = [];
  window.captured = [];
  window.capturedAt = [];
  window.received = [];
  playhead.addEventListener('playback', (event) => positions.push(event.detail.position));
  playhead.addEventListener('chunk', (event) => received.push(event.detail.pcm.slice()));
  playhead.player.tap((pcm) => {
    captured.push(pcm);
    capturedAt.push(performance.now());
  });
}"""


def open_page(browser: Browser, url: str, visit: Callable[[Page], V], **context: Any) -> V:
    """``visit`` makes a ``Visit`` of a page. Returns when the page is connected."""
    page = browser.new_context(**context).new_page()
    opened = visit(page)
    page.on(
        "console",
        lambda message: (
            opened.complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    page.add_init_script(SHIFTS)
    page.add_init_script(FRAMES)
    page.goto(url)
    _until_open(opened)
    opened.js(WATCH)
    return opened


def _until_open(visit: Visit) -> None:
    """Load it again when the machine's network interfaces changed meanwhile, for example because
    another test has made one: Chromium then gives up all that it was loading."""
    state = "document.querySelector('#link').dataset.state"
    for _ in range(3):
        visit.until(f"{state} === 'open' || {state} === 'closed'")
        if visit.js(f"{state} === 'open'"):
            return
        assert any("ERR_NETWORK_CHANGED" in text for text in visit.complaints), visit.complaints
        visit.complaints.clear()
        visit.page.reload()
    raise AssertionError("the network does not stay as it is")


Sound = npt.NDArray[np.float64]


def captured(visit: Visit) -> tuple[Sound, int]:
    """All that the audio thread rendered, and its rate in Hz."""
    visit.js("playhead.player.tap(null)")
    visit.page.wait_for_timeout(150)
    return unpack(visit, "captured"), visit.js("playhead.player.outputRate")


def unpack(visit: Visit, name: str) -> Sound:
    """Blocks of floats that the page has collected under ``name``."""
    packed = base64.b64decode(visit.page.evaluate(PACKED, name))
    return np.frombuffer(packed, np.float32).astype(np.float64)


def speech(pcm: Sound) -> Sound:
    """Without the silence before and after."""
    loud = np.flatnonzero(np.abs(pcm) > 1e-4)
    assert len(loud), "nothing was rendered"
    return pcm[loud[0] : loud[-1] + 1]


def assert_honest(reports: list[dict[str, Any]]) -> None:
    for report in reports:
        assert report["received"] == (
            report["consumed"] + report["discarded"] + report["buffered"]
        ), report
        assert 0 <= report["heard"] <= report["consumed"]
    for name in ("epoch", "time", "seq"):
        values = [report[name] for report in reports]
        assert values == sorted(values)
    for epoch in {report["epoch"] for report in reports}:
        own = [report for report in reports if report["epoch"] == epoch]
        for name in ("received", "consumed", "heard", "discarded", "underruns", "starved"):
            values = [report[name] for report in own]
            assert values == sorted(values), name
