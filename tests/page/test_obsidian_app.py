"""The built plugin in Obsidian itself, where `OBSIDIAN_PATH` names its program; left out elsewhere.

The other tests of the plugin have a stand-in for the app, which does what the plugin relies on. This one says
whether the app does that too.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Error, Page, Playwright, expect, sync_playwright

from knapper.cli import main
from tests.index import worlds
from tests.page.test_plugin import GARDEN, PICTURES, PROPOSES
from tests.server import servers

PROGRAM = os.environ.get("OBSIDIAN_PATH", "")  # noqa: TID251 - a wish of whoever runs the tests
START_S = 60
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not shutil.which(PROGRAM), reason="OBSIDIAN_PATH doesn't name Obsidian's program"),
    pytest.mark.usefixtures("no_browser"),
]


@contextmanager
def opened(vault: Path, folder: Path) -> Generator[Page]:
    """Start Obsidian with a configuration of its own and one vault, and give its window."""
    folder.mkdir()
    listed = {"vaults": {"0123456789abcdef": {"path": str(vault), "ts": int(time.time() * 1_000), "open": True}}}
    _ = (folder / "obsidian.json").write_text(json.dumps(listed), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    words = [f"--user-data-dir={folder}", f"--remote-debugging-port={port}"]
    program = subprocess.Popen([PROGRAM, *words, *(["--no-sandbox"] if sys.platform == "linux" else [])])
    try:
        with sync_playwright() as playwright:
            window = find_window(playwright, f"http://127.0.0.1:{port}")
            expect.set_options(timeout=START_S * 1_000)
            window.wait_for_function("window.app?.workspace?.layoutReady", timeout=START_S * 1_000)
            yield window
    finally:
        program.terminate()
        _ = program.wait(START_S)


def find_window(playwright: Playwright, address: str) -> Page:
    """Connect as soon as the app listens."""
    until = time.monotonic() + START_S
    while True:
        try:
            browser = playwright.chromium.connect_over_cdp(address)
            return next(page for context in browser.contexts for page in context.pages)
        except (Error, StopIteration):
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def test_in_the_app_a_proposal_is_accepted_the_views_open_and_nothing_is_left(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = worlds.fill(own_home / "notes", {"Garden.md": GARDEN}).resolve()
    (vault / ".obsidian").mkdir(exist_ok=True)
    assert main.run(["--vault", str(vault), "plugin", "install", "--enable"]) == 0
    _ = capsys.readouterr()
    assert main.run(["--vault", str(vault), "connect", "--json"]) == 0
    code = json.loads(capsys.readouterr().out)["code"]
    with (
        servers.serving(vault, home=own_home, config=PROPOSES) as server,
        opened(vault, own_home / "obsidian") as window,
    ):
        window.evaluate("async () => { await app.plugins.setEnable(true); await app.plugins.enablePlugin('knapper') }")
        window.keyboard.press("Escape")  # the question whether the vault's author is trusted
        window.evaluate("() => app.workspace.openLinkText('Garden.md', '')")
        window.evaluate("([at, code]) => app.plugins.plugins.knapper.connection.pair(at, code)", [server.address, code])
        window.wait_for_function("app.plugins.plugins.knapper.connection.isReady")

        with server.client() as agent:
            body = {"path": "Garden.md", "old_text": "two cans", "new_text": "one can"}
            assert agent.post("/tools/edit_file", json=body).status_code == 200
        card = window.get_by_role("group", name="Proposed change by")
        expect(card).to_be_visible()
        card.get_by_role("button", name="Accept", exact=True).click()
        expect(card).to_have_count(0)
        assert (vault / "Garden.md").read_text(encoding="utf-8") == GARDEN.replace("two cans", "one can")

        for command, shown in (("open-vault-chat", ".knapper-chat"), ("show-pending", ".knapper-panel")):
            window.evaluate("id => app.commands.executeCommandById(`knapper:${id}`)", command)
            expect(window.locator(shown)).to_be_visible()
        window.evaluate("() => { app.setting.open(); app.setting.openTabById('knapper') }")
        expect(window.get_by_text("Exploration rounds")).to_be_visible()
        if PICTURES:
            _ = window.screenshot(path=str(Path(PICTURES) / "app-settings.png"))
        window.evaluate("() => app.setting.close()")
        window.evaluate("() => app.plugins.disablePlugin('knapper')")
        expect(window.locator(".knapper-card, .knapper-chat, .knapper-panel")).to_have_count(0)
