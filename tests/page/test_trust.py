"""Who only proposes because of what was read: shown on the page, and trusted again there."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page import reviews
from tests.page.reviews import BARN, SHED
from tests.page.sites import Site

pytestmark = pytest.mark.timeout(120)
HOSTILE = "Clippings/<img src=x onerror=alert(1)>.md"


def read_foreign(site: Site, client: str, run: str = "") -> None:
    """Have a program read what others wrote."""
    taints = site.hub.context(client="page").writer.taints
    assert taints.mark(client, run, HOSTILE)


def may_only_propose(site: Site, client: str) -> bool:
    return site.hub.context(client=client).writer.current_grants().tainted


def test_a_program_is_shown_and_trusted_again(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        read_foreign(site, "http")
        read_foreign(site, "mcp", "session-1")
        site.enter(tab, "/app/review")
        shown = tab.get_by_role("region", name="Limited to proposals")
        expect(shown.get_by_role("listitem")).to_have_count(2)
        expect(shown).to_contain_text(f"read {HOSTILE} · until")
        expect(shown).to_contain_text("mcp in session-1")
        assert may_only_propose(site, "http")
        shown.get_by_role("button", name="Trust http again").click()
        expect(shown.get_by_role("listitem")).to_have_count(1)

        assert not may_only_propose(site, "http")


def test_all_are_trusted_again_after_a_question(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        read_foreign(site, "http")
        read_foreign(site, "mcp")
        site.enter(tab, "/app/review")
        shown = tab.get_by_role("region", name="Limited to proposals")
        shown.get_by_role("button", name="Trust all").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(shown.get_by_role("listitem")).to_have_count(2)
        assert may_only_propose(site, "http")
        shown.get_by_role("button", name="Trust all").click()
        tab.get_by_role("dialog").get_by_role("button", name="Trust all").click()
        expect(shown).to_have_count(0)

        assert not may_only_propose(site, "http")
        assert not may_only_propose(site, "mcp")


def test_where_nobody_is_restricted_nothing_is_shown(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        site.enter(tab)
        with tab.expect_response("**/trust*"):
            tab.goto(f"{site.address}/app/review")
        expect(tab.get_by_role("heading", name="Nothing to review").first).to_be_visible()

        expect(tab.get_by_role("region", name="Limited to proposals")).to_have_count(0)


def test_a_proposal_says_what_its_maker_has_read_and_trusts_it_again(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        read_foreign(site, "agent")
        reviews.reviewing(site, tab, reviews.propose(site, **{SHED: BARN}))
        about = tab.locator(".k-review-about")
        expect(about).to_contain_text("Made after reading untrusted content. Review carefully.")
        expect(about).to_contain_text(f"It is limited to proposals because it read {HOSTILE}")
        about.get_by_role("button", name="Trust agent again").click()
        expect(about.get_by_role("button", name="Trust agent again")).to_have_count(0)

        assert not may_only_propose(site, "agent")
