"""How the page behaves on small screens and for those who use no mouse, and what its files may hold."""

import gzip
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.agents import scripts
from tests.agents.scripted import Call, Model
from tests.agents.scripts import Cast
from tests.page import sites
from tests.page.sites import answered, say

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "knapper" / "data" / "page"
CHAT = "/app/chat/new"
SOURCES = sorted(
    path
    for folder in ("ui/client", "ui/parts", "ui/page", "plugin/src")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".ts", ".tsx", ".css", ".html"} and ".test." not in path.name and path.name != "schema.d.ts"
)
SCRIPTS = [path for path in SOURCES if path.suffix != ".css"]
ASSETS = sorted(
    path
    for path in BUILT.rglob("*")
    if path.name.removesuffix(".gz").endswith((".js", ".css", ".html", ".svg", ".webmanifest"))
)
MAX_LINES = {".css": 1_200}
"""Of style sheets; of all else there are at most 500."""
MAX_SCRIPT_BYTES = 100_000
"""As it is sent."""
READS_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function\("
    r"|\.srcdoc|setHTML"
)
OF_LIBRARIES = (
    # Preact's own handling of an attribute that no part has; the content policy refuses it besides.
    re.compile(r"\w+\.__html==\w+\.innerHTML\)\|\|\(\w+\.innerHTML=\w+\.__html\)|\(\w+\.innerHTML=\"\"\)"),
    # What highlight.js does with elements; it is given texts here, never an element.
    re.compile(r'includes unescaped HTML\.",\w+\.innerHTML\)|\w+\.innerHTML=\w+\.value'),
)
PARSED = {
    "frame.ts": 'new DOMParser().parseFromString(svg, "text/html")',  # in the frame without an origin, and drawn there
    "entities.ts": 'new DOMParser().parseFromString(entity, "text/html")',  # a name such as &copy; and nothing else
}
FRAME = "diagrams.html"
"""Mermaid's document: it has no origin, loads nothing, and only its own script runs, as its policy says."""
NAMESPACES = {"http://www.w3.org"}
NO_ADDRESSES = {
    "http://localhost",  # an example of a model's address, which the server asks
    "https://.",  # what a message says that such an address begins with
    "http://HOST",  # how an address is written, in the words of a setting
    "http://page",  # what relative addresses are read against, and never asked for
    "https://github.com/highlightjs",  # in warnings of highlight.js
}
LONG = (
    "word " * 60
    + "x" * 300
    + "\n\n| a | b | c | d | e |\n|---|---|---|---|---|\n| "
    + "wide " * 10
    + "| b | c | d | e |\n"
)
BEGINS = """all => all.map(node => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const [text, box] = [range.getBoundingClientRect(), node.getBoundingClientRect()];
    return box.right - text.right < text.left - box.left ? "right" : "left";
})"""
"""At which side of its block each text stands."""
BEYOND = """all => all.filter(n => {
    const box = n.getBoundingClientRect();
    return box.width && box.right > innerWidth + 1 && !n.matches(".k-cut, .k-cut *");
}).map(n => n.className)"""
"""What ends beyond the window's right side."""
OVERFLOWING = "all => all.filter(n => n.scrollWidth > n.clientWidth + 1).map(n => n.id || n.className)"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_nothing_is_wider_than_the_screen(tmp_path: Path, browser: Browser, width: int) -> None:
    proposal = sites.rewriting(**{"water from the barrel": "y" * 200})
    model = Model([[proposal], [LONG]])
    with (
        sites.serving(tmp_path, model.open) as site,
        browser.new_context(viewport={"width": width, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab, CHAT)
        say(tab, "Long words")
        answered(tab)
        wide = "document.documentElement.scrollWidth"
        assert tab.evaluate(wide) <= width
        tab.locator(".k-changes").get_by_role("button", name="Preview").click()
        expect(tab.locator(".k-changes")).to_contain_text("yyyy")

        assert tab.evaluate(wide) <= width
        assert tab.locator(".k-changes, .k-answer, .k-answer > p, .k-exchange").evaluate_all(OVERFLOWING) == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("width", [320, 1280])
def test_a_long_name_widens_no_list(tmp_path: Path, browser: Browser, width: int) -> None:
    name = f"{'a long name ' * 20}.md".replace(" .", ".")
    with (
        sites.serving(tmp_path, Model([[]]).open, notes={f"In/{name}": "# Long\n\nTomatoes.\n"}) as site,
        browser.new_context(viewport={"width": width, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab, "/app/search")
        row = tab.get_by_role("list", name="Recently changed").get_by_role("link", name="a long name")
        expect(row).to_be_visible()
        assert tab.locator(".k-content *").evaluate_all(BEYOND) == []
        row.click()
        expect(tab.locator(".k-main")).to_contain_text("Tomatoes")
        tab.goto(f"{site.address}/app/graph")
        expect(tab.get_by_role("link", name="Around a long name")).to_be_visible()

        assert tab.locator(".k-empty, .k-empty *").evaluate_all(BEYOND) == []


@pytest.mark.timeout(60)
def test_an_empty_list_of_conversations_begins_one_where_it_stands_alone(tmp_path: Path, browser: Browser) -> None:
    with (
        sites.serving(tmp_path, Model([[]]).open) as site,
        browser.new_context(viewport={"width": 390, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab, "/app/chat")
        tab.locator(".k-empty").get_by_role("button", name="New conversation").click()

        expect(tab).to_have_url(f"{site.address}{CHAT}")


@pytest.mark.timeout(60)
def test_a_long_folder_leaves_a_hit_its_name(tmp_path: Path, browser: Browser) -> None:
    path = f"{'A folder of many words ' * 4}".strip() + "/Tomatoes and beans.md"
    with (
        sites.serving(tmp_path, Model([[]]).open, notes={path: "# Tomatoes and beans\n\nWater them.\n"}) as site,
        browser.new_context(viewport={"width": 390, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab, "/app/search?q=beans")
        name = tab.get_by_role("option", name="Tomatoes and beans").locator(".k-hit-title > .k-cut").first
        expect(name).to_be_visible()

        assert name.evaluate("name => name.scrollWidth <= name.clientWidth")


@pytest.mark.timeout(120)
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
        site.enter(tab, CHAT)
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, "Long words")
        answered(tab)
        for summary in tab.locator(".k-exchange summary").all():
            summary.click()

        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator(".k-exchange, .k-answer, [data-finding], .k-compose").evaluate_all(OVERFLOWING) == []


@pytest.mark.timeout(120)
def test_a_note_is_printed_whole_and_without_the_page_around_it(tmp_path: Path, tab: Page) -> None:
    text = "# Rain\n\n" + "It rains.\n\n" * 200
    with sites.serving(tmp_path, Model([["Yes."]]).open, notes={"Rain.md": text}) as site:
        site.enter(tab, "/app/notes/Rain.md")
        expect(tab.get_by_text("It rains.").first).to_be_visible()
        tab.emulate_media(media="print")

        expect(tab.get_by_role("navigation", name="Views")).to_be_hidden()
        expect(tab.locator(".k-list")).to_be_hidden()
        expect(tab.locator("main .k-button").first).to_be_hidden()
        bottom = tab.get_by_text("It rains.").last.evaluate("e => e.getBoundingClientRect().bottom")
        assert bottom < 1 + tab.evaluate("document.documentElement.scrollHeight")


@pytest.mark.timeout(120)
def test_where_the_system_sets_the_colours_what_is_chosen_has_a_frame(tmp_path: Path, browser: Browser) -> None:
    framed = "e => getComputedStyle(e).outlineStyle"
    with (
        sites.serving(tmp_path, Model([["Yes."]]).open) as site,
        browser.new_context(forced_colors="active", locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab, "/app/search?q=water")
        expect(tab.locator(".k-hit[data-active]")).to_be_visible()
        views = tab.get_by_role("navigation", name="Views")
        hit = tab.locator(".k-hit[data-active]").evaluate(framed)
        view = views.get_by_role("link", name="Search").evaluate(framed)
        other = views.get_by_role("link", name="Notes").evaluate(framed)
        views.get_by_role("link", name="Settings").click()
        row = tab.locator(".k-row[data-selected]").evaluate(framed)

        assert (hit, view, other, row) == ("solid", "solid", "none", "solid")


@pytest.mark.timeout(120)
def test_arabic_begins_at_the_right_beside_english_at_the_left(tmp_path: Path, tab: Page) -> None:
    text = "# مطر\n\nسقي الحديقة\n\nIt rains.\n\n- مهمة\n"
    with sites.serving(tmp_path, Model([["Yes."]]).open, notes={"Rain.md": text}) as site:
        site.enter(tab, "/app/notes/Rain.md")
        expect(tab.get_by_text("It rains.")).to_be_visible()
        begins = tab.locator(".k-prose").locator("h1, p, li").evaluate_all(BEGINS)

        assert begins == ["right", "right", "left", "right"]


@pytest.mark.timeout(120)
def test_on_a_phone_list_and_content_take_turns(tmp_path: Path, browser: Browser) -> None:
    with (
        sites.serving(tmp_path, Model([["Yes."]]).open) as site,
        browser.new_context(
            viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True, reduced_motion="reduce", locale="en"
        ) as context,
    ):
        tab = context.new_page()
        site.enter(tab, CHAT)
        say(tab, "First")
        answered(tab)
        row = tab.locator("[data-session]")
        expect(row).not_to_be_visible()
        tab.get_by_role("link", name="Back to the list").tap()
        expect(row).to_be_in_viewport()
        expect(tab.locator(".k-answer")).not_to_be_visible()
        expect(tab.get_by_role("button", name="Actions for “First”")).to_be_in_viewport()
        row.get_by_role("link").tap()
        expect(tab.locator(".k-answer")).to_be_visible()
        tab.get_by_role("link", name="Back to the list").tap()
        tab.get_by_role("link", name="New conversation").tap()

        expect(tab.get_by_label("Message", exact=True)).to_be_visible()
        expect(row).not_to_be_visible()


@pytest.mark.timeout(120)
def test_a_conversation_is_led_by_keyboard_alone(tmp_path: Path, tab: Page) -> None:
    model = Model([[Call("search_vault", {"query": "watering"})], ["See [[Garden#Watering]]."]])
    with sites.serving(tmp_path, model.open) as site:
        site.enter(tab, CHAT)
        cite = tab.locator(".k-answer .k-cite")
        message = tab.get_by_label("Message", exact=True)
        expect(message).to_be_focused()
        message.blur()
        tab.keyboard.press("Control+/")
        tab.keyboard.type("When?")
        tab.keyboard.press("Enter")
        answered(tab)
        expect(message).to_be_focused()
        for _ in range(12):
            tab.keyboard.press("Shift+Tab")
            if cite.evaluate("node => node === document.activeElement"):
                break
        expect(cite).to_be_focused()
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("complementary", name="Garden")).to_be_focused()
        tab.keyboard.press("Escape")
        expect(cite).to_be_focused()
        tab.keyboard.press("n")

        expect(tab).to_have_url(f"{site.address}{CHAT}")
        expect(message).to_be_focused()


@pytest.mark.timeout(120)
def test_on_a_phone_the_keyboard_reaches_nothing_under_the_pane(tmp_path: Path, browser: Browser) -> None:
    model = Model([[Call("search_vault", {"query": "watering"})], ["See [[Garden#Watering]]."]])
    with (
        sites.serving(tmp_path, model.open) as site,
        browser.new_context(viewport={"width": 360, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab, CHAT)
        say(tab, "When?")
        answered(tab)
        tab.locator(".k-answer .k-cite").click()
        expect(tab.get_by_role("complementary", name="Garden")).to_be_focused()
        outside = "!document.activeElement.closest('body:not(:focus), .k-pane, .k-rail, .k-skip')"
        seen = set[str]()
        for _ in range(24):
            tab.keyboard.press("Tab")
            seen.add(
                tab.evaluate("document.activeElement.closest('.k-pane, .k-rail, .k-skip')?.className ?? 'elsewhere'")
            )
            assert not tab.evaluate(outside) or tab.evaluate("document.activeElement === document.body")
        assert "k-pane" in seen
        assert "k-main" not in seen
        tab.get_by_role("button", name="Close the pane").click()

        expect(tab.locator(".k-answer .k-cite")).to_be_focused()


@pytest.mark.timeout(120)
def test_whoever_wants_no_motion_has_none(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, Model([["Yes."]]).open) as site:
        tab.emulate_media(reduced_motion="reduce")
        site.enter(tab, CHAT)
        say(tab, "Move?")
        answered(tab)
        moving = (
            "all => all.filter(n => ['transitionDuration', 'animationDuration']"
            ".some(name => getComputedStyle(n)[name].split(', ').some(time => parseFloat(time) > 0.011)))"
            ".map(n => n.className)"
        )

        assert tab.locator("*").evaluate_all(moving) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_of_the_interface_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES.get(path.suffix, 500)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_source_reads_markup_or_code(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    text = text.replace(PARSED.get(path.name, "-"), "", 1)

    assert READS_MARKUP.findall(text) == []
    assert "dangerouslySetInnerHTML" not in text


def test_no_built_script_reads_markup_or_code() -> None:
    found: dict[str, list[str]] = {}
    for path in ASSETS:
        text = _built_text(path)
        for known in OF_LIBRARIES:
            text = known.sub("", text)
        if not path.name.startswith(FRAME) and (hits := READS_MARKUP.findall(text)):
            found[path.name] = hits

    assert ASSETS
    assert found == {}


def test_no_script_is_heavy_whenever_it_comes() -> None:
    sent = {path.name: len(path.read_bytes()) for path in ASSETS if path.name.removesuffix(".gz").endswith(".js")}

    assert len(sent) > 30
    assert {name: size for name, size in sent.items() if size > MAX_SCRIPT_BYTES} == {}


def test_the_page_names_no_address_elsewhere() -> None:
    found: dict[str, set[str]] = {}
    for path in ASSETS:
        named = set(re.findall(r"(?:https?|wss?)://(?:github\.com/[\w-]+|[\w.-]+)", _built_text(path)))
        if not path.name.startswith(FRAME) and (strange := named - NAMESPACES - NO_ADDRESSES):
            found[path.name] = strange

    assert ASSETS
    assert found == {}


def _built_text(path: Path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
