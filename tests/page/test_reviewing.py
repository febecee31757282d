"""Deciding about changes on the page: by place, by file, whole; by mouse and by keyboard."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from knapper.config import Vault
from knapper.tools import files
from tests.agents.scripted import Call, Model
from tests.index import worlds
from tests.page import sites
from tests.page.sites import Site, say

pytestmark = pytest.mark.timeout(60)
BARREL, OLD_BARREL = "water from the barrel", "rain water from the old barrel"
SHED, BARN = "in the shed", "in the barn"
TWO_PLACES = sites.rewriting(**{BARREL: OLD_BARREL, SHED: BARN})


def reviewing(site: Site, tab: Page) -> None:
    """Have the model propose, and open what it proposed."""
    site.enter(tab)
    say(tab, "Change it")
    tab.get_by_role("button", name="Review").click()
    expect(tab.locator(".proposal")).to_be_visible()


def test_one_place_is_accepted_and_another_rejected(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([[TWO_PLACES], ["Done."]]).open) as site:
        reviewing(site, tab)
        expect(tab.locator("#waiting-count")).to_have_text("1")
        expect(tab.locator(".hunk ins").first).to_have_text("added: rain ")
        tab.get_by_role("button", name="Accept Place 1.1").click()
        expect(tab.locator(".hunk").nth(0)).to_contain_text("accepted")
        tab.get_by_role("button", name="Reject Place 1.2").click()
        expect(tab.locator(".hunk").nth(1)).to_contain_text("rejected")
        expect(tab.locator("#waiting-count")).to_have_text("")
        expect(tab.locator(".exchange .card")).to_contain_text("A part of the change was accepted. Garden.md")
        tab.reload()
        expect(tab.locator(".exchange .card")).to_contain_text("A part of the change was accepted. Garden.md")

        assert site.read("Garden.md") == sites.NOTES["Garden.md"].replace(BARREL, OLD_BARREL)


def test_the_keyboard_alone_decides(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([[TWO_PLACES], ["Done."]]).open) as site:
        reviewing(site, tab)
        tab.keyboard.press("Tab")
        tab.keyboard.press("Tab")
        tab.keyboard.press("j")
        expect(tab.locator(".hunk").nth(0)).to_be_focused()
        tab.keyboard.press("r")
        expect(tab.locator(".hunk").nth(1)).to_be_focused()
        tab.keyboard.press("a")
        expect(tab.locator(".hunk").nth(1)).to_contain_text("accepted")

        assert site.read("Garden.md") == sites.NOTES["Garden.md"].replace(SHED, BARN)


def test_the_keys_work_as_soon_as_a_change_opens_and_wherever_the_panel_is_clicked(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([[TWO_PLACES], ["Done."]]).open) as site:
        reviewing(site, tab)
        tab.keyboard.press("a")
        tab.keyboard.press("j")
        expect(tab.locator(".hunk").nth(0)).to_be_focused()
        tab.locator("#panel-title").click()
        tab.keyboard.press("k")
        expect(tab.locator(".hunk").nth(0)).to_be_focused()
        tab.locator(".proposal .keys").click()
        tab.keyboard.press("j")
        tab.keyboard.press("j")
        expect(tab.locator(".hunk").nth(1)).to_be_focused()
        tab.keyboard.press("r")
        expect(tab.locator(".hunk").nth(1)).to_contain_text("rejected")
        expect(tab.locator(".hunk").nth(0)).to_have_class("hunk open")


def test_the_keys_of_a_change_do_nothing_where_something_else_is_typed_or_shown(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([[TWO_PLACES], ["Done."]]).open) as site:
        reviewing(site, tab)
        tab.keyboard.press("j")
        tab.get_by_label("Message", exact=True).fill("")
        tab.keyboard.type("jar")
        expect(tab.get_by_label("Message", exact=True)).to_have_value("jar")
        tab.locator("#keys").focus()
        tab.keyboard.press("j")
        expect(tab.locator("#keys")).to_be_focused()
        tab.locator("#panel-close").click()
        tab.locator(".brand").click()
        tab.keyboard.press("j")
        tab.keyboard.press("a")
        expect(tab.locator("#waiting-count")).to_have_text("1")

        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_the_text_of_a_place_is_edited_before_it_is_accepted(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([[TWO_PLACES], ["Done."]]).open) as site:
        reviewing(site, tab)
        tab.get_by_role("button", name="Edit Place 1.2").click()
        box = tab.get_by_label("The new text")
        expect(box).to_have_value("The spade hangs in the barn.\n")
        box.fill("The spade is lost.\n")
        tab.get_by_role("button", name="Save the text").click()
        expect(tab.locator(".hunk").nth(1)).to_contain_text("edited by you")
        tab.get_by_role("button", name="Accept Place 1.2").click()
        expect(tab.locator(".hunk").nth(1)).to_contain_text("accepted")

        assert "The spade is lost.\n" in site.read("Garden.md")
        assert OLD_BARREL not in site.read("Garden.md")


def test_all_is_accepted_at_once(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([[TWO_PLACES], ["Done."]]).open) as site:
        reviewing(site, tab)
        tab.get_by_role("button", name="Accept all that is open").click()
        expect(tab.locator(".hunk.accepted")).to_have_count(2)
        expect(tab.get_by_role("button", name="Accept all that is open")).to_have_count(0)

        assert OLD_BARREL in site.read("Garden.md")
        assert BARN in site.read("Garden.md")


def test_all_is_rejected_with_a_reason_that_is_kept(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([[TWO_PLACES], ["Done."]]).open) as site:
        reviewing(site, tab)
        tab.get_by_role("button", name="Reject all").click()
        tab.get_by_role("dialog").get_by_role("textbox").fill("the barrel is new")
        tab.keyboard.press("Enter")
        expect(tab.get_by_text("Rejected: the barrel is new")).to_be_visible()
        expect(tab.locator("#proposals")).to_contain_text("Nothing waits for you.")
        tab.get_by_label("decided too").check()
        expect(tab.locator("#proposals .entry")).to_contain_text("Garden.md")

        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_one_file_of_several_is_accepted(tmp_path: Path, tab: Page) -> None:
    rename = Call("rename_tag", {"old": "bed", "new": "plot"})
    noted = {"A.md": "# A\n\n#bed\n", "B.md": "# B\n\n#bed\n"}
    with sites.serving(tmp_path, Model([[rename], ["Done."]]).open, notes=noted) as site:
        reviewing(site, tab)
        expect(tab.locator(".file")).to_have_count(2)
        tab.get_by_role("button", name="Accept B.md").click()
        expect(tab.locator(".file").nth(1).locator(".hunk")).to_contain_text("accepted")
        expect(tab.locator(".file").nth(0).locator(".hunk.open")).to_have_count(1)

        assert site.read("B.md") == "# B\n\n#plot\n"
        assert site.read("A.md") == "# A\n\n#bed\n"


def test_a_note_that_changed_meanwhile_keeps_what_stands_there(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([[TWO_PLACES], ["Done."]]).open) as site:
        reviewing(site, tab)
        mine = site.read("Garden.md").replace("Every evening, with water", "Never, with water")
        (site.root / "Garden.md").write_text(mine, encoding="utf-8")
        tab.get_by_role("button", name="Accept Place 1.1").click()
        expect(tab.locator(".proposal .notice").first).to_be_visible()

        assert site.read("Garden.md") == mine


def test_what_a_text_holds_is_shown_and_never_done(tmp_path: Path, tab: Page) -> None:
    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    with sites.serving(tmp_path, Model([[sites.rewriting(**{BARREL: evil})], ["Done."]]).open) as site:
        reviewing(site, tab)

        expect(tab.locator(".difference")).to_contain_text("<script>document.title=2</script>")
        expect(tab.locator(".difference img, .difference script")).to_have_count(0)
        expect(tab).to_have_title("Knapper")


def test_the_address_of_a_proposal_opens_it_in_its_vault(tmp_path: Path, tab: Page) -> None:
    other = worlds.fill(tmp_path / "other", {"Sea.md": "# Sea\n\nSalt water.\n"}).resolve()
    with sites.serving(
        tmp_path,
        Model([]).open,
        change=lambda found: replace(found, vaults=(found.vault, Vault(name="my sea", path=other))),
    ) as site:
        site.hub.page_address = site.address
        context = site.hub.context(client="agent", vault="my sea")
        told = [files.delete_file(context, "Sea.md"), files.create_file(context, "Fish.md", "Cod.\n")]
        tab.goto(str(told[0]["review_url"]))
        tab.get_by_label("code").fill(site.door())
        tab.keyboard.press("Enter")
        expect(tab.locator(".proposal")).to_contain_text("Sea.md")
        expect(tab).to_have_url(re.compile("^[^#]*$"))
        tab.goto(str(told[1]["review_url"]))
        expect(tab.locator(".proposal")).to_contain_text("Fish.md")
        tab.get_by_role("button", name="Accept all that is open").click()
        expect(tab.locator(".proposal")).to_contain_text("accepted")

        assert (other / "Fish.md").read_text(encoding="utf-8") == "Cod.\n"
