"""The page in headless Chromium, with a server behind it."""

import shutil
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize
from stub_server import Script, StubServer

PHONE = ViewportSize(width=390, height=844)
DESKTOP = ViewportSize(width=1200, height=900)
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)


def chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (path := shutil.which(name)) is not None:
            return path
    return None


@dataclass
class Visit:
    """The page in a browser, what it complained about, and the server behind it."""

    page: Page
    server: StubServer
    complaints: list[str] = field(default_factory=list)

    def js(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def until(self, expression: str, seconds: float = 15.0) -> None:
        """Poll from outside: a strict policy forbids the page to evaluate strings."""
        end = time.monotonic() + seconds
        while not self.js(expression):
            if time.monotonic() > end:
                pytest.fail(f"not within {seconds} s: {expression}; the page says {self.status!r}, "
                            f"notice {self.notice!r}")
            self.page.wait_for_timeout(20)

    @property
    def status(self) -> str:
        return self.page.inner_text("#status")

    @property
    def notice(self) -> str:
        return self.page.inner_text("#notice")

    def speak(self, text: str | None = None, script: Script | None = None) -> None:
        self.server.script = script or Script()
        self.server.received.clear()
        if text is not None:
            self.page.fill("#text", text)
        self.js("window.positions = []")
        self.page.click("#speak")

    def finish(self) -> None:
        self.until("document.querySelector('#status').textContent === 'Finished.'")


WATCH = """() => {
  window.positions = [];
  window.captured = [];
  playhead.addEventListener('playback', (event) => positions.push(event.detail.position));
  playhead.player.tap((pcm) => captured.push(pcm));
}"""


def open_page(browser: Browser, server: StubServer, **context: Any) -> Visit:
    page = browser.new_context(**context).new_page()
    visit = Visit(page, server)
    page.on("console", lambda message: visit.complaints.append(message.text)
            if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: visit.complaints.append(str(error)))
    page.goto(server.url)
    visit.until("document.querySelector('#link').dataset.state === 'open'")
    visit.js(WATCH)
    return visit
