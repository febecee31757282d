"""The menus of the plugin's chat: which model answers, which conversation is shown, which note is named."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page import axe
from tests.page.test_plugin_chat import answered, chatting, say

pytestmark = pytest.mark.timeout(300)
OTHERS = {"Beds/Rainwater.md": "# Rainwater\n\nFrom the roof.\n", "Sun.md": "# Sun\n"}


def test_the_menu_of_models_says_which_answers_next_and_another_is_named_and_kept(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["One."], ["Two."], ["Three."]) as (at, model):
        button = tab.get_by_role("button", name="Model:")
        button.click()
        menu = tab.get_by_role("menu")
        rows = menu.get_by_role("menuitemradio")
        expect(rows).to_have_count(1)
        expect(rows).to_have_attribute("aria-checked", "true")
        expect(rows).to_contain_text("tiny")
        at.picture("menu-models")
        assert axe.findings(tab) == []
        tab.keyboard.press("Enter")  # by the keyboard the focus goes to the menu, and back again
        expect(menu).to_have_count(0)
        expect(tab.get_by_label("Message", exact=True)).to_be_focused()
        say(tab, "First")
        answered(tab)

        button.click()
        menu.get_by_role("menuitem", name="Other model…").click()
        asked = tab.get_by_role("dialog", name="Other model")
        expect(asked.get_by_label("Model")).to_be_focused()
        asked.get_by_label("Model").fill(f"big@{model.base_url}")
        tab.keyboard.press("Enter")
        expect(asked).to_have_count(0)
        expect(button).to_contain_text("big")
        say(tab, "Second")
        answered(tab, 2)
        assert tab.evaluate("plugin.keep.load('chat-model')") == f"big@{model.base_url}"

        button.click()
        expect(menu.get_by_role("menuitemradio", checked=True)).to_contain_text("big")
        menu.get_by_role("menuitemradio", name="tiny").click()
        expect(button).to_contain_text("tiny")
        say(tab, "Third")
        answered(tab, 3)
        assert tab.evaluate("plugin.keep.load('chat-model')") == ""
        button.click()
        menu.get_by_role("menuitem", name="Set up models").click()

        assert tab.evaluate("settings_opened") is True
        assert [one["model"] for one in model.asked] == ["tiny", "big", "tiny"]


def test_the_history_is_searched_opened_renamed_copied_and_deleted(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["From the barrel."], ["From the shed."], others=OTHERS) as (at, _):
        say(tab, "Where is the water?")
        answered(tab)
        tab.get_by_role("button", name="New conversation").click()
        expect(tab.locator(".k-exchange")).to_have_count(0)
        say(tab, "Where is the spade?")
        answered(tab)
        history = tab.get_by_role("button", name="Conversations", exact=True)
        history.click()
        expect(history).to_have_attribute("aria-pressed", "true")
        rows = tab.locator("[data-session]")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("spade")
        tab.get_by_label("Search conversations").fill("barrel")
        expect(rows).to_have_count(1)
        expect(rows).to_contain_text("water")
        tab.get_by_label("Search conversations").fill("nowhere at all")
        expect(tab.get_by_text("No conversation mentions that.")).to_be_visible()
        tab.get_by_label("Search conversations").fill("")
        expect(rows).to_have_count(2)

        old = rows.filter(has_text="water")
        old.get_by_role("button", name="Actions for").click()
        tab.get_by_role("menuitem", name="Rename…").click()
        tab.get_by_role("dialog").get_by_label("Title").fill("Barrel")
        tab.keyboard.press("Enter")
        expect(rows.filter(has_text="Barrel")).to_have_count(1)
        at.picture("history-renamed")
        assert axe.findings(tab) == []
        rows.filter(has_text="Barrel").get_by_role("button", name="Actions for").focus()
        tab.keyboard.press("Enter")
        tab.get_by_role("menuitem", name="Duplicate").click()
        expect(tab.locator(".k-answer")).to_have_text("From the barrel.")
        history.click()
        expect(rows).to_have_count(3)

        rows.filter(has_text="spade").get_by_role("button", name="Actions for").click()
        tab.get_by_role("menuitem", name="Delete…").click()
        confirm = tab.get_by_role("dialog", name="Delete the conversation?")
        confirm.get_by_role("button", name="Cancel").click()
        expect(rows).to_have_count(3)
        rows.filter(has_text="spade").get_by_role("button", name="Actions for").click()
        tab.get_by_role("menuitem", name="Delete…").click()
        confirm.get_by_role("button", name="Delete").click()
        expect(rows).to_have_count(2)
        rows.first.get_by_role("button").first.focus()
        tab.keyboard.press("Enter")
        expect(tab.locator(".k-answer")).to_have_text("From the barrel.")
        expect(history).to_have_attribute("aria-pressed", "false")


def test_notes_are_named_after_two_brackets_and_commands_after_a_slash_by_keys_and_by_mouse(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Fine."], others=OTHERS) as (at, model):
        box = tab.get_by_label("Message", exact=True)
        found = tab.get_by_role("listbox", name="Suggestions").get_by_role("option")
        box.press_sequentially("What of [[rai")
        expect(found.first).to_have_attribute("aria-selected", "true")
        expect(found.filter(has_text="Rainwater")).to_have_count(1)
        at.picture("note-picker")
        assert axe.findings(tab) == []
        count = found.count()
        for _ in range(count):  # round once
            tab.keyboard.press("ArrowDown")
        expect(found.first).to_have_attribute("aria-selected", "true")
        while "Rainwater" not in found.locator("xpath=self::*[@aria-selected='true']").inner_text():
            tab.keyboard.press("ArrowUp")
        tab.keyboard.press("Enter")
        expect(box).to_have_value("What of [[Beds/Rainwater]] ")
        expect(found).to_have_count(0)
        box.press_sequentially("and [[su")
        found.filter(has_text="Sun").click()
        expect(box).to_have_value("What of [[Beds/Rainwater]] and [[Sun]] ")
        expect(box).to_be_focused()
        box.press_sequentially("[[gar")
        expect(found).not_to_have_count(0)
        tab.keyboard.press("Escape")
        expect(found).to_have_count(0)
        expect(box).to_have_value("What of [[Beds/Rainwater]] and [[Sun]] [[gar")

        box.fill("What of [[Beds/Rainwater]]?")
        tab.keyboard.press("Enter")
        answered(tab)
        assert "[[Beds/Rainwater]]" in str(model.asked[0]["messages"][-1]["content"])
        tab.get_by_role("button", name="Add to the message").click()
        tab.get_by_role("menuitem", name="Link to a note").click()
        expect(box).to_have_value("[[")
        expect(box).to_be_focused()
        expect(found).not_to_have_count(0)  # the notes of the last days
        tab.keyboard.press("Escape")
        box.fill("")
        tab.get_by_role("button", name="Add to the message").click()
        tab.get_by_role("menuitem", name="Preset or command").click()
        expect(found.filter(has_text="New conversation")).to_have_count(1)
        box.press_sequentially("new con")
        tab.wait_for_timeout(300)  # the box had lost the focus to the menu, and has it again
        expect(found.first).to_contain_text("New conversation")
        tab.keyboard.press("Enter")
        expect(tab.locator(".k-exchange")).to_have_count(0)
        expect(box).to_have_value("")
