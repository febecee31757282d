"""The history on the page: a piece of work from its question to its undo, its links, filters and looks."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.agents.scripted import Model
from tests.page import axe, reviews, sites
from tests.page.conftest import WAIT_MS
from tests.page.reviews import BARN, BARREL, OLD_BARREL, SHED
from tests.page.sites import Site, answered, rewriting, say
from tests.page.test_shell import SIZES, listening, picture

pytestmark = pytest.mark.timeout(180)
QUESTION = "Where does the spade hang?"


def proposing() -> Model:
    """Return a model that proposes a change, and then answers."""
    return Model([[rewriting(**{SHED: BARN})], ["The spade hangs in the barn. [[Garden]] (lines 1-3)"]])


def asked(site: Site, tab: Page) -> None:
    """Ask in a chat, have what the model proposes accepted, and something else proposed and rejected."""
    site.enter(tab, "/app/chat/new")
    say(tab, QUESTION)
    answered(tab)
    context = site.hub.context(client="page")
    listed = reviews.proposals.list_proposals(context)["results"]
    shown = reviews.proposals.show_proposal(context, listed[0]["id"])
    _ = reviews.proposals.accept_proposal(context, shown["id"], shown["digest"])
    other = reviews.propose(site, reason="an older barrel", **{BARREL: OLD_BARREL})
    _ = reviews.proposals.reject_proposal(context, other, "it is a new one")


def test_a_piece_of_work_is_told_and_taken_back(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, proposing().open) as site:
        asked(site, tab)
        tab.goto(f"{site.address}/app/review")
        tab.get_by_role("link", name="History", exact=False).first.click()
        work = tab.get_by_role("region", name=QUESTION)
        expect(work.locator(".k-step-kind")).to_have_text(["Asked", "Found", "Proposed", "Accepted"])
        expect(work.locator("[data-kind=found]")).to_contain_text("The spade hangs in the barn.")
        expect(work.locator("[data-kind=accepted]")).to_contain_text("by page")
        work.get_by_role("button", name="Changes: Accepted Garden").click()
        expect(work.locator("ins")).to_contain_text(BARN)
        work.get_by_role("button", name="Undo: Accepted Garden").focus()
        tab.keyboard.press("Enter")
        tab.get_by_role("dialog").get_by_role("button", name="Undo in 1 file").click()
        expect(work.locator(".k-step-kind")).to_have_text(["Asked", "Found", "Proposed", "Accepted", "Undone"])
        expect(work.get_by_role("button", name="Undo: Accepted Garden")).to_have_count(0)

        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_it_is_filtered_and_leads_to_the_conversation_and_the_proposal(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, proposing().open) as site:
        asked(site, tab)
        tab.goto(f"{site.address}/app/history")
        expect(tab.locator(".k-work")).to_have_count(2)
        rejected = tab.locator("[data-kind=rejected]")
        expect(rejected).to_contain_text("it is a new one")
        expect(rejected.locator("time")).to_have_text("later")
        tab.get_by_role("group", name="Filters").get_by_role("button", name="Rejected").click()
        expect(tab.locator(".k-step")).to_have_count(1)
        tab.get_by_role("group", name="Filters").get_by_role("button", name="Rejected").click()
        tab.get_by_role("button", name=f"Actions: {QUESTION}").click()
        tab.get_by_role("menuitem", name="Only this work").click()
        expect(tab.locator(".k-work")).to_have_count(1)
        tab.get_by_role("button", name="Show all work").click()
        tab.get_by_label("Note or folder").fill("Plans")
        expect(tab.get_by_role("heading", name="No matching steps")).to_be_visible()
        tab.get_by_label("Note or folder").fill("")
        tab.locator("[data-kind=proposed]").get_by_role("link", name="Open the proposal").first.click()
        expect(tab).to_have_url(f"{site.address}/app/review/{site_proposal(site)}")
        tab.goto(f"{site.address}/app/history")
        tab.get_by_role("link", name="Open the conversation").click()

        expect(tab.get_by_role("log")).to_contain_text("The spade hangs in the barn.")


def site_proposal(site: Site) -> str:
    """Return the proposal that was made last, whose work stands first."""
    return reviews.proposals.list_proposals(site.hub.context(client="page"))["results"][0]["id"]


def test_a_vault_in_which_nothing_was_done_says_so(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, proposing().open) as site:
        site.enter(tab, "/app/history")

        expect(tab.get_by_role("heading", name="Nothing done yet")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_at_every_width(tmp_path: Path, browser: Browser, scheme: str) -> None:
    found: list[str] = []
    with (
        sites.serving(tmp_path, proposing().open) as site,
        browser.new_context(
            color_scheme="dark" if scheme == "dark" else "light", locale="en", reduced_motion="reduce"
        ) as context,
    ):
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        asked(site, tab)
        with listening(tab) as told:
            for size, (width, height) in SIZES.items():
                tab.set_viewport_size({"width": width, "height": height})
                tab.goto(f"{site.address}/app/history")
                expect(tab.locator(".k-step")).to_have_count(6)
                picture(tab, f"history-{size}-{scheme}")
                found += [f"{size}: {each}" for each in axe.findings(tab)]
                found += (
                    [f"{size}: too wide"] if tab.evaluate("document.documentElement.scrollWidth > innerWidth") else []
                )

    assert found == []
    assert told == []
