"""Search and notes on the page, in a real browser."""

import re
import struct
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from knapper.app import Hub
from knapper.server.http import browsing
from knapper.server.http.app import Mount
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents.scripted import Model
from tests.page import axe, sites
from tests.page.sites import Site
from tests.page.test_looks import OVERFLOWING
from tests.page.test_shell import listening, picture

HELLO = Model([["Hello."]])
WATERING = """---
status: open
tags: [garden]
beds:
  - North
indoor: false
---
# Watering

Every evening, with water from the [[Rain barrel]]. It costs $Q = a^2$ cans.

## Tasks

- [ ] Mend the [[Hose]]
- [x] Empty the barrel

## Pictures

![[Bed.png|120]]

![[Bad.svg]]

```mermaid
flowchart LR
  Roof --> Barrel
```

![[Rain barrel#Filling]]
"""
NOTES = {
    "Garden/Watering.md": WATERING,
    "Garden/Rain barrel.md": (
        "# Rain barrel\n\nFirst. We use it for [[Watering]] all summer. Last.\n\n## Filling\n\nRain.\n"
    ),
    "Garden/Hose.md": "# Hose\n\nIt is green.\n",
    "Plans/Rain.md": "# Rain\n\nThe rain waters the tomatoes.\n",
}
HOSTILE_NAME = "<img src=x onerror=window.hacked=1> [x](javascript:hacked) \u202etxt"
HOSTILE = (
    "---\n<b onclick=alert(1)>: <script>window.hacked=1</script>\nlink: '[[javascript:window.hacked=1]]'\n---\n"
    "# <img src=x onerror=window.hacked=1>\n\n<script>window.hacked=1</script> tomatoes\n\n"
    "[x](javascript:window.hacked=1) ![x](https://evil.example/x.png) ![[Bad.svg]] #tag<img>\n\n"
    '```mermaid\nflowchart LR\n  A["<img src=x onerror=parent.hacked=1>"] --> B\n'
    '  click A "javascript:parent.hacked=1"\n```\n\n'
    "```mermaid\n%%{init: {'securityLevel': 'loose', 'htmlLabels': true}}%%\nflowchart LR\n"
    '  C["<script>parent.hacked=1</script>"]\n```\n\n'
    "$\\href{javascript:window.hacked=1}{x}$ <iframe srcdoc='<script>parent.hacked=1</script>'>\n"
)
SVG = (
    b"<svg xmlns='http://www.w3.org/2000/svg' width='60' height='30' onload='parent.hacked=1'>"
    b"<script>parent.hacked=1</script><image href='https://evil.example/x.png'/><rect width='60' height='30'/></svg>"
)


def png(width: int = 40, height: int = 20) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x20\x90\x60" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def more(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
    del stop
    return [browsing.mount_browsing(hub, WorkerThreads(2))]


@contextmanager
def serving(base: Path, notes: dict[str, str] | None = None) -> Generator[Site]:
    with sites.serving(base, HELLO.open, notes=notes or NOTES, more=more) as site:
        (site.root / "Bed.png").write_bytes(png())
        (site.root / "Bad.svg").write_bytes(SVG)
        yield site


@pytest.mark.timeout(180)
def test_search_answers_while_typing_with_matches_reasons_and_keys(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site, listening(tab) as told:
        site.enter(tab, "/app/search")
        box = tab.get_by_label("Search your notes")
        box.fill("the wateri")
        box.fill("the watering")
        hits = tab.get_by_role("option")
        expect(hits.first).to_contain_text("Watering")
        expect(tab.locator("mark", has_text=re.compile("^the$", re.IGNORECASE))).to_have_count(0)
        expect(tab.locator("mark").first).to_have_text("Watering")
        expect(hits.first).to_contain_text("Words")
        expect(tab.get_by_role("status").filter(has_text="passage")).to_be_visible()
        picture(tab, "search-hits")
        assert axe.findings(tab) == []
        box.press("ArrowDown")
        expect(hits.nth(1)).to_have_attribute("aria-selected", "true")
        box.press("ArrowUp")
        box.press("Shift+Enter")
        expect(tab.get_by_role("complementary")).to_contain_text("Every evening")
        divider = tab.get_by_role("separator", name="Width of the pane")
        divider.focus()
        tab.keyboard.press("ArrowLeft")
        expect(divider).to_have_attribute("aria-valuenow", "416")
        tab.keyboard.press("Escape")
        box.press("Shift+Enter")
        expect(tab.get_by_role("complementary")).to_have_css("width", "416px")
        tab.keyboard.press("Escape")
        box.press("Enter")

        expect(tab).to_have_url(re.compile(r"/app/notes/Garden/Watering.md\?lines=\d+-\d+$"))
        expect(tab.locator("[data-cited]").first).to_be_visible()
    assert told == []


@pytest.mark.timeout(180)
def test_filters_are_chips_with_pickers_and_stand_in_the_address(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab, "/app/search?q=rain")
        expect(tab.get_by_role("option")).not_to_have_count(0)
        tab.get_by_role("button", name="Folder", exact=True).click()
        tab.get_by_role("combobox", name="In a folder").fill("pla")
        expect(tab.get_by_role("dialog").get_by_role("option", name="Plans")).to_be_visible()
        tab.keyboard.press("Enter")
        expect(tab).to_have_url(re.compile("folder=Plans"))
        expect(tab.get_by_role("option")).to_have_count(1)
        tab.reload()
        expect(tab.get_by_role("group", name="Filters")).to_contain_text("Plans")
        expect(tab.get_by_role("option")).to_have_count(1)
        tab.get_by_role("button", name="Remove the filter Plans").click()
        tab.get_by_role("button", name="Property", exact=True).click()
        tab.get_by_role("combobox", name="With a property").fill("status=open")
        picture(tab, "search-property")
        tab.keyboard.press("Enter")

        expect(tab.get_by_role("group", name="Filters")).to_contain_text("status=open")
        expect(tab).to_have_url(re.compile("property=status%3Dopen"))


@pytest.mark.timeout(180)
def test_a_tag_and_a_folder_lead_to_their_notes_without_a_word_typed(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab, "/app/notes/Garden/Watering.md")
        tab.get_by_role("region", name="Properties").get_by_text("garden").click()
        expect(tab).to_have_url(re.compile("/app/search\\?tag=garden$"))
        expect(tab.get_by_role("status").filter(has_text="1 note")).to_be_visible()
        expect(tab.get_by_role("option")).to_have_count(1)
        expect(tab.get_by_role("option")).to_contain_text("Watering")
        expect(tab.get_by_role("option")).to_contain_text("Changed now")
        expect(tab.get_by_role("list", name="Recently changed")).to_have_count(0)
        picture(tab, "search-tag")
        assert axe.findings(tab) == []
        tab.keyboard.press("Enter")
        expect(tab).to_have_url(re.compile("/app/notes/Garden/Watering.md$"))
        tab.get_by_role("navigation", name="Folders").get_by_role("link", name="Garden").click()
        expect(tab.get_by_role("status").filter(has_text="3 notes")).to_be_visible()
        hits = tab.get_by_role("option")
        expect(hits).to_have_count(3)
        tab.keyboard.press("ArrowDown")
        expect(hits.nth(1)).to_have_attribute("aria-selected", "true")
        tab.goto(f"{site.address}/app/search?tag=nosuchtag")

        expect(tab.get_by_role("heading", name="Nothing found")).to_be_visible()
        expect(tab.get_by_role("button", name="Remove filters")).to_be_visible()


@pytest.mark.timeout(180)
def test_nothing_found_offers_names_like_it_and_an_empty_box_the_last_notes(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab, "/app/search")
        expect(tab.get_by_role("list", name="Recently changed")).to_contain_text("Hose")
        tab.get_by_label("Search your notes").fill("hsoe zzz")
        expect(tab.get_by_role("heading", name="Nothing found")).to_be_visible()
        tab.get_by_label("Search your notes").fill("rnbrl")
        names = tab.get_by_role("list", name="Similar names")

        expect(names).to_contain_text("Rain barrel")
        picture(tab, "search-nothing")
        assert axe.findings(tab) == []


@pytest.mark.timeout(240)
def test_a_note_is_read_with_all_that_is_around_it(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site, listening(tab) as told:
        site.enter(tab, "/app/notes/Garden/Watering.md")
        note = tab.get_by_role("article", name="Watering")
        expect(note.get_by_role("heading", name="Watering", level=1)).to_be_visible()
        expect(tab.get_by_role("treeitem", name="Watering")).to_have_attribute("aria-selected", "true")
        expect(tab.get_by_role("region", name="Properties")).to_contain_text("open")
        backlinks = note.get_by_role("region", name="Backlinks")
        expect(backlinks).to_contain_text("We use it for Watering all summer.")
        expect(backlinks).not_to_contain_text("First.")
        expect(note.get_by_role("region", name=re.compile("From Rain barrel"))).to_contain_text("Rain.")
        expect(note.locator(".katex")).to_have_count(1)
        pictures = note.locator("img.k-media")
        expect(pictures).to_have_count(2)
        expect(note.get_by_role("img", name=re.compile("Diagram"))).to_be_visible()
        sizes = pictures.evaluate_all("all => all.map(one => one.naturalWidth)")
        picture(tab, "note")
        found = axe.findings(tab)
        note.get_by_text("Outline", exact=True).click()
        note.get_by_role("button", name="Pictures", exact=True).click()
        expect(note.get_by_role("heading", name="Pictures")).to_be_in_viewport()

        assert sizes == [40, 60]
        assert found == []
        assert tab.get_by_role("link", name="Open in Obsidian").get_attribute("href") == (
            f"obsidian://open?vault={site.hub.vaults[0]}&file=Garden%2FWatering.md"
        )
        assert tab.evaluate("window.hacked") is None
    assert told == []


@pytest.mark.timeout(240)
def test_the_tree_is_gone_through_by_keys(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab, "/app/notes")
        folder = tab.get_by_role("treeitem", name="Garden")
        folder.focus()
        tab.keyboard.press("ArrowRight")
        expect(folder).to_have_attribute("aria-expanded", "true")
        tab.keyboard.press("ArrowDown")
        expect(tab.get_by_role("treeitem", name="Hose")).to_be_focused()
        tab.keyboard.press("w")
        expect(tab.get_by_role("treeitem", name="Watering")).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab).to_have_url(re.compile("/app/notes/Garden/Watering.md$"))
        tab.get_by_role("tab", name="Tags").click()
        tab.get_by_role("list", name="Tags").get_by_role("button").click()
        expect(tab.get_by_role("list", name="Notes with garden")).to_contain_text("Watering")
        tab.get_by_role("tab", name="Recent").click()

        expect(tab.get_by_role("list", name="Recently opened")).to_contain_text("Watering")


@pytest.mark.timeout(240)
def test_tasks_properties_and_sections_are_changed_and_undone(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab, "/app/notes/Garden/Watering.md")
        tab.get_by_role("checkbox", name="To do").first.click()
        expect(tab.get_by_text("The task was saved")).to_be_visible()
        after_task = site.read("Garden/Watering.md")
        tab.get_by_role("button", name="Undo").click()
        expect(tab.get_by_role("checkbox", name="To do")).to_have_count(1)
        undone = site.read("Garden/Watering.md")
        tab.get_by_role("checkbox", name="indoor").click()
        expect(tab.get_by_role("checkbox", name="indoor")).to_be_checked()
        tab.get_by_role("button", name="Edit status").click(force=True)
        tab.get_by_role("textbox", name="Value").fill("done")
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("region", name="Properties")).to_contain_text("done")
        tab.get_by_role("button", name="Edit the section Tasks").click(force=True)
        tab.get_by_role("textbox", name="Text of ## Tasks").fill("## Tasks\n\n- [ ] Only this")
        tab.get_by_role("button", name="Show changes").click()
        expect(tab.get_by_label("Changes")).to_contain_text("+added: - [ ] Only this")
        picture(tab, "note-section")
        found = axe.findings(tab)
        tab.get_by_role("button", name="Save").click()
        expect(tab.get_by_role("article").get_by_text("Only this")).to_be_visible()
        last = site.read("Garden/Watering.md")

    assert after_task == WATERING.replace("- [ ] Mend", "- [x] Mend")
    assert undone == WATERING
    assert last == WATERING.replace("indoor: false", "indoor: true").replace("status: open", "status: done").replace(
        "- [ ] Mend the [[Hose]]\n- [x] Empty the barrel\n", "- [ ] Only this\n"
    )
    assert found == []


@pytest.mark.timeout(240)
def test_the_palette_finds_notes_headings_and_tags(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab, "/app/search")
        tab.keyboard.press("Control+k")
        tab.keyboard.type("fill")
        heading = tab.get_by_role("group", name="Headings").get_by_role("option", name=re.compile("Filling"))
        expect(heading).to_be_visible()
        tab.get_by_role("combobox").last.fill("garden")
        expect(tab.get_by_role("group", name="Tags").get_by_role("option", name=re.compile("#garden"))).to_be_visible()
        tab.get_by_role("combobox").last.fill("hose")
        expect(tab.get_by_role("group", name="Notes").get_by_role("option").first).to_contain_text("Hose")
        tab.keyboard.press("Enter")

        expect(tab).to_have_url(re.compile("/app/notes/Garden/Hose.md$"))


def other_hosts(url: str, own: str) -> list[str]:
    return [] if url.startswith((own, "blob:", "data:")) else [url]


@pytest.mark.timeout(240)
def test_a_hostile_vault_runs_nothing_and_asks_nobody(tmp_path: Path, tab: Page) -> None:
    name = HOSTILE_NAME.replace("/", "")
    foreign: list[str] = []
    with serving(tmp_path, {**NOTES, f"{name}.md": HOSTILE}) as site:
        tab.on("request", lambda request: foreign.extend(other_hosts(request.url, site.address)))
        tab.on("dialog", lambda dialog: foreign.append(dialog.message))
        site.enter(tab, "/app/notes")
        tab.get_by_role("treeitem", name=re.compile("onerror")).click()
        expect(tab.get_by_role("article")).to_contain_text("tomatoes")
        expect(tab.get_by_role("img", name=re.compile("Diagram"))).to_have_count(2)
        tab.wait_for_timeout(500)
        picture(tab, "note-hostile")
        tab.goto(
            f"{site.address}/app/search?q=tomatoes&tag=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E&folder=%22%3E"
        )
        expect(tab.get_by_role("group", name="Filters")).to_contain_text("onerror")
        tab.goto(f"{site.address}/app/search?q=tomatoes")
        expect(tab.get_by_role("option").first).to_be_visible()

        assert tab.evaluate("window.hacked") is None
        assert tab.locator("#app script, #app iframe, #app object, #app [onerror], #app [onclick]").count() == 0
    assert foreign == []


@pytest.mark.timeout(180)
@pytest.mark.parametrize("width", [320, 720])
def test_a_long_name_widens_neither_a_note_nor_the_word_that_it_is_missing(
    tmp_path: Path, browser: Browser, width: int
) -> None:
    name = "Bahn" * 30
    notes = {f"{name}.md": "# Rail\n\nSee [[Rain]].\n", "Rain.md": f"# Rain\n\nIt rains. See [[{name}]].\n"}
    with (
        serving(tmp_path, notes) as site,
        browser.new_context(viewport={"width": width, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab, "/app/notes/Rain.md")
        expect(tab.get_by_role("region", name="Backlinks")).to_contain_text(name)
        room = tab.locator(".k-main-scroll")
        assert room.evaluate_all(OVERFLOWING) == []
        tab.goto(f"{site.address}/app/notes/{'Auto' * 30}.md")
        expect(tab.get_by_role("heading", name="Note not found")).to_be_visible()

        assert room.evaluate_all(OVERFLOWING) == []


@pytest.mark.timeout(180)
def test_what_a_search_corrected_is_told_once(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab, "/app/search?q=Wateering")
        expect(tab.locator(".k-found")).to_contain_text("searched for")

        expect(tab.locator("main").get_by_text(re.compile("searched for"))).to_have_count(1)


@pytest.mark.timeout(180)
def test_a_search_in_a_vault_without_notes_says_that_there_are_none(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path, {"x.txt": "no note"}) as site:
        site.enter(tab, "/app/search?q=rain")

        expect(tab.locator(".k-empty")).to_contain_text("This vault has no notes yet.")
