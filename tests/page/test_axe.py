"""What axe-core says of the page: every view, and what opens over it, at three widths, light and dark."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from knapper.app import Hub
from knapper.config import Settings
from knapper.server.http import browsing
from knapper.server.http.app import Mount
from knapper.server.workers import StopSignal, WorkerThreads
from tests.agents.scripted import Model
from tests.page import axe, pictures, sites
from tests.page.conftest import WAIT_MS
from tests.page.sites import Site, answered, say
from tests.page.test_shell import SIZES, listening, picture

NOTE = "/app/notes/Garden/Watering.md"
ANSWER = "Every second evening [[Watering#Summer]] (lines 9-10).\n\n```python\nprint('water')\n```"


def _named(found: Settings) -> Settings:
    return replace(found, model=replace(found.model, name="ollama:qwen3"))


def _mounts(hub: Hub, stop: StopSignal) -> Sequence[Mount]:
    del stop
    return [browsing.mount_browsing(hub, WorkerThreads(2))]


def _open_palette(tab: Page) -> None:
    tab.keyboard.press("Control+k")
    tab.keyboard.type("wat")
    expect(tab.get_by_role("group", name="Notes").get_by_role("option").first).to_contain_text("Watering")
    tab.keyboard.press("ArrowDown")


def _open_keys(tab: Page) -> None:
    tab.locator("body").press("?")
    expect(tab.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def _shown(tab: Page, selector: str) -> Callable[[Page], None]:
    def wait(_: Page) -> None:
        expect(tab.locator(selector).locator("visible=true").first).to_be_visible()

    return wait


def _views(tab: Page, chat: str) -> dict[str, tuple[str, Callable[[Page], None]]]:
    """Name each view's address, and what waits until it is shown."""
    return {
        "search": ("/app/search", _shown(tab, "#standing")),
        "search-hits": ("/app/search?q=watering+tomatoes", _shown(tab, ".k-hit .k-hit-reason")),
        "search-tag": ("/app/search?tag=garden", _shown(tab, ".k-hit")),
        "search-nothing": ("/app/search?q=xyzzyqwv", _shown(tab, ".k-empty")),
        "palette": ("/app/search", _open_palette),
        "keys": ("/app/notes", _open_keys),
        "notes": ("/app/notes", _shown(tab, "[role=treeitem]")),
        "note": (NOTE, _shown(tab, ".k-backlinks, [aria-label=Backlinks]")),
        "graph": ("/app/graph/Garden/Watering.md", _shown(tab, ".k-graph-canvas[data-moves=no]")),
        "chat-new": ("/app/chat/new", _shown(tab, ".k-model-name")),
        "chat": (chat, _shown(tab, ".k-exchange-spent")),
        "runs": ("/app/runs?new=1", _shown(tab, ".k-run-begin textarea")),
        "settings": ("/app/settings/models", _shown(tab, ".k-set-control")),
    }


@pytest.mark.timeout(400)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_no_view_has_a_serious_finding(tmp_path: Path, browser: Browser, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    found: list[str] = []

    def look(tab: Page, name: str) -> None:
        picture(tab, f"axe-{name}-{size}-{scheme}")
        found.extend(f"{name}: {finding}" for finding in axe.findings(tab))
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, name

    with (
        sites.serving(tmp_path, Model([[ANSWER]]).open, notes=pictures.notes(), change=_named, more=_mounts) as site,
        browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            locale="en",
        ) as context,
    ):
        context.set_default_timeout(WAIT_MS)
        tab = context.new_page()
        tab.goto(f"{site.address}/app/search")
        expect(tab.get_by_label("Sign-in link or code")).to_be_focused()
        look(tab, "gate")
        chat = _conversation(site, tab)
        with listening(tab) as told:
            for name, (address, wait) in _views(tab, chat).items():
                tab.goto(f"{site.address}{address}")
                expect(tab.get_by_role("navigation", name="Views")).to_be_visible()
                wait(tab)
                look(tab, name)

    assert found == [], "\n".join(found)
    assert told == []


def _conversation(site: Site, tab: Page) -> str:
    """Have one question answered; return where it is shown."""
    site.enter(tab, "/app/chat/new")
    say(tab, "When do I water?")
    answered(tab)
    return tab.url.removeprefix(site.address)
