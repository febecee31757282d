"""Give tests a real browser."""

import shutil
from collections.abc import Generator

import pytest
from playwright.sync_api import Browser, BrowserContext, BrowserType, Error, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = "no Chromium is installed here, so the page isn't tested: apt-get install chromium, or any other Chromium"
START_MS = 120_000
WAIT_MS = 40_000
"""For a machine that is busy: only what never comes takes as long."""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright, launch(playwright.chromium) as launched:
        yield launched


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
