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
                        if size != "middle":
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
