"""Review, journal and runs as they look: at three widths, light and dark, with axe's word on each."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.agents.run_world import Brain, Part
from tests.page import axe, reviews, run_sites
from tests.page.conftest import WAIT_MS
from tests.page.reviews import BARN, BARREL, OLD_BARREL, SHED
from tests.page.run_sites import begin, part, state
from tests.page.sites import Site
from tests.page.test_shell import SIZES, listening, picture

TASK = "Compare alpha and beta"
BRAIN = Brain(
    plans={TASK: [Part("Alpha grows?"), Part("Beta stays?", needs=["Alpha grows?"])]},
    answers={f"join {TASK}": "Alpha is taller [[A]] (lines 3-3). [[Nowhere]]"},
)
SHOWN = ".k-review-file, .k-change, [role=treeitem], .k-run-begin textarea, .k-compare table"


def addresses(site: Site, tab: Page) -> dict[str, str]:
    """Have something of each kind; return where it is shown."""
    proposal = reviews.propose(site, run="r1", reason="It is drier there.", **{SHED: BARN, BARREL: OLD_BARREL})
    site.hub.context(client="page").writer.taints.mark("agent", "", "Clippings/Other.md")
    reviews.accept(site, "Plans/Rain.md", run="r1", tomatoes="beans")
    runs: list[str] = []
    for _ in range(2):
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        runs.append(tab.url.rpartition("/")[2])
    return {
        "review": f"/app/review/{proposal}",
        "journal": "/app/journal",
        "run": f"/app/runs/{runs[0]}?part=1",
        "run-begin": "/app/runs?new=1",
        "run-compare": f"/app/runs/{runs[0]}?with={runs[1]}",
    }


@pytest.mark.timeout(400)
def test_every_view_of_work_fits_its_screen_and_satisfies_axe(tmp_path: Path, browser: Browser) -> None:
    with run_sites.serving(tmp_path, BRAIN) as site, browser.new_context(locale="en") as context:
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        site.enter(tab)
        shown = addresses(site, tab)
        found: list[str] = []
        with listening(tab) as told:
            for size, (width, height) in SIZES.items():
                tab.set_viewport_size({"width": width, "height": height})
                for scheme in ("light", "dark"):
                    tab.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                    for name, address in shown.items():
                        tab.goto(f"{site.address}{address}")
                        expect(tab.locator(SHOWN).first).to_be_attached()
                        tab.wait_for_timeout(200)
                        picture(tab, f"{name}-{size}-{scheme}")

                        assert tab.evaluate("document.documentElement.scrollWidth") <= width, (name, size)
                        found += [f"{name}, {size}, {scheme}: {finding}" for finding in axe.findings(tab)]

    assert found == [], "\n".join(found)
    assert told == []


@pytest.mark.timeout(120)
def test_a_part_that_is_closed_gives_the_focus_back(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, BRAIN) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        part(tab, "1").click()
        expect(tab.get_by_role("complementary", name="1 Alpha grows?")).to_be_focused()
        tab.get_by_role("button", name="Close the pane").click()

        expect(part(tab, "1")).to_be_focused()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_opens_in_these_views_satisfies_axe_too(tmp_path: Path, browser: Browser, scheme: str) -> None:
    found: list[str] = []

    def look(name: str) -> None:
        picture(tab, f"{name}-{scheme}")
        found.extend(f"{name}: {finding}" for finding in axe.findings(tab))

    dark = scheme == "dark"
    with (
        run_sites.serving(tmp_path, BRAIN) as site,
        browser.new_context(locale="en", color_scheme="dark" if dark else "light") as context,
    ):
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        proposal = reviews.two_places(site)
        reviews.accept(site, "Plans/Rain.md", tomatoes="beans")
        reviews.reviewing(site, tab, proposal)
        expect(reviews.unit(tab, 0)).to_be_focused()
        tab.keyboard.press("s")
        expect(tab.locator(".k-diff-sides").first).to_be_visible()
        look("review-side")
        tab.keyboard.press("e")
        expect(tab.get_by_label("The new text")).to_be_focused()
        look("review-edit")
        tab.keyboard.press("Escape")
        tab.keyboard.press("Shift+R")
        expect(tab.get_by_role("dialog")).to_be_visible()
        look("review-reason")
        tab.keyboard.press("Escape")
        tab.get_by_role("tab", name="Decided").click()
        expect(tab.get_by_role("tabpanel")).to_contain_text("Rain")
        look("review-decided")
        tab.goto(f"{site.address}/app/journal")
        tab.get_by_role("button", name="What changed: Edited Rain").click()
        expect(tab.locator(".k-change ins")).to_be_visible()
        look("journal-open")
        tab.get_by_role("button", name="Undo: Edited Rain").click()
        expect(tab.get_by_role("dialog").locator("ins")).to_be_visible()
        look("journal-undo")
        tab.keyboard.press("Escape")
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        tab.get_by_role("button", name="More", exact=True).click()
        expect(tab.get_by_role("menu")).to_be_visible()
        look("run-menu")
        tab.keyboard.press("Escape")
        tab.goto(f"{site.address}/app/runs?new=1")
        tab.get_by_text("More options").click()
        look("run-limits")

    assert found == [], "\n".join(found)
