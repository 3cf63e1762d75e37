"""The page in headless Chromium, with a server behind it."""

import base64
import itertools
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from machine import PATIENCE
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

    def until(self, expression: str) -> None:
        """Poll from outside: a strict policy forbids the page to evaluate strings."""
        self.until_true(lambda: bool(self.js(expression)), expression)

    def until_true(self, condition: Callable[[], bool], what: str) -> None:
        """… for what is seen outside of the page."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                pytest.fail(
                    f"not within {PATIENCE} s: {what}; the page says {self.status!r}, "
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
        self.js("window.positions = []; window.told = []")
        self.page.click("#speak")

    def until_status(self, start: str) -> None:
        """For what stays; see ``until_told``."""
        self.until(f"document.querySelector('#status').textContent.startsWith({start!r})")

    def until_told(self, part: str) -> None:
        """Whether it still stands there or not: whoever polls may come too late."""
        self.until(f"told.some((text) => text.includes({part!r}))")

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

    def until_received(self, kind: str, fits: Callable[[dict[str, Any]], bool]) -> None:
        """Until the server has got such a message: what the page shows it may still be sending."""
        self.until_true(lambda: any(map(fits, self.server.of(kind))), f"such {kind} is received")

    def hold(self) -> None:
        """The player waits, as for a pause, but nobody is told: no busy machine lets it run dry."""
        self.js("playhead.player.setPaused(true)")

    def play_all(self, samples: int) -> None:
        """… until all of that has come."""
        self.until(f"positions.some((p) => p.received === {samples})")
        self.js("playhead.player.setPaused(false)")


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
  window.told = [];
  for (const id of ['status', 'notice-text']) {
    const element = document.getElementById(id);
    new MutationObserver(() => told.push(element.textContent))
      .observe(element, { childList: true, characterData: true, subtree: true });
  }
  playhead.addEventListener('playback', (event) => positions.push(
    { ...event.detail.position, at: performance.now(), backlog: playhead.connection.backlog }));
  playhead.addEventListener('chunk', (event) => received.push(event.detail.pcm.slice()));
  playhead.player.tap((pcm) => {
    captured.push(pcm);
    capturedAt.push(performance.now());
  });
}"""


def open_page(browser: Browser, url: str, visit: Callable[[Page], V], **context: Any) -> V:
    """``visit`` makes a ``Visit`` of a page. Returns when the page is connected."""
    made = browser.new_context(**context)
    made.set_default_timeout(1000 * PATIENCE)
    page = made.new_page()
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

    def changed() -> bool:
        return any("ERR_NETWORK_CHANGED" in text for text in visit.complaints)

    for _ in range(3):
        settled = f"{state} === 'open' || {state} === 'closed'"
        visit.until_true(lambda settled=settled: changed() or visit.js(settled), settled)
        if not changed():
            assert visit.js(f"{state} === 'open'"), visit.complaints
            return
        visit.complaints.clear()
        visit.page.reload()
    raise AssertionError("the network does not stay as it is")


Sound = npt.NDArray[np.float64]


def captured(visit: Visit) -> tuple[Sound, int]:
    """All that the audio thread rendered, and its rate in Hz. Blocks come in order: the second one
    from now begins after what the page knows to be over."""
    blocks = visit.js("captured.length")
    visit.until(f"captured.length >= {blocks + 2}")
    visit.js("playhead.player.tap(null)")
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


TICK = 38 * 128  # output frames between two looks at the player (worklet.js)
DUE = 200.0  # ms after which the next one is told, when nothing changes


def assert_reported_in_turn(visit: Visit, reports: list[dict[str, Any]], epoch: int = 1) -> None:
    """Whatever the machine kept waiting: the audio thread counts about ten times a second of its
    own clock, and each count that was due was told, and no other."""
    rate = visit.js("playhead.player.outputRate")
    seen = visit.js(f"positions.filter((p) => p.epoch === {epoch} && p.state === 'playing')")
    own = [report for report in reports if report["epoch"] == epoch]
    told = [report for report in own if report["state"] == "playing"]
    counts = [position["consumed"] for position in seen]
    assert max(np.diff(counts)) <= 24_000 * TICK / rate + 2
    times = np.array([report["time"] for report in own])
    for position in seen:
        before = times[times < position["at"]]
        # The page's own look at its clock came a little before the one noted here; the next count
        # is 100 ms later.
        due = len(before) > 0 and position["at"] - before[-1] >= DUE + 30
        if due and position["backlog"] == 0:
            assert position["consumed"] in [report["consumed"] for report in told], position
    assert len(told) >= 3
    for earlier, later in itertools.pairwise(own):
        if later["state"] == earlier["state"]:
            assert later["time"] - earlier["time"] >= DUE - 1, (earlier, later)
