"""What a screen reader is given: the browser's accessibility tree of the page."""

from collections.abc import Callable
from typing import Any

import pytest
from browser_rig import StubVisit
from stub_server import Script

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LANDMARKS = [
    ("banner", ""),
    ("navigation", "On this page"),
    ("main", ""),
    ("form", "Speak a text"),
    ("region", "What you heard"),
    ("region", "Your buffer"),
    ("region", "Belief against truth"),
    ("region", "Three lanes"),
    ("region", "Break my network"),
    ("region", "A crowd"),
    ("region", "How it works, in four words"),
    ("region", "Your own client, in ten lines"),
    ("contentinfo", ""),
]
CONTROLS = [
    ("link", "Skip to the text"),
    ("link", "Lanes"),
    ("link", "Try it"),
    ("link", "How it works"),
    ("textbox", "What shall I say?"),
    ("combobox", "Language"),
    ("textbox", "How to speak"),
    ("radio", "At once"),
    ("radio", "Word by word"),
    ("combobox", "Voice"),
    ("combobox", "Sent as"),
    ("slider", "Speed"),
    ("button", "Speak"),
    ("button", "Interrupt"),
    ("button", "Pause"),
    ("button", "Save as WAV"),
    ("radio", "Clear"),
    ("radio", "Slow"),
    ("radio", "Jittery"),
    ("button", "Stop everything for 1 second"),
    ("switch", "Report my playhead to the server"),
    ("slider", "Listeners"),
    ("radio", "They report"),
    ("radio", "Estimated"),
    ("button", "Start"),
    ("button", "Copy"),
    ("tab", "Python"),
    ("tab", "JavaScript"),
]
TABLES = {"The lanes now": 3 * 5, "What the listeners went through": 5 * 2}  # and their cells
GROUPS = {"How the text is sent", "Network", "How the server knows what they hold"}

Node = dict[str, Any]


def tree(visit: StubVisit) -> list[Node]:
    """What is not hidden from a reader, from top to bottom."""
    session = visit.page.context.new_cdp_session(visit.page)
    nodes = {n["nodeId"]: n for n in session.send("Accessibility.getFullAXTree")["nodes"]}
    order: list[Node] = []

    def walk(node: Node) -> None:
        if not node.get("ignored"):
            order.append(node)
        for child in node.get("childIds", []):
            if child in nodes:
                walk(nodes[child])

    walk(next(node for node in nodes.values() if "parentId" not in node))
    return order


def role(node: Node) -> str:
    return str(node["role"]["value"])


def name(node: Node) -> str:
    return str(node.get("name", {}).get("value", "")).replace("\xa0", " ")


def value(node: Node, key: str) -> Any:
    found = [p["value"].get("value") for p in node.get("properties", []) if p["name"] == key]
    return found[0] if found else None


def named(nodes: list[Node], roles: set[str]) -> list[tuple[str, str]]:
    return [(role(node), name(node)) for node in nodes if role(node) in roles]


@pytest.fixture
def full(come: Callable[..., StubVisit]) -> StubVisit:
    """The page with everything that a server can offer."""
    return come(Script(samples=24_000, crowd=3, languages=("english", "german"), instruct=True))


def test_every_part_and_control_has_its_role_and_name_in_reading_order(full: StubVisit) -> None:
    full.until("document.querySelector('#crowd-note').textContent.startsWith('4 sessions')")
    nodes = tree(full)
    assert named(nodes, {"banner", "navigation", "main", "form", "region", "contentinfo"}) == (
        LANDMARKS
    )
    controls = {found for found, _ in CONTROLS}
    assert named(nodes, controls) == CONTROLS
    assert {name(n) for n in nodes if role(n) == "group"} == GROUPS
    images = [name(n) for n in nodes if role(n) == "image"]
    assert len(images) == 4
    assert all(len(text) > 30 for text in images), "a picture is described"
    levels = [value(n, "level") for n in nodes if role(n) == "heading"]
    assert levels == [1, *[2] * (len(levels) - 1)]
    tables = {name(n): n for n in nodes if role(n) == "table"}
    assert set(tables) == set(TABLES)
    cells = [n for n in nodes if role(n) in ("cell", "gridcell")]
    assert len(cells) == sum(TABLES.values())


def test_states_are_told_and_numbers_are_not(full: StubVisit) -> None:
    live = [(role(n), name(n)) for n in tree(full) if value(n, "live") in ("polite", "assertive")]
    assert [kind for kind, _ in live] == ["status"], "numbers that run would drown everything"
    full.speak("one two three four", Script(samples=24_000, head=24_000, crowd=3))
    full.finish()
    assert full.js("told") == ["Asking for speech …", "Speaking.", "Finished."]
    full.server.script = Script(
        refuse={"code": "overloaded", "message": "full", "expected": "later"}, crowd=3
    )
    full.page.click("#speak")
    full.until("!document.querySelector('#notice').hidden")
    (alert,) = [node for node in tree(full) if role(node) == "alert"]
    assert value(alert, "live") == "assertive"
