"""The journal on the page: who changed what and when, the difference, and taking it back."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents.scripted import Model
from tests.page import sites
from tests.page.sites import Site, say

pytestmark = pytest.mark.timeout(60)
SHED, BARN = "in the shed", "in the barn"


def changed(site: Site, tab: Page) -> None:
    """Have a change proposed and accepted, and open the journal."""
    site.enter(tab)
    say(tab, "Change it")
    tab.get_by_role("button", name="Review").click()
    tab.get_by_role("button", name="Accept all that is open").click()
    expect(tab.locator(".hunk.accepted")).to_have_count(1)
    tab.get_by_role("button", name="Journal").click()
    expect(tab.locator(".change")).to_have_count(1)


def model() -> Model:
    return Model([[sites.rewriting(**{SHED: BARN})], ["Done."]])


def test_it_tells_who_changed_what_and_shows_the_difference(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, model().open) as site:
        changed(site, tab)
        entry = tab.locator(".change")
        expect(entry).to_contain_text("edited Garden.md")
        expect(entry).to_contain_text("by page")
        show = entry.get_by_role("button", name="What changed: edited Garden.md")
        show.click()

        expect(show).to_have_attribute("aria-expanded", "true")
        expect(entry.locator("del")).to_have_text("removed: -The spade hangs in the shed.")
        expect(entry.locator("ins")).to_have_text("added: +The spade hangs in the barn.")


def test_undo_takes_a_change_back(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, model().open) as site:
        changed(site, tab)
        assert BARN in site.read("Garden.md")
        tab.get_by_role("button", name="Undo: edited Garden.md").click()
        expect(tab.locator(".change")).to_have_count(2)
        expect(tab.locator(".change").nth(1)).to_contain_text("taken back")
        expect(tab.locator(".change").nth(1).get_by_role("button", name="Undo")).to_have_count(0)

        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_what_was_taken_back_can_be_seen_and_done_again(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, model().open) as site:
        changed(site, tab)
        tab.get_by_role("button", name="Undo: edited Garden.md").click()
        expect(tab.locator(".change")).to_have_count(2)
        first = tab.locator(".change").nth(1)
        first.get_by_role("button", name="What changed").click()
        expect(first.locator("ins")).to_have_text("added: +The spade hangs in the barn.")
        tab.locator(".change").nth(0).get_by_role("button", name="Undo").click()
        expect(tab.locator(".change")).to_have_count(3)

        assert BARN in site.read("Garden.md")


def test_undo_leaves_a_note_that_was_changed_since(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, model().open) as site:
        changed(site, tab)
        mine = site.read("Garden.md") + "\nMine.\n"
        (site.root / "Garden.md").write_text(mine, encoding="utf-8")
        tab.get_by_role("button", name="Undo: edited Garden.md").click()
        expect(tab.locator(".change").get_by_role("alert")).to_contain_text("changed")

        assert site.read("Garden.md") == mine


def test_a_file_leads_to_the_note(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, model().open) as site:
        changed(site, tab)
        tab.get_by_role("button", name="What changed: edited Garden.md").click()
        tab.locator(".change").get_by_role("button", name="Garden.md", exact=True).click()

        expect(tab.get_by_role("complementary", name="Garden")).to_contain_text("The spade hangs in the barn.")


def test_a_journal_without_changes_says_so(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, model().open) as site:
        site.enter(tab)
        tab.get_by_role("button", name="Journal").click()

        expect(tab.get_by_text("Nothing was changed here yet.")).to_be_visible()
