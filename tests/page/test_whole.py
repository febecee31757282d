"""The whole of it as a person has it: the command, a model behind its protocol, a browser, and notes on the disk."""

import hashlib
import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.agents import protocol
from tests.agents.protocol import Reply
from tests.agents.scripted import Call
from tests.index import worlds
from tests.page.sites import say
from tests.server import apps, servers

pytestmark = pytest.mark.timeout(150)


def test_from_the_command_to_the_note_on_the_disk(tmp_path: Path, own_home: Path, tab: Page) -> None:
    vault = worlds.fill(tmp_path / "vault", dict(apps.NOTES))
    text = apps.NOTES["Rain.md"]
    rewrite = {
        "path": "Rain.md",
        "content": text.replace("on the tomatoes", "on the beans"),
        "expected_hash": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
    }
    with protocol.serving(
        Reply(parts=("Let me look.", Call("search_vault", {"query": "tomatoes"}))),
        Reply(parts=("It rains ", "on them [[Rain]] (line 3).")),
        Reply(parts=(Call("write_file", rewrite),)),
        Reply(parts=("I suggest beans.",)),
    ) as model:
        config = f'[model]\nname = "tiny@{model.base_url}"\ntools = "full"\n'
        with servers.serving(vault, config=config, home=own_home) as server:
            command = [*servers.KNAP, "--vault", str(vault), "token", "page", "--port", str(server.port)]
            tab.goto(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
            expect(tab.get_by_role("navigation", name="Views")).to_be_visible()
            tab.get_by_role("link", name="Chat", exact=True).click()
            say(tab, "What of the tomatoes?")
            tab.get_by_role("link", name=re.compile("^Rain")).click()
            expect(tab.locator(".k-cited-lines, [data-cited]")).to_have_text("It rains on the tomatoes.")
            tab.keyboard.press("Escape")
            say(tab, "Make it beans")
            card = tab.locator(".k-changes")
            card.get_by_role("button", name="Accept all").click()
            expect(card).to_contain_text("Accepted: changes in 1 note")
            tab.reload()
            expect(tab.locator(".k-question")).to_have_count(2)
            expect(card).to_contain_text("Accepted: changes in 1 note")
            server.stop()

    assert (vault / "Rain.md").read_text(encoding="utf-8") == rewrite["content"]
    strange = [line for line in server.printed if "Traceback" in line or "ERROR" in line or "tomatoes" in line]
    assert not strange, "\n".join(server.printed)
