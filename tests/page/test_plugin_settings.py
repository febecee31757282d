"""The plugin's settings tab, as Obsidian asks it, against a real `knap serve`."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.agents import protocol
from tests.page import axe
from tests.page.test_plugin import Desk, desk

pytestmark = pytest.mark.timeout(300)
OTHERS = {"Old/Rain.md": "# Rain\n", "Plans, late/May.md": "# May\n"}
DEFINED = """() => app.tab.getSettingDefinitions().flatMap(({heading, items}) =>
    items.map(({name, desc, control}) => ({
        heading, name, desc, ...control, value: control && app.tab.getControlValue(control.key),
    })))"""
NOTES, SCOUT, WEB = "Notes that go with a message", "Scout", "Web"
SLIDERS = {
    f"{NOTES}: Link depth": ("slider", 0, 3, 2),
    f"{NOTES}: Chat history length": ("slider", 0, 100, 10),
    f"{NOTES}: Notes near in meaning": ("slider", 0, 20, 0),
    f"{NOTES}: Similarity of those in %": ("slider", 0, 100, 50),
    f"{SCOUT}: Exploration rounds": ("slider", 2, 10, 5),
    f"{SCOUT}: Notes to select": ("slider", 3, 50, 20),
    f"{SCOUT}: Keyword search results": ("slider", 3, 20, 10),
    f"{WEB}: Search results": ("slider", 3, 15, 8),
    f"{WEB}: Pages to read": ("slider", 1, 5, 3),
}
"""What the document gives as range and default."""
KEY = "sk-nobody-is-told-1234567890"


def rows(at: Desk) -> dict[str, dict[str, Any]]:
    """Give what the tab shows, by name."""
    return {f"{row['heading']}: {row['name']}": row for row in at.tab.evaluate(DEFINED)}


def test_the_settings_of_the_server_have_their_range_default_and_source_and_are_saved(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        tab.wait_for_function("app.tab.server.length > 0")
        shown = rows(at)
        rounds, folder = shown["Scout: Exploration rounds"], shown["Notes that go with a message: Same folder"]
        assert [rounds[one] for one in ("type", "min", "max", "value", "disabled")] == ["slider", 2, 10, 5, False]
        assert "2 to 10. Default: 5. From: default." in rounds["desc"]
        assert (folder["type"], folder["value"]) == ("toggle", False)
        assert shown["Notes that go with a message: Link depth"]["value"] == 2
        assert {name: tuple(shown[name][one] for one in ("type", "min", "max", "value")) for name in SLIDERS} == SLIDERS
        assert not [name for name, row in shown.items() if "doesn't have this setting" in (row["desc"] or "")]
        may = ("Add lines", "Replace and delete lines", "Create notes", "Open notes for me")
        assert [shown[f"Edits: {one}"]["value"] for one in may] == [True] * 4
        assert shown["Scout: Explore vault"]["type"] == "toggle"
        assert not [row for row in shown.values() if "api_key" in row.get("key", "")]

        at.app.run("open-vault-chat")
        scout = tab.get_by_role("button", name="Scout", exact=True)
        scout.click()
        tab.get_by_role("button", name="Notes and rules").click()
        tab.evaluate("app.tab.setControlValue('server:scout.rounds', 7)")
        tab.evaluate("app.tab.setControlValue('server:agents.same_folder', true)")
        tab.evaluate("app.tab.setControlValue('server:agents.can#delete', false)")
        expect(tab.get_by_label("Scout rounds")).to_have_value("7")
        expect(tab.get_by_role("checkbox", name="Notes in the same folder")).to_be_checked()
        expect(tab.get_by_role("checkbox", name="Replace and delete")).not_to_be_checked()
        assert rows(at)["Notes that go with a message: Same folder"]["value"] is True
        tab.evaluate("app.tab.setControlValue('server:scout.rounds', 99)")
        expect(tab.locator(".notice").last).to_contain_text("scout.rounds")

        saved = (own_home / "config.toml").read_text(encoding="utf-8")
        assert "rounds = 7" in saved
        assert "delete" not in saved
        assert rows(at)["Scout: Exploration rounds"]["value"] == 7


def test_without_a_server_its_settings_cannot_be_changed_and_say_why(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        tab.evaluate("plugin.connection.unpair()")
        expect(tab.locator("#status")).to_have_text("Knapper: not connected")
        shown = rows(at)

        assert shown["Scout: Exploration rounds"]["disabled"] is True
        assert "isn't connected" in shown["Scout: Exploration rounds"]["desc"]
        assert shown["Notes: Clear chat on note switch"]["value"] is False
        tab.evaluate("app.tab.setControlValue('clearOnSwitch', true)")
        assert tab.evaluate("plugin.loadData()")["clearOnSwitch"] is True


def test_the_tab_is_used_as_obsidian_draws_it(tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with desk(tab, own_home, capsys, others=OTHERS) as at:
        tab.wait_for_function("app.tab.server.length > 0")
        tab.evaluate("plugin.openSettings()")
        shown = tab.get_by_role("dialog", name="Settings")
        expect(shown).to_contain_text("Notes take 16,000 at most, and what Scout reads in 5 rounds comes on top.")
        expect(shown).to_contain_text("An answer that reaches 500,000 is stopped.")
        assert axe.findings(tab) == []

        for folder in ("Old", "Plans, late"):
            shown.get_by_role("button", name="Exclude a folder").click()
            tab.get_by_label("Find").fill(folder[:4])
            tab.get_by_role("option", name=folder).click()
            expect(shown.get_by_role("button", name=f"Delete {folder}")).to_be_visible()
        shown.evaluate("box => box.scrollTo(0, 0)")
        at.picture("settings")
        shown.get_by_role("button", name="Delete Old").click()
        expect(shown.get_by_role("button", name="Delete Old")).to_have_count(0)

        shown.get_by_label("Token limit of notes", exact=True).fill("2000")
        expect(shown.get_by_text("Give 3,000 to 2,000,000")).to_be_visible()
        tab.evaluate("requests.length = 0")
        shown.get_by_label("Model", exact=True).press_sequentially("tiny@http://127.0.0.1:1/v1")
        tab.wait_for_function("app.tab.getControlValue('server:model.name').startsWith('tiny@')")

        saved = (own_home / "config.toml").read_text(encoding="utf-8")
        assert 'excluded_folders = ["Plans, late"]' in saved
        assert 'name = "tiny@http://127.0.0.1:1/v1"' in saved
        assert "token_limit" not in saved
        assert tab.evaluate("requests").count("PUT /settings") == 1


def test_what_was_changed_elsewhere_is_shown_when_the_tab_is_opened_and_nothing_of_a_lost_server(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        tab.wait_for_function("app.tab.server.length > 0")
        saved = "plugin.connection.client.raw('PUT', '/settings', {body: {values: {'scout.rounds': 9}}})"
        tab.evaluate(f"() => {saved}")
        at.app.run("open-vault-chat")
        tab.evaluate("plugin.openSettings()")
        expect(tab.get_by_role("slider", name="Exploration rounds")).to_have_value("9")
        at.wire.cut()
        expect(tab.locator("#status")).to_have_text("Knapper: not reachable")
        assert tab.evaluate("app.tab.server") == []
        at.app.run("search-notes")
        tab.get_by_label("Find").fill("barrel")
        expect(tab.get_by_role("listbox", name="Found")).to_contain_text("The server can't be reached")


def test_a_model_is_chosen_of_what_is_offered_and_a_key_is_kept_by_the_server_alone(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with protocol.serving() as offering:
        config = f'[model]\nname = "tiny@{offering.base_url}"\nollama_url = "{offering.address}"\n'
        with desk(tab, own_home, capsys, config=config) as at:
            tab.wait_for_function("app.tab.server.length > 0")
            tab.evaluate("plugin.openSettings()")
            shown = tab.get_by_role("dialog", name="Settings")
            shown.get_by_role("button", name="Choose a model").click()
            found = tab.get_by_role("listbox", name="Found").get_by_role("option")
            expect(found).to_have_text([f"tiny@{offering.base_url}", "ollama:qwen3:latest"])
            tab.get_by_label("Find").fill("qwen")
            expect(found).to_have_text(["ollama:qwen3:latest", "qwen"])
            found.first.click()
            expect(shown.get_by_label("Model", exact=True)).to_have_value("ollama:qwen3:latest")

            shown.get_by_role("button", name="API key of OpenAI").click()
            asked = tab.locator(".knapper-key")
            expect(asked.get_by_label("Key")).to_have_attribute("type", "password")
            asked.get_by_role("button", name="Save key").click()
            expect(asked).to_contain_text("Type or paste the key first.")
            asked.get_by_label("Key").fill(KEY)
            expect(asked.get_by_role("alert")).to_have_count(0)  # one has been typed
            at.picture("settings-key")
            assert axe.findings(tab) == []
            asked.get_by_role("button", name="Save key").click()
            expect(asked).to_have_count(0)
            # The machine of the tests has no keyring.
            expect(shown).to_contain_text("Set in the server's configuration or by a variable.")
            kept = "JSON.stringify({...localStorage}) + [...secrets.values()].join() + document.body.outerHTML"
            assert KEY not in tab.evaluate(kept)
            assert f'openai_api_key = "{KEY}"' in (own_home / "config.toml").read_text(encoding="utf-8")
            shown.get_by_role("button", name="API key of OpenAI").click()
            asked.get_by_role("button", name="Remove").click()
            expect(tab.locator(".notice").last).to_have_text("Key removed")
            assert KEY not in (own_home / "config.toml").read_text(encoding="utf-8")

            shown.get_by_role("button", name="API key of the search service").click()
            asked.get_by_label("Key").fill(KEY)
            asked.get_by_label("Key").press("Enter")
            expect(shown).to_contain_text("Set. From: ")
            assert KEY in (own_home / "config.toml").read_text(encoding="utf-8")
            assert KEY not in tab.evaluate(kept)
