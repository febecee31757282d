"""Signing in to the page: an address that is good once, a cookie with a key, and nobody else."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page, Route, expect
from starlette.testclient import TestClient

from knapper.server import credentials
from knapper.server.credentials import CODE_MAX_AGE_S, SESSION_MAX_AGE_S, BrowserSessions
from knapper.server.http import page
from knapper.server.http.page import PageFiles
from tests.agents.scripted import Model
from tests.index import worlds
from tests.page import sites
from tests.page.conftest import WAIT_MS
from tests.server import apps, servers
from tests.server.apps import HOST, World

HELLO = Model([["Hello."]])


class Asking:
    """A browser's requests, without a browser."""

    def __init__(self, client: TestClient, seats: BrowserSessions) -> None:
        self.client = client
        self.seats = seats
        self.key = ""

    def enter(self, code: str = "", **headers: str) -> httpx2.Response:
        sent = {"origin": HOST, **headers}
        reply = self.client.post("/page/session", json={"code": code or self.seats.new_code()}, headers=sent)
        self.key = reply.json().get("key", "")
        return reply

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return self.client.get(path, headers={"x-knapper-key": self.key, **headers})

    def post(self, path: str, **headers: str) -> httpx2.Response:
        return self.client.post(path, json={}, headers={"x-knapper-key": self.key, **headers})


def asking(world: World, run: Callable[[Asking], None]) -> None:
    seats = credentials.open_browser_sessions(world.settings.state_dir)
    with world.client("", page.mount_page(seats, world.hub.vaults)) as client:
        run(Asking(client, seats))


@pytest.mark.timeout(60)
def test_the_address_signs_in_and_stays_in_no_history(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab)
        cookie = next(one for one in tab.context.cookies() if one.get("name", "").startswith("knapper_page"))
        tab.reload()
        expect(tab.get_by_role("navigation", name="Views")).to_be_visible()

        expect(tab).to_have_url(f"{site.address}/")
        assert cookie.get("httpOnly")
        assert cookie.get("sameSite") == "Strict"
        assert str(cookie.get("value")) not in tab.evaluate("document.cookie + JSON.stringify({...localStorage})")


@pytest.mark.timeout(60)
def test_an_address_is_good_once(tmp_path: Path, tab: Page, browser: Browser) -> None:
    with sites.serving(tmp_path, HELLO.open) as site, browser.new_context() as other:
        address = site.door()
        tab.goto(address)
        expect(tab.get_by_role("navigation", name="Views")).to_be_visible()
        second = other.new_page()
        second.goto(address)
        expect(second.get_by_role("alert")).to_contain_text("was used before, or is too old")
        second.get_by_label("Sign-in link or code").fill(site.door())
        second.keyboard.press("Enter")

        expect(second.get_by_role("navigation", name="Views")).to_be_visible()


@pytest.mark.timeout(60)
def test_who_signs_out_is_out(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab)
        tab.get_by_role("button", name="Appearance and account").click()
        tab.get_by_role("menuitem", name="Sign out").click()
        expect(tab.get_by_label("Sign-in link or code")).to_be_visible()
        tab.reload()

        expect(tab.get_by_label("Sign-in link or code")).to_be_visible()


def test_the_cookie_opens_nothing_without_the_key(tmp_path: Path) -> None:
    def run(asking: Asking) -> None:
        asking.enter()

        assert asking.get("/proposals").status_code == 200
        assert asking.client.get("/proposals").status_code == 401
        assert asking.get("/proposals", **{"x-knapper-key": "another"}).status_code == 401

    with apps.world(tmp_path) as world:
        asking(world, run)


def test_the_key_opens_nothing_without_the_cookie(tmp_path: Path) -> None:
    def run(asking: Asking) -> None:
        asking.enter()
        asking.client.cookies.clear()

        assert asking.get("/proposals").status_code == 401

    with apps.world(tmp_path) as world:
        asking(world, run)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "app://obsidian.md"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": HOST, "sec-fetch-site": "same-site"},
        {"origin": HOST, "sec-fetch-site": "cross-site"},
    ],
)
def test_only_the_own_page_drives_the_server_by_its_cookie(tmp_path: Path, headers: dict[str, str]) -> None:
    def run(asking: Asking) -> None:
        asking.enter()

        assert asking.post("/tools/vault_status", origin=HOST).status_code == 200
        assert asking.post("/tools/vault_status", **headers).status_code in {401, 403}

    with apps.world(tmp_path) as world:
        asking(world, run)


@pytest.mark.parametrize("headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}])
def test_no_other_page_signs_in_and_the_code_stays_good(tmp_path: Path, headers: dict[str, str]) -> None:
    def run(asking: Asking) -> None:
        code = asking.seats.new_code()
        refused = asking.enter(code, **headers)

        assert refused.status_code == 403
        assert asking.enter(code).status_code == 200

    with apps.world(tmp_path) as world:
        asking(world, run)


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"code": 5}', b'{"code": ""}', b"[" * 100_000])
def test_what_is_no_code_is_refused(tmp_path: Path, body: bytes) -> None:
    def run(asking: Asking) -> None:
        refused = asking.client.post("/page/session", content=body, headers={"origin": HOST})

        assert refused.status_code == 400

    with apps.world(tmp_path) as world:
        asking(world, run)


def test_the_page_speaks_no_mcp_and_its_token_is_told_to_nobody(tmp_path: Path) -> None:
    def run(asking: Asking) -> None:
        told = asking.enter()

        assert asking.post("/mcp", origin=HOST).status_code == 403
        assert asking.seats.token not in told.text + str(told.headers)

    with apps.world(tmp_path) as world:
        asking(world, run)


def test_codes_and_seats_end_by_themselves(tmp_path: Path) -> None:
    clock = [1_000_000.0]
    seats = BrowserSessions(folder=tmp_path / "page", token="t", now=lambda: clock[0])
    late, seat = seats.new_code(), seats.redeem(seats.new_code())
    assert seat is not None

    assert seats.is_signed_in(seat)
    clock[0] += CODE_MAX_AGE_S
    assert seats.redeem(late) is None
    clock[0] += SESSION_MAX_AGE_S
    assert not seats.is_signed_in(seat)
    seats.redeem(seats.new_code())
    assert len(list((tmp_path / "page").iterdir())) == 1


def test_a_new_token_signs_everybody_out(tmp_path: Path) -> None:
    seats = BrowserSessions(folder=tmp_path / "page", token="old")
    code, seat = seats.new_code(), seats.redeem(seats.new_code())
    anew = BrowserSessions(folder=tmp_path / "page", token="new")
    assert seat is not None

    assert not anew.is_signed_in(seat)
    assert anew.redeem(code) is None


def test_what_is_kept_lets_nobody_in(tmp_path: Path) -> None:
    seats = BrowserSessions(folder=tmp_path / "page", token="t")
    code, seat = seats.new_code(), seats.redeem(seats.new_code())
    assert seat is not None
    kept = "".join(one.name + one.read_text(encoding="ascii") for one in (tmp_path / "page").iterdir())

    assert not [secret for secret in (code, seat.cookie, seat.key) if secret in kept]
    assert {one.stat().st_mode & 0o077 for one in (tmp_path / "page").iterdir()} == {0}


def test_the_page_loads_its_own_files_and_nothing_else(tmp_path: Path) -> None:
    def run(asking: Asking) -> None:
        index = asking.client.get("/")
        policy = index.headers["content-security-policy"]
        files = re.findall(r'(?:src|href)="(/[^"]+)"', index.text)

        assert files
        assert [name for name in files if asking.client.get(name).status_code != 200] == []
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"https?://|\son\w+=|style=|<style|<script>", index.text)

    with apps.world(tmp_path) as world:
        asking(world, run)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "nothing.js",
            "../serving.py",
            "..%2f..%2fserving.py",
            "%2e%2e/app.py",
            "assets",
            "assets/",
            "",
            "C:/x",
            "\0",
        ),
        *("%00.js", "manifest.json", "sources.stamp", "index.html.gz", "../embeddings/NOTICE.md"),
    ],
)
def test_no_other_file_is_sent(tmp_path: Path, name: str) -> None:
    def run(asking: Asking) -> None:
        found = asking.client.get(f"/page/{name}" if "\0" not in name else "/page/%00")

        assert found.status_code in {401, 404}

    with apps.world(tmp_path) as world:
        asking(world, run)


def test_a_file_that_is_known_already_isnt_sent_again(tmp_path: Path) -> None:
    def run(asking: Asking) -> None:
        (script,) = re.findall(r'<script type="module" src="(/[^"]+)"', asking.client.get("/").text)
        for encoding in ("gzip", "identity"):
            first = asking.client.get(script, headers={"accept-encoding": encoding})
            tag = {"if-none-match": first.headers["etag"], "accept-encoding": encoding}
            again = asking.client.get(script, headers=tag)

            assert first.headers["content-type"].startswith("text/javascript")
            assert first.headers.get("content-encoding", "identity") == encoding
            assert "immutable" in first.headers["cache-control"]
            assert (again.status_code, again.content) == (304, b"")
        assert asking.client.get("/").headers["cache-control"] == "no-cache"

    with apps.world(tmp_path) as world:
        asking(world, run)


@pytest.mark.parametrize("address", ["/app/", "/app/search?q=x", "/app/notes/Plans/Rain.md", "/app/settings/models"])
def test_every_address_of_the_page_is_the_same_document(tmp_path: Path, address: str) -> None:
    def run(asking: Asking) -> None:
        found = asking.client.get(address)

        assert found.status_code == 200
        assert found.content == asking.client.get("/").content
        assert asking.client.get(address.removeprefix("/app")).status_code in {200, 401, 404}  # the API's own

    with apps.world(tmp_path) as world:
        asking(world, run)


@pytest.mark.parametrize("manifest", ["{", "[]", "{}", '{"files": []}', '{"files": {"index.html": 5}}'])
def test_a_page_that_wasnt_built_says_how_it_is(tmp_path: Path, manifest: str) -> None:
    files = PageFiles(tmp_path / "nothing")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text(manifest, encoding="utf-8")
    reply = page.missing_reply()

    assert not files.is_built
    assert not PageFiles(broken).is_built
    assert reply.status_code == 503
    assert b"scripts/page build" in reply.body
    assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_a_manifest_without_files_is_read_again(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text('{"files": {}}', encoding="utf-8")
    files, status = PageFiles(tmp_path), manifest.stat()
    was_built = files.is_built
    manifest.write_text(json.dumps({"files": {"index.html": {"sha256": "0" * 64, "gzip": False}}}), encoding="utf-8")
    os.utime(manifest, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert not was_built
    assert files.is_built


def test_a_manifest_names_no_file_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    (tmp_path / "secret.js").write_text("secret", encoding="utf-8")
    names = ["index.html", "../secret.js", "/etc/passwd.js", "a/../../secret.js", "x.key", ".hidden.js"]
    rows = {name: {"sha256": "0" * 64, "gzip": False} for name in names}
    (folder / "manifest.json").write_text(json.dumps({"files": rows}), encoding="utf-8")
    files = PageFiles(folder)

    assert files.is_built
    assert [name for name in names if files.find(name)] == ["index.html"]


@pytest.mark.timeout(150)
def test_the_command_prints_an_address_that_signs_in(tmp_path: Path, own_home: Path, tab: Page) -> None:
    vault = worlds.fill(tmp_path / "vault", dict(apps.NOTES))
    with servers.serving(vault, home=own_home) as server:
        command = [*servers.KNAP, "--vault", str(vault), "token", "page", "--port", str(server.port)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        tab.goto(printed)
        expect(tab.get_by_role("navigation", name="Views")).to_be_visible()
        expect(tab.locator("#standing")).to_have_text("3 notes, up to date", timeout=3 * WAIT_MS)
        server.stop()

    assert printed.startswith(f"{server.address}/#token=")
    assert not [line for line in server.printed if "#token=" in line]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX kind")
@pytest.mark.timeout(60)
def test_on_a_terminal_the_server_prints_the_pages_address(tmp_path: Path, own_home: Path) -> None:
    import pty  # noqa: PLC0415 - Windows has none

    vault = worlds.fill(tmp_path / "vault", dict(apps.NOTES))
    ours, theirs = pty.openpty()
    command = [*servers.KNAP, "--vault", str(vault), "serve", "--port", "0", "--no-watch"]
    with subprocess.Popen(command, stderr=theirs, cwd=own_home) as process, os.fdopen(ours, errors="replace") as lines:
        os.close(theirs)
        text = "".join(lines.readline() for _ in range(3))
        process.terminate()
        process.wait()

    assert re.search(r"the page: http://127\.0\.0\.1:\d+/#token=[\w-]{43}", text.replace("\r\n", ""))


@pytest.mark.timeout(120)
def test_the_page_is_drawn_before_the_server_says_who_is_signed_in(tmp_path: Path, tab: Page) -> None:
    with sites.serving(tmp_path, HELLO.open) as site:
        site.enter(tab)
        held: list[Route] = []
        tab.route("**/page/session", lambda route: held.append(route))
        tab.goto(f"{site.address}/app/search")
        box = tab.get_by_label("Search your notes")
        expect(box).to_be_focused()
        box.fill("tomatoes")
        expect(tab.get_by_role("option").first).to_contain_text("Garden")
        assert len(held) == 1
        held[0].continue_()
        expect(tab.get_by_role("option").first).to_be_visible()
        tab.unroute("**/page/session")
        tab.context.clear_cookies()
        tab.goto(f"{site.address}/app/search")

        expect(tab.get_by_label("Sign-in link or code")).to_be_visible()
        assert tab.evaluate("localStorage['knapper.key'] ?? ''") == ""
