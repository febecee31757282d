"""Give tests a real browser."""

import asyncio
import contextlib
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, BrowserType, Error, Page, expect, sync_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""The first has the same engine without what surrounds it, and needs a third of the processor time."""
MISSING = "no Chromium is installed here, so the page isn't tested: apt-get install chromium, or any other Chromium"
START_MS = 120_000
WAIT_MS = 40_000
"""For a machine that is busy: only what never comes takes as long."""
FOLDER = Path(__file__).parent
_OPENED = pytest.StashKey["_Opened"]()


class _Opened:
    """A browser that is open."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as stack:
            playwright = stack.enter_context(sync_playwright())
            self.browser = stack.enter_context(launch(playwright.chromium))
            self._stack = stack.pop_all()

    def is_usable(self) -> bool:
        """Return whether it still answers; a test that ran out of time can end Playwright's event loop with it."""
        loop: asyncio.AbstractEventLoop | None = getattr(self.browser, "_loop", None)
        return self.browser.is_connected() and not (loop and loop.is_closed())

    def close(self) -> None:
        with contextlib.suppress(Error, RuntimeError):  # what is broken can't be closed in order
            self._stack.close()


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Browser:
    """Give the browser of all tests of this folder, which stand one after the other; start it where none is open."""
    expect.set_options(timeout=WAIT_MS)
    stash = request.config.stash
    if _OPENED in stash and not stash[_OPENED].is_usable():
        _close(request.config)
    if _OPENED not in stash:
        stash[_OPENED] = _Opened()
    return stash[_OPENED].browser


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Close the browser before a test of another folder: beside Playwright no other event loop runs in its thread."""
    yield
    if nextitem is None or FOLDER not in nextitem.path.parents:
        _close(item.config)


@pytest.fixture
def no_browser(request: pytest.FixtureRequest) -> None:
    """Close the shared browser, for a test that starts Playwright itself."""
    _close(request.config)


def _close(config: pytest.Config) -> None:
    if _OPENED in config.stash:
        opened = config.stash[_OPENED]
        del config.stash[_OPENED]
        opened.close()


def launch(kind: BrowserType) -> Browser:
    """Start the system's own Chromium, or else one that Playwright knows of."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program:
        return kind.launch(executable_path=program, args=["--no-sandbox"], timeout=START_MS)
    for channel in (None, "chrome"):
        try:
            return kind.launch(channel=channel, args=["--no-sandbox"], timeout=START_MS)
        except Error:
            continue
    pytest.skip(MISSING)


@pytest.fixture
def context(browser: Browser) -> Generator[BrowserContext]:
    with browser.new_context(viewport={"width": 1280, "height": 800}, locale="en") as context:
        context.set_default_timeout(WAIT_MS)
        yield context


@pytest.fixture
def tab(context: BrowserContext) -> Page:
    return context.new_page()
