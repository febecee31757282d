"""Deciding about changes on the page: by place, by file, whole, many at once; by mouse and by keyboard."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from knapper.changes.writer import SubmitOptions
from knapper.config import Vault
from knapper.tools import files, notes
from tests.index import worlds
from tests.page import reviews, sites
from tests.page.reviews import BARN, BARREL, OLD_BARREL, SHED, hunk, reviewing, two_places, unit, waits
from tests.page.test_shell import picture

pytestmark = pytest.mark.timeout(120)


def test_one_place_is_accepted_and_another_rejected(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        waits(tab, 1)
        expect(hunk(tab, 0).locator("ins").first).to_have_text("added: rain ")
        tab.get_by_role("button", name="Accept Change 1.1").click()
        expect(hunk(tab, 0)).to_contain_text("Accepted")
        tab.get_by_role("button", name="Reject Change 1.2").click()
        expect(hunk(tab, 1)).to_contain_text("Rejected")
        expect(tab.get_by_text("Everything here has been decided.")).to_be_visible()
        expect(tab.locator(".k-review-file-head")).to_contain_text("Partly accepted")
        waits(tab, 0)

        assert site.read("Garden.md") == sites.NOTES["Garden.md"].replace(BARREL, OLD_BARREL)


def test_the_keyboard_alone_decides_as_soon_as_a_change_opens(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        expect(unit(tab, 0)).to_be_focused()
        tab.keyboard.press("j")
        expect(unit(tab, 1)).to_be_focused()
        tab.keyboard.press("k")
        expect(unit(tab, 0)).to_be_focused()
        tab.keyboard.press("r")
        expect(hunk(tab, 0)).to_contain_text("Rejected")
        expect(unit(tab, 1)).to_be_focused()
        tab.keyboard.press("a")
        expect(hunk(tab, 1)).to_contain_text("Accepted")

        assert site.read("Garden.md") == sites.NOTES["Garden.md"].replace(SHED, BARN)


def test_a_proposal_of_another_programs_conversation_is_headed_in_words(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, reviews.propose(site, run="27b7c38d-6c09-45bc-8ee7-072ba025b566", **{SHED: BARN}))

        expect(tab.locator(".k-waiting-head h3")).to_have_text("A conversation elsewhere")
        expect(tab.locator(".k-review-facts")).not_to_contain_text("27b7c38d")


def test_the_keys_work_wherever_the_view_is_clicked_and_stand_in_the_sheet(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        tab.locator(".k-main h1").click()
        tab.keyboard.press("j")
        expect(unit(tab, 1)).to_be_focused()
        tab.locator(".k-review-facts").click()
        tab.keyboard.press("k")
        expect(unit(tab, 0)).to_be_focused()
        tab.keyboard.press("?")
        expect(tab.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Accept all open changes")
        tab.keyboard.press("a")  # behind a dialog nothing is decided
        tab.keyboard.press("Escape")
        expect(unit(tab, 0)).to_be_focused()
        tab.keyboard.press("Shift+A")
        expect(hunk(tab, 0)).to_contain_text("Accepted")
        expect(hunk(tab, 1)).to_contain_text("Accepted")

        assert BARN in site.read("Garden.md")


def test_the_keys_of_a_change_do_nothing_where_something_is_typed_or_another_view_is_shown(
    tmp_path: Path, tab: Page
) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        tab.keyboard.press("e")
        box = tab.get_by_label("The new text")
        box.fill("")
        tab.keyboard.type("jar")
        expect(box).to_have_value("jar")
        tab.keyboard.press("Escape")
        expect(unit(tab, 0)).to_be_focused()
        tab.get_by_role("link", name="Settings").focus()
        tab.keyboard.press("j")
        expect(tab.get_by_role("link", name="Settings")).to_be_focused()
        tab.get_by_role("link", name="Settings").click()
        expect(tab).to_have_url(f"{site.address}/app/settings")
        tab.keyboard.press("a")
        tab.keyboard.press("Shift+A")
        waits(tab, 1)

        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_the_text_of_a_place_is_edited_before_it_is_accepted(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        tab.get_by_role("button", name="Edit Change 1.2").click()
        box = tab.get_by_label("The new text")
        expect(box).to_be_focused()
        expect(box).to_have_value("The spade hangs in the barn.\n")
        box.fill("The spade is lost.\n")
        tab.keyboard.press("Control+Enter")
        expect(hunk(tab, 1)).to_contain_text("Edited by you")
        expect(unit(tab, 1)).to_be_focused()
        tab.get_by_role("button", name="Accept Change 1.2").click()
        expect(hunk(tab, 1)).to_contain_text("Accepted")

        assert "The spade is lost.\n" in site.read("Garden.md")
        assert OLD_BARREL not in site.read("Garden.md")


def test_all_is_accepted_at_once_and_undone_from_the_word_about_it(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        tab.get_by_role("button", name="Accept all").click()
        expect(tab.locator(".k-hunk[data-state=accepted]")).to_have_count(2)
        expect(tab.get_by_role("button", name="Accept all")).to_have_count(0)
        assert OLD_BARREL in site.read("Garden.md")
        assert BARN in site.read("Garden.md")
        tab.locator(".k-toast").get_by_role("button", name="Undo").click()
        expect(tab.get_by_text("The accepted changes have since been undone.")).to_be_visible()

        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_all_is_rejected_with_a_reason_that_is_kept(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        tab.get_by_role("button", name="Reject all").click()
        tab.get_by_role("dialog").get_by_role("textbox").fill("the barrel is new")
        tab.keyboard.press("Enter")
        expect(tab.get_by_text("Rejected: the barrel is new")).to_be_visible()
        expect(tab.locator(".k-list").get_by_text("Nothing to review")).to_be_visible()
        tab.get_by_role("tab", name="Decided").click()
        expect(tab.get_by_role("list", name="Decided changes")).to_contain_text("Garden")

        assert site.read("Garden.md") == sites.NOTES["Garden.md"]


def test_one_file_of_several_is_accepted(tmp_path: Path, tab: Page) -> None:
    noted = {"A.md": "# A\n\n#bed\n", "B.md": "# B\n\n#bed\n"}
    with reviews.serving(tmp_path, notes=noted) as site:
        context = site.hub.context(client="agent", submit_options=SubmitOptions(propose=True))
        answer = notes.rename_tag(context, "bed", "plot")
        reviewing(site, tab, str(answer["proposal_id"]))
        expect(tab.locator(".k-review-file")).to_have_count(2)
        tab.get_by_role("button", name="Accept B.md").click()
        expect(tab.locator(".k-review-file").nth(1).locator(".k-hunk[data-state=accepted]")).to_have_count(1)
        expect(tab.locator(".k-review-file").nth(0).locator(".k-hunk[data-state=open]")).to_have_count(1)
        expect(unit(tab, 0)).to_be_focused()

        assert site.read("B.md") == "# B\n\n#plot\n"
        assert site.read("A.md") == "# A\n\n#bed\n"


def test_a_note_that_changed_meanwhile_keeps_what_stands_there_and_the_cause_is_said(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        mine = site.read("Garden.md").replace("Every evening, with water", "Never, with water")
        (site.root / "Garden.md").write_text(mine, encoding="utf-8")
        tab.get_by_role("button", name="Accept Change 1.1").click()
        expect(hunk(tab, 0).locator(".k-notice")).to_contain_text("No longer applies")
        expect(tab.locator(".k-review > .k-notice")).to_be_visible()
        expect(hunk(tab, 1)).to_have_attribute("data-state", "open")

        assert site.read("Garden.md") == mine


def test_what_a_text_holds_is_shown_and_never_done(tmp_path: Path, tab: Page) -> None:
    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>[x](javascript:document.title=3)'
    with reviews.serving(tmp_path) as site:
        name = reviews.propose(site, run=evil[:40], reason=evil, **{BARREL: evil})
        for way in ("In line", "Side by side"):
            reviewing(site, tab, name)
            if way == "Side by side":
                tab.keyboard.press("s")
                expect(tab.locator(".k-diff-sides")).to_have_count(1)
            expect(hunk(tab, 0)).to_contain_text("<script>document.title=2</script>")
            made = tab.locator("#main, .k-list").locator("img, script, iframe, style, object, embed, link")
            expect(made).to_have_count(0)
            expect(tab.locator("#main a[href^='javascript']")).to_have_count(0)
            expect(tab).to_have_title("Garden · Review · Knapper")


def test_the_address_of_a_proposal_opens_it_in_its_vault(tmp_path: Path, tab: Page) -> None:
    other = worlds.fill(tmp_path / "other", {"Sea.md": "# Sea\n\nSalt water.\n"}).resolve()
    with reviews.serving(
        tmp_path,
        change=lambda found: replace(found, vaults=(found.vault, Vault(name="my sea", path=other))),
    ) as site:
        site.hub.page_address = site.address
        context = site.hub.context(client="agent", vault="my sea")
        told = [files.delete_file(context, "Sea.md"), files.create_file(context, "Fish.md", "Cod.\n")]
        tab.goto(str(told[0]["review_url"]))
        tab.get_by_label("Sign-in link or code").fill(site.door())
        tab.keyboard.press("Enter")
        expect(tab.locator(".k-review-file")).to_contain_text("Sea")
        expect(tab).to_have_url(re.compile(rf"/app/review/{told[0]['proposal_id']}$"))
        tab.goto(str(told[1]["review_url"]))
        expect(tab.locator(".k-review-file")).to_contain_text("Fish")
        tab.get_by_role("button", name="Accept all").click()
        expect(tab.locator(".k-review-facts")).to_contain_text("Accepted")

        assert (other / "Fish.md").read_text(encoding="utf-8") == "Cod.\n"


def test_what_waits_is_listed_by_run_and_client_and_is_live(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        first = reviews.propose(site, run="r1", **{SHED: BARN})
        site.enter(tab, "/app/review")
        expect(tab).to_have_url(re.compile(rf"/app/review/{first}$"))
        expect(unit(tab, 0)).to_be_focused()
        groups = tab.locator(".k-waiting > section")
        expect(groups).to_have_count(1)
        waits(tab, 1)
        second = reviews.propose(site, "Plans/Rain.md", client="mcp", tomatoes="beans")
        expect(groups).to_have_count(2)
        waits(tab, 2)
        expect(tab.get_by_role("region", name="By mcp")).to_contain_text("Rain")
        tab.keyboard.press("p")
        expect(tab).to_have_url(re.compile(rf"/app/review/{second}$"))
        expect(unit(tab, 0)).to_be_focused()
        tab.keyboard.press("a")
        expect(tab.get_by_role("link", name="Next proposal")).to_be_visible()
        waits(tab, 1)
        tab.keyboard.press("n")
        expect(tab).to_have_url(re.compile(rf"/app/review/{first}$"))

        assert "beans" in site.read("Plans/Rain.md")


def test_all_proposals_of_a_run_are_accepted_after_a_question(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviews.propose(site, run="r1", **{SHED: BARN})
        reviews.propose(site, "Plans/Rain.md", run="r1", tomatoes="beans")
        reviews.propose(site, "Plans/Rain.md", client="mcp", **{"It rains": "It pours"})
        site.enter(tab, "/app/review")
        tab.get_by_role("button", name="Actions for r1").click()
        tab.get_by_role("menuitem", name="Accept 2 proposals").click()
        expect(tab.get_by_role("dialog")).to_contain_text("2 files would be changed as agent proposed")
        tab.get_by_role("dialog").get_by_role("button", name="Accept all").click()
        expect(tab.locator(".k-waiting > section")).to_have_count(1)
        waits(tab, 1)

        assert BARN in site.read("Garden.md")
        assert site.read("Plans/Rain.md") == sites.NOTES["Plans/Rain.md"].replace("tomatoes", "beans")


def test_a_new_note_and_a_deletion_are_decided_whole(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        context = site.hub.context(client="agent", submit_options=SubmitOptions(propose=True))
        made = files.create_file(context, "Fish.md", "Cod.\n")
        gone = files.delete_file(context, "Plans/Rain.md")
        reviewing(site, tab, str(made["proposal_id"]))
        expect(tab.get_by_role("button", name="Accept Change 1.1")).to_have_count(0)
        tab.keyboard.press("a")
        expect(tab.locator(".k-review-facts")).to_contain_text("Accepted")
        assert site.read("Fish.md") == "Cod.\n"
        tab.keyboard.press("n")
        expect(tab).to_have_url(re.compile(rf"/app/review/{gone['proposal_id']}$"))
        expect(unit(tab, 0)).to_be_focused()
        tab.keyboard.press("r")
        expect(tab.locator(".k-review-facts")).to_contain_text("Rejected")

        assert (site.root / "Plans/Rain.md").exists()


def test_a_lost_server_is_found_again_and_the_list_with_it(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        reviewing(site, tab, two_places(site))
        site.wire.cut()
        tab.keyboard.press("a")
        expect(tab.locator(".k-offline")).to_be_visible()
        expect(hunk(tab, 0)).to_be_visible()
        expect(tab.get_by_role("alert")).to_contain_text("The server can't be reached")
        site.wire.mend()
        expect(tab.locator(".k-offline")).to_have_count(0)
        expect(tab.get_by_role("alert")).to_have_count(0)
        tab.keyboard.press("a")
        expect(hunk(tab, 0)).to_contain_text("Accepted")

        assert OLD_BARREL in site.read("Garden.md")


def test_a_proposal_that_isnt_there_is_said_not_to_be(tmp_path: Path, tab: Page) -> None:
    with reviews.serving(tmp_path) as site:
        site.enter(tab, "/app/review/nothing")

        expect(tab.get_by_role("heading", name="This proposal can't be shown")).to_be_visible()


@pytest.mark.parametrize("width", [320, 390])
def test_the_title_of_a_change_is_whole_on_a_narrow_phone(tmp_path: Path, browser: Browser, width: int) -> None:
    name = "Plans for the garden and the shed"
    with (
        reviews.serving(tmp_path, notes={f"{name}.md": "The spade hangs in the shed.\n"}) as site,
        browser.new_context(viewport={"width": width, "height": 568}, locale="en") as context,
    ):
        proposal = reviews.propose(site, f"{name}.md", **{SHED: BARN})
        tab = context.new_page()
        reviewing(site, tab, proposal)
        title = tab.get_by_role("heading", name=name, level=1)
        picture(tab, f"review-title-{width}")

        expect(title).to_be_visible()
        expect(tab.get_by_role("button", name="Accept all")).to_be_in_viewport()
        cut = "e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight"
        assert title.evaluate(cut) is False
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [320, 390])
def test_each_file_of_a_change_is_named_on_a_narrow_phone(tmp_path: Path, browser: Browser, width: int) -> None:
    names = ("Journal/Rain barrel.md", "Journal/Vegetables.md")
    with (
        reviews.serving(tmp_path, notes=dict.fromkeys(names, "# A\n\n#bed\n")) as site,
        browser.new_context(viewport={"width": width, "height": 568}, locale="en") as context,
    ):
        agent = site.hub.context(client="agent", submit_options=SubmitOptions(propose=True))
        answer = notes.rename_tag(agent, "bed", "plot")
        tab = context.new_page()
        reviewing(site, tab, str(answer["proposal_id"]))
        titles = tab.locator(".k-review-file-head > h2")
        expect(titles).to_have_text(["Journal / Rain barrel", "Journal / Vegetables"])
        picture(tab, f"review-files-{width}")

        assert titles.evaluate_all("all => all.map(e => e.scrollWidth > e.clientWidth)") == [False, False]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
