"""The plugin's search and related notes, in a browser with Obsidian's editor, against a real `knap serve`."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page import axe
from tests.page.test_plugin import GARDEN, desk

pytestmark = pytest.mark.timeout(300)
OTHERS = {
    "Plans/Rain.md": "# Rain\n\nIt rains on the tomatoes. See [[Garden#Watering]] and [[Nowhere]].\n",
    "Alone.md": (
        "# Alone\n\nTomatoes like water from the barrel, every evening of a dry summer, and less of it in spring.\n"
    ),
    "Marked.md": "# Marked\n\nSome words are <b onclick=alert(1)>in bold</b>.\n",
}
DRAGGED = """row => {
    const dataTransfer = new DataTransfer();
    row.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}));
    row.dispatchEvent(new DragEvent('dragstart', {bubbles: true, dataTransfer}));
    return row.closest('[data-note]').draggable && dataTransfer.getData('text/plain');
}"""


def test_hits_come_while_one_types_and_are_opened_and_linked_by_keys(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys, others=OTHERS) as at:
        tab.evaluate("app.workspace.on('hover-link', (said) => (window.hovered = said.linktext))")
        at.app.run("open-search")
        box = tab.get_by_label("Search your notes")
        expect(box).to_be_focused()
        at.picture("search-empty")
        box.press_sequentially("tomatoes ra")
        hits = tab.get_by_role("option")
        expect(hits.first).to_contain_text("Rain")
        at.picture("search-hits")
        assert axe.findings(tab) == []
        box.fill("bold")
        expect(hits.first).to_contain_text("<b onclick")
        assert tab.locator("#side b").count() == 0
        box.fill("xyzzyqwv")
        expect(tab.locator("#side")).to_contain_text("Try fewer or other words")
        box.fill("tomatoes ra")
        expect(hits.first).to_contain_text("Rain")
        hits.first.hover()
        assert tab.evaluate("hovered") == "Plans/Rain.md"
        assert tab.evaluate(DRAGGED, hits.first.element_handle()) == "[[Rain]]"
        tab.evaluate("app.workspace.active.editor.setSelection({line: 0, ch: 8}, {line: 0, ch: 8})")
        box.press("Alt+Enter")
        assert at.app.text() == GARDEN.replace("# Garden", "# Garden[[Rain]]")
        tab.keyboard.press("Control+z")
        at.app.run("insert-link")
        tab.get_by_label("Find").fill("every evening barrel")
        tab.locator(".modal").get_by_role("option").filter(has_text="Alone").first.click()
        assert at.app.text() == GARDEN.replace("# Garden", "# Garden[[Alone]]")
        tab.locator(".cm-content").focus()
        tab.keyboard.press("Control+z")
        box.press("Enter")
        expect(tab.locator("#note")).to_contain_text("It rains on the tomatoes")

        assert tab.evaluate("app.workspace.opened") == ["same Plans/Rain.md 0"]


def test_what_is_related_follows_the_open_note_and_loose_ends_are_listed(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys, others=OTHERS) as at:
        at.app.run("show-related")
        rows = tab.get_by_role("list", name="Related notes").get_by_role("listitem")
        expect(rows.first).to_contain_text("Rain")
        expect(rows.first).to_contain_text("linked")
        at.picture("search-related")
        at.app.open("Plans/Rain.md")
        expect(tab.locator("#side")).to_contain_text("Related to Rain")
        expect(rows.first).to_contain_text("Garden")

        at.app.run("show-loose-ends")
        expect(tab.get_by_role("region", name="Broken links")).to_contain_text("Nowhere")
        expect(tab.get_by_role("region", name="Broken links")).to_contain_text("Rain, line 3")
        expect(tab.get_by_role("region", name="Orphans")).to_contain_text("Alone")
        at.picture("search-ends")
        assert axe.findings(tab) == []
