"""What a page holds after a collection: heap, nodes, listeners, and objects of a kind.

The text field is filled by script: what is typed into it, or put there with Playwright's ``fill``,
stays in the browser's undo history (one node a time), and Playwright's own helper in the page is
larger than the page.
"""

from browser_rig import Visit
from playwright.sync_api import CDPSession

FORGET = "for (const each of [captured, capturedAt, received, frames_, told]) each.length = 0"
ASK = """(text) => {
  document.querySelector('#text').value = text;
  document.querySelector('#status').textContent = '';
  window.positions = [];
  document.querySelector('#form').requestSubmit();
}"""
ESCAPE = "void document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))"


def watch_memory(visit: Visit) -> CDPSession:
    session = visit.page.context.new_cdp_session(visit.page)
    session.send("Performance.enable")
    return session


def speak(visit: Visit, text: str, *, cut_after: int | None = None) -> None:
    """Until it is over. ``cut_after``: ms of sound after which it is interrupted; it has more."""
    visit.page.evaluate(ASK, text)
    if cut_after is not None:
        samples = f"{cut_after} * playhead.sampleRate / 1000"
        visit.until(f"positions.some(({{ consumed }}) => consumed > {samples})")
        visit.js(ESCAPE)
    visit.until_status("Finished." if cut_after is None else "Interrupted")
    visit.until("playhead.current === null")


def held(visit: Visit, session: CDPSession) -> dict[str, int]:
    """Bytes of the heap, nodes and listeners that are left after a collection."""
    visit.js(FORGET)
    for _ in range(2):  # what only the first one lets go of
        session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    values = {metric["name"]: int(metric["value"]) for metric in metrics}
    counters = session.send("Memory.getDOMCounters")
    return {
        "heap": values["JSHeapUsedSize"],
        "nodes": counters["nodes"],
        "listeners": counters["jsEventListeners"],
    }


def least_held(visit: Visit, session: CDPSession) -> dict[str, int]:
    """The least of some looks: between two pictures the page has what they replace as well."""
    looks = [held(visit, session)]
    for _ in range(4):
        visit.page.wait_for_timeout(60)
        looks.append(held(visit, session))
    return {kind: min(look[kind] for look in looks) for kind in looks[0]}


def alive(session: CDPSession, prototype: str) -> int:
    """Objects in the page that inherit from what ``prototype`` (an expression) gives."""
    expression = {"expression": prototype, "objectGroup": "count"}
    found = session.send("Runtime.evaluate", expression)["result"]["objectId"]
    asked = {"prototypeObjectId": found, "objectGroup": "count"}
    objects = session.send("Runtime.queryObjects", asked)["objects"]["objectId"]
    length = session.send(
        "Runtime.callFunctionOn",
        {"functionDeclaration": "function () { return this.length; }", "objectId": objects},
    )
    session.send("Runtime.releaseObjectGroup", {"objectGroup": "count"})
    return int(length["result"]["value"])
