"""Runs on the page over lost connections, in other windows and vaults, with hostile text, and on small screens."""

import asyncio
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from pydantic import JsonValue

from knapper.agents.runs import executor
from knapper.agents.runs.engine import RunEngine
from knapper.agents.runs.model import RetrievedContext, RunOrder
from knapper.agents.runs.retrieving import VaultRetriever
from knapper.app.runs import OpenedRuns, open_runs
from knapper.codemode.sandbox.pool import WorkerPool
from knapper.config import Vault
from knapper.tools.context import Context
from tests.agents.run_world import Brain, Part
from tests.codemode import conftest
from tests.codemode.askers import searching
from tests.index import worlds
from tests.page import run_sites
from tests.page.payloads import PICTURE, Trap
from tests.page.run_sites import Finder, Gated, begin, pane, part, state
from tests.page.test_hostile import HOSTILE

pytestmark = pytest.mark.timeout(120)
sandbox = conftest.sandbox
TASK = "Compare alpha and beta"
PLANS = {TASK: [Part("Alpha grows?"), Part("Beta stays?")]}
WIDE = "document.documentElement.scrollWidth"


def test_a_run_goes_on_after_the_connection_was_lost(tmp_path: Path, tab: Page) -> None:
    brain = Gated(plans=PLANS, held={"answer Alpha grows?", f"join {TASK}"})
    with run_sites.serving(tmp_path, brain) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(part(tab, "1")).to_contain_text("Writing the answer")
        site.wire.cut()
        expect(tab.get_by_text("The run continues on the server")).to_be_visible()
        brain.held.discard("answer Alpha grows?")
        site.wire.mend()
        expect(part(tab, "1")).to_have_attribute("data-state", "done")
        expect(tab.get_by_text("The run continues on the server")).to_have_count(0)
        brain.held.clear()

        expect(state(tab)).to_have_text("Complete")
        expect(tab.get_by_role("treeitem")).to_have_count(3)


def test_a_second_window_sees_a_run_go_on(tmp_path: Path, tab: Page) -> None:
    brain = Gated(plans=PLANS, held={"answer Alpha grows?"})
    with run_sites.serving(tmp_path, brain) as site:
        site.enter(tab)
        begin(site, tab, TASK)
        expect(part(tab, "1")).to_contain_text("Writing the answer")
        other = tab.context.new_page()
        other.goto(tab.url)
        expect(part(other, "1")).to_contain_text("Writing the answer")
        brain.held.clear()
        expect(state(other)).to_have_text("Complete")
        brain.held.add("answer Alpha grows?")
        part(other, "1").click()
        other.get_by_role("button", name="Redo this part").click()
        other.get_by_role("dialog").get_by_role("button", name="Redo").click()
        expect(state(other)).to_have_text("Running")
        expect(state(tab)).to_have_text("Running")
        brain.held.clear()

        expect(state(tab)).to_have_text("Complete")


def test_a_run_of_another_process_is_followed(tmp_path: Path, tab: Page) -> None:
    brain = Gated(plans=PLANS, held={"answer Alpha grows?"})
    with run_sites.serving(tmp_path, Brain()) as site, open_runs(site.hub) as own:
        engine = replace(own.engine_of(brain.open(), "elsewhere"), retrieve=Finder().of(own.checkpoints))
        run = executor.create_run(engine, RunOrder(task=TASK, code_mode=False))
        thread = threading.Thread(target=lambda: asyncio.run(executor.carry_out_run(engine, run.id, lambda _: None)))
        thread.start()
        try:
            site.enter(tab, "/app/runs")
            tab.get_by_role("list", name="Runs").get_by_role("link").click()
            expect(state(tab)).to_have_text("Running")
            expect(part(tab, "1")).to_contain_text("Running")
        finally:
            brain.held.clear()
            thread.join()

        expect(state(tab)).to_have_text("Complete")
        expect(part(tab, "2")).to_have_attribute("data-state", "done")


def test_a_run_of_another_vault_is_followed_there(tmp_path: Path, tab: Page) -> None:
    other = worlds.fill(tmp_path / "other", {"A.md": "# A\n\nAlpha is a fish.\n"}).resolve()
    with run_sites.serving(
        tmp_path,
        Brain(answers={"Alpha": "A fish [[A]] (lines 3-3)."}),
        change=lambda found: replace(found, vaults=(found.vault, Vault(name="sea", path=other))),
    ) as site:
        site.enter(tab)
        choose_vault(tab, "sea")
        begin(site, tab, "Alpha")
        expect(state(tab)).to_have_text("Complete")
        part(tab, "root").click()
        expect(pane(tab).locator(".k-cite").first).to_have_attribute("href", "/app/notes/A.md?lines=1-3")
        choose_vault(tab, "v")
        tab.goto(f"{site.address}/app/runs")

        expect(tab.get_by_role("heading", name="No runs yet")).to_be_visible()


def choose_vault(tab: Page, name: str) -> None:
    tab.get_by_role("button", name="Appearance and account").click()
    tab.get_by_role("menuitemradio", name=name, exact=True).click()
    expect(tab.get_by_label("Search your notes")).to_be_visible()


def test_a_run_runs_and_loads_nothing_of_what_it_holds(tmp_path: Path, tab: Page) -> None:
    evil = PICTURE
    attempt: dict[str, JsonValue] = {"step": evil, "kind": evil, "error": HOSTILE, "score": 0.1, "script": HOSTILE}
    found = RetrievedContext(context="x", score=0.1, tier=evil, script=HOSTILE, attempts=(attempt,), notes=(HOSTILE,))
    brain = Brain(plans={evil: [Part(f"Alpha {evil}", impact="security"), Part("Beta")]})
    brain.answers |= {f"answer Alpha {evil}": HOSTILE, f"join {evil}": HOSTILE}
    with run_sites.serving(tmp_path, brain, Finder({f"Alpha {evil}": found})) as site:
        trap = Trap(tab=tab, address=site.address)
        site.enter(tab)
        begin(site, tab, evil)
        expect(state(tab)).to_have_text("Complete")
        part(tab, "1").click()
        expect(pane(tab).locator(".k-part-said")).to_contain_text("<script>")
        for summary in tab.locator(".k-pane details > summary, .k-main details > summary").all():
            summary.click()
        for place in (".k-main", ".k-pane", ".k-list"):
            made = tab.locator(place).locator("img, script, iframe, style, object, embed, link, meta, base")
            expect(made).to_have_count(0)
            links = tab.locator(place).locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
            assert all(re.match("(/app/|https?://|#|$)", link or "") for link in links), links
            told = (
                tab.locator(place)
                .locator("*")
                .evaluate_all("all => all.flatMap(n => n.getAttributeNames()).filter(n => /^on/.test(n))")
            )
            assert told == []

        trap.check()


@pytest.mark.parametrize("width", [320, 360, 768, 1024])
def test_no_run_is_wider_than_the_screen(tmp_path: Path, browser: Browser, width: int) -> None:
    long = "y" * 200
    attempt: dict[str, JsonValue] = {
        "step": "script",
        "kind": "error",
        "error": long,
        "score": 0.1,
        "script": f"x = '{long}'\n" * 9,
    }
    brain = Brain(plans={"Alpha": [Part(f"Alpha {long}"), Part("Beta")]}, answers={"join Alpha": f"{long} [[{long}]]"})
    finder = Finder(
        {f"Alpha {long}": RetrievedContext(context="x", tier="A", script="x", attempts=(attempt,), notes=(long,))}
    )
    with (
        run_sites.serving(tmp_path, brain, finder) as site,
        browser.new_context(viewport={"width": width, "height": 640}, locale="en") as context,
    ):
        tab = context.new_page()
        site.enter(tab)
        begin(site, tab, "Alpha")
        expect(state(tab)).to_have_text("Complete")
        assert tab.evaluate(WIDE) <= width
        assert tab.locator(".k-main .k-main-scroll").evaluate("n => n.scrollWidth - n.clientWidth") == 0
        part(tab, "1").click()
        expect(pane(tab).locator("h2")).to_be_in_viewport()
        tab.locator(".k-attempt summary").click()

        assert tab.evaluate(WIDE) <= width
        assert tab.locator(".k-pane-body").evaluate("n => n.scrollWidth - n.clientWidth") == 0


@pytest.mark.timeout(180)
def test_what_real_scripts_find_is_shown(tmp_path: Path, tab: Page, sandbox: WorkerPool) -> None:
    def by_scripts(tasks: OpenedRuns, made: RunEngine) -> RunEngine:
        def open_context(run: str, _: tuple[str, ...]) -> Context:
            return replace(tasks.context(run), open_sandbox=lambda: sandbox)

        return replace(made, retrieve=VaultRetriever(checkpoints=tasks.checkpoints), open_context=open_context)

    task = "When are the tomatoes watered?"
    brain = Brain(scripts={task: [searching("tomatoes watering")]}, answers={task: "[[Garden]] (lines 10-11) says it."})
    with run_sites.serving(tmp_path, brain, work=by_scripts) as site:
        site.enter(tab)
        begin(site, tab, task, by_scripts=True)
        expect(state(tab)).to_have_text("Complete")
        part(tab, "root").click()
        first = pane(tab).locator("details.k-attempt").first
        expect(first).to_contain_text("First scriptran")
        first.locator("summary").click()
        expect(first.locator("code")).to_contain_text("obsidian.search('tomatoes watering', limit=5)")
        expect(tab.locator(".k-measure[data-whole]")).to_contain_text("Score")
        cited = pane(tab).locator(".k-retrieval .k-cite", has_text="Garden").first

        expect(cited).to_have_attribute("href", re.compile("^/app/notes/Garden.md"))
        assert "script" in brain.kinds(task)
