"""The demo page against the real server and its bundled voice."""

import re
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from browser_rig import Visit, captured, open_page, speech
from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

START = "import sys; from playhead.gateway.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def live() -> Iterator[str]:
    """The address of a server."""
    command = [sys.executable, "-c", START, "serve", "--port", "0", "--drain-timeout", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        addresses = (re.search(r"http://\S+", line) for line in process.stdout)
        found = next(filter(None, addresses), None)
        if found is None:
            pytest.fail(f"the server ended with {process.wait(10)}")
        yield found.group()
        process.stdout.close()  # it stops also when nobody reads what it says any more
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()


def test_a_typed_sentence_is_heard_and_a_second_one_can_be_stopped(
    browser: Browser, live: str
) -> None:
    visit = open_page(browser, live, Visit)
    visit.ask("The quick brown fox jumps over the lazy dog.")
    visit.finish()
    last = visit.js("positions.filter((p) => p.epoch === 1).at(-1)")
    assert last["state"] == "drained"
    assert last["received"] == last["consumed"] > 24_000
    pcm, rate = captured(visit)
    sound = speech(pcm)
    assert len(sound) > rate
    assert 0.01 < np.sqrt(np.mean(sound**2)) < 0.5
    assert visit.page.inner_text("#first").endswith("s")

    text = "This is a rather long sentence, which nobody will hear to its very end today."
    visit.ask(text)
    visit.until("positions.some((p) => p.epoch === 2 && p.consumed > 24000)")
    visit.page.keyboard.press("Escape")
    visit.until_status("Interrupted")
    heard = visit.js("[...document.querySelectorAll('#said .heard')].map((s) => s.textContent)")
    unheard = visit.js("[...document.querySelectorAll('#said .unheard')].map((s) => s.textContent)")
    assert heard[:2] == ["This", "is"]
    assert unheard[-1] == "today."
    assert visit.page.text_content("#said") == text
    assert visit.notice == ""
    assert visit.complaints == []
    visit.page.context.close()
