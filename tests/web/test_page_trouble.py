"""What the page says when something is wrong: one calm sentence with what to do."""

import pytest
from browser_rig import StubVisit, open_page
from playwright.sync_api import Browser
from ports import free_ports
from stub_server import Script, StubServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]


REFUSALS = [
    (
        {"code": "overloaded", "message": "full", "expected": "later", "retry_after": 2000},
        "All voices are busy. Try again in 2 seconds.",
    ),
]


def test_refused_texts(visit: StubVisit) -> None:
    for error, told in REFUSALS:
        visit.speak("one two", Script(refuse=error))
        visit.until_status("This was not spoken.")
        assert visit.notice == told
        assert visit.page.inner_text("#said-note") == "", "nothing to count"
    visit.speak("one two", Script(samples=12_000))
    visit.finish()
    assert not visit.page.is_visible("#notice")
    height = visit.js("document.querySelector('main').offsetHeight")
    visit.speak("words " * 1_416 + "here")
    assert visit.notice.startswith("This text has 8,500 characters, and at most 8,000 can wait")
    assert visit.page.inner_text("#count") == "8,500 / 8,000"
    assert visit.js("document.querySelector('main').offsetHeight") == height, "nothing moves"
    assert visit.server.of("start") == []
    visit.page.click("#notice-close")
    assert not visit.page.is_visible("#notice")
    error = {"code": "text_too_long", "message": "9,000 code points", "expected": "at most 8,000"}
    visit.speak("one two", Script(refuse=error))
    visit.until("!document.querySelector('#notice').hidden")
    assert visit.notice == "This text is too long (9,000 code points). Speak it in parts."


def test_a_text_that_a_draining_server_refuses_is_spoken_by_the_next(visit: StubVisit) -> None:
    error = {"code": "draining", "message": "the server is going down", "expected": "another"}
    before = visit.server.connections
    visit.speak("one two", Script(samples=12_000, refuse=error))
    visit.until_told("Another server speaks on")
    visit.server.script.refuse = None
    visit.finish()
    assert visit.server.connections > before
    assert visit.notice == ""


def test_a_codec_that_the_server_lacks(visit: StubVisit) -> None:
    error = {"code": "unsupported_codec", "message": "no libopus", "expected": "pcm_s16le"}
    visit.server.script = Script(refuse_hello=error)
    visit.page.select_option("#codec", "mulaw")
    visit.until("document.querySelector('#notice-text').textContent !== ''")
    assert visit.notice == "This server cannot send sound that way. PCM works everywhere."
    visit.until("document.querySelector('#link').dataset.state === 'open'")
    assert visit.page.input_value("#codec") == "pcm_s16le"
    visit.speak("one two", Script(samples=12_000))
    visit.finish()


TRIP = "document.querySelector('#trip').textContent"
CHANGE = "document.querySelector('#codec').dispatchEvent(new Event('change'))"


def test_a_choice_before_the_last_one_was_open_is_no_trouble(visit: StubVisit) -> None:
    visit.js(f"{CHANGE}, {CHANGE}")
    visit.until("document.querySelector('#link').dataset.state === 'open'")
    assert visit.js("told.filter((text) => text.includes('ended'))") == []
    assert visit.notice == ""


# Browsers do it when the page is parsed, before its modules run.
PUT_BACK = """document.addEventListener('readystatechange', () => {
  if (document.readyState !== 'interactive') return;
  document.querySelector('input[value=slow]').checked = true;
  document.querySelector('#speed').value = '1.5';
});"""


def test_what_the_browser_has_put_back_is_in_force(visit: StubVisit) -> None:
    visit.page.add_init_script(PUT_BACK)
    visit.page.reload()
    visit.until("document.querySelector('#link').dataset.state === 'open'")
    assert visit.page.is_checked("input[value=slow]")
    assert visit.page.inner_text("#speed-value")[:3] == "1.5"
    visit.until(f"{TRIP}.endsWith('s')")
    assert visit.js(f"parseFloat({TRIP}) * ({TRIP}.endsWith('ms') ? 1 : 1000)") >= 2 * 180


AWAY = {
    "full": "The server is full. Trying again in a few seconds …",
    "draining": "The server is about to restart and takes nobody new. Trying again …",
    "engine_dead": "The server's speech engine has stopped and needs a restart. Trying again …",
    "ready": "The server turned this page away, perhaps because too many pages of this address "
    "are open. Close some of them; trying again …",
}


def test_a_page_that_is_turned_away_and_then_let_in(visit: StubVisit) -> None:
    visit.server.script = Script(turn_away=True)
    for readiness, told in AWAY.items():
        visit.server.script.readiness = readiness
        visit.page.reload()
        visit.until(f"document.querySelector('#notice-text').textContent === {told!r}")
        assert visit.page.inner_text("#link-text") == "Connecting …"
    visit.server.script = Script()
    visit.until("document.querySelector('#link').dataset.state === 'open'")
    assert not visit.page.is_visible("#notice")


def test_a_server_that_is_gone_and_comes_back(browser: Browser) -> None:
    port = free_ports()
    with StubServer(port) as gone:
        visit = open_page(browser, gone.url, lambda page: StubVisit(page, server=gone))
    visit.until("document.querySelector('#notice-text').textContent.includes('cannot be reached')")
    assert visit.notice == "The server cannot be reached. Is it running? Trying again …"
    with StubServer(port) as back:
        visit.js("playhead.connection.retryNow()")
        visit.until("document.querySelector('#link').dataset.state === 'open'")
        visit.server = back
        assert not visit.page.is_visible("#notice")
        visit.page.context.close()


def test_a_crowd_that_is_asked_for_comes_later_and_may_go(visit: StubVisit) -> None:
    """The button tells what was asked for until the server shows otherwise."""
    visit.server.script = Script(crowd=1)
    visit.page.reload()
    visit.until("!document.querySelector('#crowd-start').disabled")
    visit.server.script.crowd = 0
    visit.until("document.querySelector('#crowd-note').textContent.startsWith('Synthetic')")
    visit.page.click("#crowd-start")
    visit.page.wait_for_timeout(350)  # three pictures of nobody
    assert visit.page.inner_text("#crowd-start") == "Stop"
    visit.server.script.crowd = 5
    visit.until("document.querySelector('#crowd-note').textContent.startsWith('6 sessions')")
    assert visit.page.inner_text("#crowd-start") == "Stop"
    visit.server.script.crowd = 0
    visit.until("document.querySelector('#crowd-start').textContent === 'Start'")


def test_a_page_that_could_not_ask_whether_it_may_watch_asks_again(visit: StubVisit) -> None:
    visit.server.script = Script(crowd=1)
    visit.page.route("**/v1/observe", lambda route: route.abort())
    visit.page.reload()
    visit.until("document.querySelector('#link').dataset.state === 'open'")
    assert visit.page.is_disabled("#crowd-start")
    visit.page.unroute("**/v1/observe")
    visit.until("!document.querySelector('#crowd-start').disabled")


def test_a_long_round_trip_is_told_in_seconds(visit: StubVisit) -> None:
    tell = "playhead.dispatchEvent(new CustomEvent('latency', {{ detail: {{ roundTrip: {} }} }}))"
    for milliseconds, told in ((2400, "2.4 s"), (86.4, "86 ms"), (-1, "0 ms")):
        # At once: a true one may come at any time.
        assert visit.js(f"{tell.format(milliseconds)}, {TRIP}") == told


def test_a_part_of_the_page_that_does_not_come_is_told(visit: StubVisit) -> None:
    visit.page.route("**/tape.js", lambda route: route.abort())
    visit.page.reload()
    visit.until("!document.querySelector('#notice').hidden")
    assert visit.notice == "A part of this page could not be loaded. Reload it to try again."
    assert visit.page.inner_text("#link-text") == "Not loaded"
    visit.page.unroute("**/tape.js")
    with visit.page.expect_navigation():
        visit.page.click("#notice-close")
    visit.until("document.querySelector('#link').dataset.state === 'open'")
    assert not visit.page.is_visible("#notice")
