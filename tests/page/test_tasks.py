"""Tasks of several agents on the page: progress, what was found, questions, proposals, and what it took."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from knapper.agents.pipeline import pipeline
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.pipeline import PausedState
from knapper.agents.pipeline.store import PausedRun
from knapper.app import pipelines
from knapper.app.hub import AGENT_CLIENT, local_now
from knapper.config import Settings
from knapper.jsontypes import JSONValue
from tests.agents import scripts
from tests.agents.scripted import Call
from tests.agents.scripts import Cast
from tests.net.servers import Reply, serving
from tests.page import sites
from tests.page.gates import Held
from tests.page.sites import Site, answered, say

pytestmark = pytest.mark.timeout(120)
NOTES = sites.NOTES
CHAT = "/app/chat/new"
WATERING = re.compile("^Garden . Watering")
CITED = "With water from the barrel [[Garden#Watering]] (lines 10-11)."
ASK = Call("ask_user", {"question": "Which bed do you mean?", "options": ["The left one", "The right one"]})


def cast(**scripted: Sequence[object]) -> Cast:
    usual = {"scout": [[scripts.select("Garden.md", reasoning="It names the barrel.")]], "task": [scripts.task(CITED)]}
    return Cast({**usual, **scripted})  # pyright: ignore[reportArgumentType]


def exploring(site: Site, tab: Page, text: str = "How do I water?") -> Locator:
    """Have the scout look, and send a task."""
    site.enter(tab, CHAT)
    scout = tab.get_by_role("button", name="Scout", exact=True)
    scout.click()
    expect(scout).to_have_attribute("aria-pressed", "true")
    say(tab, text)
    return tab.locator(".k-exchange").last


def test_it_tells_how_far_it_is_and_what_the_scout_chose_and_why(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open) as site:
        task = exploring(site, tab)
        answered(tab)
        expect(task.locator(".k-phases > li").nth(0)).to_have_text(re.compile("Scout notes chosen: 1"))
        expect(task.locator(".k-phases > [data-state=ended]")).to_have_count(2)
        selection = task.locator("[data-finding=selection]")
        expect(selection.locator("summary").first).to_have_text("Scout chose 1 note · done")
        selection.locator("summary").first.click()
        expect(selection).to_contain_text("It names the barrel.")
        selection.get_by_role("button", name="Garden", exact=True).click()
        expect(tab.get_by_role("complementary", name="Garden")).to_be_visible()
        tab.keyboard.press("Escape")
        task.get_by_role("link", name=WATERING).click()

        expect(tab.locator("[data-cited]")).to_have_text(
            "Every evening, with water from the barrel. Tomatoes get two cans."
        )


def test_it_tells_what_went_in_and_what_each_agent_took(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open) as site:
        task = exploring(site, tab)
        answered(tab)
        went_in = task.locator("[data-finding=context]")
        expect(went_in.locator("summary").first).to_have_text(re.compile(r"^1 note in context · \d+ tokens$"))
        costs = task.locator(".k-spent")
        expect(costs.locator("summary")).to_have_text(re.compile(r"^scripted · [\d.k]+ tokens · \u2013$"))
        costs.locator("summary").click()

        expect(costs.get_by_role("row")).to_have_count(3)
        expect(costs.get_by_role("row", name="Scout")).to_be_visible()
        expect(costs.get_by_role("row", name="Task")).to_be_visible()


def test_all_of_it_is_there_after_a_reload(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open) as site:
        _ = exploring(site, tab)
        answered(tab)
        tab.reload()
        task = tab.locator(".k-exchange")
        expect(task).to_have_count(1)
        expect(task.locator(".k-question")).to_contain_text("How do I water?")
        expect(task.locator("[data-finding=selection] summary").first).to_contain_text("Scout chose 1 note")
        expect(task.locator("[data-finding=context] summary").first).to_contain_text("1 note in context")
        expect(task.locator(".k-spent summary")).to_contain_text("scripted")
        task.get_by_role("link", name=WATERING).click()

        expect(tab.locator("[data-cited]")).to_contain_text("Every evening")


def test_the_texts_of_what_went_in_are_copied(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open) as site:
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.address)
        task = exploring(site, tab)
        answered(tab)
        task.locator("[data-finding=context] summary").first.click()
        task.locator("[data-finding=context]").get_by_role("button", name="Copy text").click()
        expect(tab.locator(".k-toasts")).to_contain_text("Copied the text of 1 note")

        assert tab.evaluate("navigator.clipboard.readText()") == f"# Garden.md\n\n{NOTES['Garden.md']}"


def test_edits_are_proposed_and_reviewed(tmp_path: Path, tab: Page) -> None:
    edits = scripts.task("The spade moved.", ("Garden.md", "end", "The spade hangs in the barn."), ("No.md", "line:3"))
    with sites.serving(tmp_path, cast(task=[edits]).open) as site:
        task = exploring(site, tab)
        answered(tab)
        expect(task.get_by_text(re.compile("No.md can't be edited"))).to_be_visible()
        card = task.locator(".k-changes")
        expect(card).to_have_count(1)
        card.get_by_role("button", name="Accept all").click()
        expect(card).to_contain_text("Accepted: changes in 1 note")

        assert site.read("Garden.md") == NOTES["Garden.md"] + "The spade hangs in the barn.\n"


def test_a_note_that_is_opened_for_the_person_stands_at_the_side(tmp_path: Path, tab: Page) -> None:
    opening = scripts.task("Here it is.", ("Plans/Rain.md", "open"))
    looks = [[scripts.select("Plans/Rain.md")]]
    with sites.serving(tmp_path, cast(scout=looks, task=[opening]).open) as site:
        _ = exploring(site, tab, "Show me the rain")

        expect(tab.get_by_role("complementary", name="Rain")).to_contain_text("It rains on the tomatoes.")


def test_a_question_goes_on_with_the_answer(tmp_path: Path, tab: Page) -> None:
    looks = [[ASK], [scripts.select("Garden.md")]]
    model = cast(scout=looks)
    with sites.serving(tmp_path, model.open) as site:
        task = exploring(site, tab, "Water it")
        task.get_by_role("button", name="The left one").click()
        answered(tab)
        expect(task.locator(".k-asked + .k-answer")).to_be_visible()
        expect(task).to_contain_text("You: The left one")
        expect(task.get_by_role("link", name=WATERING)).to_be_visible()
        expect(tab.get_by_role("region", name="Waiting for you")).not_to_be_visible()
        assert "The person answers: The left one" in model.prompts("scout")
        tab.reload()
        expect(tab.locator(".k-exchange")).to_have_count(1)

        expect(tab.locator(".k-exchange").get_by_role("link", name=WATERING)).to_be_visible()


def test_a_question_is_found_waiting_after_a_reload_and_answered_in_ones_own_words(tmp_path: Path, tab: Page) -> None:
    model = cast(scout=[[ASK], [scripts.select("Garden.md")]])
    with sites.serving(tmp_path, model.open) as site:
        _ = exploring(site, tab, "Water it")
        expect(tab.get_by_text("Which bed do you mean?").first).to_be_visible()
        expect(tab.get_by_role("button", name="Send")).to_be_visible()
        tab.evaluate("localStorage.removeItem('knapper.asked')")  # as in another window
        tab.reload()
        task = tab.locator(".k-exchange")
        expect(task).to_have_count(1)
        expect(task.locator(".k-question")).to_contain_text("Water it")
        task.get_by_label("Your own answer").fill("neither of them")
        tab.keyboard.press("Enter")
        answered(tab)

        assert "The person answers: neither of them" in model.prompts("scout")
        expect(task.get_by_role("link", name=WATERING)).to_be_visible()


def test_a_question_is_listed_and_opens_where_it_was_asked(tmp_path: Path, tab: Page) -> None:
    model = cast(scout=[[ASK], [scripts.select("Garden.md")]])
    with sites.serving(tmp_path, model.open) as site:
        _ = exploring(site, tab, "Water it")
        listed = tab.locator("[aria-label='Waiting for you'] li")
        expect(listed).to_contain_text("Which bed do you mean?")
        tab.get_by_role("link", name="New conversation").first.click()
        expect(tab.locator(".k-exchange")).to_have_count(0)
        listed.click()
        tab.locator(".k-exchange").get_by_role("button", name="The right one").click()
        answered(tab)

        expect(listed).to_have_count(0)


def test_a_question_of_another_surface_is_answered_here(tmp_path: Path, tab: Page) -> None:
    model = cast(other=[["Just talk."]])
    with sites.serving(tmp_path, model.open) as site:
        _paused(site)
        site.enter(tab, CHAT)
        tab.locator("[aria-label='Waiting for you'] li").click()
        expect(tab.locator(".k-question")).to_contain_text("Water it")
        tab.get_by_role("button", name="The left one").click()
        answered(tab)
        expect(tab.locator(".k-answer").get_by_role("link", name=WATERING)).to_be_visible()
        say(tab, "Thanks")

        expect(tab.locator(".k-answer").last).to_have_text("Just talk.")


def test_what_was_taken_from_the_web_names_its_source(tmp_path: Path, tab: Page) -> None:
    page = Reply(body=b"<title>Frost dates</title><p>The last frost is in May.", headers={"Content-Type": "text/html"})
    with serving(page) as web, serving(_hits(web.url)) as provider:
        taken = {"findings": "In May.", "sources": [{"url": f"{web.url}/", "extracted": "The last frost is in May."}]}
        finds = [
            [Call("evaluate_context", {"needs_web": True, "reasoning": "no note tells"})],
            [Call("web_search", {"query": "last frost"})],
            [Call("select_pages", {"urls": [f"{web.url}/"]})],
            [Call("finalize_web_context", taken)],
        ]

        def change(found: Settings) -> Settings:
            own = {"is_allowed": True, "provider": "tavily", "api_key": "k", "base_url": provider.url}
            hosts = (web.url.removeprefix("http://"),)
            return replace(found, web=replace(found.web, **own, hosts=hosts))

        with sites.serving(tmp_path, cast(web=finds).open, change=change) as site:
            site.enter(tab, CHAT)
            tab.get_by_role("button", name="Web", exact=True).click()
            say(tab, "When is the last frost?")
            answered(tab)
            sources = tab.locator("[data-finding=sources]")
            expect(sources.locator("summary")).to_have_text("1 source from the web")
            sources.locator("summary").click()

            expect(sources.get_by_text("no note tells")).to_be_visible()
            expect(sources.get_by_role("link")).to_have_attribute("href", f"{web.url}/")
            expect(sources.get_by_role("link")).to_have_attribute("rel", re.compile("noopener"))
            expect(sources.locator("blockquote")).to_have_text("The last frost is in May.")


def test_a_web_that_is_off_is_said_to_be_off(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, cast().open) as site:
        site.enter(tab, CHAT)
        web = tab.get_by_role("button", name="Web", exact=True)
        expect(web).to_have_attribute("title", re.compile("Web access is off"))
        tab.get_by_role("button", name="Scout", exact=True).click()
        web.click()
        say(tab, "How do I water?")
        answered(tab)

        expect(tab.locator("[data-finding=sources]")).to_contain_text("web access is off")


def held() -> Held:
    """Have the scout choose a note, and look on until it may be sure."""
    return Held(cast=cast(scout=[[scripts.select("Garden.md", confidence="exploring")], [scripts.select("Garden.md")]]))


def test_stopping_ends_a_task_with_what_there_is(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, held().open) as site:
        task = exploring(site, tab)
        expect(task.locator(".k-steps > summary").first).to_contain_text("1 step: update selection")
        tab.get_by_role("button", name="Stop").click()
        expect(tab.get_by_text("Stopped.", exact=True)).to_be_visible()
        expect(task.locator("[data-finding=selection] summary").first).to_contain_text("Scout chose 1 note · exploring")
        tab.reload()

        expect(tab.locator("[data-finding=selection] summary").first).to_contain_text("Scout chose 1 note · exploring")


def test_a_task_goes_on_after_the_connection_was_lost(tmp_path: Path, tab: Page) -> None:
    model = held()
    with sites.serving(tmp_path, model.open) as site:
        task = exploring(site, tab)
        expect(task.locator(".k-steps > summary").first).to_contain_text("1 step: update selection")
        site.wire.cut()
        expect(task.get_by_text("The connection was lost")).to_be_visible()
        model.go_on()
        site.wire.mend()
        answered(tab)

        expect(task.locator(".k-phases > [data-state=ended]")).to_have_count(2)
        expect(task.get_by_role("link", name=WATERING)).to_be_visible()


def test_a_task_goes_on_after_a_reload(tmp_path: Path, tab: Page) -> None:
    model = held()
    with sites.serving(tmp_path, model.open) as site:
        task = exploring(site, tab)
        expect(task.locator(".k-steps > summary").first).to_contain_text("1 step: update selection")
        tab.reload()
        expect(task.locator(".k-question")).to_contain_text("How do I water?")
        expect(task.locator(".k-phases > li")).to_have_text(re.compile("Scout looking for notes"))
        model.go_on()
        answered(tab)

        expect(tab.locator(".k-exchange")).to_have_count(1)
        expect(task.get_by_role("link", name=WATERING)).to_be_visible()
        tab.reload()
        expect(tab.locator(".k-steps > summary")).to_contain_text("steps: update selection")
        tab.locator(".k-steps > summary").click()
        expect(tab.locator(".k-step-round")).to_have_text(["Round 1 of 5", "Round 2 of 5"])
        tab.locator("details.k-step > summary").first.click()
        expect(tab.locator(".k-step-body pre").first).to_contain_text('"Garden.md"')


@pytest.mark.parametrize(
    "url",
    ["javascript:document.title='owned'", "data:text/html,x", "//evil.example/x", "file:///etc/passwd", "mailto:x@y.z"],
)
def test_only_addresses_of_the_web_become_links(tmp_path: Path, tab: Page, url: str) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\">"
    page = {"title": evil, "url": url, "date": evil, "extracted": evil, "snippet": "", "tokens": 1}
    web = {"sources": [page], "evaluation_reasoning": evil, "findings": evil, "search_queries": [evil], "problem": evil}
    with sites.serving(tmp_path, cast().open) as site:
        _ = exploring(site, tab)
        answered(tab)
        address = tab.url.rpartition("/")[2]

        def changed(route: Route) -> None:
            answer = route.fetch()
            told = answer.json()
            told["messages"][1]["outcome"]["pipeline"]["web"] = web
            route.fulfill(response=answer, json=told)

        tab.route(f"**/sessions/{address}?*", changed)
        tab.reload()
        found = tab.locator("[data-finding=sources]")
        found.locator("summary").click()
        expect(found.locator("blockquote")).to_have_text(evil)

        expect(found.locator("a, img, script, iframe")).to_have_count(0)
        assert str(found.text_content()).count(evil) == 7
        assert "owned" not in tab.title()


def _paused(site: Site) -> None:
    """Have a run wait that the command line began, in a session of its own."""
    request = TaskRequest(task="Water it", run_id="run-1", session_id="")
    question: dict[str, JSONValue] = {"question": "Which bed do you mean?", "options": ["The left one"]}
    with pipelines.open_pipelines(site.hub) as opened:
        begun = opened.chats.store.begin(name="Of the terminal")
        request = replace(request, session_id=begun.id)
        opened.runs.pause(
            PausedRun(
                id=request.run_id,
                client=AGENT_CLIENT,
                at=local_now(),
                question=question,
                request=request.as_dict(),
                state=pipeline.dump_state(PausedState()),
            )
        )


def _hits(url: str) -> Reply:
    hit = {"title": "Frost dates", "url": f"{url}/", "content": "of frost"}
    return Reply(body=json.dumps({"results": [hit]}).encode(), headers={"Content-Type": "application/json"})
