"""Nothing of an utterance, or of a session, stays behind in the page."""

import pytest
from browser_rig import StubVisit, open_page
from memory import alive, least_held, speak, watch_memory
from playwright.sync_api import Browser
from stub_server import Script, StubServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

UTTERANCE = "Object.getPrototypeOf(playhead.speak('one'))"
CLIENT = "Object.getPrototypeOf(playhead)"
CHOOSE = """(codec) => {
  document.querySelector('#codec').value = codec;
  document.querySelector('#codec').dispatchEvent(new Event('change'));
}"""
ROUNDS = 4  # of three utterances each


def speak_rounds(visit: StubVisit, rounds: int) -> None:
    for _ in range(rounds):
        speak(visit, "one two three")
        speak(visit, "one two three")
        speak(visit, "one two three", cut_after=60)


def test_nothing_of_an_utterance_stays(browser: Browser, server: StubServer) -> None:
    server.script = Script(samples=2_400, head=2_400, crowd=10)
    visit = open_page(browser, server.url, lambda page: StubVisit(page, server=server))
    session = watch_memory(visit)
    server.script.samples = 4_800
    speak_rounds(visit, 2)  # what is made once
    before = least_held(visit, session)
    speak_rounds(visit, ROUNDS)
    after = least_held(visit, session)
    for kind in ("nodes", "listeners"):
        assert after[kind] - before[kind] < 3 * ROUNDS, f"{kind}: {before} became {after}"
    assert alive(session, UTTERANCE) <= 3, "the one on the stage and the one that asked"
    visit.page.context.close()


def test_nothing_of_a_session_stays(visit: StubVisit) -> None:
    session = watch_memory(visit)

    def reconnect(codec: str) -> None:
        visit.server.script = Script(samples=2_400, head=2_400)
        visit.page.evaluate(CHOOSE, codec)
        visit.until("document.querySelector('#link').dataset.state === 'open'")
        speak(visit, "one two three")

    for codec in ("pcm_f32le", "pcm_s16le"):
        reconnect(codec)
    before = least_held(visit, session)
    for codec in ("pcm_f32le", "pcm_s16le") * 2:
        reconnect(codec)
    after = least_held(visit, session)
    for kind in ("nodes", "listeners"):
        assert after[kind] - before[kind] < 4, f"{kind}: {before} became {after}"
    assert alive(session, CLIENT) <= 2
    assert alive(session, "AudioContext.prototype") <= 2
    visit.page.context.close()
