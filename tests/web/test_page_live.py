"""The demo page against the real server and its bundled voice."""

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soxr
from browser_rig import PHONE, Sound, Visit, captured, open_page, speech, unpack
from first_visit import Visitor, speak_at_once
from machine import AT_ONCE, PATIENCE
from playhead.codecs import opus
from playwright.sync_api import Browser
from scipy.signal import correlate

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FINE = 192_000  # Hz
START = "import sys; from playhead.gateway.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def live() -> Iterator[str]:
    """The address of a server."""
    command = [sys.executable, "-c", START, "serve", "--port", "0", "--drain-timeout", "0"]
    command += ["--grace", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        addresses = (re.search(r"http://\S+", line) for line in process.stdout)
        found = next(filter(None, addresses), None)
        if found is None:
            pytest.fail(f"the server ended with {process.wait(PATIENCE)}")
        yield found.group()
        process.stdout.close()  # it stops also when nobody reads what it says any more
        process.terminate()
        assert process.wait(AT_ONCE) == 0
    finally:
        process.kill()


@pytest.fixture
def visit(browser: Browser, live: str) -> Iterator[Visit]:
    opened = open_page(browser, live, Visit)
    yield opened
    assert opened.complaints == []
    opened.page.context.close()


def likeness(heard: Sound, piece: Sound) -> float:
    """Highest normalised correlation of ``piece`` with any part of ``heard``."""
    heard = np.pad(heard, FINE)  # a second each: what is cut off as silence may be part of it
    energy = np.cumsum([0.0, *heard**2])
    local = energy[len(piece) :] - energy[: -len(piece)]
    together = correlate(heard, piece, mode="valid", method="fft")
    return float((together / np.sqrt(np.maximum(local, 1e-9) * (piece**2).sum())).max())


def pieces(visit: Visit, sent: Sound) -> list[Sound]:
    """``sent``, cut where the listener ran dry on a busy machine: each is heard as one."""
    dry = visit.js("positions.filter((p) => p.state === 'stalled').map((p) => p.consumed)")
    cuts = [0, *sorted(set(dry)), len(sent)]
    cut = [sent[a:b] for a, b in itertools.pairwise(cuts)]
    return [piece for piece in cut if len(piece) > 4_800]


# Truth beside belief, with stamps of the one clock that page and server share but for an offset.
FOLLOW = """() => {
  window.truth = [];
  window.beliefs = [];
  const url = location.origin.replace('http', 'ws') + '/v1/observe';
  window.follower = new WebSocket(url, ['playhead.observe.v1']);
  follower.onopen = () => follower.send(
    JSON.stringify({ type: 'watch', session: playhead.session.session }));
  follower.onmessage = ({ data }) => {
    const { time, own } = JSON.parse(data);
    beliefs.push([performance.now(), time, own === null ? null : own.depth / 1000]);
  };
  setInterval(() => {
    const now = performance.now();
    if (playhead.current?.key > 0) truth.push([now, playhead.depth(playhead.current)]);
  }, 10);
}"""
INTERVAL = 0.25  # seconds between two reports
FASTEST = 5.0  # words a second


def errors(visit: Visit) -> list[float]:
    """Seconds by which each belief is outside of all that was held within one report interval."""
    beliefs, truth = visit.js("beliefs"), np.array(visit.js("truth"))
    offset = min(seen - time for seen, time, _ in beliefs)  # of the one that was delayed least
    found = []
    for _, time, depth in beliefs:
        near = np.abs(truth[:, 0] - time - offset) <= 1000 * INTERVAL
        if depth is None or not near.any():
            continue
        held = truth[near, 1]
        found.append(max(0.0, held.min() - depth, depth - held.max()))
    return found


def test_what_leaves_the_audio_graph_is_what_was_sent_and_believed(visit: Visit) -> None:
    visit.js(FOLLOW)
    visit.ask("The quick brown fox jumps over the lazy dog, while the server follows what is held.")
    visit.finish()
    apart = errors(visit)
    assert len(apart) >= 5
    assert np.median(apart) < 0.1
    last = visit.js("positions.filter((p) => p.epoch === 1).at(-1)")
    assert last["state"] == "drained"
    assert last["received"] == last["consumed"] > 24_000
    pcm, rate = captured(visit)
    sent = unpack(visit, "received")
    assert len(sent) == last["received"]
    # At a higher rate the delay of one to the other is nearly a whole number of samples.
    heard = soxr.resample(speech(pcm), rate, FINE)
    for piece in pieces(visit, sent):
        assert likeness(heard, soxr.resample(piece, 24_000, FINE)) > 0.99
    assert visit.page.inner_text("#first").endswith("s")
    assert re.fullmatch(r"[0-9]+ of [0-9]+", visit.page.inner_text("#urgent"))
    assert visit.notice == ""


def test_text_still_being_written_is_spoken_and_interrupted_at_the_right_word(visit: Visit) -> None:
    text = "One thing is certain. " + "It is spoken while it is still being written. " * 40
    visit.page.check("input[value=words]", force=True)
    visit.ask(text)
    visit.until("positions.some((p) => p.consumed > 20000)")
    visit.page.keyboard.press("Escape")
    visit.until_status("Interrupted")
    written = visit.page.text_content("#said") or ""
    assert 0 < len(written) < len(text.strip()), "it was not written to its end"
    assert text.startswith(written)
    words = visit.js("[...document.querySelectorAll('#said span')].map((s) => s.className)")
    heard = words.count("heard")
    seconds = re.match(r"Interrupted after (?:about )?([0-9.]+) s", visit.status)
    assert seconds is not None
    assert 1 <= heard <= 1 + FASTEST * float(seconds[1])
    assert words == ["heard"] * heard + ["unheard"] * (len(words) - heard)
    assert visit.notice == ""


def test_a_crowd_is_served_and_counted(visit: Visit) -> None:
    visit.page.fill("#crowd-size", "3")
    visit.page.click("#crowd-start")
    visit.until("document.querySelector('#crowd-note').textContent.startsWith('4 sessions')")
    visit.until("/[1-9]/.test(document.querySelector('#reported-ahead').textContent)")
    visit.page.check("input[value=estimated]", force=True)
    visit.until("/[1-9]/.test(document.querySelector('#estimated-ahead').textContent)")
    assert visit.page.get_attribute("#crowd-start", "aria-pressed") == "true"
    visit.page.click("#crowd-start")
    visit.until("document.querySelector('#crowd-note').textContent.startsWith('Synthetic')")


def test_opus_is_decoded_and_saved(visit: Visit) -> None:
    if opus.unavailable() is not None:
        pytest.skip("Opus is not tested: libopus is missing")
    visit.page.select_option("#codec", "opus")
    visit.until("playhead.session?.codec === 'opus'")
    visit.js(
        "playhead.addEventListener('playback', ({ detail }) => positions.push(detail.position))"
    )
    visit.ask("Small packets make good speech.")
    visit.finish()
    last = visit.js("positions.at(-1)")
    assert last["received"] == last["consumed"] > 48_000
    with visit.page.expect_download() as download:
        visit.page.click("#save")
    saved = np.frombuffer(Path(download.value.path()).read_bytes()[44:], "<i2") / 32768
    assert len(saved) == last["received"]
    assert 0.01 < np.sqrt(np.mean(saved**2)) < 0.5


def test_the_ten_lines_work_as_they_stand(visit: Visit, tmp_path: Path) -> None:
    python = visit.page.text_content("#code-python") or ""
    run = subprocess.Popen([sys.executable, "-c", python], cwd=tmp_path)
    script = visit.page.text_content("#code-javascript") or ""
    script = re.sub(r'import (.*) from "./(.*)";', r'const \1 = await import("/\2");', script)
    said: list[str] = []
    visit.page.on("console", lambda message: said.append(message.text))
    visit.page.evaluate("async () => {" + script + "}")
    visit.page.mouse.click(5, 5)
    visit.until_true(lambda: bool(said), "the script says something")
    assert said == ["heard: Hello from the other side."]
    assert run.wait(PATIENCE) == 0
    assert (tmp_path / "hello.wav").stat().st_size > 48_000
    assert len(python.splitlines()) <= 12
    assert len(script.splitlines()) <= 10


def test_a_first_visit_asks_for_nothing_in_vain_and_nothing_from_elsewhere(
    browser: Browser, live: str
) -> None:
    """No error, no warning, no breach of the policy, no missing file; sound for one press."""
    for wait in (True, False):
        visitor = Visitor.come(browser, live, PHONE)
        found = speak_at_once(visitor, live, wait=wait)
        assert visitor.complaints() == []
        assert found["layout_shift"] < 0.001
        assert found["kilobytes"] < 250, "without compression"
        visitor.page.context.close()
