"""Choosing one of several vaults on the page."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from knapper.config import Vault
from knapper.server.http import browsing
from knapper.server.workers import WorkerThreads
from tests.agents.scripted import Call, Model
from tests.index import worlds
from tests.page import sites
from tests.page.sites import answered, say
from tests.page.test_notes import png

pytestmark = pytest.mark.timeout(120)


def choose(tab: Page, name: str) -> None:
    """Change to another vault; the page starts over."""
    tab.get_by_role("button", name="Appearance and account").click()
    with tab.expect_navigation():
        tab.get_by_role("menuitemradio", name=name, exact=True).click()
    expect(tab.get_by_role("navigation", name="Views")).to_be_visible()


def conversations(tab: Page) -> Locator:
    return tab.locator("[data-session]")


def test_each_vault_has_its_own_conversations_and_changes(tmp_path: Path, tab: Page) -> None:
    other = worlds.fill(tmp_path / "other", {"Sea.md": "# Sea\n\nSalt water.\n"}).resolve()
    looks = ([Call("search_vault", {"query": "water"})], ["See [[Sea]]."])
    append = Call("append_to_file", {"path": "Sea.md", "content": "And fish."})
    with sites.serving(
        tmp_path,
        Model([*looks, [append], ["Done."]]).open,
        change=lambda found: replace(found, vaults=(found.vault, Vault(name="sea", path=other))),
    ) as site:
        site.enter(tab)
        choose(tab, "sea")
        tab.get_by_role("link", name="Chat", exact=True).click()
        say(tab, "What is salty?")
        answered(tab)
        tab.locator(".k-answer .k-cite").click()
        expect(tab.get_by_role("complementary", name="Sea")).to_contain_text("Salt water.")
        tab.keyboard.press("Escape")
        say(tab, "Add fish")
        card = tab.locator(".k-changes")
        card.get_by_role("button", name="Accept all").click()
        expect(card).to_contain_text("Accepted: changes in 1 note")
        choose(tab, "v")
        tab.get_by_role("link", name="Chat", exact=True).click()
        expect(tab.get_by_text("No conversations yet")).to_be_visible()
        expect(tab.get_by_text("What is salty?")).to_have_count(0)
        choose(tab, "sea")
        tab.reload()
        tab.get_by_role("link", name="Chat", exact=True).click()
        expect(conversations(tab)).to_have_count(1)
        conversations(tab).hover()
        tab.get_by_role("button", name="Actions for “What is salty?”").first.click()
        tab.get_by_role("menuitem", name="Delete…").click()
        tab.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(tab.get_by_text("No conversations yet")).to_be_visible()

    assert (other / "Sea.md").read_text(encoding="utf-8") == "# Sea\n\nSalt water.\nAnd fish.\n"


def test_a_citation_of_another_vault_opens_its_passage_with_its_image(tmp_path: Path, tab: Page) -> None:
    other = worlds.fill(tmp_path / "other", {"Far/Sea.md": "# Sea\n\nSalt water.\n\n![[Shore.png]]\n"}).resolve()
    (other / "Far" / "Shore.png").write_bytes(png(60, 30))
    with sites.serving(
        tmp_path,
        Model([["Salt [[sea:Sea#Sea]] (lines 3-3)."]]).open,
        change=lambda found: replace(found, vaults=(found.vault, Vault(name="sea", path=other))),
        more=lambda hub, _: [browsing.mount_browsing(hub, WorkerThreads(2))],
    ) as site:
        (site.root / "Shore.png").write_bytes(png(10, 10))  # of the vault that is open: not this one
        _ = site.hub.context(client="cli", vault="sea").index.refresh()
        site.enter(tab, "/app/chat/new")
        say(tab, "What is salty?")
        answered(tab)
        tab.locator(".k-answer .k-cite").click()

        expect(tab.locator(".k-cited-lines, [data-cited]")).to_have_text("Salt water.")
        image = tab.get_by_role("complementary").locator("img.k-media")
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("naturalWidth", 60)
