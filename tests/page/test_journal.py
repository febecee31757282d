"""The journal on the page: who changed what and when, the difference, and taking it back."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page import reviews, sites
from tests.page.reviews import BARN, SHED
from tests.page.sites import Site

pytestmark = pytest.mark.timeout(120)


def changed(site: Site, tab: Page) -> None:
    """Have a change proposed and accepted, and open the journal."""
    reviews.accept(site, **{SHED: BARN})
    site.enter(tab, "/app/journal")
    expect(tab.locator(".k-change")).to_have_count(1)


def undo(tab: Page) -> None:
    """Ask to undo the newest edit, and say yes."""
    tab.get_by_role("button", name="Undo: Edited Garden").click()
    tab.get_by_role("dialog").get_by_role("button", name="Undo in 1 file").click()
    expect(tab.get_by_role("dialog")).to_have_count(0)


def test_it_tells_who_changed_what_and_shows_the_difference(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        changed(site, tab)
        entry = tab.locator(".k-change")
        expect(entry).to_contain_text("Edited Garden")
        expect(entry).to_contain_text("by page")
        show = entry.get_by_role("button", name="What changed: Edited Garden")
        show.click()

        expect(show).to_have_attribute("aria-expanded", "true")
        expect(entry.locator("del")).to_have_text("-removed: The spade hangs in the shed.")
        expect(entry.locator("ins")).to_have_text("+added: The spade hangs in the barn.")
        expect(tab.get_by_role("figure")).to_have_accessible_name("1 change in 14 days")


def test_undo_shows_what_comes_back_and_takes_the_change_back(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        changed(site, tab)
        assert BARN in site.read("Garden.md")
        tab.get_by_role("button", name="Undo: Edited Garden").click()
        dialog = tab.get_by_role("dialog", name="Undo this change?")
        expect(dialog.locator("ins")).to_have_text("+added: The spade hangs in the shed.")
        dialog.get_by_role("button", name="Cancel").click()
        assert BARN in site.read("Garden.md")
        undo(tab)
        expect(tab.locator(".k-change")).to_have_count(2)
        expect(tab.locator(".k-change").nth(1)).to_contain_text("Undone")
        expect(tab.locator(".k-change").nth(1).get_by_role("button", name="Undo:")).to_have_count(0)

        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_by_keys_a_change_is_looked_at_and_taken_back(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        changed(site, tab)
        tab.get_by_role("button", name="What changed: Edited Garden").focus()
        tab.keyboard.press("Enter")
        expect(tab.locator(".k-change ins")).to_be_visible()
        tab.keyboard.press("Tab")
        button = tab.get_by_role("button", name="Undo: Edited Garden")
        expect(button).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("dialog").locator("ins")).to_be_visible()
        tab.keyboard.press("Escape")
        expect(button).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("dialog").get_by_role("button", name="Undo in 1 file")).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.locator(".k-change")).to_have_count(2)

        expect(tab.locator(".k-change").nth(1).get_by_role("button").first).to_be_focused()
        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_what_was_taken_back_can_be_seen_and_done_again(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        changed(site, tab)
        undo(tab)
        expect(tab.locator(".k-change")).to_have_count(2)
        first = tab.locator(".k-change").nth(1)
        first.get_by_role("button", name="What changed").click()
        expect(first.locator("ins")).to_have_text("+added: The spade hangs in the barn.")
        tab.get_by_role("button", name="Undo: Undid Garden").click()
        tab.get_by_role("dialog").get_by_role("button", name="Undo in 1 file").click()
        expect(tab.locator(".k-change")).to_have_count(3)

        assert BARN in site.read("Garden.md")


def test_undo_leaves_a_note_that_was_changed_since(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        changed(site, tab)
        mine = site.read("Garden.md") + "\nMine.\n"
        (site.root / "Garden.md").write_text(mine, encoding="utf-8")
        tab.get_by_role("button", name="Undo: Edited Garden").click()
        expect(tab.get_by_role("dialog")).to_contain_text("changed")
        expect(tab.get_by_role("dialog").get_by_role("button", name="Undo")).to_have_count(0)

        assert site.read("Garden.md") == mine


def test_a_whole_run_is_undone_but_for_what_was_changed_since(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path, notes={**sites.NOTES, "Sea.md": "Salt.\n"}) as site:
        reviews.accept(site, run="r1", **{SHED: BARN})
        reviews.accept(site, "Plans/Rain.md", run="r1", tomatoes="beans")
        reviews.accept(site, "Sea.md", run="r2", Salt="Sweet")
        (site.root / "Plans/Rain.md").write_text("Mine.\n", encoding="utf-8")
        site.enter(tab, "/app/journal")
        expect(tab.locator(".k-change")).to_have_count(3)
        tab.get_by_role("button", name="Actions: Edited Rain").click()
        tab.get_by_role("menuitem", name="Only this run").click()
        expect(tab.locator(".k-change")).to_have_count(2)
        tab.get_by_role("button", name="Show all runs").click()
        tab.get_by_role("button", name="Actions: Edited Rain").click()
        tab.get_by_role("menuitem", name="Undo the whole run").click()
        dialog = tab.get_by_role("dialog", name="Undo the whole run?")
        expect(dialog).to_contain_text("Plans/Rain.md")
        dialog.get_by_role("button", name="Undo in 1 file").click()
        expect(tab.locator(".k-change")).to_have_count(4)

        assert site.read("Plans/Rain.md") == "Mine.\n"
        assert SHED in site.read("Garden.md")
        assert site.read("Sea.md") == "Sweet.\n"


def test_changes_are_filtered_by_words_and_by_day(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviews.accept(site, reason="the barn is dry", **{SHED: BARN})
        reviews.accept(site, "Plans/Rain.md", tomatoes="beans")
        site.enter(tab, "/app/journal")
        expect(tab.locator(".k-change")).to_have_count(2)
        tab.get_by_label("Note or reason").fill("dry")
        expect(tab.locator(".k-change")).to_have_count(1)
        tab.get_by_label("Note or reason").fill("zebra")
        expect(tab.get_by_role("heading", name="No matching changes")).to_be_visible()
        tab.get_by_label("Note or reason").fill("")
        today = tab.get_by_role("button", name=re.compile(r": 2 changes, page 2$"))
        today.focus()
        tab.keyboard.press("Enter")
        expect(today).to_have_attribute("aria-pressed", "true")
        expect(tab.locator(".k-change")).to_have_count(2)
        tab.get_by_role("button", name="Show all days").click()

        expect(today).to_have_attribute("aria-pressed", "false")


def test_a_file_leads_to_the_note(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        changed(site, tab)
        tab.get_by_role("button", name="What changed: Edited Garden").click()
        tab.locator(".k-change").get_by_role("link", name="Garden.md", exact=True).click()

        expect(tab).to_have_url(f"{site.address}/app/notes/Garden.md")


def test_a_journal_without_changes_says_so(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        site.enter(tab, "/app/review")
        tab.get_by_role("link", name="Journal", exact=False).first.click()

        expect(tab.get_by_role("heading", name="No changes in the last 14 days")).to_be_visible()
