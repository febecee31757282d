"""The plugin in other ways of being used: streams, reading view, two panes, refusals, a phone, in the dark."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.agents.protocol import Reply
from tests.page import axe
from tests.page.test_plugin import GARDEN, desk
from tests.page.test_plugin_chat import CITED, answered, chatting, say

pytestmark = pytest.mark.timeout(600)
BANNER = "```ai-new-note\nby Claude\n```\n#ai_edit\n\n"
TABLE = f"| a | b |\n|-|-|\n| {'wide ' * 30} | x |\n\n```py\n{'long_name = ' * 30}1\n```\n\n{'a' * 120} {CITED}"
VIEWS = "open-vault-chat open-search show-related show-loose-ends open-runs new-run show-pending show-changes"
ELSEWHERE = """async () => {
    const {client} = plugin.host;
    const {results} = await client.raw('GET', '/sessions');
    void client.raw('POST', `/sessions/${results[0].id}/chat`, {body: {message: 'Count'}}).catch(() => null);
}"""
"""Goes on in the same conversation from another window."""
WIDER = """() => [...document.querySelectorAll('html, body, #side, #side > *, .knapper-body, .k-transcript, .settings')]
    .filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.className || node.tagName)"""
"""Of what is wider than its place: what holds a view, but no table or code, which scroll within themselves."""


def test_where_its_origin_is_let_in_answers_and_proposals_come_by_streams(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, Reply(parts=["One ", "two"], hang_s=60), streams=True) as (at, _):
        assert tab.evaluate("plugin.connection.state.streams") is True
        tab.evaluate("(window.requests ??= []).length = 0")
        say(tab, "Count")
        expect(tab.locator(".k-answer")).to_have_text("One")
        at.propose(("two cans", "one can"))
        expect(tab.get_by_role("group", name="Proposed change by")).to_be_visible()

        polled = [one for one in tab.evaluate("requests") if one.startswith(("POST /chat", "GET /chat", "GET /events"))]
        assert polled == []
        tab.get_by_role("button", name="Stop").click()
        expect(tab.get_by_role("button", name="Send")).to_be_visible()
        at.wire.cut()
        expect(tab.locator("#status")).to_have_text("Knapper: not reachable")
        at.wire.mend()
        expect(tab.locator("#status")).to_have_text("1 here, 1 pending")
        assert tab.evaluate("plugin.connection.state.streams") is True


def test_in_reading_view_a_card_stands_below_its_part_and_decides(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        first, second = at.propose(("two cans", "one can"), ("The spade", "A spade"))
        expect(tab.locator("#status")).to_have_text("2 here, 2 pending")
        tab.evaluate("read()")
        cards = tab.locator(".markdown-reading-view").get_by_role("group", name="Proposed change by")
        expect(cards).to_have_count(2)
        part = tab.locator(".el", has=tab.locator(".knapper-card")).first
        expect(part).to_contain_text("Every evening, with water from the barrel.")
        assert axe.findings(tab) == []
        at.picture("reading")
        cards.first.get_by_role("button", name="Accept", exact=True).click()
        expect(cards).to_have_count(1)
        expect(tab.locator(".markdown-reading-view")).to_contain_text("Tomatoes get one can.")
        cards.first.get_by_role("button", name="Reject", exact=True).click()
        expect(cards).to_have_count(0)

        assert at.read() == GARDEN.replace("two cans", "one can")
        assert [at.status(first), at.status(second)] == ["accepted", "rejected"]


def test_blocks_in_the_file_are_widgets_that_decide_and_a_new_note_has_its_banner(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys, others={"New.md": f"{BANNER}# New\n\n$$ stays\n"}) as at:
        tab.evaluate("app.tab.setControlValue('showing', 'blocks')")
        at.propose(("two cans", "**one** can ![x](https://evil.example/x)"), ("The spade", "A spade"))
        tab.wait_for_function("text().split('#ai_edit').length === 3")
        tab.evaluate("read()")
        widgets = tab.get_by_role("group", name="Pending edit")
        expect(widgets).to_have_count(2)
        expect(widgets.first.locator(".ai-edit-before")).to_contain_text("Tomatoes get two cans.")
        expect(widgets.first.locator(".ai-edit-after strong")).to_have_text("one")
        assert widgets.locator("img").count() == 0
        assert axe.findings(tab) == []
        widgets.first.get_by_role("button", name="Reject").click()
        expect(widgets).to_have_count(1)
        widgets.first.get_by_role("button", name="Accept").click()
        expect(widgets).to_have_count(0)
        assert at.read() == GARDEN.replace("The spade", "A spade")

        at.app.open("New.md")
        tab.evaluate("read()")
        expect(tab.locator(".ai-edit-type-badge")).to_have_text("[+] New note")
        tab.locator(".ai-edit-accept").click()
        expect(tab.locator(".ai-edit-type-badge")).to_have_count(0)
        assert at.read("New.md") == "# New\n\n$$ stays\n"


def test_two_panes_of_a_note_stay_in_step(tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with desk(tab, own_home, capsys) as at:
        at.propose(("two cans", "one can"), ("The spade", "A spade"))
        tab.evaluate("split()")
        panes = tab.locator(".cm-editor")
        cards = tab.get_by_role("group", name="Proposed change by")
        expect(cards).to_have_count(4)
        panes.first.get_by_role("button", name="Accept", exact=True).first.click()
        expect(cards).to_have_count(2)
        for pane in panes.all():
            expect(pane).to_contain_text("Tomatoes get one can.")
        panes.last.get_by_role("button", name="Reject", exact=True).click()
        expect(cards).to_have_count(0)

        assert at.read() == GARDEN.replace("two cans", "one can")


def test_a_conversation_that_is_busy_and_a_refusal_are_told_with_their_ways_out(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(route: Route) -> None:
        asked = json.loads(route.request.post_data or "{}")
        if asked["method"] == "POST" and "/chat" in asked["url"]:
            route.fulfill(status=403, json={"error": "the model isn't allowed here", "code": "model_not_allowed"})
        else:
            route.fallback()

    with chatting(tab, own_home, capsys, ["First."], Reply(parts=["One ", "two"], hang_s=90), ["After."]) as (_, model):
        say(tab, "Before")
        answered(tab)
        tab.evaluate(ELSEWHERE)
        while len(model.asked) < 2:
            tab.wait_for_timeout(50)
        say(tab, "And now?")
        problem = tab.locator(".k-problem")
        expect(problem).to_contain_text("Something else is running in this conversation")
        expect(problem.get_by_role("button", name="Try again")).to_be_visible()
        problem.get_by_role("button", name="New conversation").click()
        expect(problem).to_have_count(0)
        tab.route("**/proxy", refuse)
        say(tab, "May I?")
        expect(problem).to_contain_text("This isn't allowed")
        expect(problem).to_contain_text("The model isn't allowed here")
        tab.unroute("**/proxy")
        problem.get_by_role("button", name="Open the settings").click()

        assert tab.evaluate("settings_opened") is True


def test_whatever_is_clicked_in_a_view_is_reached_by_the_tab_key_too(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, [CITED]) as (at, _):
        _ = at.propose(("two cans", "one can"))
        say(tab, "How much water?")
        answered(tab)
        for view in VIEWS.split():
            at.app.run(view)
            expect(tab.locator("#side .view-content")).to_be_visible()
            expect(tab.locator("#side .k-skeleton-row")).to_have_count(0)
            tab.evaluate("document.activeElement.blur(), getSelection().collapse(document.getElementById('side'), 0)")
            presses, controls = 0, list[str]()
            # More come while a form is filled, which may draw its first field anew and take the focus back to it.
            while presses < 4 * len(controls) + 12:
                tab.keyboard.press("Tab")
                tab.evaluate("document.activeElement.dataset.reached = ''")
                controls, presses = tab.evaluate(f"({CONTROLS})()"), presses + 1
                if presses > len(controls) and all("data-reached" in one for one in controls):
                    break

            assert (view, [one for one in controls if "data-reached" not in one]) == (view, [])
            assert (view, tab.evaluate(ONLY_BY_MOUSE)) == (view, [])


CONTROLS = """() => [...document.querySelectorAll('#side :is(button, a[href], input, select, textarea, summary)')]
    .filter((node) => node.checkVisibility({visibilityProperty: true}) && !node.disabled && node.tabIndex >= 0)
    .filter((node) => !(node.type === 'radio' && !node.checked))
    .map((node) => node.cloneNode().outerHTML)"""
"""What the Tab key stops at; those of a group that the arrow keys go through have no stop of their own."""
ONLY_BY_MOUSE = """() => [...document.querySelectorAll('#side *')]
    .filter((node) => getComputedStyle(node).cursor === 'pointer' && node.checkVisibility())
    .filter((node) => !node.closest('button, a[href], summary, label, input, select, textarea'))
    .filter((node) => !node.closest('[tabindex], [role=option]'))
    .map((node) => node.outerHTML.slice(0, 200))"""


def test_on_a_phone_nothing_scrolls_sideways_and_in_the_dark_all_can_be_read(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, [TABLE]) as (at, _):
        at.propose(("two cans", f"one can {'and more ' * 20}{'x' * 90}"))
        say(tab, f"How much water? {'y' * 90}")
        answered(tab)
        expect(tab.locator(".k-answer table")).to_be_visible()
        tab.evaluate("document.body.className = 'theme-dark'")
        for size in ({"width": 390, "height": 844}, {"width": 320, "height": 640}, {"width": 200, "height": 640}):
            tab.set_viewport_size(size)  # pyright: ignore[reportArgumentType]
            for view in VIEWS.split():
                at.app.run(view)
                expect(tab.locator("#side .view-content")).to_be_visible()
                expect(tab.locator("#side .k-skeleton-row")).to_have_count(0)
                assert (view, tab.evaluate(WIDER)) == (view, [])
                assert (view, axe.findings(tab)) == (view, [])
        tab.set_viewport_size({"width": 320, "height": 640})  # Obsidian's own, which no side bar makes narrower
        tab.evaluate("plugin.openSettings()")
        expect(tab.get_by_role("dialog", name="Settings")).to_be_visible()

        assert tab.evaluate(WIDER) == []
        assert axe.findings(tab) == []
