"""The page as an app: its manifest and icons, and what is shown where the server can't be reached."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.agents.scripted import Model
from tests.page import axe, sites
from tests.page.test_shell import listening, picture

HELLO = Model([["Hello."]])
PNG = b"\x89PNG\r\n\x1a\n"


def _size(png: bytes) -> str:
    assert png.startswith(PNG)
    return f"{int.from_bytes(png[16:20])}x{int.from_bytes(png[20:24])}"


@pytest.mark.timeout(120)
def test_the_manifest_names_icons_of_the_sizes_that_they_have(tmp_path: Path) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        manifest: dict[str, Any] = httpx2.get(f"{site.address}/page/knapper.webmanifest").json()
        icons = {icon["src"]: (icon, httpx2.get(f"{site.address}{icon['src']}")) for icon in manifest["icons"]}

    assert (manifest["start_url"], manifest["scope"], manifest["display"]) == ("/", "/", "standalone")
    assert all(answer.status_code == 200 for _, answer in icons.values())
    pictures = {(icon["sizes"], icon["purpose"]) for icon, _ in icons.values() if icon["type"] == "image/png"}
    assert pictures == {("192x192", "any"), ("512x512", "any"), ("512x512", "maskable")}
    for icon, answer in icons.values():
        assert answer.headers["content-type"] == icon["type"]
        if icon["type"] == "image/png":
            assert _size(answer.content) == icon["sizes"]


@pytest.mark.timeout(120)
def test_only_the_workers_own_address_may_be_made_a_script_of(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab)
        tab.evaluate("navigator.serviceWorker.ready.then(() => true)")
        scripts = tab.evaluate("navigator.serviceWorker.getRegistrations().then(all => all.map(one => one.scope))")
        refused = tab.evaluate(
            "['knapper-worker', 'another', 'default'].map(name => {"
            " try { trustedTypes.createPolicy(name, {createScriptURL: text => text}); return false }"
            " catch { return true } })"
        )
        worker = httpx2.get(f"{site.address}/page/worker.js")
        other = httpx2.get(f"{site.address}/page/offline.js")

    assert scripts == [f"{site.address}/"]
    assert refused == [True, True, True]  # the page's own policy is made once, and no other may be
    assert (worker.headers["service-worker-allowed"], worker.headers["cache-control"]) == ("/", "no-cache")
    assert "service-worker-allowed" not in other.headers


@pytest.mark.timeout(180)
def test_offline_it_says_so_keeps_trying_and_holds_no_note(tmp_path: Path, context: BrowserContext) -> None:
    tab = context.new_page()
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab)
        with listening(tab) as told:
            tab.evaluate("navigator.serviceWorker.ready.then(() => true)")
            tab.wait_for_function("navigator.serviceWorker.controller !== null")
            assert told == []
        tab.goto(f"{site.address}/app/notes/Garden.md")
        expect(tab.get_by_text("Beds along the wall.")).to_be_visible()
        kept = tab.evaluate(
            "caches.keys().then(names => Promise.all(names.map(async name =>"
            " (await (await caches.open(name)).keys()).map(request => new URL(request.url).pathname))))"
        )
        site.wire.cut()
        tab.reload()
        expect(tab.get_by_role("heading", name="The server can't be reached")).to_be_visible()
        picture(tab, "offline-page")
        assert "Beds along" not in tab.content()
        expect(tab.get_by_role("status")).to_contain_text(re.compile(r"^Tried at .*Trying again"))
        tab.get_by_role("button", name="Try now").click()
        tab.goto(f"{site.address}/app/settings")
        expect(tab.get_by_role("heading", name="The server can't be reached")).to_be_visible()
        assert axe.findings(tab) == []
        site.wire.mend()

        expect(tab.get_by_role("navigation", name="Views")).to_be_visible()  # found by the page itself
        expect(tab).to_have_url(f"{site.address}/app/settings")
    assert kept == [["/page/offline.html", "/page/offline.css", "/page/offline.js", "/page/icon.svg"]]
