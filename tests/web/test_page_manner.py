"""Language and instruction: offered where the server's model takes them, and only there."""

import pytest
from browser_rig import StubVisit
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
    visit.until("document.querySelector('#status').textContent.startsWith('Asking') === false")
    assert settings(visit) == {"language": "german", "instruct": "calm and slow"}
    offer(visit, Script(languages=languages))
    assert visit.page.is_visible("#language")
    assert not visit.page.is_visible("#instruct")
