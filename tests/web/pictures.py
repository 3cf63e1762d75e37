"""Take the pictures of docs/images (`pictures.py [FOLDER]`): the page with the bundled voice.

On a machine that does nothing else: what the pictures show is what the page went through.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from browser_rig import FLAGS, PHONE, Visit, chromium, open_page
from playwright.sync_api import Browser, ViewportSize, sync_playwright

START = "import sys; from playhead.gateway.cli import main; sys.exit(main())"
WHERE = Path(__file__).resolve().parents[2] / "docs" / "images"
DESK = ViewportSize(width=1240, height=1660)
TALL_PHONE = ViewportSize(width=PHONE["width"], height=1640)
COLOURS = "--force-color-profile=srgb"


def look(browser: Browser, url: str, scheme: str, size: ViewportSize) -> Visit:
    return open_page(browser, url, Visit, viewport=size, color_scheme=scheme)


def heard(visit: Visit, words: int) -> None:
    """Until so many words of the text were heard."""
    visit.until(f"document.querySelectorAll('#said .heard').length >= {words}")


def dark(visit: Visit) -> None:
    """A jittery network."""
    visit.page.check("input[value=jittery]", force=True)
    visit.page.click("#speak")
    heard(visit, 24)


def light(visit: Visit) -> None:
    """At the end of a text."""
    visit.page.click("#speak")
    heard(visit, 30)


def phone(visit: Visit) -> None:
    visit.page.check("input[value=jittery]", force=True)
    visit.page.click("#speak")
    heard(visit, 14)


def crowd(visit: Visit) -> None:
    """Fifty listeners, of both kinds."""
    visit.page.fill("#crowd-size", "50")
    visit.page.dispatch_event("#crowd-size", "change")
    visit.page.check("input[value=estimated]", force=True)
    visit.page.click("#crowd-start")
    visit.page.wait_for_timeout(15_000)
    visit.page.check("input[value=reported]", force=True)
    visit.page.wait_for_timeout(15_000)
    visit.page.click("#speak")
    heard(visit, 20)


SCENES: tuple[tuple[str, Any, str, ViewportSize], ...] = (
    ("demo-light", light, "light", DESK),
    ("demo-dark", dark, "dark", DESK),
    ("demo-phone", phone, "light", TALL_PHONE),
    ("demo-crowd", crowd, "light", DESK),
)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else WHERE
    command = [sys.executable, "-c", START, "serve", "--port", "0", "--drain-timeout", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = next(filter(None, (re.search(r"http://\S+", x) for x in server.stdout))).group()
            with sync_playwright() as playwright:
                args = [*FLAGS, COLOURS]
                browser = playwright.chromium.launch(executable_path=chromium(), args=args)
                for name, act, scheme, size in SCENES:
                    visit = look(browser, url, scheme, size)
                    act(visit)
                    visit.page.screenshot(path=folder / f"{name}.png")
                    visit.page.context.close()
                browser.close()
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
