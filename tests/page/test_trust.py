"""Who only proposes because of what was read: shown on the page, and trusted again there."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents.scripted import Model
from tests.page import sites
from tests.page.sites import Site

pytestmark = pytest.mark.timeout(60)
HOSTILE = "Clippings/<img src=x onerror=alert(1)>.md"


def read_foreign(site: Site, client: str, run: str = "") -> None:
    """Have a program read what others wrote."""
    taints = site.hub.context(client="page").writer.taints
    assert taints.mark(client, run, HOSTILE)


def may_only_propose(site: Site, client: str) -> bool:
    return site.hub.context(client=client).writer.current_grants().tainted


def test_a_program_is_shown_and_trusted_again(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hi."]]).open) as site:
        read_foreign(site, "http")
        read_foreign(site, "mcp", "session-1")
        site.enter(tab)
        shown = tab.locator("#restricted-section")
        expect(shown.locator("li")).to_have_count(2)
        expect(shown).to_contain_text(f"read {HOSTILE} · until")
        expect(shown).to_contain_text("mcp in session-1")
        assert may_only_propose(site, "http")
        shown.get_by_role("button", name="Trust http again").click()
        expect(shown.locator("li")).to_have_count(1)

        assert not may_only_propose(site, "http")


def test_all_are_trusted_again_after_a_question(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hi."]]).open) as site:
        read_foreign(site, "http")
        read_foreign(site, "mcp")
        site.enter(tab)
        shown = tab.locator("#restricted-section")
        shown.get_by_role("button", name="Trust all").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(shown.locator("li")).to_have_count(2)
        assert may_only_propose(site, "http")
        shown.get_by_role("button", name="Trust all").click()
        tab.get_by_role("dialog").get_by_role("button", name="Trust all").click()
        expect(shown).to_be_hidden()

        assert not may_only_propose(site, "http")
        assert not may_only_propose(site, "mcp")


def test_where_nobody_is_restricted_nothing_is_shown(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hi."]]).open) as site:
        with tab.expect_response("**/trust*"):
            site.enter(tab)
        expect(tab.locator("#restricted-section")).to_be_hidden()
