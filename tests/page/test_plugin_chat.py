"""The plugin's chat, in a browser with Obsidian's editor, against a real `knap serve` and a model that is scripted."""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents import protocol, scripts
from tests.agents.protocol import Reply, Server
from tests.agents.scripted import Call
from tests.net import servers as web_pages
from tests.page import axe
from tests.page.test_plugin import GARDEN, HOSTILE, PROPOSES, Desk, desk

pytestmark = pytest.mark.timeout(300)
RAIN = "# Rain\n\nIt rains on the tomatoes. See [[Garden#Watering]].\n"
CITED = "With water from the barrel [[Garden#Watering]] (lines 7-8)."
LOOK = Call("read_file", {"path": "Garden.md"})


@contextmanager
def chatting(
    tab: Page,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    *replies: Reply | Sequence[str | Call],
    others: Mapping[str, str] | None = None,
    web: str = "",
    streams: bool = False,
) -> Generator[tuple[Desk, Server]]:
    """Open the chat beside the note; the model says the replies in turn."""
    said = [one if isinstance(one, Reply) else Reply(parts=one) for one in replies]
    with protocol.serving(*said) as model:
        config = f'{PROPOSES}\n[model]\nname = "tiny@{model.base_url}"\n{web}'
        with desk(tab, home, capsys, config=config, others={"Rain.md": RAIN, **(others or {})}, streams=streams) as at:
            at.app.run("open-vault-chat")
            expect(tab.get_by_label("Message", exact=True)).to_be_focused()
            yield at, model


def say(tab: Page, text: str) -> None:
    box = tab.get_by_label("Message", exact=True)
    box.fill(text)
    box.press("Enter")


def answered(tab: Page, number: int = 1) -> None:
    expect(tab.locator(".k-answer")).to_have_count(number)
    expect(tab.get_by_role("button", name="Send")).to_be_visible()


def test_an_answer_cites_lines_at_which_the_note_is_opened(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Let me look.", LOOK], [CITED]) as (at, model):
        at.picture("chat-empty")
        expect(tab.locator(".knapper-context")).to_contain_text("Context: Garden")
        say(tab, "When do I water?")
        answered(tab)
        expect(tab.locator("details.k-steps > summary")).to_have_text("1 step: read file")
        at.picture("chat-answer")
        tab.locator(".k-cite").click()
        expect(tab.locator(".cm-content")).to_be_visible()
        expect(tab.locator("#side")).to_contain_text("When do I water?")

        assert tab.evaluate("app.workspace.opened") == ["same Garden.md 6"]
        chosen = "workspace => (s => [s.main.from, s.main.to])(app.workspace.active.editor.cm.state.selection)"
        assert tab.evaluate(chosen) == [GARDEN.index("Every"), GARDEN.index("\n\n## Tools")]
        assert "Garden.md" in str(model.asked[0])
        assert axe.findings(tab) == []


def test_each_note_has_its_own_conversation_which_follows_switching_and_renaming(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["About the garden."], ["About rain."]) as (at, _):
        context, log = tab.locator(".knapper-context"), tab.get_by_role("log", name="Conversation")
        say(tab, "What is this?")
        answered(tab)
        at.app.open("Rain.md")
        expect(context).to_contain_text("Context: Rain")
        expect(log).not_to_contain_text("About the garden.")
        say(tab, "And this?")
        answered(tab)
        at.app.open("Garden.md")
        expect(log).to_contain_text("About the garden.")
        expect(log).not_to_contain_text("About rain.")

        tab.evaluate("app.tab.setControlValue('clearOnSwitch', true)")
        at.app.open("Rain.md")
        expect(context).to_contain_text("Context: Rain")
        expect(log).not_to_contain_text("About rain.")
        expect(tab.locator(".k-welcome")).to_be_visible()
        tab.evaluate("app.tab.setControlValue('clearOnSwitch', false)")
        at.app.open("Garden.md")
        expect(log).to_contain_text("About the garden.")

        (at.vault / "Garden.md").rename(at.vault / "Bed.md")
        tab.evaluate("rename('Garden.md', 'Bed.md')")
        expect(context).to_contain_text("Context: Bed")
        expect(log).to_contain_text("About the garden.")


def test_after_a_reload_the_conversation_is_there_and_is_cleared_by_a_click(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["**Twice** a day."]) as (at, _):
        say(tab, "How often?")
        answered(tab)
        secret = tab.evaluate("[...secrets]")
        at.app.load("Garden.md")
        tab.evaluate(
            "kept => { for (const [id, text] of kept) secrets.set(id, text); plugin.connection.start(); }", secret
        )
        at.app.run("open-vault-chat")
        expect(tab.locator(".k-answer strong")).to_have_text("Twice")
        tab.get_by_role("button", name="Clear chat history").click()
        expect(tab.locator(".notice").last).to_have_text("Chat history cleared")
        expect(tab.locator(".k-exchange")).to_have_count(0)
        expect(tab.locator(".knapper-context")).to_contain_text("Context: Garden")


def test_a_turn_is_stopped_and_switching_waits_for_its_end(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, Reply(parts=["One ", "two"], hang_s=60), ["Other."]) as (at, _):
        say(tab, "Count")
        expect(tab.locator(".k-answer")).to_have_text("One")
        at.app.open("Rain.md")
        expect(tab.locator(".k-answer")).to_have_text("One")
        expect(tab.locator(".knapper-context")).to_contain_text("Context: Garden")
        tab.get_by_role("button", name="Stop").click()
        expect(tab.locator(".knapper-context")).to_contain_text("Context: Rain")
        expect(tab.locator(".k-answer")).to_have_count(0)


def test_an_answer_goes_on_where_the_server_is_lost_while_it_is_written(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, Reply(parts=["One ", "two ", "three."], hang_s=6)) as (at, model):
        assert tab.evaluate("plugin.connection.state.streams") is False
        say(tab, "Count")
        expect(tab.locator(".k-answer")).to_have_text("One")
        at.wire.cut()
        expect(tab.locator("#status")).to_have_text("Knapper: not reachable")
        expect(tab.locator(".k-answer")).to_have_text("One")
        at.wire.mend()
        expect(tab.locator(".k-answer")).to_have_text("One two three.", timeout=60_000)
        answered(tab)

        assert len(model.asked) == 1
        assert tab.locator(".k-problem").count() == 0


def test_with_no_agent_on_nothing_can_be_sent_and_the_agents_are_kept(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Never."]) as (at, _):
        scout, web, task = (tab.get_by_role("button", name=name, exact=True) for name in ("Scout", "Web", "Task"))
        assert [one.get_attribute("aria-pressed") for one in (scout, web, task)] == ["false", "false", "true"]
        task.click()
        tab.get_by_label("Message", exact=True).fill("Anyone?")
        expect(tab.get_by_role("button", name="Send")).to_be_disabled()
        expect(tab.locator(".notice").last).to_have_text("Enable at least one agent to send")
        tab.get_by_label("Message", exact=True).press("Enter")
        scout.click()
        expect(tab.get_by_role("button", name="Send")).to_be_enabled()

        assert tab.evaluate("plugin.keep.load('chat-agents')") == '{"scout":true,"web":false,"task":false}'
        tab.get_by_role("button", name="Notes and rules").click()
        expect(tab.get_by_label("Scout rounds")).to_have_attribute("type", "range")
        at.picture("chat-sheet")
        assert axe.findings(tab) == []


def test_what_a_model_says_is_text_and_nothing_of_another_host_is_loaded(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remote: list[str] = []
    tab.on("request", lambda request: remote.append(request.url) if "example" in request.url else None)
    text = f"{HOSTILE}\n\n![x](https://example.org/x.png) [[javascript:1|y]] &copy; `$= 1`\n\n```dataviewjs\n1\n```"
    with chatting(tab, own_home, capsys, [text]) as (_, _):
        say(tab, "Be evil")
        answered(tab)

        expect(tab.locator(".k-answer")).to_contain_text("<img src=x")
        expect(tab.locator(".k-answer")).to_contain_text("©")
        assert tab.evaluate("window.hurt") is None
        assert tab.locator("#side img, #side iframe, #side script").count() == 0
        assert remote == []


def test_errors_say_what_is_wrong_and_offer_the_way_out(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        at.app.run("open-vault-chat")
        say(tab, "Hello?")
        problem = tab.locator(".k-problem")
        expect(problem).to_contain_text("No model is set up yet")
        expect(problem.get_by_text("no model is set", exact=True)).to_have_count(0)  # the title says so
        problem.get_by_role("button", name="Open the settings").click()
        assert tab.evaluate("settings_opened") is True
        tab.evaluate("document.querySelector('.settings').remove()")
        at.picture("chat-no-model")

        at.wire.cut()
        banner = tab.locator(".knapper-banner")
        expect(banner).to_contain_text("Not reachable")
        at.wire.mend()
        banner.get_by_role("button", name="Try now").click()
        expect(banner).to_have_count(0)
        tab.evaluate("plugin.connection.unpair()")
        expect(banner.get_by_role("button", name="Connect…")).to_be_visible()
        expect(tab.get_by_label("Message", exact=True)).to_be_enabled()


def test_what_is_selected_goes_with_the_message_and_notes_are_dropped_in(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Fine."]) as (at, model):
        tab.evaluate("app.workspace.active.editor.setSelection({line: 2, ch: 0}, {line: 2, ch: 19})")
        at.app.run("ask-selection")
        expect(tab.locator(".k-composer-extras")).to_contain_text("Beds along the wall")
        tab.evaluate("app.dragManager.draggable = {file: app.vault.getAbstractFileByPath('Rain.md')}")
        tab.locator(".k-composer-box").dispatch_event("drop")
        expect(tab.locator(".k-composer-box")).to_have_value(re.compile(r"\[\[Rain\]\]"))
        tab.get_by_role("button", name="Send").click()
        answered(tab)

        sent = str(model.asked[0]["messages"][-1]["content"])
        assert "Beds along the wall" in sent
        assert "[[Rain]]" in sent


def test_tokens_and_cost_are_shown_by_a_setting_alone(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Fine."]) as (at, _):
        at.app.run("insert-answer")
        expect(tab.locator(".notice").last).to_have_text("There is no answer in the chat")
        say(tab, "Hello")
        answered(tab)
        tab.evaluate("app.workspace.active.editor.setSelection({line: 0, ch: 8}, {line: 0, ch: 8})")
        at.app.run("insert-answer")
        assert at.app.text() == GARDEN.replace("# Garden", "# GardenFine.")
        spent = tab.locator(".k-exchange-spent > span").first
        expect(spent).not_to_be_visible()
        tab.evaluate("plugin.settings.showTokens = true; plugin.settings = {...plugin.settings}; plugin.saveSettings()")
        expect(spent).to_be_visible()
        expect(spent).to_contain_text("120 tokens · \u2013")


def test_a_question_is_asked_again_exported_and_its_prompts_are_shown_in_debug_mode(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["One."], ["Two."], ["Three."]) as (at, _):
        at.app.run("show-prompts")
        expect(tab.locator(".notice").last).to_contain_text("Switch on debug mode")
        say(tab, "First")
        answered(tab)
        tab.evaluate("app.tab.setControlValue('debug', true)")
        tab.get_by_role("button", name="Regenerate in a copy").click()
        expect(tab.locator(".k-answer")).to_have_text("Two.")
        answered(tab)
        at.app.run("show-prompts")
        expect(tab.locator(".knapper-prompts")).to_contain_text("First")
        expect(tab.locator(".knapper-prompts")).to_contain_text("Two.")
        at.picture("chat-prompts")
        assert axe.findings(tab) == []
        tab.evaluate("document.querySelector('.modal').remove()")

        tab.get_by_role("button", name="Edit question").click()
        tab.get_by_label("Edited question").fill("Second")
        tab.keyboard.press("Enter")
        expect(tab.locator(".k-answer")).to_have_text("Three.")
        answered(tab)
        tab.get_by_role("button", name="Conversations").click()
        expect(tab.locator("[data-session]")).to_have_count(3)
        at.picture("chat-history")
        assert axe.findings(tab) == []
        tab.get_by_role("button", name="Conversations").click()
        tab.get_by_role("button", name="Conversation actions").click()
        tab.get_by_role("menuitem", name="Export as a note").click()
        expect(tab.locator(".notice").last).to_contain_text("Saved to Chats/")

        (note,) = (at.vault / "Chats").glob("*.md")
        assert "Three." in note.read_text(encoding="utf-8")


def test_the_web_names_its_sources_and_a_choice_is_kept_as_a_preset(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = web_pages.Reply(body=b"<title>Frost</title><p>In May.", headers={"Content-Type": "text/html"})
    with web_pages.serving(page) as web, web_pages.serving(hits(web.url)) as provider:
        taken = {"findings": "In May.", "sources": [{"url": f"{web.url}/", "extracted": "In May."}]}
        said = (
            [Call("evaluate_context", {"needs_web": True, "reasoning": "no note tells"})],
            [Call("web_search", {"query": "last frost"})],
            [Call("select_pages", {"urls": [f"{web.url}/"]})],
            [Call("finalize_web_context", taken)],
            scripts.task("The last frost is in May."),
        )
        config = (
            f'[web]\naccess = true\nprovider = "tavily"\napi_key = "k"\nbase_url = "{provider.url}"\n'
            f'hosts = ["{web.url.removeprefix("http://")}"]\n'
        )
        with chatting(tab, own_home, capsys, *said, web=config) as (_, _):
            tab.get_by_role("button", name="Web", exact=True).click()
            tab.get_by_role("button", name="Notes and rules").click()
            tab.get_by_role("button", name="Save as…").click()
            tab.get_by_role("dialog").get_by_role("textbox").fill("Frost")
            tab.get_by_role("dialog").get_by_role("button", name="Save").click()
            expect(tab.get_by_label("Preset", exact=True).get_by_role("option")).to_have_text(["Presets…", "Frost"])
            tab.keyboard.press("Escape")
            say(tab, "When is the last frost?")
            answered(tab)
            sources = tab.locator("[data-finding=sources]")
            sources.locator("summary").click()

            expect(sources.get_by_role("link")).to_have_attribute("href", f"{web.url}/")
            expect(sources.locator("blockquote")).to_have_text("In May.")


def hits(url: str) -> web_pages.Reply:
    hit = {"title": "Frost", "url": f"{url}/", "content": "of frost"}
    return web_pages.Reply(body=json.dumps({"results": [hit]}).encode(), headers={"Content-Type": "application/json"})


def test_the_ribbon_opens_one_view_and_unloading_leaves_nothing(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chatting(tab, own_home, capsys, ["Fine."]) as (at, _):
        assert tab.evaluate("Object.values(app.commands).filter(({icon}) => !icon).map(({id}) => id)") == []
        tab.evaluate("app.ribbon['messages-square'].work()")
        expect(tab.locator(".knapper-chat")).to_have_count(0)
        tab.evaluate("app.ribbon['messages-square'].work()")
        at.app.run("open-vault-chat")
        expect(tab.locator(".knapper-chat")).to_have_count(1)
        tab.evaluate("unload()")
        expect(tab.locator(".knapper-chat, .knapper-card")).to_have_count(0)
        tab.evaluate("requests.length = 0")
        tab.wait_for_timeout(1_500)
        assert tab.evaluate("requests") == []


def test_scout_and_task_show_what_they_chose_and_their_edit_waits_in_the_note(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = scripts.select("Garden.md", "Rain.md", reasoning="They name the barrel.")
    done = scripts.task("One can is enough.", ("Garden.md", "replace:8", "Tomatoes get one can."), ("Rain.md", "open"))
    with chatting(tab, own_home, capsys, [chosen], done) as (at, _):
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, "Water less")
        answered(tab)
        selection = tab.locator("[data-finding=selection]")
        expect(selection.locator("summary").first).to_contain_text("Scout chose 2 notes")
        selection.locator("summary").first.click()
        expect(selection).to_contain_text("They name the barrel.")
        assert tab.evaluate("app.workspace.opened") == ["tab Rain.md"]

        at.app.open("Garden.md")
        card = tab.get_by_role("group", name="Proposed change by")
        expect(card).to_be_visible()
        at.picture("chat-task")
        card.get_by_role("button", name="Accept", exact=True).click()
        expect(tab.locator(".notice").last).to_have_text("Edit accepted")
        assert at.read() == GARDEN.replace("two cans", "one can")


def test_a_question_of_a_task_is_answered_by_a_button(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Call("ask_user", {"question": "Which bed do you mean?", "options": ["The left one", "The right one"]})
    chosen = scripts.select("Garden.md")
    with chatting(tab, own_home, capsys, [asked], [chosen], scripts.task("The left one it is.")) as (_, _):
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, "Water the bed")
        tab.get_by_role("button", name="The left one").click()
        answered(tab)
        expect(tab.locator(".k-answer")).to_contain_text("The left one it is.")


def test_all_of_an_answer_is_accepted_over_unsaved_text_which_stays(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = scripts.select("Garden.md", reasoning="It names the barrel.")
    done = scripts.task("One can is enough.", ("Garden.md", "replace:8", "Tomatoes get one can."))
    with chatting(tab, own_home, capsys, [chosen], done) as (at, _):
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, "Water less")
        answered(tab)
        expect(tab.get_by_role("group", name="Proposed change by")).to_be_visible()
        tab.evaluate("window.late_ms = 600_000")
        tab.evaluate("app.workspace.active.editor.replaceSelection('Unsaved ')")
        tab.get_by_label("Changes").get_by_role("button", name="Accept all").click()
        expect(tab.get_by_label("Changes")).to_contain_text("Accepted")
        wanted = "Unsaved " + GARDEN.replace("two cans", "one can")
        assert at.app.text() == wanted
        tab.evaluate("app.workspace.active.save()")

        assert at.read() == wanted
