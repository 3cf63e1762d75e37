"""The page behind the shipped HAProxy and two real gateways, when the one that speaks goes away.

The voice is a wave made at a set pace (``fleet_kit``): words have their true times, and what is
heard can be compared sample by sample.
"""

import threading
from collections.abc import Iterator

import pytest
from browser_rig import Sound, Visit, captured, open_page, unpack
from fleet_kit import HAPROXY, RATE, Cluster, Node, cluster
from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        HAPROXY is None, reason="HAProxy is not installed (scripts/install-system-packages does)"
    ),
]
TEXT = "one two three four five six seven eight nine ten"
"""3.6 seconds: longer than the lead, so that some of it is still to be made when a node goes."""
MORE = "eleven twelve"
HEARD = "[...document.querySelectorAll('#said .heard')].map((s) => s.textContent).join(' ')"
NODE = "playhead.session.token.split('.').slice(0, -1).join('.')"
NOTE = """() => {
  window.moves = [];
  playhead.addEventListener('moved', ({ detail }) =>
    moves.push({ ...detail, utterances: detail.utterances.map(({ id }) => id) }));
}"""
# A second client of the page's own, beside it at the same node, that shall not go on elsewhere.
STAY = """async ([text, node]) => {
  const { PlayheadClient } = await import('/playhead.js');
  const url = new URL('v1/session', location.href.replace('http', 'ws'));
  url.searchParams.set('node', node);
  window.staying = new PlayheadClient({ url: url.href, recover: false });
  await staying.connect();
  await staying.unlock();
  window.stayed = staying.speak(text);
  stayed.finished.then((outcome) => { window.ending = { ...outcome, words: stayed.words }; });
}"""


@pytest.fixture(scope="module")
def fleet() -> Iterator[Cluster]:
    with cluster((8.0, 8.0)) as found:
        yield found


@pytest.fixture
def visit(browser: Browser, fleet: Cluster) -> Iterator[Visit]:
    opened = open_page(browser, fleet.url, Visit)
    opened.js(NOTE)
    yield opened
    opened.page.context.close()


def speaking_node(fleet: Cluster, visit: Visit) -> Node:
    name = visit.js(NODE)
    return next(node for node in fleet.nodes if node.name == name)


def energy(sound: Sound, rate: int) -> float:
    """Of the whole sound; a pause in it changes nothing."""
    return float((sound**2).sum() / rate)


def test_a_node_that_drains_while_the_page_speaks_loses_nothing(
    fleet: Cluster, visit: Visit
) -> None:
    first = speaking_node(fleet, visit)
    visit.ask(TEXT)
    visit.until("positions.some((p) => p.consumed > 12000)")
    status: list[int] = []
    going = threading.Thread(target=lambda: status.append(first.drain()))
    going.start()
    visit.until_told("about to restart")
    visit.js(f"window.second = playhead.speak({MORE!r})")
    visit.js("second.finished.then((outcome) => { window.ending = outcome; })")
    visit.finish()
    visit.until("window.ending !== undefined")
    assert visit.js(HEARD) == TEXT
    assert visit.js("[ending.reason, ending.heardText]") == ["done", MORE]
    assert visit.js(NODE) != first.name
    for epoch in (1, 2):
        last = visit.js(f"positions.filter((p) => p.epoch === {epoch}).at(-1)")
        assert last["received"] == last["consumed"] > 0
    sent = unpack(visit, "received")
    pcm, rate = captured(visit)
    assert energy(pcm, rate) == pytest.approx(energy(sent, RATE), rel=0.03), "both, once"
    assert not visit.page.is_visible("#notice")
    assert visit.complaints == []
    going.join(30)
    assert status == [0]
    first.start()
    first.ready()
    fleet.wait(first)


def test_a_node_that_is_killed_is_told_honestly_and_costs_a_repeated_word(
    fleet: Cluster, visit: Visit
) -> None:
    first = speaking_node(fleet, visit)
    visit.page.evaluate(STAY, [TEXT, first.name])
    visit.ask(TEXT)
    visit.js("window.spoken = playhead.current")
    visit.until("positions.some((p) => p.consumed > 12000) && staying.heard(stayed) > 12000")
    first.stop()
    visit.until_told("Another server speaks on")
    visit.until("window.ending !== undefined")
    visit.finish()
    (moved,) = visit.js("moves")
    assert (moved["recovered"], moved["reason"]) == (False, "unknown")
    assert moved["utterances"] == [visit.js("spoken.id")]
    assert visit.js(HEARD) == TEXT
    starts = visit.js("spoken.words.map((word) => word.char_start)")
    assert sorted(set(starts)) == [TEXT.index(word) for word in TEXT.split()], "every word"
    assert len(starts) - len(set(starts)) <= 1, "from the last word that had begun to arrive"
    assert visit.js("spoken.keys.length") == 2
    ending = visit.js("ending")
    assert ending["reason"] == "lost"
    assert ending["lost"] == {"recovered": False, "reason": "unknown", "toldBy": "client"}
    assert ending["heardText"] + ending["unheardText"] == TEXT
    heard = [word for word in ending["words"] if word["position"] < ending["heard"]]
    assert ending["heardText"] == TEXT[: heard[-1]["char_end"]]
    assert 12_000 <= ending["heard"] <= ending["samples"]
