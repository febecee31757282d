"""What goes with a message of the plugin's chat, and what its agents show while they work, against a real server."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents import scripts
from tests.agents.protocol import Reply
from tests.agents.scripted import Call
from tests.page import axe
from tests.page.test_plugin_chat import answered, chatting, say

pytestmark = pytest.mark.timeout(300)
NO_VECTORS = '[embeddings]\nkind = "none"\n'
SMALL = "[agents]\ntoken_limit = 3000\n"
ALLOW = """(isAllowed) => {
    const {client} = plugin.host;
    client.usual ??= client.get.bind(client);
    client.get = async (path, ...rest) => {
        const found = await client.usual(path, ...rest);
        return path === '/ask/defaults' && isAllowed ? {...found, web: true, problems: {}} : found;
    };
}"""
"""What a server says that allows the web: `web.access` holds from its start on."""
LONG = "# Long\n\n[[Compost]]\n\n" + "All about compost and how it is turned. " * 600


def test_web_is_off_with_its_reason_as_long_as_the_server_says_so(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Never."]) as (at, _):
        web = tab.get_by_role("button", name="Web", exact=True)
        expect(web).to_be_disabled()
        expect(web).to_have_attribute("title", re.compile("Web access is off"))
        web.click(force=True)
        expect(tab.locator(".notice").last).to_contain_text("Web access is off")
        expect(web).to_have_attribute("aria-pressed", "false")
        tab.get_by_role("button", name="Notes and rules").click()
        expect(tab.get_by_role("switch", name="Web")).to_be_disabled()
        expect(tab.locator(".k-sheet")).to_contain_text("Web access is off")
        at.picture("chat-web-off")
        assert axe.findings(tab) == []

        # The server is started anew, and allows it now.
        tab.evaluate(ALLOW, True)
        at.wire.cut()
        expect(tab.locator("#status")).to_have_text("Knapper: not reachable")
        at.wire.mend()
        expect(web).to_be_enabled()
        web.click()
        expect(web).to_have_attribute("aria-pressed", "true")
        # Whoever comes back from another window sees that it was forbidden meanwhile.
        tab.evaluate(ALLOW, False)
        tab.evaluate("window.dispatchEvent(new Event('focus'))")
        expect(web).to_be_disabled()
        expect(web).to_have_attribute("aria-pressed", "false")
        # Whoever presses it asks the server once more.
        tab.evaluate(ALLOW, True)
        web.click(force=True)
        expect(web).to_be_enabled()
        expect(web).to_have_attribute("aria-pressed", "true")


def test_web_is_allowed_and_forbidden_by_the_settings_and_the_next_start_of_the_server(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Fine."]) as (at, _):
        web = tab.get_by_role("button", name="Web", exact=True)
        expect(web).to_be_disabled(timeout=120_000)
        tab.wait_for_function("app.tab.server.length > 0")
        tab.evaluate("app.tab.setControlValue('server:web.access', true)")
        expect(tab.locator(".notice", has_text="web.access holds after the server's next start")).to_have_count(1)
        expect(web).to_be_disabled()
        with at.restarted():
            expect(web).to_be_enabled(timeout=120_000)
            web.click()
            expect(web).to_have_attribute("aria-pressed", "true")
            expect(tab.locator(".k-composer-says")).to_contain_text("Web")
            assert axe.findings(tab) == []
            tab.evaluate("app.tab.setControlValue('server:web.access', false)")
            expect(tab.locator(".notice", has_text="holds after the server's next start")).to_have_count(2)
            with at.restarted():
                expect(web).to_be_disabled(timeout=120_000)
                expect(web).to_have_attribute("aria-pressed", "false")
                expect(web).to_have_attribute("title", re.compile("Web access is off"))
                web.click(force=True)
                expect(tab.locator(".notice", has_text="Web access is off")).to_have_count(1)
                say(tab, "And without?")
                answered(tab)
                expect(tab.locator(".k-answer")).to_have_text("Fine.")


def test_a_note_that_the_owner_hides_is_refused_by_the_server_and_the_chat_goes_on(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hides = '[clients.agent]\nhidden = ["Secret/"]\n'
    others = {"Secret/Diary.md": "# Diary\n\nNobody reads this.\n"}
    statuses: list[int] = []
    tab.on("response", lambda reply: statuses.append(reply.status))
    with chatting(tab, own_home, capsys, ["Fine."], others=others, web=hides) as (at, model):
        at.app.open("Secret/Diary.md")
        expect(tab.locator(".knapper-context")).to_contain_text("Context: Diary")
        say(tab, "What is in it?")
        problem = tab.locator(".k-problem")
        expect(problem).to_contain_text("This isn't allowed")
        expect(problem).to_contain_text("The active file is hidden from this client, or from its agent")
        at.picture("chat-refused")
        assert axe.findings(tab) == []
        assert 403 in statuses
        assert model.asked == []
        problem.get_by_role("button", name="Open the settings").click()
        assert tab.evaluate("settings_opened") is True
        tab.evaluate("document.querySelector('.settings').remove()")

        at.app.open("Garden.md")
        expect(tab.locator(".knapper-context")).to_contain_text("Context: Garden")
        say(tab, "And here?")
        answered(tab)
        assert "Nobody reads this" not in json.dumps(model.asked)


def test_links_meaning_and_the_limit_decide_which_notes_go_along_and_all_are_listed(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {"Compost.md": "# Compost\n\nSee [[Rain]].\n", "Long.md": LONG, "Plan.md": "# Plan\n"}
    with chatting(tab, own_home, capsys, scripts.task("Fine."), others=others, web=NO_VECTORS + SMALL) as (at, model):
        tab.evaluate(
            "window.properties = {'Rain.md': {aliases: ['Wet', 'Drops', 'Third'], description: 'How it '.repeat(20)}}"
        )
        # Once the server has said what is configured; on a busy machine it loads what asks models for a while first.
        expect(tab.get_by_role("button", name="Web", exact=True)).to_be_disabled(timeout=120_000)
        tab.get_by_role("button", name="Notes and rules").click()
        depth, shown = tab.get_by_role("slider", name="Link depth"), tab.locator(".k-gathered-size")
        expect(depth).to_have_value("2")
        assert [depth.get_attribute(one) for one in ("min", "max")] == ["0", "3"]
        kinds = (
            ("Current only", "1 note"),
            ("Direct links", "2 notes"),
            ("3 hops", "3 notes"),
            ("Links of links", "3 notes"),
        )
        for hops, (words, notes) in zip((0, 1, 3, 2), kinds, strict=True):
            depth.fill(str(hops))
            expect(depth).to_have_attribute("aria-valuetext", words)
            expect(tab.locator("output", has_text=words)).to_be_visible()
            expect(shown).to_contain_text(notes)
        tab.get_by_label("Find a note to add").fill("Plan")
        tab.get_by_role("option", name="Plan").click()
        near = tab.get_by_role("slider", name="Notes near in meaning, at most")
        expect(near).to_have_value("0")
        assert [near.get_attribute(one) for one in ("min", "max")] == ["0", "20"]
        near.fill("3")
        expect(tab.get_by_role("slider", name="Their similarity in %, at least")).to_have_value("50")
        expect(tab.locator(".k-sheet-gathered")).to_contain_text("No note is near in meaning by 50 %")
        expect(shown).to_contain_text("4 notes")

        tab.get_by_role("button", name="View all context notes").click()
        dialog = tab.locator(".modal")
        heads = ["Current", "Linked (2)", "Manually added (1)"]
        expect(dialog.get_by_role("heading", level=3)).to_have_text(heads)
        about = "Wet, Drops · " + ("How it " * 20)[:60] + "…"
        expect(dialog.get_by_role("list", name="Linked").get_by_role("listitem")).to_have_text(
            [f"Rain{about}", "Compost"]
        )
        expect(dialog).to_contain_text(re.compile(r"4 notes · ~[\d.k]+ tokens"))
        at.picture("chat-context-notes")
        assert axe.findings(tab) == []
        dialog.get_by_role("button", name="Rain").click()
        expect(dialog).to_have_count(0)
        assert tab.evaluate("app.workspace.opened.at(-1)").split()[1] == "Rain.md"
        at.app.open("Garden.md")
        expect(tab.locator(".knapper-context")).to_contain_text("Garden")

        depth.fill("3")
        expect(tab.locator(".k-left-out")).to_contain_text("Left out by the limit: 2 notes")
        say(tab, "What of the beds?")
        answered(tab)
        told = tab.locator(".notice", has_text="2 notes left out by a limit: Plan, Long")
        expect(told).to_have_count(1)
        asked = json.dumps(model.asked[-1])
        assert "Tomatoes get two cans." in asked
        assert "All about compost" not in asked


def test_what_scout_does_is_open_while_it_works_and_folded_at_its_end_and_its_notes_are_copied(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = Reply(parts=[scripts.select("Garden.md", confidence="exploring", reasoning="A first look.")])
    chosen = Reply(parts=[scripts.select("Garden.md", "Rain.md", reasoning="They name the barrel.")], hang_s=4)
    files = [(f"Bed {number:02}.md", "create", f"# Bed {number}") for number in range(12)]
    done = Reply(parts=scripts.task("A note for each bed.", *files))
    with chatting(tab, own_home, capsys, looks, chosen, done) as (at, _):
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, "Make the notes of the beds")
        steps = tab.locator(".k-steps")
        expect(steps).to_have_attribute("open", "")
        expect(steps.locator("summary").first).to_contain_text("Exploring vault")
        expect(steps.locator(".k-step-round").first).to_have_text("Round 1 of 5")
        expect(steps.locator(".k-step").first).to_be_visible()
        expect(steps.locator(".k-step").first).to_contain_text("update_selection")
        at.picture("chat-steps")
        answered(tab)
        expect(steps).not_to_have_attribute("open", "")
        expect(steps.locator("summary").first).to_contain_text("Exploration actions")

        tab.evaluate("navigator.clipboard.writeText = async (text) => void (window.copied = text)")
        tab.locator("[data-finding=context] summary").first.click()
        tab.locator("[data-finding=context]").get_by_role("button", name="Copy text").click()
        expect(tab.locator(".notice").last).to_have_text("Copied the text of 2 notes")
        copied = tab.evaluate("window.copied")
        assert copied.startswith("# Garden.md\n\n# Garden\n\nBeds along the wall.")
        assert "\n\n# Rain.md\n\n# Rain\n" in copied

        changes = tab.get_by_role("region", name="Changes")
        listed = changes.locator(".k-changes-files > li")
        expect(listed).to_have_count(11)
        expect(listed.last).to_have_text("and 2 more…")
        listed.last.get_by_role("button").click()
        expect(listed).to_have_count(12)
        changes.get_by_role("button", name="Accept all").click()
        expect(changes).to_contain_text("Accepted: changes in 12 notes")
        expect(changes.get_by_role("button", name="Accept all")).to_have_count(0)
        assert len([*at.vault.glob("Bed *.md")]) == 12


def test_the_box_grows_to_its_limit_and_an_argument_is_cut(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    look = Reply(parts=[Call("search_vault", {"query": "barrel " * 20})])
    with chatting(tab, own_home, capsys, look, ["Nothing."]) as (_, _):
        box = tab.get_by_label("Message", exact=True)
        heights: list[float] = []
        for lines in (1, 3, 30):
            box.fill("\n".join(["Line"] * lines))
            heights.append(box.evaluate("node => node.getBoundingClientRect().height"))
        assert heights == [32, pytest.approx(68, abs=4), 120]
        say(tab, "Where is the barrel?")
        answered(tab)
        tab.locator(".k-steps > summary").click()
        expect(tab.locator(".k-step-about")).to_have_text(f"{('barrel ' * 20)[:50]}…")
