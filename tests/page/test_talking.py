"""Talking with the vault on the page: sending, watching the steps, opening what is cited, stopping, coming back."""

import re
import threading
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Page, expect

from knapper.agents.model.usage import Meter
from knapper.codemode.model import ModelSpend
from tests.agents.scripted import Call, Model
from tests.page import gates, sites
from tests.page.gates import Gate
from tests.page.sites import answered, say

pytestmark = pytest.mark.timeout(60)
WATERING, LINES = re.compile("^Garden . Watering"), re.compile("^Garden . Watering lines 10.11$")
CITED = "With water from the barrel [[Garden#Watering]] (lines 10-11), and [[Rain]] helps."
LOOKED = (["Let me look.", Call("search_vault", {"query": "watering tomatoes"})], [CITED])


def test_an_answer_comes_as_it_is_made_and_ends_whole(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("Water them ", "every **evening**."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab)
        say(tab, "When do I water?")
        answer = tab.locator(".answer")
        expect(answer).to_have_text("Water them")
        expect(tab.get_by_role("button", name="Stop")).to_be_visible()
        gate.go_on()
        expect(answer).to_have_text("Water them every evening.")

        expect(answer.locator("strong")).to_have_text("evening")
        expect(tab.get_by_role("button", name="Send")).to_be_visible()
        expect(tab.locator(".question")).to_contain_text("When do I water?")
        expect(tab.locator("#said")).to_contain_text("Answered: Water them every evening.")


def test_each_tool_that_was_called_folds_out(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model(LOOKED).open) as site:
        site.enter(tab)
        say(tab, "When?")
        steps = tab.locator("details.steps")
        expect(steps.locator("> summary")).to_have_text("1 step: search_vault")
        expect(steps.get_by_text("Arguments")).not_to_be_visible()
        steps.locator("> summary").click()
        steps.locator("details.step > summary").click()

        expect(steps.get_by_text("Let me look.")).to_be_visible()
        expect(steps.locator(".step-summary")).to_contain_text("2 results")
        expect(steps.locator(".step-body pre").first).to_contain_text('"query": "watering tomatoes"')
        expect(steps.locator(".step-body pre").last).to_contain_text('"heading": "## Watering"')


def test_after_a_reload_the_steps_are_there_in_their_order_with_arguments_and_answers(
    tmp_path: Path, tab: Page
) -> None:
    evil = '<img src=x onerror="document.title=1">'
    search, read = Call("search_vault", {"query": f"tomatoes {evil}"}), Call("read_file", {"path": "Nowhere.md"})
    model = Model([["Let me look.", search], ["Not there.", read], [CITED]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab)
        say(tab, "When?")
        answered(tab)
        live = tab.locator(".steps-list > li").all_text_contents()
        tab.reload()
        steps = tab.locator("details.steps")
        expect(steps.locator("> summary")).to_have_text("2 steps, 1 failed: search_vault, read_file")
        steps.locator("> summary").click()
        for number in (0, 1):
            steps.locator("details.step > summary").nth(number).click()
            expect(steps.locator("details.step").nth(number).locator("pre")).to_have_count(2)

        assert tab.locator(".steps-list > li").all_text_contents() == live
        expect(steps.locator(".step-body pre").nth(0)).to_contain_text('"query": "tomatoes <img')
        expect(steps.locator(".step-body pre").nth(1)).to_contain_text('"success": true')
        expect(steps.locator(".step-body pre").nth(3)).to_contain_text('"code": "not_found"')
        expect(steps.locator("img")).to_have_count(0)
        expect(tab).to_have_title("Knapper")


def test_a_tool_that_fails_is_said_to_have_failed(tmp_path: Path, tab: Page) -> None:
    model = Model([[Call("read_file", {"path": "Nowhere.md"})], ["There is no such note."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab)
        say(tab, "Read it")

        expect(tab.locator("details.steps > summary")).to_have_text("1 step, 1 failed: read_file")


def test_a_citation_opens_its_passage_with_the_lines_marked(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model(LOOKED).open) as site:
        site.enter(tab)
        say(tab, "When?")
        tab.get_by_role("button", name=LINES).click()
        panel = tab.get_by_role("complementary", name="Garden")
        expect(panel.locator(".meant")).to_have_text(
            "Every evening, with water from the barrel. Tomatoes get two cans."
        )
        panel.get_by_role("button", name="As written").click()
        expect(panel.locator("li.meant")).to_have_count(2)
        tab.keyboard.press("Escape")
        expect(panel).not_to_be_visible()
        expect(tab.get_by_role("button", name=WATERING)).to_be_focused()
        tab.get_by_role("button", name="Rain", exact=True).click()
        tab.get_by_role("complementary", name="Rain").get_by_role("button", name=WATERING).click()

        expect(panel.get_by_text(re.compile("^Garden.md · Watering · lines 8.12$"))).to_be_visible()


def test_a_passage_that_changed_since_is_said_to_have_changed(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model(LOOKED).open) as site:
        site.enter(tab)
        say(tab, "When?")
        cited = tab.get_by_role("button", name=WATERING)
        answered(tab)
        (site.root / "Garden.md").write_text("# Garden\n\nAll new.\n", encoding="utf-8")
        cited.click()

        expect(tab.get_by_role("complementary")).to_contain_text("The note was changed after this answer")


def test_a_passage_far_down_a_long_note_is_shown(tmp_path: Path, tab: Page) -> None:
    far = "\n## Far\n\nThe needle.\n\nA block. ^here\n\n[[#^here]]\n"
    long = "# Long\n\n" + "A line of the beginning.\n" * 9_000 + far
    model = Model([[Call("search_vault", {"query": "needle"})], ["See [[Long#Far]] (lines 9006-9006)."]])
    with sites.serving(tmp_path, model.open, notes={"Long.md": long}) as site:
        site.enter(tab)
        say(tab, "Where?")
        answered(tab)
        tab.get_by_role("button", name=re.compile("^Long")).click()
        expect(tab.locator(".meant")).to_have_text("The needle.")
        expect(tab.get_by_text("a part of it is shown")).to_be_visible()
        tab.get_by_role("button", name="As written").click()
        expect(tab.locator("li.meant")).to_have_text("The needle.")
        expect(tab.locator("li.meant")).to_have_attribute("value", "9006")
        tab.get_by_role("button", name="As it reads").click()
        tab.locator(".passage .cite").click()

        expect(tab.locator(".meant")).to_have_text("A block. ^here")


def test_stopping_ends_the_answer_and_keeps_what_there_is(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("The beginning", " and the end."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab)
        say(tab, "Tell me everything")
        expect(tab.locator(".answer")).to_have_text("The beginning")
        tab.get_by_role("button", name="Stop").click()
        expect(tab.get_by_text("Stopped.", exact=True)).to_be_visible()
        tab.reload()

        expect(tab.locator(".answer")).to_have_text("The beginning")
        gate.go_on()


def test_a_question_of_the_model_is_answered_by_a_press(tmp_path: Path, tab: Page) -> None:
    ask = Call("ask_user", {"question": "Which bed?", "options": ["The left one", "The right one"]})
    model = Model([[ask], ["The left one it is."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab)
        say(tab, "Water it")
        tab.get_by_role("button", name="The left one").click()

        expect(tab.locator(".answer").last).to_have_text("The left one it is.")
        expect(tab.locator(".question").last).to_contain_text("The left one")


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
        site.enter(tab)
        say(tab, "Water it")
        choice = tab.get_by_role("button", name="The left one")
        expect(choice).to_be_disabled()
        may_end.set()
        choice.click()

        expect(tab.locator(".answer").last).to_have_text("So it is.")


def test_the_last_event_is_the_end_though_the_connection_stays_open(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        tab.goto(site.address)
        ended = tab.evaluate(
            """async () => {
              const { Turn } = await import("/page/js/chat/stream.js");
              const text = 'id: 1\\nevent: start\\ndata: {"turn_id": "t"}\\n\\nid: 2\\nevent: done\\ndata: {}\\n\\n';
              const body = new ReadableStream({ start: (own) => own.enqueue(new TextEncoder().encode(text)) });
              const turn = new Turn({ open: async () => ({ body }) }, () => {}, () => {});
              const late = new Promise((resolve) => setTimeout(() => resolve("late"), 5_000));
              return Promise.race([turn.send("/chat/stream", {}).then(() => "ended"), late]);
            }"""
        )

    assert ended == "ended"


def test_a_model_that_fails_is_told_and_can_be_asked_again(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, gates.broken) as site:
        site.enter(tab)
        say(tab, "Do it")
        expect(tab.get_by_role("alert").locator("strong")).to_be_visible()
        tab.get_by_role("alert").get_by_role("button", name="Try again").click()

        expect(tab.get_by_label("Message", exact=True)).to_have_value("Do it")


def test_a_conversation_is_there_after_a_reload_and_goes_on(tmp_path: Path, tab: Page) -> None:
    model = Model([*LOOKED, ["And in the morning too."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab)
        say(tab, "When do I water?")
        answered(tab)
        tab.reload()
        expect(tab.locator(".question")).to_contain_text("When do I water?")
        tab.get_by_role("button", name=WATERING).click()
        expect(tab.locator(".meant")).to_contain_text("Every evening")
        tab.keyboard.press("Escape")
        say(tab, "Only then?")
        expect(tab.locator(".answer").last).to_have_text("And in the morning too.")

        expect(tab.locator("#sessions .entry")).to_have_count(1)
        expect(tab.locator("#sessions .entry")).to_contain_text("2 turns")
        assert "When do I water?" in str(model.asked[-1])


def test_conversations_are_begun_renamed_copied_and_deleted(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        site.enter(tab)
        entries = tab.locator("#sessions .entry")
        for text in ("First", "Second"):
            tab.get_by_role("button", name="New", exact=True).click()
            say(tab, text)
            expect(tab.locator(".answer")).to_have_text("Yes.")
            expect(entries.filter(has_text=text)).to_have_count(1)
        entries.filter(has_text="First").click()
        expect(tab.locator(".question")).to_contain_text("First")
        tab.get_by_role("button", name="Rename “First”").click()
        tab.get_by_label("Name", exact=True).fill("The very first")
        tab.keyboard.press("Enter")
        expect(tab.locator("#title")).to_have_text("The very first")
        tab.get_by_role("button", name="Copy “The very first”").click()
        expect(entries).to_have_count(3)
        tab.get_by_role("button", name="Delete “Second”").click()
        tab.get_by_role("dialog").get_by_role("button", name="Delete").click()

        expect(entries).to_have_count(2)
        expect(entries.filter(has_text="Second")).to_have_count(0)


def test_a_conversation_in_which_something_goes_on_elsewhere_is_marked(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        site.enter(tab)
        say(tab, "First")
        answered(tab)
        entry = tab.locator("#sessions .entry")
        expect(entry).to_contain_text("1 turn")
        expect(entry).not_to_contain_text("at work")
        name = str(entry.get_attribute("data-session"))
        (place,) = tmp_path.rglob(f"sessions/{name}.lock")
        with FileLock(place):
            tab.reload()

            expect(entry).to_contain_text("at work · ")


def test_a_question_about_a_note_says_which_note_is_meant(tmp_path: Path, tab: Page) -> None:
    model = Model([*LOOKED, ["It is about watering."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab)
        say(tab, "When?")
        answered(tab)
        tab.get_by_role("button", name=WATERING).click()
        tab.get_by_role("button", name="Ask about this note").click()
        expect(tab.get_by_text("About Garden.md")).to_be_visible()
        say(tab, "What is it about?")
        expect(tab.locator(".answer").last).to_have_text("It is about watering.")

        assert "Garden.md" in str(model.asked[-1])
