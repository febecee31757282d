"""What goes with a message and what comes of it: models and cost, notes and files, changes and their keys, problems."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Locator, Page, expect

from knapper.agents.chat.turn import ChatConfig
from knapper.agents.sessions.store import Exchange, SessionStore
from knapper.agents.work_store import open_work
from knapper.app import Hub
from knapper.app.chats import VaultChats
from knapper.app.hub import local_now
from knapper.app.open_clients import ModelOpeners
from knapper.config import Settings
from knapper.errors import SetupError
from knapper.jsontypes import JSONValue
from knapper.server.http.background import JobService
from tests.agents import scripted
from tests.agents.scripted import Call, Model
from tests.page import axe, sites
from tests.page.conftest import WAIT_MS
from tests.page.payloads import PICTURE as EVIL
from tests.page.payloads import Trap
from tests.page.sites import answered, rewriting, say
from tests.page.test_shell import listening, picture

pytestmark = pytest.mark.timeout(150)
CHAT = "/app/chat/new"
TWO_PLACES = rewriting(spade="rake", barrel="large barrel")


def box(tab: Page) -> Locator:
    return tab.get_by_label("Message", exact=True)


def priced(found: Settings) -> Settings:
    own = replace(found.model, name="openai:gpt-4o-mini", fallbacks=("ollama:qwen3",), day_tokens=100_000)
    return replace(found, model=own)


def test_the_model_and_its_price_stand_there_before_the_first_word(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open, change=priced) as site:
        site.enter(tab, CHAT)
        button = tab.get_by_role("button", name=re.compile("^Model: "))
        expect(button).to_contain_text(re.compile(r"gpt-4o-mini\$[\d.]+ in · \$[\d.]+ out"))
        usage = tab.locator(".k-usage")
        expect(usage).to_contain_text(re.compile(r"Today0 tokens · \$0Left100k tokens"))
        say(tab, "Hi")
        answered(tab)
        expect(usage).to_contain_text(re.compile(r"Conversation\d+ tokensToday\d+ tokensLeft(99\.\dk|100k) tokens"))
        expect(tab.locator(".k-exchange-spent")).to_contain_text(re.compile(r"scripted · \d+ tokens"))


def test_the_model_is_switched_for_the_next_message_and_kept(tmp_path: Path, tab: Page) -> None:
    asked: list[str] = []
    with _naming(tmp_path, asked) as site:
        site.enter(tab, CHAT)
        tab.get_by_role("button", name=re.compile("^Model: ")).click()
        tab.get_by_role("menuitemradio", name=re.compile("^qwen3")).click()
        expect(box(tab)).to_be_focused()
        say(tab, "Hi")
        expect(tab.locator(".k-exchange-spent")).to_contain_text("qwen3")
        tab.reload()
        expect(tab.get_by_role("button", name=re.compile("^Model: qwen3"))).to_be_visible()
        tab.get_by_role("button", name=re.compile("^Model: ")).click()
        tab.get_by_role("menuitem", name="Other model…").click()
        tab.get_by_label("Model", exact=True).fill("anthropic:claude-sonnet-4-5")
        tab.keyboard.press("Enter")
        say(tab, "And now?")
        expect(tab.locator(".k-exchange-spent").last).to_contain_text("claude-sonnet-4-5")

    assert [one for one in asked if one] == ["ollama:qwen3", "anthropic:claude-sonnet-4-5"]


def _naming(base: Path, asked: list[str]):
    """Serve with models that are told by their names."""

    def answering(chats: VaultChats, model: str) -> ChatConfig:
        asked.append(model)
        made = scripted.chat(Model([["Yes."]]).open(), chats.hub.table.specs, meter=chats.meter)
        return replace(made, name=model or "scripted")

    openers = ModelOpeners(chat=answering)
    model = Model([["Yes."]])
    return sites.serving(base, model.open, change=priced, open_service=lambda hub: JobService(hub, openers))


def test_without_a_model_the_way_leads_to_the_settings_and_nothing_is_kept(tmp_path: Path, tab: Page) -> None:
    def missing(chats: VaultChats, _model: str) -> ChatConfig:
        del chats
        raise SetupError("no model is set", code="no_model", hint="set KNAP_MODEL")

    def service(hub: Hub) -> JobService:
        return JobService(hub, ModelOpeners(chat=missing))

    with sites.serving(tmp_path, Model([["Yes."]]).open, open_service=service) as site:
        site.enter(tab, CHAT)
        expect(tab.get_by_role("button", name="Set up a model")).to_be_visible()
        say(tab, "Hi")
        problem = tab.get_by_role("alert")
        expect(problem).to_contain_text("No model is set up yet")
        expect(problem).not_to_contain_text("KNAP_MODEL")
        expect(tab.locator("[data-session]")).to_have_count(0)
        problem.get_by_role("button", name="Open the settings").click()

        expect(tab).to_have_url(re.compile("/app/settings/models$"))


def test_a_limit_that_is_reached_says_so(tmp_path: Path, tab: Page) -> None:
    def change(found: Settings) -> Settings:
        return replace(found, model=replace(found.model, day_tokens=10))

    with sites.serving(tmp_path, Model([["A long answer of many words."]]).open, change=change) as site:
        site.enter(tab, CHAT)
        say(tab, "Hi")
        expect(tab.locator(".k-exchange-foot")).to_have_count(1)
        expect(tab.locator(".k-usage")).to_contain_text("Left0")
        say(tab, "More")

        expect(tab.get_by_role("alert").last).to_contain_text("A limit is reached")
        expect(tab.get_by_role("alert").last.get_by_role("button", name="Open the settings")).to_be_visible()


def test_a_busy_conversation_says_so(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        site.enter(tab, CHAT)
        say(tab, "Hi")
        answered(tab)
        (place,) = tmp_path.rglob(f"sessions/{tab.url.rpartition('/')[2]}.lock")
        with FileLock(place):
            say(tab, "More")
            expect(tab.get_by_role("alert")).to_contain_text("Something else is running in this conversation")
        tab.get_by_role("alert").get_by_role("button", name="Try again").click()

        expect(tab.locator(".k-answer")).to_have_count(2)


def proposing(*more: Call) -> Model:
    return Model([[TWO_PLACES, *more], ["Done."]])


def test_all_changes_are_accepted_by_a_key_from_the_empty_box(tmp_path: Path, tab: Page) -> None:
    create = Call("create_file", {"path": "New.md", "content": "# New\n"})
    with sites.serving(tmp_path, proposing(create).open) as site:
        site.enter(tab, CHAT)
        say(tab, "Change it")
        answered(tab)
        card = tab.locator(".k-changes")
        expect(card).to_have_count(1)
        expect(card).to_contain_text("3 changes in 2 notes to review")
        expect(box(tab)).to_be_focused()
        tab.keyboard.type("x")
        tab.keyboard.press("Backspace")
        tab.keyboard.press("Control+Enter")
        expect(card).to_contain_text("Accepted: changes in 2 notes")

        expect(box(tab)).to_be_focused()
        assert "The rake hangs" in site.read("Garden.md")
        assert site.read("New.md") == "# New\n"


def test_the_keys_of_a_card_work_as_soon_as_it_opens(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, proposing().open) as site:
        site.enter(tab, CHAT)
        say(tab, "Change it")
        answered(tab)
        card = tab.locator(".k-changes")
        card.get_by_role("button", name="Preview").click()
        expect(card.locator("del")).to_have_count(1)
        expect(card.get_by_role("region", name=re.compile("^Edit of Garden"))).to_be_focused()
        tab.keyboard.press("j")
        expect(card.get_by_role("group", name="Change at line 10")).to_be_focused()
        tab.keyboard.press("a")
        expect(card.locator("[data-hunk][data-state=accepted]")).to_have_count(1)
        expect(card.get_by_role("group", name=re.compile("^Change at line 15"))).to_be_focused()
        tab.keyboard.press("r")
        expect(card.locator("[data-hunk][data-state=rejected]")).to_have_count(1)
        expect(box(tab)).to_be_focused()

        text = site.read("Garden.md")
        assert "large barrel" in text
        assert "The spade hangs" in text


def test_what_became_of_changes_is_there_after_a_reload_and_when_decided_elsewhere(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, proposing().open) as site:
        site.enter(tab, CHAT)
        say(tab, "Change it")
        answered(tab)
        card = tab.locator(".k-changes")
        expect(card).to_contain_text("2 changes in 1 note to review")
        tab.reload()
        expect(card).to_contain_text("2 changes in 1 note to review")
        card.get_by_role("button", name="Reject all", exact=True).click()
        expect(card).to_contain_text("Rejected: changes in 1 note")
        tab.reload()

        expect(card).to_contain_text("Rejected: changes in 1 note")
        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_notes_are_named_by_brackets_and_files_and_selections_go_with_a_message(tmp_path: Path, tab: Page) -> None:
    model = Model([["First of all, water."], ["I see."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        box(tab).press_sequentially("Look at [[gard")
        expect(tab.get_by_role("option", name="Garden")).to_have_attribute("aria-selected", "true")
        tab.keyboard.press("Enter")
        expect(box(tab)).to_have_value("Look at [[Garden]] ")
        tab.locator("input[type=file]").set_input_files(
            [{"name": "list.csv", "mimeType": "text/csv", "buffer": b"a,b\n```\n"}]
        )
        expect(tab.get_by_text("list.csv")).to_be_visible()
        tab.locator("input[type=file]").set_input_files(
            [{"name": "p.png", "mimeType": "image/png", "buffer": bytes([137, 80, 78, 71, 0, 255])}]
        )
        expect(tab.get_by_text("p.png isn't a text file")).to_be_visible()
        tab.keyboard.press("Enter")
        answered(tab)
        assert "[[Garden]]" in str(model.asked[-1])
        assert "a,b" in str(model.asked[-1])
        expect(tab.locator(".k-question-text")).to_have_text("Look at [[Garden]]")
        tab.locator(".k-attached summary").click()
        expect(tab.locator(".k-attached pre")).to_have_text("a,b\n```")
        tab.locator(".k-answer").evaluate("node => getSelection().selectAllChildren(node)")
        tab.get_by_role("button", name=re.compile("^Add the selection")).click()
        expect(box(tab)).to_be_focused()
        tab.keyboard.type("What of this?")
        tab.keyboard.press("Enter")
        expect(tab.locator(".k-answer")).to_have_count(2)

        assert "First of all, water." in str(model.asked[-1][-1])


def test_a_dropped_note_is_named_and_a_dropped_file_goes_along(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        site.enter(tab, CHAT)
        expect(box(tab)).to_be_focused()
        tab.evaluate(
            """() => {
              const drop = (fill) => {
                const data = new DataTransfer();
                fill(data);
                document.querySelector(".k-composer").dispatchEvent(
                  new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
              };
              drop((data) => data.setData("text/plain", "obsidian://open?vault=v&file=Plans%2FRain"));
              drop((data) => data.items.add(new File(["inside"], "notes.txt", { type: "text/plain" })));
            }"""
        )

        expect(box(tab)).to_have_value("[[Plans/Rain]] ")
        expect(tab.locator(".k-composer-extras")).to_contain_text("notes.txt")


def test_a_slash_offers_presets_and_commands(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        site.enter(tab, CHAT)
        tab.get_by_role("button", name="Notes and rules").click()
        tab.get_by_role("button", name="Save as…").click()
        tab.get_by_label("Name", exact=True).fill("Careful")
        tab.keyboard.press("Enter")
        expect(tab.get_by_text("Careful saved")).to_be_visible()
        tab.keyboard.press("Escape")
        box(tab).fill("")
        box(tab).press_sequentially("/care")
        expect(tab.get_by_role("option", name=re.compile("^Careful"))).to_be_visible()
        tab.keyboard.press("Enter")

        expect(tab.get_by_text("Using Careful")).to_be_visible()
        expect(box(tab)).to_have_value("")
        box(tab).press_sequentially("/week")
        expect(tab.get_by_role("option", name=re.compile("^weekly-review"))).to_be_visible()
        tab.keyboard.press("Enter")

        expect(tab.get_by_role("log")).to_contain_text("Nothing to do")


def test_the_sheet_folds_itself_when_a_message_is_sent(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        site.enter(tab, CHAT)
        tab.get_by_role("button", name="Notes and rules").click()
        expect(tab.get_by_role("region", name="Notes and rules")).to_be_visible()
        say(tab, "Hi")

        expect(tab.get_by_role("region", name="Notes and rules")).to_have_count(0)


def test_names_and_words_of_others_are_text_everywhere(tmp_path: Path, tab: Page) -> None:
    name = "<svg onload=alert(1)> \u202egnp.md"
    ask = Call("ask_user", {"question": EVIL, "options": [EVIL, "javascript:alert(1)"]})
    create = Call("append_to_file", {"path": name, "content": EVIL})
    answer = f"{EVIL} [x](javascript:alert(1)) [[<b>x</b>#<i>]] (lines 1-2) [[javascript:alert(1)]] ![p](http://evil.example/p)"
    model = Model([[create], [answer], [ask]])
    with sites.serving(tmp_path, model.open, notes={name: "# X\n\n" + EVIL}) as site, listening(tab) as told:
        trap = Trap(tab=tab, address=site.address)
        site.enter(tab, CHAT)
        say(tab, EVIL)
        answered(tab)
        tab.get_by_role("button", name="Preview").click()
        tab.locator("details.k-steps > summary").click()
        tab.locator("details.k-step > summary").first.click()
        say(tab, "/x [[svg")
        expect(tab.locator(".k-asked")).to_contain_text(EVIL)
        tab.get_by_role("button", name="Notes and rules").click()
        tab.get_by_role("combobox", name="Find a note to add").fill("svg")
        tab.locator(".k-suggest [role=option]").first.click()
        expect(tab.locator(".k-sheet .k-reasons > li")).to_have_count(1)
        made = tab.locator("#app").locator("img, script, iframe, style, object, embed, svg:not(.k-icon, .k-sign)")
        expect(made).to_have_count(0)
        addresses: Sequence[str] = tab.locator("main a").evaluate_all("all => all.map(a => a.getAttribute('href'))")

        assert [one for one in addresses if not one.startswith(("/app/", "http://evil.example/p"))] == []
        attributes = tab.locator("main *").evaluate_all("all => all.flatMap(n => n.getAttributeNames())")
        assert {one for one in attributes if one.startswith("on")} == set()
        trap.check()
    assert [one for one in told if "404" not in one] == []


def long_talk(site: sites.Site, turns: int) -> str:
    """Keep a conversation of many messages, and give its id."""
    work = open_work(site.hub.open("").folder)
    kept = SessionStore(work, local_now, "page")
    session = kept.begin(name="Long")
    for number in range(turns):
        answer = f"Answer {number} [[Garden#Watering]] (lines 10-11).\n\n- **one**\n- two\n\n```py\nx = 1\n```"
        outcome: dict[str, JSONValue] = {"type": "done", "state": "complete", "answer": answer, "model": "m"}
        exchange = Exchange(
            number=0, at=local_now(), question=f"Question {number}", file="", outcome=outcome, messages="[]"
        )
        _ = kept.append(session.id, number, exchange)
    work.shut()
    return session.id


def test_a_long_conversation_opens_at_its_end_and_earlier_messages_come_when_asked_for(
    tmp_path: Path, tab: Page
) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        session = long_talk(site, 200)
        site.enter(tab, f"/app/chat/{session}")
        expect(tab.locator(".k-exchange")).to_have_count(40)
        expect(tab.locator(".k-answer").last).to_be_in_viewport()
        tab.get_by_role("button", name="Earlier messages (160)").click()
        expect(tab.locator(".k-exchange")).to_have_count(80)
        expect(tab.get_by_role("button", name="Earlier messages (120)")).not_to_be_in_viewport()
        say(tab, "Hi")
        answered(tab)

        expect(tab.locator(".k-answer").last).to_be_in_viewport()
        expect(tab.locator(".k-exchange")).to_have_count(81)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_of_the_chat_is_hard_to_reach(tmp_path: Path, browser: Browser, scheme: str) -> None:
    with (
        sites.serving(tmp_path, Model([[TWO_PLACES], ["Done [[Garden#Tools]] (lines 13-15)."]]).open) as site,
        browser.new_context(color_scheme="dark" if scheme == "dark" else "light", locale="en") as context,
    ):
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        site.enter(tab, CHAT)
        expect(tab.locator(".k-welcome")).to_be_visible()
        assert axe.findings(tab) == []
        say(tab, "Change it")
        answered(tab)
        tab.get_by_role("button", name="Preview").click()
        tab.locator(".k-cite").click()
        expect(tab.locator("[data-cited]").first).to_be_visible()
        assert axe.findings(tab) == []
        tab.keyboard.press("Escape")
        tab.get_by_role("button", name="Notes and rules").click()
        tab.get_by_label("Find a note to add").fill("gard")
        expect(tab.locator(".k-suggest")).to_be_visible()
        picture(tab, f"chat-sheet-{scheme}")
        assert axe.findings(tab) == []
        tab.set_viewport_size({"width": 390, "height": 844})
        picture(tab, f"chat-phone-{scheme}")
        assert axe.findings(tab) == []
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_opens_in_the_chat_satisfies_axe_too(tmp_path: Path, browser: Browser, scheme: str) -> None:
    found: list[str] = []

    def look(name: str) -> None:
        picture(tab, f"chat-{name}-{scheme}")
        found.extend(f"{name}: {finding}" for finding in axe.findings(tab))

    ask = Call("ask_user", {"question": "Which bed?", "options": ["Left", "Right"]})
    with (
        sites.serving(tmp_path, Model([["See [[Rain]] (lines 3-3)."], [ask]]).open) as site,
        browser.new_context(color_scheme="dark" if scheme == "dark" else "light", locale="en") as context,
    ):
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        site.enter(tab, CHAT)
        say(tab, "Does it rain?")
        answered(tab)
        tab.locator(".k-cite").click()
        expect(tab.locator("[data-cited]")).to_contain_text("It rains")
        look("cited")
        tab.get_by_role("radio", name="Source").click()
        expect(tab.locator("li[data-cited]")).to_be_visible()
        look("source")
        tab.keyboard.press("Escape")
        say(tab, "And?")
        expect(tab.get_by_role("button", name="Left")).to_be_enabled()
        look("asked")
        for button in ("Add to the message", "Conversation actions"):
            tab.get_by_role("button", name=button).click()
            expect(tab.get_by_role("menu")).to_be_visible()
            look(button)
            tab.keyboard.press("Escape")
        tab.get_by_role("button", name="Edit question").first.click()
        expect(tab.get_by_label("Edited question")).to_be_focused()
        look("edit")
        tab.keyboard.press("Escape")
        box(tab).fill("See [[gar")
        expect(tab.locator(".k-suggest")).to_be_visible()
        look("suggest")

    assert found == [], "\n".join(found)
