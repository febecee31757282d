"""Runs on the page: beginning one, its tree, its parts, its questions, and what a person does with it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from knapper.agents.runs.model import RetrievedContext, SourceRef
from knapper.config import Vault
from tests.agents.run_world import Brain, Part
from tests.index import worlds
from tests.page import run_sites
from tests.page.run_sites import Finder, Gated, begin, pane, part, state

pytestmark = pytest.mark.timeout(120)
TASK = "Compare alpha and beta"
PLANS = {TASK: [Part("Alpha grows?"), Part("Beta stays?", needs=["Alpha grows?"])]}
SAID = "Alpha is tall [[A]] (lines 3-3)."
ANSWERS = {"answer Alpha grows?": SAID, f"join {TASK}": "Alpha is taller [[A]] (lines 3-3), **so it is**. [[Nowhere]]"}


def test_a_run_is_begun_followed_and_ends_with_its_answer(tmp_path: Path, tab: Page) -> None:
    brain = Gated(plans=PLANS, answers=ANSWERS, held={"answer Alpha grows?"})
    with run_sites.serving(tmp_path, brain) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Running")
        expect(part(tab, "1")).to_contain_text("1 Alpha grows?: Writing the answer")
        expect(part(tab, "2")).to_contain_text("2 Beta stays?")
        brain.held.clear()
        expect(state(tab)).to_have_text("Complete")

        expect(part(tab, "1")).to_have_accessible_name(
            re.compile(r"1 Alpha grows\?: Done, score 0.90, 1 cited, \d+ tokens")
        )
        expect(part(tab, "1").locator("rect[data-doing=answering]")).to_have_count(1)
        expect(part(tab, "root").locator("rect[data-doing=joining]")).to_have_count(1)
        expect(tab.locator(".k-run-said strong")).to_have_text("so it is")
        expect(tab.locator(".k-run-said .k-run-dropped")).to_contain_text("Nowhere")
        expect(tab.locator(".k-run-facts")).to_contain_text(re.compile(r"3 parts.*[\d.]+k? tokens of 1M"))
        expect(tab.get_by_role("list", name="Runs").get_by_role("listitem")).to_have_text(
            re.compile(rf"^{TASK}Complete")
        )
        expect(tab.locator(".k-toasts")).to_contain_text("Run ended: complete")


def test_what_an_answer_cites_leads_to_its_lines(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(plans=PLANS, answers=ANSWERS)) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        cited = tab.locator(".k-run-said .k-prose .k-cite").first
        expect(cited).to_have_attribute("href", "/app/notes/A.md?lines=3-3")
        part(tab, "2").click()

        found = pane(tab).locator(".k-retrieval .k-cite", has_text="B")
        expect(found).to_have_attribute("href", "/app/notes/B.md?lines=1-3")


def test_the_address_opens_a_run_and_its_part_again(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(plans=PLANS, answers=ANSWERS)) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        expect(tab).to_have_url(re.compile(r"/app/runs/[\w-]+$"))
        part(tab, "1").click()
        expect(tab).to_have_url(re.compile(r"\?part=1$"))
        tab.reload()
        expect(tab.locator(".k-main h1")).to_have_text(TASK)
        expect(tab.locator(".k-run-said")).to_contain_text("Alpha is taller")
        expect(pane(tab)).to_contain_text("Alpha is tall")
        tab.get_by_role("link", name="Search").click()
        expect(tab.get_by_label("Search your notes")).to_be_visible()
        tab.go_back()

        expect(state(tab)).to_have_text("Complete")


def test_a_run_that_isnt_there_is_said_not_to_be(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain()) as site:
        site.enter(tab, "/app/runs/nothing")

        expect(tab.locator(".k-main")).to_contain_text("There is no run 'nothing'")


def test_the_tree_is_gone_through_by_keys(tmp_path: Path, tab: Page) -> None:
    plans = {**PLANS, "Alpha grows?": [Part("A one"), Part("A two")]}
    plans[TASK] = [Part("Alpha grows?", large=True), Part("Beta stays?")]
    with run_sites.serving(tmp_path, Brain(plans=plans)) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        item = tab.get_by_role("treeitem")
        part(tab, "root").focus()
        for key, name in [("ArrowDown", "1 Alpha"), ("ArrowRight", "1.1 A one"), ("ArrowLeft", "1 Alpha")]:
            tab.keyboard.press(key)
            expect(item.and_(tab.locator(":focus"))).to_have_accessible_name(re.compile(name))
        tab.keyboard.press("ArrowLeft")
        expect(part(tab, "1.1")).to_have_count(0)
        tab.keyboard.press("ArrowDown")
        expect(item.and_(tab.locator(":focus"))).to_have_accessible_name(re.compile("2 Beta"))
        tab.keyboard.press("Home")
        tab.keyboard.press("End")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("complementary", name="2 Beta stays?")).to_be_focused()
        expect(part(tab, "2")).to_have_attribute("aria-selected", "true")
        tab.keyboard.press("Escape")

        expect(item.and_(tab.locator(":focus"))).to_have_accessible_name(re.compile("2 Beta"))


def test_a_part_shows_its_scripts_scores_and_sources(tmp_path: Path, tab: Page) -> None:
    finder = Finder({TASK: _scripted()})
    with run_sites.serving(tmp_path, Brain(answers={TASK: SAID}), finder) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        expect(part(tab, "root")).to_have_accessible_name(re.compile("score 0.62, tier A"))
        part(tab, "root").click()
        shown = pane(tab).locator(".k-retrieval")
        expect(shown).to_contain_text("Tier A")
        expect(shown.locator(".k-measure")).to_have_text(
            ["Score0.62", "Task terms found0.70", "Aspects covered0.60", "The script's own confidence0.80"]
        )
        first, second = shown.locator("details.k-attempt").all()
        expect(first.locator("summary")).to_have_text("1. First scriptraised an error · score 0.10 · 2 calls · 250 ms")
        expect(second.locator("summary")).to_have_text(re.compile("^2. Another scriptran · score 0.62 .*Used$"))
        first.locator("summary").click()
        expect(first.locator(".k-attempt-error")).to_have_text("line 2: NameError: hit")
        expect(first.locator("code")).to_have_text("for hit in hits:\n    print(hit)")
        source = shown.locator(".k-cite", has_text=re.compile(r"^A\s*line 3$"))
        expect(source).to_have_attribute("href", "/app/notes/A.md?lines=3-3")

        expect(shown.get_by_role("heading", name="Also read")).to_be_visible()


def _scripted() -> RetrievedContext:
    """Find something by a script that was written again."""
    bad = {
        "step": "script",
        "kind": "error",
        "error": "line 2: NameError: hit",
        "score": 0.1,
        "calls": 2,
        "wall_s": 0.25,
    }
    good = {"step": "again", "kind": "ok", "error": "", "score": 0.62, "calls": 1, "wall_s": 0.1}
    return RetrievedContext(
        context="Alpha grows tall.",
        sources=(SourceRef(path="A.md", hash="x", first=3, last=3),),
        reads=(SourceRef(path="B.md", hash="x"),),
        score=0.62,
        parts={"overlap": 0.7, "coverage": 0.6},
        confidence=0.8,
        tier="A",
        script="print(1)\n",
        attempts=({**bad, "script": "for hit in hits:\n    print(hit)\n"}, {**good, "script": "print(1)\n"}),
    )


def test_other_vaults_are_looked_through_where_they_are_ticked(tmp_path: Path, tab: Page) -> None:
    others = tuple(
        Vault(name=name, path=worlds.fill(tmp_path / name, {"Fence.md": "# Fence\n\n900 crowns.\n"}).resolve())
        for name in ("work", "sea")
    )
    brain = Brain(answers={"What does the fence cost?": "900 crowns. [[work:Fence]] (lines 3-3)"})
    with run_sites.serving(tmp_path, brain, change=lambda found: replace(found, vaults=(found.vault, *others))) as site:
        site.enter(tab, "/app/runs?new=1")
        offered = tab.get_by_role("group", name="Also search other vaults").get_by_role("checkbox")
        expect(offered).to_have_count(2)
        tab.get_by_role("checkbox", name="work").check()
        tab.get_by_label("Task", exact=True).fill("What does the fence cost?")
        tab.get_by_role("button", name="Start").click()

        expect(state(tab)).to_have_text("Complete")
        expect(tab.locator(".k-run-more")).to_contain_text("also searches work")
        expect(tab.locator(".k-run-said .k-prose .k-cite")).to_have_text(re.compile("work: Fence"))


def test_with_one_vault_no_others_are_offered(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(answers={TASK: SAID})) as site:
        site.enter(tab, "/app/runs?new=1")
        expect(tab.get_by_role("button", name="Start")).to_be_visible()

        expect(tab.get_by_text("other vaults")).to_have_count(0)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        expect(tab.locator(".k-run-more")).not_to_contain_text("looks through")


def test_two_runs_are_compared(tmp_path: Path, tab: Page) -> None:
    brain = Brain(plans=PLANS, answers=dict(ANSWERS))
    with run_sites.serving(tmp_path, brain) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        begin(site, tab, "Gamma")
        expect(state(tab)).to_have_text("Complete")
        run_sites.more(tab, "Compare with another run")
        tab.get_by_role("dialog").get_by_label("Find a run").fill("alpha")
        tab.get_by_role("dialog").get_by_role("button", name=re.compile(TASK)).click()

        rows = tab.get_by_role("group", name="Facts about both runs").get_by_role("row")
        expect(rows.nth(1)).to_have_text(f"TaskGamma{TASK}")
        parts = tab.get_by_role("group", name="Parts of both runs").get_by_role("row")
        expect(parts).to_have_count(4)
        expect(parts.nth(2)).to_contain_text(re.compile("Alpha grows.*score 0.90"))
        expect(tab.get_by_role("region", name="Other run")).to_contain_text("Alpha is taller")
        expect(tab).to_have_url(re.compile(r"\?with=[\w-]+$"))
