"""Nothing of an utterance, or of a session, stays behind in the page."""

from collections.abc import Callable

import pytest
from browser_rig import StubVisit
from memory import alive, least_held, speak, watch_memory
from playwright.sync_api import CDPSession
from stub_server import Script

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
        visit.server.script.samples = 4_800
        speak(visit, "one two three")
        speak(visit, "one two three")
        visit.server.script.samples = 240_000  # more than is heard of it
        speak(visit, "one two three", cut_after=60)


def until_let_go(visit: StubVisit, session: CDPSession, before: dict[str, int], more: int) -> None:
    """On a busy machine what is over is let go of later; what leaks stays."""

    def let_go() -> bool:
        after = least_held(visit, session)
        return all(after[kind] - before[kind] < more for kind in ("nodes", "listeners"))

    visit.until_true(let_go, f"less than {more} nodes and listeners more than {before}")


def test_nothing_of_an_utterance_stays(come: Callable[..., StubVisit]) -> None:
    visit = come(Script(samples=4_800, head=2_400, crowd=10))
    session = watch_memory(visit)
    speak_rounds(visit, 2)  # what is made once
    before = least_held(visit, session)
    speak_rounds(visit, ROUNDS)
    until_let_go(visit, session, before, 3 * ROUNDS)
    kept = "the one on the stage and the one that asked"
    visit.until_true(lambda: alive(session, UTTERANCE) <= 3, kept)


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
    until_let_go(visit, session, before, 4)
    for kind in (CLIENT, "AudioContext.prototype"):
        visit.until_true(lambda kind=kind: alive(session, kind) <= 2, f"two of {kind}")
