"""Choosing on the page who works on a task, with which notes, and by which rules."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agents import scripts
from tests.agents.scripts import Cast
from tests.page import sites
from tests.page.sites import answered, say

pytestmark = pytest.mark.timeout(120)
NOTES = {
    "Garden.md": "# Garden\n\nSee [[Rain]].\n",
    "Plans/Rain.md": "# Rain\n\nIt rains on the tomatoes. See [[Barrel]].\n",
    "Plans/Other.md": "# Other\n\nNothing of it.\n",
    "Barrel.md": "# Barrel\n\nHolds two hundred litres.\n",
}
CHAT = "/app/chat/new"
SAYS, TOLD = ".k-composer-says", ".k-composer-count"


def cast() -> Cast:
    return Cast({"scout": [[scripts.select("Barrel.md")]], "task": [scripts.task("Done.")], "other": [["Just talk."]]})


def unfolded(tab: Page) -> Locator:
    tab.get_by_role("button", name="Notes and rules").click()
    place = tab.get_by_role("region", name="Notes and rules")
    expect(place).to_be_visible()
    return place


def pick(tab: Page, label: str, typed: str, found: str) -> None:
    """Type a part of a name, and take what is found by the keyboard."""
    tab.get_by_role("combobox", name=label).fill(typed)
    name = re.compile("^" + found.rpartition("/")[2].removesuffix(".md"))
    expect(tab.get_by_role("option", name=name).first).to_have_attribute("aria-selected", "true")
    tab.keyboard.press("Enter")


def test_the_task_alone_is_plain_chat_until_something_is_chosen(tmp_path: Path, tab: Page) -> None:
    model = cast()
    with sites.serving(tmp_path, model.open, notes=NOTES) as site:
        site.enter(tab, CHAT)
        expect(tab.get_by_role("button", name="Task", exact=True)).to_have_attribute("aria-pressed", "true")
        expect(tab.locator(SAYS)).to_contain_text("Plain chat")
        say(tab, "Hello")
        answered(tab)
        expect(tab.locator(".k-answer")).to_have_text("Just talk.")
        _ = unfolded(tab)
        pick(tab, "Find a note to add", "barr", "Barrel.md")
        expect(tab.locator(TOLD)).to_have_text(re.compile(r"^1 note · \d+ tokens$"))
        say(tab, "Do it")
        expect(tab.locator(".k-answer").last).to_have_text("Done.")
        assert "two hundred litres" in model.prompts("task")
        unfolded(tab).get_by_role("button", name="Defaults").click()

        expect(tab.locator(SAYS)).to_contain_text("Plain chat")


def test_one_agent_always_stays_on(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open, notes=NOTES) as site:
        site.enter(tab, CHAT)
        task, scout = (tab.get_by_role("button", name=name, exact=True) for name in ("Task", "Scout"))
        task.click()
        expect(task).to_have_attribute("aria-pressed", "true")
        expect(tab.locator(".k-toasts")).to_contain_text("at least one agent is needed")
        scout.click()
        task.click()

        expect(scout).to_have_attribute("aria-pressed", "true")
        expect(task).to_have_attribute("aria-pressed", "false")


def test_the_count_and_the_reasons_follow_what_is_chosen(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open, notes=NOTES) as site:
        site.enter(tab, CHAT)
        place = unfolded(tab)
        notes = place.locator(".k-reasons > li")
        pick(tab, "Find a note to start from", "gard", "Garden.md")
        expect(notes).to_have_count(3)
        expect(notes.nth(0)).to_contain_text("the open note · ")
        expect(notes.filter(has_text="Barrel")).to_contain_text("link depth 2")
        place.get_by_role("radio", name="Direct links").click()
        expect(notes).to_have_count(2)
        expect(notes.filter(has_text="Rain")).to_contain_text("link depth 1")
        place.get_by_role("radio", name="This note").click()
        expect(notes).to_have_count(1)
        place.get_by_role("radio", name="3 steps").click()
        pick(tab, "Find a folder to exclude", "pl", "Plans")
        expect(notes).to_have_count(1)
        place.get_by_role("button", name="Remove Plans").click()
        expect(notes).to_have_count(3)
        place.get_by_role("button", name="Remove Garden.md").click()

        expect(place.get_by_text("Scout adds more")).to_be_visible()


def test_notes_that_would_go_in_as_configured_go_in_where_that_is_wanted(tmp_path: Path, tab: Page) -> None:
    model = cast()
    with sites.serving(tmp_path, model.open, notes=NOTES) as site:
        site.enter(tab, CHAT)
        place = unfolded(tab)
        pick(tab, "Find a note to start from", "gard", "Garden.md")
        expect(place.get_by_text("In plain chat the model finds notes itself.")).to_be_visible()
        place.get_by_role("button", name="Include these notes").click()
        expect(place.get_by_text("In plain chat")).not_to_be_visible()
        expect(tab.locator(TOLD)).to_have_text(re.compile(r"^3 notes · \d+ tokens$"))
        say(tab, "Do it")
        expect(tab.locator(".k-answer").last).to_have_text("Done.")

        assert "two hundred litres" in model.prompts("task")


def test_what_the_limit_leaves_out_is_named(tmp_path: Path, tab: Page) -> None:
    long = {"Garden.md": "# Garden\n\nShort.\n", "Long.md": "# Long\n\n" + "Words of a long note.\n" * 900}
    with sites.serving(tmp_path, cast().open, notes=long) as site:
        site.enter(tab, CHAT)
        place = unfolded(tab)
        pick(tab, "Find a note to start from", "gard", "Garden.md")
        pick(tab, "Find a note to add", "long", "Long.md")
        expect(place.locator(".k-reasons > li")).to_have_count(2)
        limit = place.get_by_label("Token limit for notes")
        limit.fill("10")
        tab.keyboard.press("Tab")
        expect(limit).to_have_value("3000")
        expect(place.get_by_text("Left out by the limit: 1 note")).to_be_visible()

        expect(place.locator(".k-left-out li")).to_contain_text("Long")


def test_the_texts_of_the_chosen_notes_are_copied(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open, notes=NOTES) as site:
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.address)
        site.enter(tab, CHAT)
        place = unfolded(tab)
        pick(tab, "Find a note to add", "barr", "Barrel.md")
        pick(tab, "Find a note to add", "other", "Plans/Other.md")
        place.get_by_role("button", name="Copy text").click()
        expect(tab.locator(".k-toasts")).to_contain_text("Copied the text of 2 notes")

        copied = tab.evaluate("navigator.clipboard.readText()")
        assert copied == f"# Barrel.md\n\n{NOTES['Barrel.md']}\n# Plans/Other.md\n\n{NOTES['Plans/Other.md']}"


def test_presets_are_saved_taken_and_deleted(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open, notes=NOTES) as site:
        site.enter(tab, CHAT)
        place = unfolded(tab)
        place.get_by_role("radio", name="Direct links").click()
        place.get_by_label("Create notes").uncheck()
        place.get_by_role("radio", name="Open note").click()
        pick(tab, "Find a note to add", "barr", "Barrel.md")
        place.get_by_role("button", name="Save as").click()
        tab.get_by_label("Name", exact=True).fill("Careful")
        tab.keyboard.press("Enter")
        expect(place.get_by_label("Preset", exact=True)).to_have_value("Careful")
        tab.reload()
        place = unfolded(tab)
        expect(place.get_by_label("Create notes")).to_be_checked()
        place.get_by_label("Preset", exact=True).select_option("Careful")
        expect(place.get_by_role("radio", name="Direct links")).to_be_checked()
        expect(place.get_by_label("Create notes")).not_to_be_checked()
        expect(place.get_by_role("radio", name="Open note")).to_be_checked()
        expect(place.get_by_role("button", name="Remove Barrel.md")).to_be_visible()
        place.get_by_role("button", name="Delete", exact=True).click()
        tab.get_by_role("dialog").get_by_role("button", name="Delete").click()

        expect(place.get_by_label("Preset", exact=True)).to_be_disabled()


def test_the_switches_are_kept_between_visits(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open, notes=NOTES) as site:
        site.enter(tab, CHAT)
        scout = tab.get_by_role("button", name="Scout", exact=True)
        scout.click()
        say(tab, "Do it")
        answered(tab)
        tab.reload()
        expect(scout).to_have_attribute("aria-pressed", "true")
        with tab.expect_response("**/ask/switches"):
            scout.click()
        expect(scout).to_have_attribute("aria-pressed", "false")
        say(tab, "Just talk")
        answered(tab)
        with tab.expect_response("**/ask/defaults"):
            tab.reload()
        expect(tab.locator(SAYS)).to_contain_text("Plain chat")

        expect(scout).to_have_attribute("aria-pressed", "false")


def test_the_keyboard_alone_chooses(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open, notes=NOTES) as site:
        site.enter(tab, CHAT)
        expect(tab.locator(SAYS)).to_contain_text("Plain chat")
        tab.keyboard.press("Control+/")
        for name in ("Add to the message", "Scout"):
            tab.keyboard.press("Tab")
            expect(tab.get_by_role("button", name=name, exact=True)).to_be_focused()
        tab.keyboard.press("Space")
        expect(tab.get_by_role("button", name="Scout", exact=True)).to_have_attribute("aria-pressed", "true")
        for _ in range(3):
            tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        expect(tab.get_by_label("Find a note to start from")).to_be_focused()
        tab.keyboard.type("rai")
        expect(tab.get_by_role("option", name=re.compile("^Rain"))).to_have_attribute("aria-selected", "true")
        tab.keyboard.press("Enter")
        expect(tab.get_by_text("About Rain")).to_be_visible()
        tab.keyboard.press("Escape")

        expect(tab.get_by_role("button", name="Notes and rules")).to_be_focused()
        expect(tab.get_by_role("region", name="Notes and rules")).to_have_count(0)
