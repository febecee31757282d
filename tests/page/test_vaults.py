"""Choosing one of several vaults on the page."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from knapper.config import Vault
from tests.agents.scripted import Call, Model
from tests.index import worlds
from tests.page import sites
from tests.page.sites import answered, say

pytestmark = pytest.mark.timeout(60)


def test_each_vault_has_its_own_conversations_and_changes(tmp_path: Path, tab: Page) -> None:
    other = worlds.fill(tmp_path / "other", {"Sea.md": "# Sea\n\nSalt water.\n"}).resolve()
    looks = ([Call("search_vault", {"query": "water"})], ["See [[Sea]]."])
    append = Call("append_to_file", {"path": "Sea.md", "content": "And fish."})
    with sites.serving(
        tmp_path,
        Model([*looks, [append], ["Done."]]).open,
        change=lambda found: replace(found, vaults=(found.vault, Vault(name="sea", path=other))),
    ) as site:
        site.enter(tab)
        tab.get_by_label("Vault").select_option("sea")
        say(tab, "What is salty?")
        answered(tab)
        tab.get_by_role("button", name="Sea", exact=True).click()
        expect(tab.locator(".passage")).to_contain_text("Salt water.")
        tab.keyboard.press("Escape")
        say(tab, "Add fish")
        tab.get_by_role("button", name="Review").click()
        tab.get_by_role("button", name="Accept all that is open").click()
        expect(tab.locator(".proposal")).to_contain_text("accepted")
        tab.keyboard.press("Escape")
        tab.get_by_label("Vault").select_option("v")
        expect(tab.locator("#sessions")).to_contain_text("None yet.")
        tab.reload()
        tab.get_by_label("Vault").select_option("sea")
        tab.get_by_role("button", name="Delete “What is salty?”").click()
        tab.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(tab.locator("#sessions")).to_contain_text("None yet.")

    assert (other / "Sea.md").read_text(encoding="utf-8") == "# Sea\n\nSalt water.\nAnd fish.\n"


def test_a_citation_of_another_vault_opens_its_passage(tmp_path: Path, tab: Page) -> None:
    other = worlds.fill(tmp_path / "other", {"Far/Sea.md": "# Sea\n\nSalt water.\n"}).resolve()
    with sites.serving(
        tmp_path,
        Model([["Salt [[sea:Sea#Sea]] (lines 3-3)."]]).open,
        change=lambda found: replace(found, vaults=(found.vault, Vault(name="sea", path=other))),
    ) as site:
        _ = site.hub.context(client="cli", vault="sea").index.refresh()
        site.enter(tab)
        say(tab, "What is salty?")
        answered(tab)
        tab.locator(".answer .cite").click()

        expect(tab.locator(".passage .meant")).to_have_text("Salt water.")
