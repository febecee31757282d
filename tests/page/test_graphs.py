"""Graphs on the page, in a real browser: of a note's surroundings, of what a run used, of what a scout chose."""

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Locator, Page, expect

from knapper.app import Hub
from knapper.config import EmbeddingSettings, Settings
from knapper.server.http import browsing
from knapper.server.http.app import Mount
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents import scripts
from tests.agents.run_world import Brain, Part
from tests.agents.scripts import Cast
from tests.page import axe, run_sites, sites
from tests.page.sites import answered, say
from tests.page.test_notes import HELLO, serving
from tests.page.test_shell import listening, picture

pytestmark = pytest.mark.timeout(240)
CANVAS = ".k-graph-canvas[data-moves=no]"
TEAL, ORANGE = (42, 157, 143), (209, 129, 60)
"""The colours of the largest group and of the next one."""
FIND_DOT = """async ([image, color]) => {
    const bytes = Uint8Array.from(atob(image), (sign) => sign.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    context.drawImage(bitmap, 0, 0);
    const { data, width, height } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    const fits = (x, y) => color.every((value, at) => Math.abs(data[4 * (y * width + x) + at] - value) < 12);
    const dots = [];
    for (let y = 2; y < height - 2; y += 1) for (let x = 2; x < width - 2; x += 1) {
        if (!fits(x, y) || !fits(x - 2, y) || !fits(x + 2, y) || !fits(x, y - 2) || !fits(x, y + 2)) continue;
        if (!dots.some((dot) => Math.hypot(dot[0] - x, dot[1] - y) < 24)) dots.push([x, y]);
    }
    return dots;
}"""


def _browsing(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
    del stop
    return [browsing.mount_browsing(hub, WorkerThreads(2))]


def _with_meaning(found: Settings) -> Settings:
    return replace(found, embeddings=EmbeddingSettings())


def dots(canvas: Locator, color: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Find the nodes of a colour in a drawn graph: places within its canvas."""
    axe.wait_until_still(canvas.page)
    image = base64.b64encode(canvas.screenshot()).decode()
    with canvas.page.context.new_page() as other:
        return cast("list[tuple[int, int]]", other.evaluate(FIND_DOT, [image, [*color]]))


def test_a_graph_is_a_picture_or_a_list_that_opens_notes(tmp_path: Path, tab: Page) -> None:
    with serving(tmp_path) as site:
        site.enter(tab, "/app/graph/Garden/Watering.md?depth=1")
        expect(tab.get_by_text(re.compile("3 notes, 3 links"))).to_be_visible()
        tab.get_by_role("radio", name="List").click()
        listed = tab.get_by_role("list", name="Notes around Watering")
        expect(listed.get_by_role("listitem")).to_have_count(3)
        picture(tab, "graph-list")
        assert axe.findings(tab) == []
        listed.get_by_role("link", name="Hose").click()

        expect(tab).to_have_url(re.compile("/app/notes/Garden/Hose.md$"))


def test_a_click_on_the_picture_opens_the_note(tmp_path: Path, tab: Page) -> None:
    notes = {"A/Middle.md": "# Middle\n\n[[Far]]\n", "B/Far.md": "# Far\n"}
    with serving(tmp_path, notes) as site, listening(tab) as told:
        site.enter(tab, "/app/graph/A/Middle.md?depth=1")
        canvas = tab.locator(CANVAS)
        expect(canvas).to_be_visible()
        picture(tab, "graph")
        assert axe.findings(tab) == []
        (place,) = dots(canvas, ORANGE)
        canvas.hover(position={"x": place[0], "y": place[1]})
        expect(canvas).to_have_attribute("data-hovers", "yes")
        expect(tab.locator(".k-graph-foot")).to_contain_text("B/Far.md")
        canvas.click(position={"x": place[0], "y": place[1]}, modifiers=["Shift"])
        expect(tab.get_by_role("complementary", name="Far")).to_be_visible()
        tab.get_by_role("button", name="Close the pane").click()
        canvas = tab.locator(CANVAS)
        (place,) = dots(canvas, ORANGE)
        canvas.click(position={"x": place[0], "y": place[1]})

        expect(tab).to_have_url(re.compile("/app/notes/B/Far.md$"))
    assert told == []


CUT_LABELS = """(canvas) => {
    const labels = canvas.querySelector('canvas.sigma-labels');
    const { width, height } = labels;
    const inked = (x) => labels.getContext('2d').getImageData(x, 0, 1, height).data.some((value) => value > 0);
    return { inside: [...Array(width).keys()].some(inked), edges: [0, width - 1].some(inked) };
}"""
"""Whether labels are drawn, and whether one reaches an edge of the picture, which cuts it."""


def test_long_labels_stay_within_the_picture_of_a_phone(tmp_path: Path, tab: Page) -> None:
    names = [f"Watering the beds behind the old house in the summer of 20{at}" for at in range(20, 26)]
    notes = {"Middle.md": "".join(f"[[{name}]]\n" for name in names), **{f"{name}.md": "x\n" for name in names}}
    with serving(tmp_path, notes) as site:
        tab.set_viewport_size({"width": 360, "height": 740})
        site.enter(tab, "/app/graph/Middle.md?depth=1")
        canvas = tab.locator(CANVAS)
        expect(canvas).to_be_visible()
        axe.wait_until_still(tab)
        picture(tab, "graph-long-labels")
        drawn = canvas.evaluate(CUT_LABELS)

    assert drawn == {"inside": True, "edges": False}


def test_a_graph_goes_three_steps_and_colours_by_tag(tmp_path: Path, tab: Page) -> None:
    chain = {f"{at}.md": f"---\ntags: [t{at}]\n---\n# {at}\n\n[[{at + 1}]]\n" for at in range(1, 6)}
    with serving(tmp_path, chain) as site:
        site.enter(tab, "/app/graph/1.md")
        expect(tab.get_by_text("3 notes, 2 links")).to_be_visible()
        tab.get_by_role("radio", name="3 steps").click()
        expect(tab.get_by_text("4 notes, 3 links")).to_be_visible()
        expect(tab).to_have_url(re.compile("depth=3"))
        tab.get_by_role("radio", name="By tag").click()

        expect(tab.get_by_role("list", name="Colours")).to_have_text("t1t2t3t4")


def test_a_note_without_links_is_tied_by_meaning(tmp_path: Path, tab: Page) -> None:
    text = "Water the beds of the garden every evening, with two cans from the barrel."
    notes = {"Watering.md": f"# Watering\n\n{text}\n", "Cans.md": f"# Cans\n\n{text}\n", "Tax.md": "# Tax\n\nDue.\n"}
    with sites.serving(tmp_path, HELLO.open, notes=notes, change=_with_meaning, more=_browsing) as site:
        site.enter(tab, "/app/graph/Watering.md")
        tab.get_by_role("button", name="Include links by meaning").click()
        expect(tab).to_have_url(re.compile("by=both"))
        tab.get_by_role("radio", name="List").click()

        expect(tab.get_by_role("list", name="Notes around Watering")).to_contain_text("connected to Cans")


def test_the_notes_that_a_run_used_are_a_graph(tmp_path: Path, tab: Page) -> None:
    task = "Compare alpha and beta"
    plans = {task: [Part("Alpha grows?"), Part("Beta stays?", needs=["Alpha grows?"])]}
    answers = {"answer Alpha grows?": "Alpha is tall [[A]] (lines 3-3).", f"join {task}": "Taller [[A]] (lines 3-3)."}
    with run_sites.serving(tmp_path, Brain(plans=plans, answers=answers)) as site, listening(tab) as told:
        (site.root / "A.md").write_text("# A\n\nAlpha grows tall.\n\nUnlike [[B]].\n", encoding="utf-8")
        site.enter(tab)
        run_sites.begin(site, tab, task)
        expect(run_sites.state(tab)).to_have_text("Complete")
        tab.get_by_role("link", name="Graph of its notes").click()
        expect(tab).to_have_url(re.compile(r"/app/graph\?run=[\w-]+$"))
        expect(tab.get_by_role("heading", level=1)).to_have_text(f"Notes of “{task}”")
        expect(tab.get_by_text("2 notes, 1 link")).to_be_visible()
        expect(tab.get_by_role("list", name="Colours")).to_contain_text("Cited")
        expect(tab.locator(CANVAS)).to_be_visible()
        picture(tab, "graph-run")
        assert axe.findings(tab) == []
        assert len(dots(tab.locator(CANVAS), TEAL)) == 1
        tab.get_by_role("radio", name="List").click()
        listed = tab.get_by_role("list", name="Notes that the run used").get_by_role("listitem")
        expect(listed).to_have_text(["Acited; connected to B", "Bfound; connected to A"])
        tab.reload()
        expect(tab.get_by_text("2 notes, 1 link")).to_be_visible()
        tab.get_by_role("link", name="Back to the run").click()

        expect(tab.locator(".k-run-said")).to_contain_text("Taller")
    assert told == []


def test_the_notes_that_a_scout_chose_are_a_graph(tmp_path: Path, tab: Page) -> None:
    chosen = scripts.select("Garden.md", "Plans/Rain.md", reasoning="Both say how to water.")
    cast_ = Cast({"scout": [[chosen]], "task": [scripts.task("With water.")]})
    with sites.serving(tmp_path, cast_.open, more=_browsing) as site:
        site.enter(tab, "/app/chat/new")
        tab.get_by_role("button", name="Scout", exact=True).click()
        say(tab, "How do I water?")
        answered(tab)
        tab.locator("[data-finding=selection] summary").first.click()
        tab.locator("[data-finding=selection]").get_by_role("button", name="Graph of these notes").click()
        expect(tab).to_have_url(re.compile(r"/app/graph\?session=[\w-]+&turn=1$"))
        expect(tab.get_by_role("heading", level=1)).to_have_text("Notes of “How do I water?”")
        expect(tab.get_by_text("2 notes, 1 link")).to_be_visible()
        tab.get_by_role("radio", name="List").click()
        listed = tab.get_by_role("list", name="Notes of the answer")
        expect(listed).to_contain_text("chosen by the scout; connected to Rain")
        tab.get_by_role("link", name="Back to the conversation").click()

        expect(tab.locator(".k-answer")).to_contain_text("With water.")
