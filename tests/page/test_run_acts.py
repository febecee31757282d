"""What a person does with a run on the page: end it, go on, answer, do parts again, write it down, delete it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from knapper.agents.runs.engine import RunEngine
from knapper.app.runs import OpenedRuns
from knapper.errors import RefusedError, SetupError
from tests.agents.run_world import Brain, Part
from tests.page import run_sites
from tests.page.run_sites import Finder, Gated, begin, more, pane, part, state

pytestmark = pytest.mark.timeout(120)
TASK = "Compare alpha and beta"
PLANS = {TASK: [Part("Alpha grows?"), Part("Beta stays?")]}
ANSWERS = {"answer Alpha grows?": "Tall [[A]] (lines 3-3).", f"join {TASK}": "Alpha is taller [[A]] (lines 3-3)."}
DEAR = {TASK: [Part("Alpha grows?", impact="security"), Part("Beta stays?")]}


def test_a_run_is_cancelled_and_goes_on_with_more_room(tmp_path: Path, tab: Page) -> None:
    brain = Gated(plans=PLANS, answers=ANSWERS, held={"answer Beta stays?"})
    with run_sites.serving(tmp_path, brain) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(part(tab, "1")).to_have_attribute("data-state", "done")
        tab.get_by_role("button", name="Cancel").click()
        expect(state(tab)).to_have_text("Cancelled")
        expect(tab.get_by_role("list", name="Why it isn't complete")).to_be_visible()
        expect(part(tab, "2")).to_contain_text("Stopped early")
        brain.held.clear()
        asked = len(brain.kinds("Alpha grows?"))
        tab.get_by_role("button", name="Resume").click()
        tab.get_by_role("dialog").get_by_label("Parts").fill("60")
        tab.get_by_role("dialog").get_by_role("button", name="Resume").click()
        expect(state(tab)).to_have_text("Complete")

        expect(tab.locator(".k-run-more")).to_contain_text("60 parts")
        expect(tab.locator(".k-run-said")).to_contain_text("Alpha is taller")
        expect(tab.get_by_role("button", name="Resume")).to_have_count(0)
        assert len(brain.kinds("Alpha grows?")) == asked


def test_a_part_that_fails_is_named_with_what_it_blocks(tmp_path: Path, tab: Page) -> None:
    plans = {TASK: [Part("Alpha grows?"), Part("Beta stays?", needs=["Alpha grows?"]), Part("Gamma is?")]}

    def fail(kind: str, task: str) -> None:
        if (kind, task) == ("answer", "Alpha grows?"):
            raise RefusedError("the model <b>broke</b>")

    with run_sites.serving(tmp_path, Brain(plans=plans, before=fail)) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Partial")

        expect(part(tab, "1")).to_contain_text("Failed")
        expect(part(tab, "2")).to_contain_text("Blocked")
        expect(tab.get_by_role("list", name="Why it isn't complete")).to_contain_text(
            "Alpha grows?: the model <b>broke</b>"
        )
        expect(tab.get_by_role("list", name="Why it isn't complete")).to_contain_text("Beta stays?: ")
        expect(tab.get_by_role("list", name="Runs")).to_contain_text("Partial")


def test_a_question_is_answered_where_it_is_asked(tmp_path: Path, tab: Page) -> None:
    finder = Finder(asks=["Alpha grows?"])
    with run_sites.serving(tmp_path, Brain(plans=DEAR, answers=ANSWERS), finder) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        question = tab.locator(".k-run-question")
        expect(question).to_contain_text("Little was found in the notes for 'Alpha grows?'")
        expect(tab.locator(".k-toasts")).to_contain_text("The run asks: Little was found")
        tab.reload()
        expect(tab.get_by_role("list", name="Runs")).to_contain_text("needs your answer")
        question.get_by_role("button", name="View this part").click()
        expect(pane(tab)).to_contain_text("Waiting for an answer.")
        question.get_by_label("Where to look").fill("in the <b>barn</b>")
        tab.keyboard.press("Enter")
        expect(state(tab)).to_have_text("Complete")

        expect(question).to_have_count(0)
        expect(tab.get_by_role("list", name="Runs")).not_to_contain_text("needs your answer")
        assert finder.words == ["in the <b>barn</b>"]
        expect(pane(tab)).to_contain_text("Answered: in the <b>barn</b>")


def test_a_part_is_left_out_by_a_press(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(plans=DEAR), Finder(asks=["Alpha grows?"])) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        tab.get_by_role("button", name="Skip").click()
        expect(state(tab)).to_have_text("Partial")

        expect(part(tab, "1")).to_contain_text("the person skipped it")


def test_what_changed_since_is_listed_and_done_again(tmp_path: Path, tab: Page) -> None:
    brain = Brain(plans=PLANS, answers=dict(ANSWERS))
    with run_sites.serving(tmp_path, brain) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        more(tab, "Update for changed notes…")
        expect(tab.get_by_role("dialog")).to_contain_text("None of the notes this run read has changed since.")
        tab.get_by_role("dialog").locator(".k-dialog-acts").get_by_role("button", name="Close").click()
        (site.root / "B.md").write_text("# B\n\nBeta has grown.\n", encoding="utf-8")
        brain.answers["answer Beta stays?"] = "It has grown."
        more(tab, "Update for changed notes…")
        dialog = tab.get_by_role("dialog")
        expect(dialog.get_by_role("listitem")).to_have_text(["2 Beta stays?B.md"])
        dialog.get_by_role("button", name="Redo these parts").click()
        expect(state(tab)).to_have_text("Complete")
        part(tab, "2").click()

        expect(pane(tab)).to_contain_text("It has grown.")
        assert brain.kinds("Alpha grows?").count("answer") == 1
        assert brain.kinds("Beta stays?").count("answer") == 2


def test_one_part_is_done_again(tmp_path: Path, tab: Page) -> None:
    brain = Brain(plans=PLANS, answers=dict(ANSWERS))
    with run_sites.serving(tmp_path, brain) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(state(tab)).to_have_text("Complete")
        part(tab, "1").click()
        expect(pane(tab)).to_contain_text("Tall")
        brain.answers["answer Alpha grows?"] = "Taller still."
        tab.get_by_role("button", name="Redo this part").click()
        tab.get_by_role("dialog").get_by_role("button", name="Redo").click()

        expect(pane(tab).locator(".k-part-said")).to_contain_text("Taller still.")
        expect(state(tab)).to_have_text("Complete")


def test_an_answer_becomes_a_note_by_a_change_that_is_reviewed(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(plans=PLANS, answers=ANSWERS)) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        tab.get_by_role("button", name="Save as a note").click()
        dialog = tab.get_by_role("dialog")
        expect(dialog.get_by_role("textbox")).to_have_value("Runs/Compare alpha and beta.md")
        dialog.get_by_role("button", name="Propose").click()
        expect(tab).to_have_url(re.compile(r"/app/review/[\w-]+$"))
        expect(tab.locator(".k-hunk")).to_contain_text("Alpha is taller")
        assert not (site.root / "Runs").exists()
        tab.get_by_role("button", name="Accept all").click()
        expect(tab.locator(".k-review-facts")).to_contain_text("Accepted")

        assert "Alpha is taller [[A]]" in site.read("Runs/Compare alpha and beta.md")


def test_a_run_is_deleted_after_a_question(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain()) as site:
        site.enter(tab)
        begin(site, tab, "Alpha")
        more(tab, "Delete")
        tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(state(tab)).to_be_visible()
        more(tab, "Delete")
        tab.get_by_role("dialog").get_by_role("button", name="Delete").click()

        expect(tab.get_by_role("heading", name="No runs yet")).to_be_visible()
        expect(tab).to_have_url(f"{site.address}/app/runs")


def test_a_model_that_is_missing_is_told_where_a_run_is_begun(tmp_path: Path, tab: Page) -> None:
    def missing(tasks: OpenedRuns, made: RunEngine) -> RunEngine:
        del tasks, made
        raise SetupError("no model is named", hint="set model.name")

    with run_sites.serving(tmp_path, Brain(), work=missing) as site:
        site.enter(tab, "/app/runs?new=1")
        expect(tab.locator(".k-run-begin")).to_contain_text("No model is named: set model.name")
        tab.get_by_role("button", name="Set up a model").click()
        expect(tab).to_have_url(f"{site.address}/app/settings/models")
        tab.go_back()
        tab.get_by_label("Task", exact=True).fill("Alpha")
        tab.get_by_role("button", name="Start").click()

        expect(tab.locator(".k-run-begin").get_by_role("alert")).to_contain_text("No model is named")
        expect(tab.get_by_role("button", name="Start")).to_be_enabled()


def test_a_question_waits_in_the_review_and_leads_to_its_run(tmp_path: Path, tab: Page) -> None:
    with run_sites.serving(tmp_path, Brain(plans=DEAR), Finder(asks=["Alpha grows?"])) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(tab.locator(".k-run-question")).to_be_visible()
        tab.goto(f"{site.address}/app/review")
        question = tab.get_by_role("region", name="Questions").get_by_role("link")
        expect(question).to_contain_text("Little was found in the notes for 'Alpha grows?'")
        question.click()
        expect(pane(tab)).to_contain_text("Waiting for an answer.")
        tab.get_by_role("button", name="Skip").click()
        expect(state(tab)).to_have_text("Partial")

        expect(tab.get_by_role("navigation", name="Views").locator(".k-badge")).to_have_count(0)
