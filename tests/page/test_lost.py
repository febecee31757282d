"""Losing the connection, and finding it again."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents.scripted import Model
from tests.page import sites
from tests.page.gates import Gate
from tests.page.sites import answered, say

pytestmark = pytest.mark.timeout(60)


def test_an_answer_goes_on_after_the_connection_was_lost(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("One. ", "Two. ", "Three."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab)
        say(tab, "Count")
        expect(tab.locator(".answer")).to_have_text("One.")
        site.wire.cut()
        expect(tab.get_by_text("The connection is lost.")).to_be_visible()
        gate.go_on()
        site.wire.mend()
        expect(tab.locator(".answer")).to_have_text("One. Two.")
        expect(tab.get_by_text("The connection is lost.")).not_to_be_visible()
        gate.go_on()
        answered(tab)

        expect(tab.locator(".answer")).to_have_text("One. Two. Three.")
        expect(tab.locator(".exchange")).to_have_count(1)


def test_an_answer_goes_on_after_a_reload(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("One. ", "Two."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab)
        say(tab, "Count")
        expect(tab.locator(".answer")).to_have_text("One.")
        tab.reload()
        expect(tab.locator(".answer")).to_have_text("One.")
        expect(tab.locator(".question")).to_contain_text("Count")
        gate.go_on()
        answered(tab)

        expect(tab.locator(".answer")).to_have_text("One. Two.")
        expect(tab.locator(".exchange")).to_have_count(1)


def test_a_server_that_is_gone_is_said_to_be_gone_and_greeted_again(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Hello."]]).open) as site:
        site.enter(tab)
        say(tab, "Hi")
        answered(tab)
        site.wire.cut()
        say(tab, "Are you there?")
        expect(tab.locator("#offline")).to_be_visible()
        expect(tab.locator("#standing")).to_have_text("no connection")
        tab.get_by_role("alert").get_by_role("button", name="Try again").click()
        expect(tab.get_by_label("Message", exact=True)).to_have_value("Are you there?")
        site.wire.mend()
        tab.locator("#offline-again").dispatch_event("click")  # it goes away where the page finds the server by itself
        expect(tab.locator("#offline")).not_to_be_visible()
        tab.get_by_label("Message", exact=True).press("Enter")
        answered(tab)

        expect(tab.locator(".answer").last).to_have_text("Hello.")


def test_a_second_window_sees_what_is_answered_in_the_first(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("One. ", "Two."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab)
        say(tab, "Count")
        expect(tab.locator(".answer")).to_have_text("One.")
        second = tab.context.new_page()
        second.goto(site.address)
        expect(second.locator(".answer")).to_have_text("One.")
        gate.go_on()
        for one in (tab, second):
            answered(one)

            expect(one.locator(".answer")).to_have_text("One. Two.")
            expect(one.locator(".question")).to_contain_text("Count")


def test_a_message_that_is_sent_twice_at_once_is_sent_once(tmp_path: Path, tab: Page) -> None:
    model = Model([["Hello."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab)
        box = tab.get_by_label("Message", exact=True)
        box.fill("Hi")
        box.evaluate(
            """box => {
              const form = box.form;
              form.requestSubmit();
              box.value = "Hi";
              form.requestSubmit();
            }"""
        )
        answered(tab)

        expect(tab.locator(".exchange")).to_have_count(1)
        assert len(model.asked) == 1


def test_stopping_before_the_answer_began_stops_it(tmp_path: Path, tab: Page) -> None:
    gate = Gate(words=("", "Too late."))
    with sites.serving(tmp_path, gate.open) as site:
        site.enter(tab)
        say(tab, "Count")
        tab.get_by_role("button", name="Stop").click()

        expect(tab.get_by_text("Stopped.", exact=True)).to_be_visible()
