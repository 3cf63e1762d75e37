"""Language and instruction: offered where the server's model takes them, and only there."""

import pytest
from browser_rig import PHONE, StubVisit
from playwright.sync_api import ViewportSize
from stub_server import Script

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OFFERED = "document.querySelector('#link').dataset.state === 'open'"


def offer(visit: StubVisit, script: Script) -> None:
    visit.server.script = script
    visit.page.reload()
    visit.until(OFFERED)


def settings(visit: StubVisit) -> dict[str, object]:
    (start,) = visit.server.of("start")
    return {name: start[name] for name in ("language", "instruct") if name in start}


def test_a_model_that_takes_neither_is_offered_neither(visit: StubVisit) -> None:
    offer(visit, Script(samples=6_000, languages=("english", "auto")))
    for control in ("#manner", "#language", "#instruct"):
        assert not visit.page.is_visible(control)
    visit.js("document.querySelector('#instruct').value = 'left from another server'")
    visit.server.received.clear()
    visit.page.click("#speak")
    visit.finish()
    assert settings(visit) == {}


def test_what_a_model_takes_is_offered_and_sent(visit: StubVisit) -> None:
    languages = ("auto", "english", "german")
    script = Script(samples=6_000, languages=languages, instruct=True)
    before = visit.js("document.querySelector('#form').offsetHeight")
    offer(visit, script)
    assert visit.js("document.querySelector('#form').offsetHeight") == before, "nothing moves"
    options = visit.js("[...document.querySelector('#language').options].map((o) => o.value)")
    assert options == list(languages)
    visit.server.received.clear()
    visit.page.click("#speak")
    visit.finish()
    assert settings(visit) == {"language": "auto"}
    visit.page.select_option("#language", "german")
    visit.page.get_by_label("How to speak").fill("  calm and slow ")
    visit.server.received.clear()
    visit.page.click("#speak")
    visit.until_received("start", lambda _: True)
    assert settings(visit) == {"language": "german", "instruct": "calm and slow"}
    offer(visit, Script(languages=languages))
    assert visit.page.is_visible("#language")
    assert not visit.page.is_visible("#instruct")


SIZES = {
    "small phone": ViewportSize(width=320, height=640),
    "phone": PHONE,
    "tablet": ViewportSize(width=820, height=1180),
    "desktop": ViewportSize(width=1440, height=900),
}
LANGUAGES = ("auto", "english", "german")
VOICES = {
    "neither": Script(),
    "both": Script(languages=LANGUAGES, instruct=True),
    "languages": Script(languages=LANGUAGES),
    "instruction": Script(instruct=True),
}
PLACES = """Object.fromEntries(
  [...document.querySelectorAll('.card, .hero, .options, .actions, .bottom')].map((each) =>
    [each.id || each.className, JSON.stringify(each.getBoundingClientRect())]))"""
LINE = "parseFloat(getComputedStyle(document.querySelector('#text')).lineHeight)"


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_nothing_moves_when_another_voice_takes_other_settings(
    visit: StubVisit, size: ViewportSize
) -> None:
    """The page stays open; its next session is with a server whose voice takes more or less."""
    visit.page.set_viewport_size(size)
    visit.until(f"innerWidth === {size['width']} && innerHeight === {size['height']}")
    before = visit.js(PLACES)
    for name, script in [*VOICES.items(), *reversed(VOICES.items())]:
        visit.server.script = script
        visit.js("shifts.length = 0")
        visit.js("document.querySelector('#codec').dispatchEvent(new Event('change'))")
        visit.until(f"{OFFERED} && playhead.session !== null")
        assert visit.page.is_visible("#language") == bool(script.languages), name
        assert visit.page.is_visible("#instruct") == script.instruct, name
        visit.page.wait_for_timeout(100)  # two frames: a jump is told with the second
        assert visit.js(PLACES) == before, name
        assert sum(value for value, *_ in visit.js("shifts")) < 0.001, (name, visit.js("shifts"))
        assert visit.js("document.querySelector('#text').clientHeight") > 3 * visit.js(LINE), name
        assert visit.js("document.documentElement.scrollWidth") <= size["width"], name
