"""Talking with the vault on the page: sending, watching the steps, opening what is cited, stopping, coming back."""

import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Page, expect

from knapper.agents.model.usage import Meter
from knapper.codemode.tasks import ModelSpend
from knapper.config import Vault
from tests.agents.scripted import Call, Model
from tests.index import worlds
from tests.page import gates, sites
from tests.page.gates import Gate
from tests.page.sites import answered, say
from tests.page.test_shell import listening

pytestmark = pytest.mark.timeout(120)
CHAT = "/app/chat/new"
WATERING, LINES = re.compile("^Garden . Watering"), re.compile(r"^Garden . Watering\s*lines 10.11$")
CITED = "With water from the barrel [[Garden#Watering]] (lines 10-11), and [[Rain]] helps."
LOOKED = (["Let me look.", Call("search_vault", {"query": "watering tomatoes"})], [CITED])
TOLD = "main [role=status].k-only-read"


def test_an_answer_comes_as_it_is_made_and_ends_whole(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("Water them ", "every **evening**."))
    with sites.serving(tmp_path, gate.open) as site, listening(tab) as told:
        site.enter(tab, CHAT)
        expect(tab.get_by_label("Message", exact=True)).to_be_focused()
        say(tab, "When do I water?")
        answer = tab.locator(".k-answer")
        expect(answer).to_have_text("Water them")
        expect(tab.get_by_role("button", name="Stop")).to_be_visible()
        gate.go_on()
        expect(answer).to_have_text("Water them every evening.")

        expect(answer.locator("strong")).to_have_text("evening")
        expect(tab.get_by_role("button", name="Send")).to_be_visible()
        expect(tab.locator(".k-question")).to_contain_text("When do I water?")
        expect(tab.locator(TOLD)).to_contain_text("Answered: Water them every **evening**.")
        expect(tab.get_by_label("Message", exact=True)).to_be_focused()
        expect(tab).to_have_url(re.compile(r"/app/chat/[0-9a-f-]{8,}$"))
    assert [one for one in told if "404" not in one] == []


def test_each_tool_that_was_called_folds_out(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model(LOOKED).open) as site:
        site.enter(tab, CHAT)
        say(tab, "When?")
        steps = tab.locator("details.k-steps")
        expect(steps.locator("> summary")).to_have_text("1 step: search vault")
        expect(steps.get_by_text("Arguments")).not_to_be_visible()
        steps.locator("> summary").click()
        steps.locator("details.k-step > summary").click()

        expect(steps.get_by_text("Let me look.")).to_be_visible()
        expect(steps.locator(".k-step-summary")).to_contain_text("2 results")
        expect(steps.locator(".k-step-body pre").first).to_contain_text('"query": "watering tomatoes"')
        expect(steps.locator(".k-step-body pre").last).to_contain_text('"heading": "## Watering"')


def test_after_a_reload_the_steps_are_there_in_their_order_with_arguments_and_answers(
    tmp_path: Path, tab: Page
) -> None:
    evil = '<img src=x onerror="document.title=1">'
    search, read = Call("search_vault", {"query": f"tomatoes {evil}"}), Call("read_file", {"path": "Nowhere.md"})
    model = Model([["Let me look.", search], ["Not there.", read], [CITED]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        say(tab, "When?")
        answered(tab)
        steps = tab.locator("details.k-steps")
        steps.locator("> summary").click()
        live = tab.locator(".k-steps-list > li").all_text_contents()
        tab.reload()
        expect(steps.locator("> summary")).to_have_text("2 steps, 1 failed: search vault, read file")
        steps.locator("> summary").click()
        expect(steps.locator("details.k-step").nth(0).locator("pre")).to_have_count(2)
        expect(steps.locator("details.k-step").nth(1).locator("pre")).to_have_count(2)

        assert tab.locator(".k-steps-list > li").all_text_contents() == live
        expect(steps.locator(".k-step-body pre").nth(0)).to_contain_text('"query": "tomatoes <img')
        expect(steps.locator(".k-step-body pre").nth(1)).to_contain_text('"success": true')
        expect(steps.locator(".k-step-body pre").nth(3)).to_contain_text('"code": "not_found"')
        expect(steps.locator("img")).to_have_count(0)


def test_a_tool_that_fails_is_said_to_have_failed(tmp_path: Path, tab: Page) -> None:
    model = Model([[Call("read_file", {"path": "Nowhere.md"})], ["There is no such note."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Read it")

        expect(tab.locator("details.k-steps > summary")).to_have_text("1 step, 1 failed: read file")


def test_a_citation_opens_its_passage_with_the_lines_marked(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model(LOOKED).open) as site:
        site.enter(tab, CHAT)
        say(tab, "When?")
        answered(tab)
        tab.get_by_role("link", name=LINES).click()
        pane = tab.get_by_role("complementary", name="Garden")
        expect(pane.locator("[data-cited]")).to_have_text(
            "Every evening, with water from the barrel. Tomatoes get two cans."
        )
        pane.get_by_role("radio", name="Source").click()
        expect(pane.locator("li[data-cited]")).to_have_count(2)
        tab.keyboard.press("Escape")
        expect(pane).not_to_be_visible()
        tab.get_by_role("link", name=re.compile("^Rain")).click()
        tab.get_by_role("complementary", name="Rain").get_by_role("link", name=WATERING).click()

        expect(tab).to_have_url(re.compile("/app/notes/Garden.*#Watering"))


def test_a_passage_that_changed_since_is_said_to_have_changed(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model(LOOKED).open) as site:
        site.enter(tab, CHAT)
        say(tab, "When?")
        answered(tab)
        (site.root / "Garden.md").write_text("# Garden\n\nAll new.\n", encoding="utf-8")
        tab.get_by_role("link", name=WATERING).click()

        expect(tab.get_by_role("complementary")).to_contain_text("The note has changed since this answer")


def test_a_passage_far_down_a_long_note_is_shown(tmp_path: Path, tab: Page) -> None:
    far = "\n## Far\n\nThe needle.\n\nA block. ^here\n\n[[#^here]]\n"
    long = "# Long\n\n" + "A line of the beginning.\n" * 9_000 + far
    model = Model([[Call("search_vault", {"query": "needle"})], ["See [[Long#Far]] (lines 9006-9006)."]])
    with sites.serving(tmp_path, model.open, notes={"Long.md": long}) as site:
        site.enter(tab, CHAT)
        say(tab, "Where?")
        answered(tab)
        tab.get_by_role("link", name=re.compile("^Long")).click()
        pane = tab.get_by_role("complementary")
        expect(pane.locator("[data-cited]")).to_have_text("The needle.")
        expect(pane.get_by_text("only part of it is shown")).to_be_visible()
        pane.get_by_role("radio", name="Source").click()

        expect(pane.locator("li[data-cited]")).to_have_text("The needle.")
        expect(pane.locator("li[data-cited]")).to_have_attribute("data-line", "9006")


@pytest.mark.parametrize("width", [1280, 390])
def test_by_keys_a_citation_opens_and_gives_the_focus_back(tmp_path: Path, tab: Page, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 800})
    with sites.serving(tmp_path, Model(LOOKED).open) as site:
        site.enter(tab, CHAT)
        say(tab, "When?")
        answered(tab)
        cited = tab.get_by_role("link", name=LINES)
        cited.focus()
        tab.keyboard.press("Enter")
        pane = tab.get_by_role("complementary", name="Garden")
        expect(pane.locator("[data-cited]")).to_be_in_viewport()
        expect(pane).to_be_focused()
        tab.keyboard.press("Escape")

        expect(pane).to_have_count(0)
        expect(cited).to_be_focused()


def test_a_citation_of_another_vault_opens_that_vaults_note(tmp_path: Path, tab: Page) -> None:
    theirs = "# Rain\n\nIt never rains there. See [[Far]].\n"
    other = worlds.fill(tmp_path / "other", {"Plans/Rain.md": theirs, "Far.md": "# Far\n"}).resolve()
    with sites.serving(
        tmp_path,
        Model([["Never [[sea:Rain]] (lines 3-3)."]]).open,
        change=lambda found: replace(found, vaults=(found.vault, Vault(name="sea", path=other))),
    ) as site:
        _ = site.hub.context(client="cli", vault="sea").index.refresh()
        site.enter(tab, CHAT)
        say(tab, "Does it rain?")
        answered(tab)
        tab.locator(".k-cite").click()
        pane = tab.get_by_role("complementary", name="Rain")
        expect(pane.locator("[data-cited]")).to_have_text("It never rains there. See Far.")
        expect(pane.get_by_role("button", name="Ask about this note")).to_have_count(0)
        expect(pane.get_by_role("button", name=re.compile("^Edit"))).to_have_count(0)
        pane.get_by_role("link", name="Far").first.click()
        expect(tab).to_have_url(re.compile(r"/app/notes/Far\.md\?vault=sea"))
        expect(tab.get_by_role("article", name="Far")).to_be_visible()


def test_stopping_ends_the_answer_and_keeps_what_there_is(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("The beginning", " and the end."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Tell me everything")
        expect(tab.locator(".k-answer")).to_have_text("The beginning")
        tab.keyboard.press("Escape")
        expect(tab.get_by_text("Stopped.", exact=True)).to_be_visible()
        expect(tab.get_by_label("Message", exact=True)).to_be_focused()
        tab.reload()

        expect(tab.locator(".k-answer")).to_have_text("The beginning")
        gate.go_on()


def test_a_question_of_the_model_is_answered_by_a_press_also_after_a_reload(tmp_path: Path, tab: Page) -> None:
    ask = Call("ask_user", {"question": "Which bed?", "options": ["The left one", "The right one"]})
    model = Model([[ask], [ask], ["The left one it is."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Water it")
        tab.get_by_role("button", name="The right one").click()
        expect(tab.locator(".k-question").last).to_contain_text("The right one")
        expect(tab.get_by_role("button", name="The left one")).to_be_enabled()
        tab.reload()
        tab.get_by_role("button", name="The left one").click()

        expect(tab.locator(".k-answer").last).to_have_text("The left one it is.")
        expect(tab.locator(".k-question").last).to_contain_text("The left one")
        expect(tab.get_by_label("Message", exact=True)).to_be_focused()


def test_a_question_is_answered_only_once_the_turn_has_ended(
    tmp_path: Path, tab: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model([[Call("ask_user", {"question": "Which bed?", "options": ["The left one"]})], ["So it is."]])
    may_end, record = threading.Event(), Meter.record

    def late(meter: Meter, run: str, name: str, spent: ModelSpend) -> None:
        assert may_end.wait(60)
        record(meter, run, name, spent)

    monkeypatch.setattr(Meter, "record", late)
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Water it")
        choice = tab.get_by_role("button", name="The left one")
        expect(choice).to_be_disabled()
        may_end.set()
        choice.click()

        expect(tab.locator(".k-answer").last).to_have_text("So it is.")


def test_a_model_that_fails_is_told_with_its_own_words_and_can_be_asked_again(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, gates.broken) as site:
        site.enter(tab, CHAT)
        say(tab, "Do it")
        problem = tab.get_by_role("alert")
        expect(problem.locator("strong")).to_be_visible()
        problem.get_by_role("button", name="Edit the message").click()
        expect(tab.get_by_label("Message", exact=True)).to_have_value("Do it")
        tab.get_by_label("Message", exact=True).fill("")
        problem.get_by_role("button", name="Try again").click()

        expect(tab.locator(".k-exchange")).to_have_count(2)
        expect(tab.get_by_role("alert")).to_have_count(2)


def test_a_conversation_is_there_after_a_reload_and_goes_on(tmp_path: Path, tab: Page) -> None:
    model = Model([*LOOKED, ["And in the morning too."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        say(tab, "When do I water?")
        answered(tab)
        tab.reload()
        expect(tab.locator(".k-question")).to_contain_text("When do I water?")
        tab.get_by_role("link", name=WATERING).click()
        expect(tab.locator("[data-cited]")).to_contain_text("Every evening")
        tab.keyboard.press("Escape")
        say(tab, "Only then?")
        expect(tab.locator(".k-answer").last).to_have_text("And in the morning too.")

        expect(tab.locator("[data-session]")).to_have_count(1)
        expect(tab.locator("[data-session]")).to_contain_text("2 messages")
        assert "When do I water?" in str(model.asked[-1])


def test_conversations_are_begun_renamed_copied_searched_and_deleted(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        site.enter(tab, CHAT)
        entries = tab.locator("[data-session]")
        for text in ("First", "Second"):
            tab.get_by_role("link", name="New conversation").first.click()
            say(tab, text)
            expect(tab.locator(".k-answer")).to_have_text("Yes.")
            expect(entries.filter(has_text=text)).to_have_count(1)
        entries.filter(has_text="First").get_by_role("link").click()
        expect(tab.locator(".k-question")).to_contain_text("First")
        _act(tab, "First", "Rename…")
        tab.get_by_label("Title", exact=True).fill("The very first")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("heading", level=1)).to_have_text("The very first")
        _act(tab, "The very first", "Duplicate")
        expect(entries).to_have_count(3)
        expect(tab.get_by_role("link", name="Copy", exact=True)).to_be_visible()
        _act(tab, "Second", "Delete…")
        tab.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(entries).to_have_count(2)
        expect(entries.filter(has_text="Second")).to_have_count(0)
        box = tab.get_by_label("Search conversations")
        box.fill("second")
        expect(tab.get_by_text("Nothing found")).to_be_visible()
        box.fill("very")

        expect(entries).to_have_count(2)


def _act(tab: Page, title: str, act: str) -> None:
    entry = tab.locator("[data-session]").filter(has_text=title).first
    entry.hover()
    entry.get_by_role("button", name=f"Actions for “{title}”").click()
    tab.get_by_role("menuitem", name=act).click()


def test_a_conversation_is_exported_as_a_note(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Every evening."]]).open) as site:
        site.enter(tab, CHAT)
        say(tab, "When do I water?")
        answered(tab)
        tab.get_by_role("button", name="Conversation actions").click()
        tab.get_by_role("menuitem", name="Export as a note").click()
        expect(tab.get_by_text(re.compile("^Saved to Chats/"))).to_be_visible()

        (note,) = (site.root / "Chats").glob("*.md")
        assert "Every evening." in note.read_text(encoding="utf-8")


def test_a_question_is_edited_and_answered_anew_in_copies_that_leave_the_first_as_it_is(
    tmp_path: Path, tab: Page
) -> None:
    model = Model([["One."], ["Two."], ["Three."], ["Four."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        say(tab, "First")
        answered(tab)
        say(tab, "Second")
        expect(tab.locator(".k-answer").last).to_have_text("Two.")
        answered(tab)
        first = tab.url
        tab.locator(".k-exchange").last.get_by_role("button", name="Regenerate in a copy").click()
        expect(tab.locator(".k-answer").last).to_have_text("Three.")
        expect(tab.locator(".k-question")).to_have_text([re.compile("First"), re.compile("Second")])
        assert tab.url != first
        answered(tab)
        tab.locator(".k-exchange").first.get_by_role("button", name="Edit question").click()
        expect(tab.get_by_label("Edited question")).to_be_focused()
        tab.keyboard.press("Escape")
        expect(tab.get_by_role("button", name="Edit question").first).to_be_focused()
        tab.keyboard.press("Enter")
        tab.get_by_label("Edited question").fill("Anew")
        tab.keyboard.press("Enter")
        expect(tab.locator(".k-question")).to_have_count(1)
        expect(tab.locator(".k-answer")).to_have_text("Four.")
        expect(tab.get_by_role("heading", level=1)).to_have_text("Anew")
        expect(tab.get_by_label("Message", exact=True)).to_be_focused()
        tab.goto(first)

        expect(tab.locator(".k-answer")).to_have_text(["One.", "Two."])
        expect(tab.locator("[data-session]")).to_have_count(3)


def test_a_conversation_in_which_something_goes_on_elsewhere_is_marked(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        site.enter(tab, CHAT)
        say(tab, "First")
        answered(tab)
        entry = tab.locator("[data-session]")
        expect(entry).to_contain_text("1 message")
        expect(entry).not_to_contain_text("answering…")
        name = str(entry.get_attribute("data-session"))
        (place,) = tmp_path.rglob(f"sessions/{name}.lock")
        with FileLock(place):
            tab.reload()

            expect(entry).to_contain_text("answering… · ")


def test_a_question_about_a_note_says_which_note_is_meant(tmp_path: Path, tab: Page) -> None:
    model = Model([*LOOKED, ["It is about watering."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        say(tab, "When?")
        answered(tab)
        tab.get_by_role("link", name=WATERING).click()
        tab.get_by_role("button", name="Ask about this note").click()
        expect(tab.get_by_text("About Garden")).to_be_visible()
        say(tab, "What is it about?")
        expect(tab.locator(".k-answer").last).to_have_text("It is about watering.")

        assert "Garden.md" in str(model.asked[-1])


def test_what_is_selected_in_a_note_goes_along_with_the_question(tmp_path: Path, tab: Page) -> None:
    model = Model([["From the barrel."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, "/app/notes/Garden.md")
        text = tab.get_by_role("article", name="Garden").get_by_text("Every evening")
        text.select_text()
        tab.get_by_role("button", name="Ask about this", exact=True).click()
        expect(tab.get_by_text("About Garden")).to_be_visible()
        say(tab, "What with?")
        expect(tab.locator(".k-answer")).to_have_text("From the barrel.")

        expect(tab.locator(".k-attached")).to_contain_text("[[Garden]]")
        assert "with water from the barrel" in str(model.asked[-1])


def test_answer_and_question_are_copied_as_markdown(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["**Every** evening:\n\n```sh\nwater 2\n```"]]).open) as site:
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.address)
        site.enter(tab, CHAT)
        say(tab, "When?")
        answered(tab)
        copied: list[str] = []
        for name in ("Copy answer", "Copy code", "Copy question"):
            tab.locator(".k-exchange").hover()
            tab.get_by_role("button", name=name).click()
            copied.append(tab.evaluate("navigator.clipboard.readText()"))

        assert copied == ["**Every** evening:\n\n```sh\nwater 2\n```", "water 2", "When?"]
