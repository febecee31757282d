"""The plugin's views in windows of their own, beside each other, and in tabs that nobody has looked at yet."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page import axe
from tests.page.test_plugin import GARDEN, desk
from tests.page.test_plugin_chat import CITED, RAIN, answered, chatting, say

pytestmark = pytest.mark.timeout(300)
SELECT = """node => {
    const {ownerDocument} = node;
    ownerDocument.getSelection().selectAllChildren(node);
}"""

DIALOGS = """app.workspace.leaves.map(({view}) => view)
    .filter(({contentEl}) => contentEl?.querySelector('dialog')).map((view) => view.getViewType())"""
"""In which views a dialog is drawn."""


def popout(tab: Page, kind: str) -> Page:
    """Move a view into a window of its own, as Obsidian does."""
    with tab.expect_popup() as opened:
        tab.evaluate("kind => popout(kind)", kind)
    opened.value.set_default_timeout(40_000)
    return opened.value


def test_the_chat_in_a_popout_answers_opens_its_menus_there_and_takes_what_is_selected(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, [CITED], ["Two."]) as (at, model):
        window = popout(tab, "knapper-chat")
        expect(tab.locator("#side .knapper-chat")).to_have_count(0)
        say(window, "How much water?")
        answered(window)
        assert axe.findings(window) == []
        window.evaluate("document.body.className = 'theme-dark'")
        at.snap(window, "popout-chat")
        window.evaluate("document.body.className = 'theme-light'")

        window.get_by_role("button", name="Conversation actions").click()
        window.get_by_role("menuitem", name="Rename…").click()
        dialog = window.get_by_role("dialog")
        expect(dialog.get_by_label("Title")).to_be_focused()
        dialog.get_by_label("Title").fill("Water")
        window.keyboard.press("Enter")
        expect(window.locator(".knapper-title")).to_have_text("Water")
        assert tab.locator(".menu, dialog").count() == 0

        window.get_by_role("button", name="Notes and rules").click()
        expect(window.get_by_label("Find a note to start from")).to_be_focused()
        window.keyboard.press("Escape")
        expect(window.get_by_role("button", name="Notes and rules")).to_be_focused()

        window.locator(".k-answer").evaluate(SELECT)
        window.get_by_role("button", name="Add the selection").click()
        expect(window.get_by_role("button", name="Add the selection")).to_have_count(0)
        assert window.evaluate("String(getSelection())") == ""
        say(window, "What does it mean?")
        answered(window, 2)
        assert "With water from the barrel" in str(model.asked[-1]["messages"][-1]["content"])

        window.locator(".k-cite").first.click()
        expect(tab.locator(".cm-content")).to_contain_text("Every evening")
        assert tab.evaluate("app.workspace.opened") == ["same Garden.md 6"]
        tab.evaluate("unload()")
        expect(window.locator(".knapper-chat")).to_have_count(0)


def test_the_cards_of_a_note_in_a_popout_are_decided_there_by_keys_and_by_the_panel_beside(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        _ = at.propose(("Beds along", "Two beds along"), ("two cans", "one can"), ("The spade", "A spade"))
        at.app.run("show-pending")
        note = popout(tab, "markdown")
        cards = note.get_by_role("group", name="Proposed change by")
        expect(cards).to_have_count(3)
        at.app.run("next-pending")
        expect(cards.first).to_be_focused()
        note.keyboard.press("ArrowDown")
        expect(cards.nth(1)).to_be_focused()
        note.keyboard.press("e")
        note.get_by_label("Proposed text").fill("Every evening, with rain.\nTomatoes get three.\n")
        note.keyboard.press("Control+Enter")
        expect(cards.nth(1)).to_contain_text("Tomatoes get three.")
        expect(cards.nth(1)).to_be_focused()
        note.keyboard.press("a")
        expect(cards).to_have_count(2)
        assert "Tomatoes get three.\n" in at.read()

        panel = popout(tab, "knapper-review")
        rows = panel.get_by_role("group", name="Proposal by")
        expect(rows).to_have_count(2)
        assert axe.findings(panel) == []
        rows.first.get_by_role("button", name="Accept all").click()
        expect(rows).to_have_count(1)
        expect(cards).to_have_count(1)
        rows.get_by_role("button", name="Reject all").click()
        expect(cards).to_have_count(0)


def test_a_dialog_stands_in_the_view_that_asked_for_it_and_only_there(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Fine."]) as (at, _):
        say(tab, "Hello")
        answered(tab)
        for view in ("open-search", "open-runs"):
            at.app.run(view)
        window = popout(tab, "knapper-chat")
        window.get_by_role("button", name="Conversation actions").click()
        window.get_by_role("menuitem", name="Rename…").click()
        expect(window.get_by_role("dialog").get_by_label("Title")).to_be_focused()

        # Also of a view that isn't seen now: a dialog there would keep the keys from all that is.
        assert tab.evaluate(DIALOGS) == ["knapper-chat"]
        tab.get_by_role("button", name="New run").first.click()
        expect(tab.get_by_label("Task", exact=True)).to_be_visible()
        window.keyboard.press("Escape")
        expect(window.get_by_role("dialog")).to_have_count(0)
        expect(window.get_by_role("button", name="Conversation actions")).to_be_focused()


def test_tabs_that_nobody_has_looked_at_yet_disturb_nothing_and_are_made_when_they_are_opened(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    with desk(tab, own_home, capsys, others={"Rain.md": RAIN}) as at:
        for kind in ("knapper-chat", "knapper-search", "knapper-runs", "knapper-review"):
            tab.evaluate("kind => defer(kind)", kind)
        tab.evaluate("defer('markdown', 'Rain.md')")
        (own, other) = (*at.propose(("two cans", "one can")), *at.propose(("It rains", "It pours"), path="Rain.md"))
        expect(tab.locator("#status")).to_have_text("1 here, 2 pending")
        tab.evaluate("app.tab.setControlValue('showing', 'off')")
        tab.evaluate("app.tab.setControlValue('showing', 'cards')")
        tab.evaluate("app.tab.setControlValue('server:agents.link_depth', 1)")
        at.app.run("accept-all")
        expect(tab.locator("#status")).to_have_text("Nothing pending")
        assert (at.status(own), at.status(other)) == ("accepted", "accepted")
        assert at.read("Rain.md") == RAIN.replace("It rains", "It pours")
        assert at.read() == GARDEN.replace("two cans", "one can")

        for command, shown in (
            ("open-vault-chat", ".knapper-chat"),
            ("open-search", ".knapper-search"),
            ("open-runs", ".knapper-runs"),
            ("show-pending", ".knapper-panel"),
        ):
            at.app.run(command)
            expect(tab.locator(f"#side {shown}")).to_be_visible()
        kinds = (
            "app.workspace.leaves.map(({view}) => view.getViewType?.()).filter((kind) => /^knapper/.test(kind)).sort()"
        )
        assert tab.evaluate(kinds) == ["knapper-chat", "knapper-review", "knapper-runs", "knapper-search"]
        tab.evaluate("defer('knapper-chat')")
        tab.evaluate("app.ribbon['messages-square'].work()")
        tab.wait_for_function("app.workspace.leaves.every(({view}) => view.getViewType?.() !== 'knapper-chat')")
        tab.evaluate("unload()")

        assert problems == []
