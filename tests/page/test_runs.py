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
from tests.page.run_sites import Finder, Gated, begin, part, state

pytestmark = pytest.mark.timeout(60)
TASK = "Compare alpha and beta"
PLANS = {TASK: [Part("Alpha grows?"), Part("Beta stays?", needs=["Alpha grows?"])]}
SAID = "Alpha is tall [[A]] (lines 3-3)."
ANSWERS = {"answer Alpha grows?": SAID, f"join {TASK}": "Alpha is taller [[A]] (lines 3-3), **so it is**. [[Nowhere]]"}


def test_a_run_is_begun_followed_and_ends_with_its_answer(tmp_path: Path, tab: Page) -> None:
    brain = Gated(plans=PLANS, answers=ANSWERS, held={"answer Alpha grows?"})
    with run_sites.serving(tmp_path, brain) as site:
        site.enter(tab)
        begin(tab, TASK)
        expect(state(tab)).to_have_text("…goes on")
        expect(part(tab, "1")).to_contain_text("answering 1 Alpha grows?")
        expect(part(tab, "2")).to_contain_text("2 Beta stays?")
        brain.held.clear()
        expect(state(tab)).to_have_text("✓complete")

        expect(part(tab, "1")).to_contain_text(re.compile(r"✓done 1 Alpha grows\?.*score 0.90.*1 cited.*tokens"))
        expect(tab.locator(".run-said strong")).to_have_text("so it is")
        expect(tab.locator(".run-said .dropped")).to_contain_text("Nowhere")
        expect(tab.locator(".run-sums")).to_have_text(re.compile(r"^3 parts · [\d,]+ tokens of at most 1,000,000 · "))
        expect(tab.locator("#runs .entry")).to_have_text(re.compile(rf"^{TASK}✓complete"))
        expect(tab.locator("#said")).to_have_text("The run has ended: complete")


def test_what_an_answer_cites_opens_with_the_lines_marked(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(plans=PLANS, answers=ANSWERS)) as site:
        site.enter(tab)
        begin(tab, TASK)
        tab.locator(".run-said .prose .cite").first.click()
        panel = tab.get_by_role("complementary", name="A", exact=True)
        expect(panel.locator(".meant")).to_have_text("Alpha grows tall.")
        tab.keyboard.press("Escape")
        expect(tab.locator(".run-said .prose .cite").first).to_be_focused()
        part(tab, "2").click()
        tab.locator(".retrieval .cite", has_text="B").click()

        expect(tab.get_by_role("complementary", name="B", exact=True)).to_contain_text("Beta stays small.")


def test_the_address_opens_a_run_again_and_back_leads_to_the_conversation(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(answers={TASK: SAID})) as site:
        site.enter(tab)
        begin(tab, TASK)
        expect(state(tab)).to_have_text("✓complete")
        expect(tab).to_have_url(re.compile(r"#run=[\w-]+$"))
        tab.reload()
        expect(tab.locator("#title")).to_have_text(TASK)
        expect(tab.locator(".run-said")).to_contain_text("Alpha is tall")
        tab.go_back()
        expect(tab.get_by_label("Message", exact=True)).to_be_visible()
        expect(tab.locator("#title")).to_have_text("New conversation")
        tab.go_forward()
        expect(state(tab)).to_be_visible()
        tab.keyboard.press("Control+k")

        expect(tab.get_by_label("Message", exact=True)).to_be_focused()
        expect(tab).to_have_url(re.compile("^[^#]*$"))


def test_a_run_that_isnt_there_is_said_not_to_be(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain()) as site:
        site.enter(tab)
        tab.goto(f"{site.address}/#run=nothing")

        expect(tab.locator("#toast")).to_contain_text("there is no run 'nothing'")
        expect(tab.get_by_label("Message", exact=True)).to_be_visible()


def test_the_tree_is_gone_through_by_keys(tmp_path: Path, tab: Page) -> None:
    plans = {**PLANS, "Alpha grows?": [Part("A one"), Part("A two")]}
    plans[TASK] = [Part("Alpha grows?", large=True), Part("Beta stays?")]
    with run_sites.serving(tmp_path, Brain(plans=plans)) as site:
        site.enter(tab)
        begin(tab, TASK)
        expect(state(tab)).to_have_text("✓complete")
        item = tab.get_by_role("treeitem")
        part(tab, "root").click()
        for key, name in [("ArrowDown", "1 Alpha"), ("ArrowRight", "1.1 A one"), ("ArrowLeft", "1 Alpha")]:
            tab.keyboard.press(key)
            expect(item.and_(tab.locator(":focus"))).to_have_accessible_name(re.compile(name))
        tab.keyboard.press("ArrowLeft")
        expect(part(tab, "1.1")).not_to_be_visible()
        tab.keyboard.press("ArrowDown")
        expect(item.and_(tab.locator(":focus"))).to_have_accessible_name(re.compile("2 Beta"))
        tab.keyboard.press("Home")
        tab.keyboard.press("End")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("heading", name="2 Beta stays?")).to_be_focused()
        tab.keyboard.press("Escape")

        expect(item.and_(tab.locator(":focus"))).to_have_accessible_name(re.compile("2 Beta"))
        expect(item.and_(tab.locator(":focus"))).to_have_attribute("aria-selected", "true")


def test_a_part_shows_its_scripts_scores_and_sources(tmp_path: Path, tab: Page) -> None:
    finder = Finder({TASK: _scripted()})
    with run_sites.serving(tmp_path, Brain(answers={TASK: SAID}), finder) as site:
        site.enter(tab)
        begin(tab, TASK)
        expect(state(tab)).to_have_text("✓complete")
        shown = tab.locator(".retrieval")
        expect(shown).to_contain_text("Tier A")
        expect(shown.locator(".measure")).to_have_text(
            ["Score0.62", "words of the task found0.70", "aspects dealt with0.60", "the script's own confidence0.80"]
        )
        first, second = shown.locator("details.attempt").all()
        expect(first.locator("summary")).to_have_text(
            "✗ 1. first script raised an error · score 0.10 · 2 calls · 0.25 s"
        )
        expect(second.locator("summary")).to_have_text(re.compile("^✓ 2. another script ran · score 0.62 .* · used$"))
        first.locator("summary").click()
        expect(first.locator(".attempt-error")).to_have_text("line 2: NameError: hit")
        expect(first.get_by_role("list", name="Script").get_by_role("listitem")).to_have_text(
            ["for hit in hits:", "    print(hit)"]
        )
        shown.locator(".cite", has_text="A line 3").click()
        expect(tab.get_by_role("complementary", name="A", exact=True).locator(".meant")).to_have_text(
            "Alpha grows tall."
        )

        expect(shown.get_by_role("heading", name="Read as well")).to_be_visible()


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
        site.enter(tab)
        tab.get_by_role("button", name="New run").click()
        offered = tab.get_by_role("group", name="Look through other vaults as well").get_by_role("checkbox")
        expect(offered).to_have_count(2)
        tab.get_by_role("checkbox", name="work").check()
        tab.get_by_label("Task", exact=True).fill("What does the fence cost?")
        tab.get_by_role("button", name="Begin").click()

        expect(state(tab)).to_have_text("✓complete")
        expect(tab.locator(".run-facts")).to_contain_text("also looks through work ·")
        expect(tab.locator(".run-said .prose .cite")).to_have_count(1)


def test_with_one_vault_no_others_are_offered(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(answers={TASK: SAID})) as site:
        site.enter(tab)
        tab.get_by_role("button", name="New run").click()
        expect(tab.get_by_role("button", name="Begin")).to_be_visible()

        expect(tab.get_by_text("other vaults")).to_have_count(0)
        tab.get_by_label("Task", exact=True).fill(TASK)
        tab.get_by_role("button", name="Begin").click()
        expect(state(tab)).to_have_text("✓complete")
        expect(tab.locator(".run-facts")).not_to_contain_text("looks through")
