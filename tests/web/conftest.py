"""Chromium and a scripted server for the page's tests."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import interfaces
import pytest
from browser_rig import FLAGS, StubVisit, chromium, open_page
from machine import PATIENCE
from playwright.sync_api import Browser, sync_playwright
from stub_server import Script, StubServer


@pytest.fixture(autouse=True)
def still_interfaces() -> Iterator[None]:
    with interfaces.held(change=False):
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("the page tests need Chromium: install your system's chromium package")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=list(FLAGS), timeout=1000 * PATIENCE
        )
        yield started
        started.close()


@pytest.fixture
def server() -> Iterator[StubServer]:
    """Each test has its own: what another one's page still sends or is sent is nothing to it."""
    with StubServer() as running:
        yield running


Come = Callable[..., StubVisit]


@pytest.fixture
def come(browser: Browser, server: StubServer) -> Iterator[Come]:
    """Opens the page, with what ``Browser.new_context`` takes; it is closed when the test is."""
    with contextlib.ExitStack() as opened:

        def open_it(script: Script, **context: Any) -> StubVisit:
            server.script = script
            visit = open_page(
                browser, server.url, lambda page: StubVisit(page, server=server), **context
            )
            opened.callback(visit.page.context.close)
            return visit

        yield open_it


@pytest.fixture
def visit(come: Come) -> StubVisit:
    return come(Script())


@pytest.fixture
def shots() -> Path | None:
    """Where to put screenshots, when somebody wants to look at them."""
    where = os.environ.get("PLAYHEAD_SHOTS")
    return None if where is None else Path(where)
