"""The plugin's runs, in a browser with Obsidian's editor, a real `knap serve`, and a model that splits a task."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents import run_server, run_world
from tests.agents.run_world import Brain, Part
from tests.page import axe
from tests.page.test_plugin import GARDEN, PROPOSES, Desk, desk

pytestmark = pytest.mark.timeout(300)
TASK = "water"


def test_a_run_is_begun_followed_and_written_to_a_note(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brain = Brain(plans={TASK: [Part("barrel"), Part("tomatoes")]})
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
            tab.get_by_role("button", name="Begin").click()
            expect(tab.locator(".k-run-state")).not_to_contain_text("Running", timeout=60_000)
            expect(tab.locator("[role=treeitem]").first).to_be_visible()
            at.picture("runs-run")
            assert axe.findings(tab) == []
            tab.locator("[role=treeitem]").first.click()
            expect(tab.get_by_role("button", name="Back")).to_be_visible()
            at.picture("runs-part")
            tab.get_by_role("button", name="Back").click()
            expect(tab.locator(".k-run-state")).to_be_visible()
            tab.get_by_role("button", name="Write to a note").click()
            tab.get_by_label("Note or folder").fill("Runs/Water.md")
            tab.get_by_role("button", name="Propose").click()
            expect(tab.get_by_role("group", name="Proposal by")).to_contain_text("Runs/Water.md")
            tab.get_by_role("button", name="Accept all").click()
            expect(tab.get_by_role("group", name="Proposal by")).to_have_count(0)

            assert (at.vault / "Runs" / "Water.md").is_file()


def test_a_run_asks_where_to_look_is_cancelled_and_resumed(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = Part("Zzyzx qwv?", impact="security")
    brain = Brain(plans={"asks": [asking, Part("barrel")], TASK: [Part("barrel"), Part("tomatoes")]})
    with run_server.serving(brain) as model:
        config = f'{PROPOSES}\n[model]\nname = "{model.model}"\n'
        with desk(tab, own_home, capsys, GARDEN, config, others=run_world.NOTES) as at:
            begin(tab, at, "asks")
            at.app.run("show-pending")
            asked = tab.locator(".knapper-row", has_text="A run asks")
            expect(asked).to_be_visible(timeout=60_000)
            asked.get_by_role("button", name="Answer").click()
            question = tab.locator(".k-run-question")
            expect(question).to_contain_text("Zzyzx qwv?")
            at.picture("runs-question")
            assert axe.findings(tab) == []
            question.get_by_role("button", name="Skip").click()
            expect(question).to_have_count(0)
            expect(tab.locator(".k-run-state")).to_have_text("Partial", timeout=60_000)

            model.held_from = len(model.asked) + 2
            tab.get_by_role("button", name="Back").click()
            begin(tab, at, TASK)
            tab.get_by_role("button", name="Cancel").click()
            expect(tab.locator(".k-run-state")).to_have_text("Cancelled", timeout=60_000)
            model.held_from = 0
            tab.get_by_role("button", name="Resume").click()
            tab.get_by_role("dialog").get_by_role("button", name="Resume").click()
            expect(tab.locator(".k-run-state")).to_have_text("Complete", timeout=60_000)


def begin(tab: Page, at: Desk, task: str) -> None:
    at.app.run("new-run")
    tab.get_by_label("Task", exact=True).fill(task)
    tab.get_by_role("checkbox", name="Let the model write scripts").set_checked(False)
    tab.get_by_role("button", name="Begin").click()
    expect(tab.locator(".k-run-state")).to_be_visible()
