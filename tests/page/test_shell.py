"""The page's shell in a real browser: what it loads, how it looks at three widths, and its keys."""

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect

from tests.agents.scripted import Model
from tests.page import sites
from tests.page.conftest import WAIT_MS

HELLO = Model([["Hello."]])
MAX_REQUESTS = 8
MAX_BYTES = 150_000
SIZES = {"wide": (1440, 900), "middle": (1024, 768), "phone": (390, 844)}
VIEWS = ("search", "notes", "chat", "runs", "review", "graph", "settings")
PICTURES = os.environ.get("KNAPPER_PICTURES", "")  # noqa: TID251 - a wish of whoever runs the tests
"""A folder; where it is named, what the tests see is put there, to be looked at."""


@contextmanager
def listening(tab: Page) -> Generator[list[str]]:
    """Collect what the browser complains of: errors, and what the content policy refused."""
    told: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        is_driver = "GL Driver Message (OpenGL, Performance" in message.text  # the first picture that a browser draws
        if message.type in {"error", "warning"} and "/events" not in message.location.get("url", "") and not is_driver:
            told.append(message.text)

    tab.on("console", hear)
    tab.on("pageerror", lambda error: told.append(str(error)))
    yield told


def picture(tab: Page, name: str) -> None:
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=str(Path(PICTURES) / f"{name}.png"))


@pytest.mark.timeout(120)
def test_the_first_load_is_small_and_asks_no_other_host(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab)
        tab.wait_for_load_state("networkidle")  # what is late is of this load, not of the one that is counted
        answers: list[Response] = []
        tab.on("response", lambda answer: answers.append(answer))
        with listening(tab) as told:
            tab.goto(f"{site.address}/app/search", wait_until="networkidle")
            expect(tab.get_by_label("Search your notes")).to_be_visible()
        sizes = tab.evaluate(
            "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
            ".map(entry => [new URL(entry.name).pathname, entry.encodedBodySize])"
        )

    assert told == []
    assert {answer.url.startswith(site.address) for answer in answers} == {True}
    files = [answer.url for answer in answers if "/page/" in answer.url or "/app/" in answer.url]
    assert len(files) <= MAX_REQUESTS, "\n".join(files)
    assert 0 < sum(size for _, size in sizes) < MAX_BYTES, sizes


@pytest.mark.timeout(240)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_every_view_opens_by_its_address_and_nothing_overflows(
    tmp_path: Path, browser: Browser, size: str, scheme: str
) -> None:
    width, height = SIZES[size]
    with (
        sites.serving(tmp_path, HELLO.open) as site,
        browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            locale="en",
        ) as context,
    ):
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        site.enter(tab)
        with listening(tab) as told:
            for view in VIEWS:
                tab.goto(f"{site.address}/app/{view}")
                expect(tab.locator("[aria-current=page]")).to_have_attribute("href", f"/app/{view}")
                expect(tab.locator("#main, .k-list").locator("visible=true").first).to_be_visible()
                tab.wait_for_timeout(150)
                picture(tab, f"{view}-{size}-{scheme}")

                assert tab.evaluate("document.documentElement.scrollWidth") <= width, view

    assert told == []


@pytest.mark.timeout(120)
def test_the_page_is_gone_through_by_keys_alone(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab, "/app/notes")
        tab.keyboard.press("g")
        tab.keyboard.press("t")
        expect(tab).to_have_url(f"{site.address}/app/settings")
        tab.keyboard.press("?")
        expect(tab.get_by_role("dialog", name="Keyboard shortcuts").get_by_role("heading")).to_have_text(
            ["Keyboard shortcuts", "Everywhere", "Go to"]
        )
        picture(tab, "keys")
        tab.keyboard.press("Escape")
        expect(tab.get_by_role("dialog")).to_have_count(0)
        tab.keyboard.press("Control+k")
        expect(tab.get_by_role("combobox", name="Find notes, conversations and commands")).to_be_focused()
        picture(tab, "palette")
        tab.keyboard.type("dark")
        expect(tab.get_by_role("option", name="Dark theme")).to_have_attribute("aria-selected", "true")
        tab.keyboard.press("Enter")
        expect(tab.locator("html")).to_have_attribute("data-theme", "dark")
        tab.go_back()
        expect(tab).to_have_url(f"{site.address}/app/notes")
        tab.keyboard.press("g")
        tab.keyboard.press("c")
        expect(tab.locator(".k-compose")).to_be_visible()
        tab.get_by_role("link", name="Search", exact=True).click()
        tab.locator("body").evaluate("() => document.activeElement.blur()")
        tab.keyboard.press("?")

        expect(tab.get_by_role("dialog").get_by_role("heading", level=3)).to_have_text(
            ["Everywhere", "Go to", "Search"]
        )


@pytest.mark.timeout(120)
def test_the_palette_finds_conversations(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab, "/app/chat/new")
        sites.say(tab, "Where is the spade?")
        sites.answered(tab)
        tab.goto(f"{site.address}/app/search")
        expect(tab.get_by_label("Search your notes")).to_be_focused()
        tab.keyboard.press("Control+k")
        tab.keyboard.type("spade")
        group = tab.get_by_role("group", name="Conversations")
        expect(group.get_by_role("option")).to_have_text(re.compile("Where is the spade"))
        group.get_by_role("option").click()

        expect(tab).to_have_url(re.compile(r"/app/chat/[\w-]+$"))
        expect(tab.locator(".k-question-text")).to_have_text("Where is the spade?")


@pytest.mark.timeout(120)
def test_the_list_folds_and_its_width_is_remembered(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab, "/app/settings")
        divider = tab.get_by_role("separator", name="Width of the list")
        divider.focus()
        tab.keyboard.press("ArrowRight")
        expect(divider).to_have_attribute("aria-valuenow", "316")
        tab.reload()
        expect(tab.locator(".k-list")).to_have_css("width", "316px")
        tab.get_by_role("button", name="Hide the list").click()
        expect(tab.locator(".k-list")).to_be_hidden()
        tab.reload()
        tab.get_by_role("button", name="Show the list").click()

        expect(tab.locator(".k-list")).to_be_visible()


@pytest.mark.timeout(120)
def test_a_search_has_an_address_and_is_found_again(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab)
        tab.get_by_label("Search your notes").fill("tomatoes")
        expect(tab).to_have_url(re.compile(r"/app/search\?q=tomatoes$"))
        tab.reload()

        expect(tab.get_by_label("Search your notes")).to_have_value("tomatoes")


@pytest.mark.timeout(120)
def test_a_lost_server_is_told_and_found_again(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab)
        expect(tab.get_by_label("Search your notes")).to_be_visible()  # the view comes after the shell
        site.wire.cut()
        tab.get_by_role("link", name="Notes").click()
        expect(tab.get_by_text("This view isn't loaded yet")).to_be_visible()
        tab.go_back()
        tab.get_by_label("Search your notes").fill("rain")
        expect(tab.get_by_text("The server can't be reached")).to_be_visible()
        picture(tab, "offline")
        expect(tab.get_by_role("button", name="Try now")).to_be_visible()
        site.wire.mend()  # found by the page itself, which tries every few seconds

        expect(tab.get_by_text("The server can't be reached")).to_have_count(0)
        tab.get_by_role("link", name="Notes").click()
        expect(tab.get_by_role("heading", name="Choose a note")).to_be_visible()


@pytest.mark.timeout(120)
def test_the_gate_looks_calm_too(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site, listening(tab) as told:
        tab.goto(f"{site.address}/app/notes/Garden.md")
        expect(tab.get_by_label("Sign-in link or code")).to_be_focused()
        picture(tab, "gate")
        tab.get_by_label("Sign-in link or code").fill(site.door())
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("navigation", name="Views")).to_be_visible()

        expect(tab).to_have_url(f"{site.address}/app/notes/Garden.md")
    assert told == []
