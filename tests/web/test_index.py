"""The page's files load at once, not one after the other as their imports are discovered."""

import re
from pathlib import Path

WEB = Path(__file__).resolve().parents[2] / "web"
IMPORT = re.compile(r'^(?:import|export)\b[^;]*?\bfrom "\./(\w+\.js)"', re.MULTILINE)
PRELOAD = re.compile(r'<link rel="modulepreload" href="([^"]+)">')


def reached(first: str) -> set[str]:
    """Modules that ``first`` imports, directly or not."""
    found: set[str] = set()
    waiting = [first]
    while waiting:
        imported = set(IMPORT.findall((WEB / waiting.pop()).read_text())) - found
        found |= imported
        waiting += imported
    return found


def test_every_module_of_the_page_is_preloaded_once() -> None:
    preloaded = PRELOAD.findall((WEB / "index.html").read_text())
    assert sorted(preloaded) == sorted({"app.js"} | reached("app.js"))
    assert "playhead.js" in preloaded


def test_no_button_can_be_pressed_before_there_is_code_that_listens() -> None:
    buttons = re.findall(r"<button[^>]*>", (WEB / "index.html").read_text())
    able = [button for button in buttons if " disabled" not in button]
    assert ['id="notice-close"' in button for button in able] == [True], "in a notice, and hidden"


def test_what_needs_a_crowd_is_closed_until_the_server_has_offered_one() -> None:
    """Nobody can press what no code listens to yet."""
    panel = re.search(
        r'<section class="card crowd".*?</section>', (WEB / "index.html").read_text(), re.S
    )
    assert panel is not None
    assert "data-closed" in panel[0]
    controls = re.findall(r"<(?:input|button)[^>]*>", panel[0])
    assert len(controls) == 4
    assert all(" disabled" in control for control in controls)
