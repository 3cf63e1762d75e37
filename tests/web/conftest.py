"""Chromium and a scripted server for the page's tests."""

import os
from collections.abc import Iterator
from pathlib import Path

import interfaces
import pytest
from browser_rig import FLAGS, StubVisit, chromium, open_page
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
        started = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def server() -> Iterator[StubServer]:
    with StubServer() as running:
        yield running


@pytest.fixture
def visit(browser: Browser, server: StubServer) -> Iterator[StubVisit]:
    server.script = Script()
    opened = open_page(browser, server.url, lambda page: StubVisit(page, server=server))
    yield opened
    opened.page.context.close()


@pytest.fixture
def shots() -> Path | None:
    """Where to put screenshots, when somebody wants to look at them."""
    where = os.environ.get("PLAYHEAD_SHOTS")
    return None if where is None else Path(where)
