"""The plugin's runs, in a browser with Obsidian's editor, a real `knap serve`, and a model that splits a task."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents import run_server, run_world
from tests.agents.run_world import Brain, Part
from tests.page import axe
from tests.page.test_plugin import GARDEN, PROPOSES, Desk, desk

pytestmark = pytest.mark.timeout(300)
TASK = "When do I water, and with what?"
ANSWER = "Every evening, with water from the barrel. Tomatoes get two cans."


def test_a_run_is_begun_followed_and_written_to_a_note(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brain = Brain(plans={TASK: [Part("barrel"), Part("tomatoes")]}, answers={f"join {TASK}": ANSWER})
    with run_server.serving(brain) as model:
        config = f'{PROPOSES}\n[model]\nname = "{model.model}"\n'
        with desk(tab, own_home, capsys, GARDEN, config, others=run_world.NOTES) as at:
            at.app.run("open-runs")
            expect(tab.locator("#side")).to_contain_text("No runs yet")
            at.picture("runs-empty")
            at.app.run("new-run")
            tab.get_by_label("Task", exact=True).fill(TASK)
            tab.get_by_role("checkbox", name="Let the model write scripts").set_checked(False)
            at.picture("runs-new")
            assert axe.findings(tab) == []
            tab.get_by_role("button", name="Start").click()
            expect(tab.locator(".k-run-state")).not_to_contain_text("Running", timeout=60_000)
            expect(tab.locator("[role=treeitem]").first).to_be_visible()
            at.picture("runs-run")
            assert axe.findings(tab) == []
            tab.locator("[role=treeitem]").first.click()
            expect(tab.get_by_role("button", name="Back")).to_be_visible()
            at.picture("runs-part")
            tab.get_by_role("button", name="Back").click()
            expect(tab.locator(".k-run-state")).to_be_visible()
            tab.get_by_role("button", name="Save as a note").click()
            tab.get_by_label("Note or folder").fill("Runs/Water.md")
            tab.get_by_role("button", name="Propose").click()
            expect(tab.get_by_role("group", name="Proposal by")).to_contain_text("Runs/Water.md")
            tab.get_by_role("button", name="Accept all").click()
            expect(tab.get_by_role("group", name="Proposal by")).to_have_count(0)

            assert (at.vault / "Runs" / "Water.md").is_file()
            at.app.run("show-changes")
            tab.get_by_role("button", name="Undo the whole run").click()
            expect(tab.locator(".notice").last).to_have_text("Change undone")
            assert not (at.vault / "Runs" / "Water.md").exists()


def test_a_run_is_cancelled_and_resumed(tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brain = Brain(plans={TASK: [Part("barrel"), Part("tomatoes")]})
    with run_server.serving(brain, held_from=2) as model:
        config = f'{PROPOSES}\n[model]\nname = "{model.model}"\n'
        with desk(tab, own_home, capsys, GARDEN, config, others=run_world.NOTES) as at:
            begin(tab, at, TASK)
            tab.get_by_role("button", name="Cancel").click()
            expect(tab.locator(".k-run-state")).to_have_text("Cancelled", timeout=60_000)
            model.held_from = 0
            tab.get_by_role("button", name="Resume").click()
            tab.get_by_role("dialog").get_by_role("button", name="Resume").click()
            expect(tab.locator(".k-run-state")).to_have_text("Complete", timeout=60_000)


def test_a_run_that_asks_a_person_is_answered_with_a_click_and_goes_on(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # An important part for which the vault has nothing: its script finds no note, nor does the search after it.
    part = "quasar zirconium flux"
    script = "__result__ = {'context': '', 'citations': [], 'confidence': 0.1, 'why': 'nothing found'}"
    brain = Brain(
        plans={TASK: [Part(part, impact="security"), Part("tomatoes")]},
        scripts={TASK: [script], part: [script], "tomatoes": [script]},
        answers={f"join {TASK}": ANSWER},
    )
    with run_server.serving(brain) as model:
        config = f'{PROPOSES}\n[model]\nname = "{model.model}"\n'
        with desk(tab, own_home, capsys, GARDEN, config, others=run_world.NOTES) as at:
            begin(tab, at, TASK, by_scripts=True)
            question = tab.locator(".k-run-question")
            expect(question).to_be_visible(timeout=60_000)
            expect(tab.locator(".k-run-state")).to_have_text("Running")
            assert ("answer", part) not in model.asked
            tab.get_by_role("button", name="Back").click()
            expect(question).to_have_count(0)

            at.app.run("show-pending")
            expect(tab.locator("#side")).to_contain_text("A run asks")
            at.picture("runs-asks")
            tab.get_by_role("button", name="Answer", exact=True).click()
            expect(question).to_contain_text(part)
            at.picture("runs-question")
            assert axe.findings(tab) == []
            question.get_by_role("button", name="Continue without").click()
            expect(question).to_have_count(0)
            expect(tab.locator(".k-run-state")).to_have_text("Complete", timeout=60_000)
            expect(tab.locator(".knapper-runs")).to_contain_text("Tomatoes get two cans.")
            assert ("answer", part) in model.asked
            at.app.run("show-pending")
            expect(tab.locator("#side")).not_to_contain_text("A run asks")


def begin(tab: Page, at: Desk, task: str, *, by_scripts: bool = False) -> None:
    at.app.run("new-run")
    tab.get_by_label("Task", exact=True).fill(task)
    tab.get_by_role("checkbox", name="Let the model write scripts").set_checked(by_scripts)
    tab.get_by_role("button", name="Start").click()
    expect(tab.locator(".k-run-state")).to_be_visible()
