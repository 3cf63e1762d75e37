"""The page when its server goes away: another speaks on, and each word is there."""

import pytest
from browser_rig import StubVisit, assert_honest, captured, speech
from stub_server import RATE, Message, Script

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SENTENCE = "one two three four five six seven eight nine ten"
HEARD = "[...document.querySelectorAll('#said .heard')].map((s) => s.textContent).join(' ')"


def texts(visit: StubVisit) -> list[str]:
    return [message["text"] for message in visit.server.of("text")]


def test_a_lost_session_goes_on_from_the_last_word_that_had_begun(visit: StubVisit) -> None:
    script = Script(samples=60_000, burst=40, drop_at=10, forget=True)  # a word is 6,000 samples
    visit.speak(SENTENCE, script)
    visit.until_told("Another server speaks on")
    visit.finish()
    first, second = texts(visit)
    arrived = 12_000 + 10 * 1_920
    assert first == SENTENCE
    assert second == " ".join(SENTENCE.split()[(arrived - 1) // 6_000 :])
    assert visit.page.inner_text("#said").strip() == SENTENCE
    assert visit.js(HEARD) == SENTENCE
    assert visit.notice == ""
    last = visit.js("positions.at(-1)")
    assert (last["state"], last["consumed"]) == ("drained", 60_000)
    assert visit.server.of("report")[-1]["epoch"] == 1
    assert_honest(after_the_move(visit))
    pcm, rate = captured(visit)
    assert len(speech(pcm)) * RATE / rate >= arrived + 60_000 - 200, "both parts were played"
    assert visit.complaints == []


def after_the_move(visit: StubVisit) -> list[Message]:
    """Reports of the second session: its numbers begin anew."""
    received = list(visit.server.received)
    hello = max(i for i, message in enumerate(received) if message["type"] == "hello")
    return [message for message in received[hello:] if message["type"] == "report"]


def test_a_draining_server_is_left_when_it_has_finished(visit: StubVisit) -> None:
    before = visit.server.connections
    visit.speak(SENTENCE, Script(samples=24_000, drain_at=2))
    visit.until_told("about to restart")
    visit.finish()
    visit.until("document.querySelector('#link').dataset.state === 'open'")
    assert visit.server.connections == before + 1
    assert "resume" not in visit.server.of("hello")[-1]
    visit.speak("again", Script(samples=14_000))
    visit.finish()
    assert not visit.page.is_visible("#notice")
    assert visit.js("positions.at(-1).consumed") == 14_000
    assert visit.complaints == []


def test_an_interruption_after_a_move_tells_what_was_heard_of_both(visit: StubVisit) -> None:
    script = Script(samples=120_000, burst=12, drop_at=10, forget=True)  # a word is 12,000 samples
    visit.speak(SENTENCE, script)
    visit.until_told("Another server speaks on")
    script.burst = 60
    # The fourth word begins at 12,000; what the device still holds is not heard yet.
    visit.until("positions.some((p) => p.epoch === 2 && p.consumed > 20000)")
    visit.page.keyboard.press("Escape")
    visit.until_status("Interrupted")
    heard = visit.js(HEARD).split()
    assert SENTENCE.split()[: len(heard)] == heard
    assert len(heard) >= 3 + 1
    assert visit.page.inner_text("#said-note") == f"{len(heard)} of 10 words heard"
