"""How the page behaves on small screens and for those who use no mouse, and what its files may hold."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.agents import scripts
from tests.agents.scripted import Call, Model
from tests.agents.scripts import Cast
from tests.page import sites
from tests.page.sites import answered, say

WEB = Path(__file__).parents[2] / "src" / "knapper" / "web"
SOURCES = sorted(path for path in WEB.rglob("*") if path.suffix in {".js", ".css", ".html"})
SCRIPTS = [path for path in SOURCES if path.suffix == ".js"]
MAX_FILE, MAX_FUNCTION = 300, 50
READS_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function\("
    r"|\.srcdoc|setHTML"
)
LONG = (
    "word " * 60
    + "x" * 300
    + "\n\n| a | b | c | d | e |\n|---|---|---|---|---|\n| "
    + "wide " * 10
    + "| b | c | d | e |\n"
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, browser: Browser, width: int) -> None:
    proposal = sites.rewriting(**{"water from the barrel": "y" * 200})
    model = Model([[proposal], [LONG]])
    with (
        sites.serving(tmp_path, model.open) as site,
        browser.new_context(viewport={"width": width, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab)
        say(tab, "Long words")
        answered(tab)
        wide = "document.documentElement.scrollWidth"
        assert tab.evaluate(wide) <= width
        tab.get_by_role("button", name="Review").click()
        expect(tab.locator(".hunk")).to_be_visible()

        assert tab.evaluate(wide) <= width
        assert tab.locator("#panel-body").evaluate("n => n.scrollWidth - n.clientWidth") == 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("width", [320, 360, 1280])
def test_what_agents_find_is_no_wider_than_the_screen(tmp_path: Path, browser: Browser, width: int) -> None:
    name = f"{'long' * 30}.md"
    found = scripts.select(name, reasoning="r" * 300)
    model = Cast({"scout": [[found]], "task": [scripts.task("x" * 300, (name, "line:90", "y"))]})
    with (
        sites.serving(tmp_path, model.open, notes={name: "# Long\n"}) as site,
        browser.new_context(viewport={"width": width, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab)
        tab.get_by_role("button", name="Scout", exact=True).click()
        tab.get_by_role("button", name="Notes and rules").click()
        tab.get_by_role("combobox", name="Find a note to add").fill("long")
        tab.locator(".picker-list [role=option]").first.click()
        expect(tab.locator("#choosing .note-list li")).to_have_count(1)
        say(tab, "Long words")
        answered(tab)
        for summary in tab.locator(".exchange summary").all():
            summary.click()
        wide = "all => all.filter(n => n.scrollWidth > n.clientWidth + 1).map(n => n.id || n.className)"

        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator("#talk, #choosing, .finding, .chips, .phases").evaluate_all(wide) == []


@pytest.mark.timeout(60)
def test_the_lists_open_and_close_on_a_phone(tmp_path: Path, browser: Browser) -> None:
    with (
        sites.serving(tmp_path, Model([["Yes."]]).open) as site,
        browser.new_context(
            viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True, reduced_motion="reduce"
        ) as context,
    ):
        tab = context.new_page()
        site.enter(tab)
        say(tab, "First")
        answered(tab)
        new = tab.get_by_role("button", name="New", exact=True)
        expect(new).not_to_be_visible()
        menu = tab.get_by_role("button", name="Conversations and changes")
        menu.tap()
        expect(menu).to_have_attribute("aria-expanded", "true")
        expect(new).to_be_focused()
        tab.keyboard.press("Escape")
        expect(menu).to_be_focused()
        menu.tap()
        expect(tab.get_by_role("button", name="Rename “First”")).to_be_in_viewport()
        new.tap()
        expect(new).not_to_be_visible()

        expect(tab.get_by_role("heading", name="Ask your notes")).to_be_visible()


@pytest.mark.timeout(60)
def test_the_page_is_used_by_keyboard_alone(tmp_path: Path, tab: Page) -> None:
    model = Model([[Call("search_vault", {"query": "watering"})], ["See [[Garden#Watering]]."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab)
        tab.keyboard.press("Control+/")
        tab.keyboard.type("When?")
        tab.keyboard.press("Enter")
        answered(tab)
        expect(tab.get_by_label("Message", exact=True)).to_be_focused()
        tab.keyboard.press("Shift+Tab")
        expect(tab.get_by_role("button", name=re.compile("^Garden"))).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("heading", name="Garden", exact=True).first).to_be_focused()
        tab.keyboard.press("Escape")
        expect(tab.get_by_role("button", name=re.compile("^Garden"))).to_be_focused()
        tab.keyboard.press("Control+k")

        expect(tab.get_by_role("heading", name="Ask your notes")).to_be_visible()
        expect(tab.get_by_label("Message", exact=True)).to_be_focused()


@pytest.mark.timeout(60)
def test_on_a_phone_the_keyboard_stays_in_the_panel(tmp_path: Path, browser: Browser) -> None:
    model = Model([[Call("search_vault", {"query": "watering"})], ["See [[Garden#Watering]]."]])
    with (
        sites.serving(tmp_path, model.open) as site,
        browser.new_context(viewport={"width": 360, "height": 640}) as context,
    ):
        tab = context.new_page()
        site.enter(tab)
        say(tab, "When?")
        answered(tab)
        tab.get_by_role("button", name=re.compile("^Garden")).click()
        expect(tab.get_by_role("button", name="As written")).to_be_visible()
        for _ in range(12):
            tab.keyboard.press("Tab")
            assert tab.evaluate(
                "['BODY', 'HTML'].includes(document.activeElement.tagName) || panel.contains(document.activeElement)"
            )
        tab.get_by_role("button", name="Close", exact=True).click()

        expect(tab.get_by_role("button", name=re.compile("^Garden"))).to_be_focused()


@pytest.mark.timeout(60)
def test_whoever_wants_no_motion_has_none(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        tab.emulate_media(reduced_motion="reduce")
        site.enter(tab)
        moving = "all => all.filter(n => getComputedStyle(n).transitionDuration !== '0s').length"

        assert tab.locator("*").evaluate_all(moving) == 0


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(WEB).as_posix())
def test_a_file_of_the_page_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(WEB).as_posix())
def test_a_function_of_the_page_is_short(path: Path) -> None:
    rows = path.read_text(encoding="utf-8").splitlines()
    begins = [(at, row) for at, row in enumerate(rows) if row.endswith("{") and re.search(r"\)\s*\{$|=>\s*\{$", row)]
    lengths = {row.strip(): _stop(rows, at) - at + 1 for at, row in begins}

    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION} == {}


def _stop(rows: list[str], at: int) -> int:
    """Find the line that closes what one opens; the files are laid out by a formatter."""
    indent = len(rows[at]) - len(rows[at].lstrip())
    return next(n for n in range(at + 1, len(rows)) if re.match(rf" {{{indent}}}\}}", rows[n]))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(WEB).as_posix())
def test_no_script_of_the_page_reads_markup_or_code(path: Path) -> None:
    assert READS_MARKUP.findall(path.read_text(encoding="utf-8")) == []


def test_the_page_names_no_address_elsewhere() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in SOURCES}
    named = {name: re.findall(r"https?://[\w.-]+", text) for name, text in texts.items()}

    assert {name: found for name, found in named.items() if found} == {}
