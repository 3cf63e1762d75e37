"""The demo page in headless Chromium, against a server that misbehaves on demand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_rig import (
    DESKTOP,
    FLAGS_WITH_GESTURES,
    PHONE,
    StubVisit,
    assert_honest,
    assert_reported_in_turn,
    captured,
    chromium,
    open_page,
    speech,
    unpack,
)
from machine import PATIENCE
from page_frames import measure
from playwright.sync_api import Browser
from stub_server import AMPLITUDE, HZ, RATE, Message, Script, StubServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SENTENCE = "one two three four five six seven eight nine ten"


def assert_one_sine(visit: StubVisit, samples: int) -> None:
    """Every sample once, in order: a lost or repeated one breaks the phase, a gap the value."""
    pcm, rate = captured(visit)
    sound = speech(pcm)
    assert len(sound) == pytest.approx(samples * rate / RATE, abs=8)
    edge = rate // 500  # the resampler looks into silence at both ends
    inner = sound[edge:-edge]
    turn = 2 * np.pi * HZ * np.arange(len(inner)) / rate
    basis = np.stack([np.sin(turn), np.cos(turn)], axis=1)
    fit = np.linalg.lstsq(basis, inner, rcond=None)[0]
    assert np.hypot(*fit) == pytest.approx(AMPLITUDE, rel=1e-3)
    assert np.abs(inner - basis @ fit).max() < 2e-3


def test_speaks_to_the_end_and_reports(visit: StubVisit) -> None:
    visit.speak(SENTENCE, Script(samples=36_000, head=36_000))
    visit.finish()
    last = visit.js("positions.filter((p) => p.epoch === 1).at(-1)")
    assert (last["state"], last["consumed"], last["underruns"]) == ("drained", 36_000, 0)
    assert [m["text"] for m in visit.server.of("text")] == [SENTENCE]
    reports = visit.server.of("report")
    assert_honest(reports)
    states = [r["state"] for r in reports if r["state"] != "idle"]
    assert states[0] == "prebuffer"
    assert states[-1] == "drained"
    assert reports[-1]["heard"] == 36_000
    assert_reported_in_turn(visit, reports)
    assert all(r["echo"] for r in reports if r["received"] > 0)
    assert_one_sine(visit, 36_000)
    assert_true_depth(visit, reports)
    assert visit.page.inner_text("#said").strip() == SENTENCE
    assert visit.page.inner_text("#stalls") == "0"
    assert visit.js("document.querySelectorAll('#said .heard').length") == 10
    assert visit.complaints == []


def assert_true_depth(visit: StubVisit, reports: list[Message]) -> None:
    """What was reported as played is what the audio graph had put out, within one interval."""
    ends = visit.js("capturedAt.map((at, i) => [at, captured[i].length])")
    rate = visit.js("playhead.player.outputRate")
    pcm = unpack(visit, "captured")
    silence = int(np.flatnonzero(np.abs(pcm) > 1e-4)[0])
    checked = 0
    for report in reports:
        if report["state"] != "playing":
            continue
        put_out = sum(length for at, length in ends if at <= report["time"])
        truth = max(0, put_out - silence) * RATE / rate
        assert abs(report["consumed"] - truth) <= 0.25 * RATE
        checked += 1
    assert checked >= 1


def test_fifty_chunks_join_without_a_seam_whatever_else_is_sent(visit: StubVisit) -> None:
    samples = 9_600 + 50 * 480
    visit.hold()
    visit.speak(SENTENCE, Script(samples=samples, head=9_600, chunk=480, burst=51, garbage_at=20))
    visit.play_all(samples)
    visit.finish()
    assert visit.js("positions.at(-1).underruns") == 0
    assert_one_sine(visit, samples)
    assert "cannot be read" in visit.notice
    assert visit.complaints == []


BARGE_IN = """() => {
  const utterance = playhead.current;
  document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
  return utterance.samples - playhead.depth(utterance) * 24000; // the audio clears when it is told
}"""


def test_barge_in_tells_what_was_heard_and_is_silent_within_50_ms(visit: StubVisit) -> None:
    visit.speak(SENTENCE, Script(samples=120_000, head=120_000))
    visit.until("positions.some((p) => p.consumed > 30000)")
    consumed = visit.js(BARGE_IN)
    visit.until_status("Interrupted")
    (cancel,) = visit.server.of("cancel")
    assert cancel["epoch"] == 1
    assert 24_000 < cancel["heard"] <= consumed + 0.05 * RATE
    spans = visit.js("[...document.querySelectorAll('#said span')].map((s) => s.className)")
    heard = spans.count("heard")
    assert spans == ["heard"] * heard + ["unheard"] * (10 - heard)
    assert heard == 1 + (cancel["heard"] - 1) // 12_000, "a word is heard once its first sample was"
    assert visit.page.inner_text("#said-note") == f"{heard} of 10 words heard"
    assert visit.page.text_content("#said") == SENTENCE
    assert visit.page.is_disabled("#stop")
    visit.until("positions.at(-1).state === 'idle'")
    assert visit.js("positions.at(-1).discarded") > 0
    assert_honest(visit.server.of("report"))
    pcm, rate = captured(visit)
    beyond = len(speech(pcm)) * RATE / rate - consumed
    assert beyond < 0.05 * RATE, "sound went on after the barge-in"


def test_a_new_sentence_interrupts_the_old_one(visit: StubVisit) -> None:
    visit.speak(SENTENCE, Script(samples=240_000))
    visit.until("positions.some((p) => p.consumed > 6000)")
    visit.server.script = Script(samples=14_000)
    visit.page.fill("#text", "second thoughts")
    visit.page.keyboard.press("Control+Enter")
    visit.finish()
    assert len(visit.server.of("cancel")) == 1
    last = visit.js("positions.filter((p) => p.epoch === 2).at(-1)")
    assert (last["state"], last["consumed"]) == ("drained", 14_000)
    assert visit.page.inner_text("#said").strip() == "second thoughts"
    assert_honest(visit.server.of("report"))


def test_a_stall_is_counted_and_nothing_is_lost(visit: StubVisit) -> None:
    script = Script(samples=30_000, chunk=18_000, hold_at=1)
    visit.speak(SENTENCE, script)
    visit.until("positions.some((p) => p.state === 'stalled' && p.starved > 200)")
    assert visit.status.startswith("You have run dry.")
    script.let_go = True
    visit.finish()
    last = visit.js("positions.filter((p) => p.epoch === 1).at(-1)")
    assert (last["state"], last["consumed"], last["underruns"]) == ("drained", 30_000, 1)
    assert "stalled" in [r["state"] for r in visit.server.of("report")]
    assert visit.page.inner_text("#stalls") == "1"
    pcm, rate = captured(visit)
    silence = len(speech(pcm)) / rate - last["consumed"] / RATE
    assert last["starved"] / 1000 == pytest.approx(silence, abs=0.01)
    assert np.abs(np.diff(pcm)).max() < 1.1 * 2 * np.pi * HZ * AMPLITUDE / RATE, "a click"


@pytest.mark.parametrize("inside", [False, True])
def test_a_dropped_socket_loses_and_repeats_nothing(visit: StubVisit, inside: bool) -> None:
    before = visit.server.connections
    visit.hold()
    visit.speak(SENTENCE, Script(samples=40_000, burst=30, drop_at=10, drop_inside=inside))
    visit.play_all(40_000)
    visit.finish()
    assert visit.server.connections == before + 1
    resume = visit.server.of("hello")[-1]["resume"]
    assert resume["seq"] == 11 + (not inside)  # `started`, then chunks 0 … 10
    last = visit.js("positions.filter((p) => p.epoch === 1).at(-1)")
    assert (last["received"], last["consumed"], last["underruns"]) == (40_000, 40_000, 0)
    assert_one_sine(visit, 40_000)
    assert_honest(visit.server.of("report"))


def test_a_pause_is_reported_and_goes_on(visit: StubVisit) -> None:
    visit.speak(SENTENCE, Script(samples=40_000, head=40_000))
    visit.until("positions.some((p) => p.consumed > 12000)")
    visit.page.click("#pause")
    visit.until("positions.at(-1).state === 'paused'")
    assert visit.page.get_attribute("#pause", "aria-pressed") == "true"
    held = visit.js("positions.at(-1).consumed")
    visit.page.wait_for_timeout(300)
    assert visit.js("positions.at(-1).consumed") == held
    visit.page.click("#pause")
    visit.finish()
    assert visit.js("positions.at(-1).underruns") == 0
    assert visit.page.is_disabled("#pause")
    kinds = [m["type"] for m in visit.server.received]
    assert kinds.index("pause") < kinds.index("resume")


def test_a_suspended_context_is_reported_and_recovers(visit: StubVisit) -> None:
    script = Script(samples=40_000, head=30_000, burst=1, pace=0.1, hold_at=1)
    visit.speak(SENTENCE, script)
    visit.until("positions.some((p) => p.consumed > 6000)")
    visit.js("playhead.player.suspend()")
    visit.until("positions.at(-1).state === 'suspended'")
    assert "Click" in visit.status
    script.let_go = True  # it is told again while sound arrives
    visit.until_received(
        "report", lambda told: told["state"] == "suspended" and told["received"] > 30_000
    )
    visit.page.mouse.click(5, 5)
    visit.finish()
    assert visit.js("positions.at(-1).consumed") == 40_000
    assert_honest(visit.server.of("report"))


def test_a_frame_is_drawn_in_a_fraction_of_its_time(come: Callable[..., StubVisit]) -> None:
    """With speech and a crowd of fifty: sixty frames a second leave 16.7 ms for each. Time that
    the thread ran, whatever ran in between."""
    visit = come(Script(samples=96_000, crowd=50))
    visit.until("document.querySelector('#crowd-note').textContent.startsWith('51 sessions')")
    visit.ask(SENTENCE)
    visit.until("positions.some((p) => p.consumed > 6000)")
    cost = measure(visit, 2.0)
    assert cost["script_per_frame"] < 5.0
    assert cost["layouts_per_change"] <= 1.0, "nothing is laid out twice, or for nothing"
    assert 0 < cost["numbers_per_second"] < 11, "ten, however many pictures there are"
    assert cost["words_per_second"] < 11, "as they are spoken, not with each picture"
    assert visit.page.inner_text("#belief") == "0.90 s"
    assert visit.complaints == []


HIDE = """() => {
  window.requestAnimationFrame = () => 0;
  const timeout = setTimeout;
  const interval = setInterval;
  window.setTimeout = (act, ms, ...rest) => timeout(act, Math.max(ms ?? 0, 1000), ...rest);
  window.setInterval = (act, ms, ...rest) => interval(act, Math.max(ms ?? 0, 1000), ...rest);
  Object.defineProperty(document, 'hidden', { value: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_a_hidden_page_goes_on_reporting(visit: StubVisit) -> None:
    """Headless pages are never hidden; what hiding does to one is done here: no frames to draw,
    and timers once a second."""
    visit.js(HIDE)
    visit.speak(SENTENCE, Script(samples=44_000, head=44_000))
    visit.finish()
    reports = visit.server.of("report")
    assert_honest(reports)
    assert_reported_in_turn(visit, reports)
    assert_one_sine(visit, 44_000)


class Untouched(StubVisit):
    """What Playwright evaluates counts as a gesture of the user, and a page that has seen one may
    play: a look at a page that is still being loaded would let its sound out. These do not count.
    """

    def js(self, expression: str) -> Any:
        session = self.page.context.new_cdp_session(self.page)
        called = f"(() => {{ const found = {expression};"
        called += "return typeof found === 'function' ? found() : found; })()"
        asked = {"expression": called, "returnByValue": True, "awaitPromise": True}
        answer = session.send("Runtime.evaluate", asked)
        session.detach()
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


def test_a_page_without_a_gesture_says_so_and_plays_after_a_click(
    browser: Browser, server: StubServer
) -> None:
    server.script = Script(samples=24_000)
    launch = browser.browser_type.launch
    flags = list(FLAGS_WITH_GESTURES)
    with launch(executable_path=chromium(), args=flags, timeout=1000 * PATIENCE) as strict:
        visit = open_page(strict, server.url, lambda page: Untouched(page, server=server))
        visit.js("void playhead.speak('one two three')")
        visit.until("positions.some((p) => p.state === 'suspended' && p.received === 24000)")
        assert visit.js("positions.at(-1).consumed") == 0
        assert {r["state"] for r in server.of("report")} == {"suspended"}
        visit.page.mouse.click(5, 5)
        visit.until("positions.at(-1).state === 'drained'")
        assert visit.js("positions.at(-1).consumed") == 24_000
        assert_honest(server.of("report"))


FLIGHT = """() => {
  window.flown = [];
  const [flight, stall] = ['flight', 'stall'].map((id) => document.getElementById(id));
  new MutationObserver(() => flown.push([parseFloat(flight.textContent), stall.disabled]))
    .observe(flight, { childList: true, characterData: true, subtree: true });
}"""


def test_a_second_without_network_is_a_stall_and_loses_nothing(visit: StubVisit) -> None:
    script = Script(samples=60_000, head=9_600, burst=1, pace=0.08, hold_at=1)
    visit.speak(SENTENCE, script)
    visit.js(FLIGHT)
    visit.until("positions.some((p) => p.consumed > 2400)")
    visit.page.click("#stall")
    script.let_go = True
    visit.until("flown.some(([flight, disabled]) => flight > 0 && disabled)")
    visit.until("!document.querySelector('#stall').disabled")
    visit.finish()
    last = visit.js("positions.at(-1)")
    assert (last["state"], last["consumed"]) == ("drained", 60_000)
    assert last["underruns"] >= 1
    assert visit.server.of("report")[-1]["heard"] == 60_000
    assert_honest(visit.server.of("report"))


def test_silence_about_the_playhead_is_kept_by_acknowledging(visit: StubVisit) -> None:
    visit.page.uncheck("#reporting", force=True)
    visit.speak(SENTENCE, Script(samples=18_000))
    visit.until("positions.some((p) => p.state === 'drained')")
    visit.until_received("ack", lambda ack: ack["seq"] == 1 + 5)  # `started` and chunks
    assert visit.server.of("report") == []
    acks = [message["seq"] for message in visit.server.of("ack")]
    assert acks == sorted(acks)
    visit.page.keyboard.press("Escape")


def test_without_word_times_the_split_is_estimated_and_says_so(visit: StubVisit) -> None:
    visit.speak(SENTENCE, Script(samples=120_000, head=120_000, words=False))
    visit.until("document.querySelectorAll('#said .heard').length >= 2")
    visit.page.keyboard.press("Escape")
    visit.until_status("Interrupted")
    (cancel,) = visit.server.of("cancel")
    words = 1 + (cancel["heard"] - 1) // 12_000  # as the server splits it
    assert visit.page.inner_text("#said-note") == f"about {words} of 10 words heard"


UNNAMED = """[...document.querySelectorAll('button, input, select, textarea, [role=img]')]
  .filter((e) => !(e.labels?.length || e.ariaLabel || e.textContent.trim()))
  .map((e) => e.outerHTML)"""


def test_the_keyboard_reaches_everything_in_reading_order(visit: StubVisit) -> None:
    visit.page.keyboard.press("Tab")
    assert visit.page.inner_text(":focus") == "Skip to the text"
    visit.page.keyboard.press("Enter")
    visit.until("document.activeElement.id === 'text'")
    visit.page.keyboard.press("Tab")
    order = []
    for _ in range(16):
        order.append(visit.js("document.activeElement.id || document.activeElement.value"))
        visit.page.keyboard.press("Tab")
    expected = ["whole", "codec", "speed", "speak", "clear", "stall", "reporting", "copy"]
    assert [name for name in order if name in expected] == expected
    assert visit.js(UNNAMED) == []


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_fits_every_screen(
    come: Callable[..., StubVisit], shots: Path | None, scheme: str, size: str
) -> None:
    viewport = PHONE if size == "phone" else DESKTOP
    visit = come(Script(crowd=20), viewport=viewport, color_scheme=scheme)
    before = visit.js("document.querySelector('main').offsetHeight")
    visit.speak(visit.page.input_value("#text"), Script(samples=120_000, burst=24, crowd=20))
    visit.until("positions.some((p) => p.consumed > 6000)")
    assert visit.js("document.documentElement.scrollWidth <= innerWidth")
    if shots is not None:
        visit.page.screenshot(path=shots / f"{size}-{scheme}.png", full_page=True)
    visit.page.keyboard.press("Escape")
    visit.until_status("Interrupted")
    assert visit.js("document.querySelector('main').offsetHeight") == before
    shifts = visit.js("shifts")
    assert sum(value for value, *_ in shifts) < 0.01, f"the page jumped: {shifts}"
