"""Losing the connection, and finding it again."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents.scripted import Model
from tests.page import sites
from tests.page.gates import Gate
from tests.page.sites import answered, say

pytestmark = pytest.mark.timeout(120)
CHAT = "/app/chat/new"


def test_an_answer_goes_on_after_the_connection_was_lost(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("One. ", "Two. ", "Three."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Count")
        expect(tab.locator(".k-answer")).to_have_text("One.")
        site.wire.cut()
        expect(tab.get_by_text("The connection was lost just now.")).to_be_visible()
        gate.go_on()
        site.wire.mend()
        expect(tab.locator(".k-answer")).to_have_text("One. Two.")
        expect(tab.get_by_text("The connection was lost")).not_to_be_visible()
        gate.go_on()
        answered(tab)

        expect(tab.locator(".k-answer")).to_have_text("One. Two. Three.")
        expect(tab.locator(".k-exchange")).to_have_count(1)


def test_an_answer_goes_on_after_a_reload(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("One. ", "Two."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Count")
        expect(tab.locator(".k-answer")).to_have_text("One.")
        tab.reload()
        expect(tab.locator(".k-answer")).to_have_text("One.")
        expect(tab.locator(".k-question")).to_contain_text("Count")
        expect(tab.get_by_role("button", name="Stop")).to_be_visible()
        gate.go_on()
        answered(tab)

        expect(tab.locator(".k-answer")).to_have_text("One. Two.")
        expect(tab.locator(".k-exchange")).to_have_count(1)


def test_what_is_being_written_outlasts_a_reload_until_it_is_sent_or_the_person_signs_out(
    tmp_path: Path, tab: Page
) -> None:
    with sites.serving(tmp_path, Model([["Hello."]]).open) as site:
        site.enter(tab, CHAT)
        box = tab.get_by_label("Message", exact=True)
        box.press_sequentially("When do I")
        tab.reload()
        expect(box).to_have_value("When do I")
        box.press("End")
        box.press_sequentially(" water?")
        box.press("Enter")
        answered(tab)
        tab.reload()
        expect(tab.locator(".k-question")).to_contain_text("When do I water?")
        expect(box).to_have_value("")
        box.fill("Mine alone")
        tab.get_by_role("button", name="Appearance and account").click()
        tab.get_by_role("menuitem", name="Sign out").click()
        expect(tab.get_by_label("Sign-in link or code")).to_be_visible()

        assert tab.evaluate("sessionStorage.length") == 0


def test_a_server_that_is_gone_is_said_to_be_gone_and_greeted_again(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hello."]]).open) as site:
        site.enter(tab, CHAT)
        say(tab, "Hi")
        answered(tab)
        site.wire.cut()
        say(tab, "Are you there?")
        expect(tab.get_by_text("The page reconnects by itself")).to_be_visible()
        problem = tab.get_by_role("alert")
        expect(problem).to_contain_text("The server can't be reached")
        site.wire.mend()
        expect(tab.get_by_text("The page reconnects by itself")).to_have_count(0)
        problem.get_by_role("button", name="Try again").click()
        answered(tab)

        expect(tab.locator(".k-answer")).to_have_text(["Hello.", "Hello."])
        expect(tab.locator(".k-question").last).to_contain_text("Are you there?")
        expect(problem).to_have_count(0)


def test_a_view_that_is_first_opened_without_the_server_comes_when_that_is_back(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hello."]]).open) as site:
        site.enter(tab)
        site.wire.cut()
        tab.get_by_role("link", name="Settings").click()
        expect(tab.get_by_text("It opens as soon as the server can be reached.")).to_be_visible()
        expect(tab.get_by_role("button", name="Reload the page")).to_have_count(0)
        site.wire.mend()

        expect(tab.get_by_role("heading", name="Models")).to_be_visible()


def test_a_search_that_found_no_server_is_done_when_that_is_back(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hello."]]).open) as site:
        site.enter(tab, "/app/search?q=spade")
        expect(tab.get_by_role("option")).to_have_count(1)
        expect(tab.get_by_role("option")).to_contain_text("The spade hangs")
        site.wire.cut()
        tab.locator("main input").fill("rains on")
        expect(tab.get_by_role("alert")).to_contain_text("The server can't be reached")
        expect(tab.get_by_role("option")).to_have_count(0)
        site.wire.mend()

        expect(tab.get_by_role("option").first).to_contain_text("It rains on the tomatoes")
        expect(tab.get_by_role("alert")).to_have_count(0)


def test_a_second_window_sees_what_is_answered_in_the_first(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("One. ", "Two."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Count")
        expect(tab.locator(".k-answer")).to_have_text("One.")
        second = tab.context.new_page()
        second.goto(tab.url)
        expect(second.locator(".k-answer")).to_have_text("One.")
        gate.go_on()
        for one in (tab, second):
            answered(one)

            expect(one.locator(".k-answer")).to_have_text("One. Two.")
            expect(one.locator(".k-question")).to_contain_text("Count")


def test_a_message_that_is_sent_twice_at_once_is_sent_once(tmp_path: Path, tab: Page) -> None:
    model = Model([["Hello."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        box = tab.get_by_label("Message", exact=True)
        box.fill("Hi")
        box.evaluate(
            """box => {
              const form = box.form;
              form.requestSubmit();
              box.value = "Hi";
              box.dispatchEvent(new Event("input", { bubbles: true }));
              form.requestSubmit();
            }"""
        )
        answered(tab)

        expect(tab.locator(".k-exchange")).to_have_count(1)
        assert len(model.asked) == 1


def test_stopping_before_the_answer_began_stops_it(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("", "Too late."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Count")
        tab.get_by_role("button", name="Stop").click()

        expect(tab.get_by_text("Stopped.", exact=True)).to_be_visible()


def test_leaving_the_view_and_coming_back_loses_nothing(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("One. ", "Two."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab, CHAT)
        say(tab, "Count")
        expect(tab.locator(".k-answer")).to_have_text("One.")
        tab.get_by_label("Message", exact=True).fill("A draft")
        tab.get_by_role("link", name="Settings").click()
        gate.go_on()
        tab.get_by_role("link", name="Chat").click()
        answered(tab)

        expect(tab.locator(".k-answer")).to_have_text("One. Two.")
        expect(tab.get_by_label("Message", exact=True)).to_have_value("A draft")
