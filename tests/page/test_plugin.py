"""The built Obsidian plugin in a real browser, with Obsidian's editor, against a real `knap serve`."""

import asyncio
import json
import os
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from fastmcp import Client
from playwright.sync_api import Page, expect

from knapper.cli import main
from knapper.cli.plugin import PLUGIN_FOLDER
from tests.index import worlds
from tests.page import axe, obsidian
from tests.page.obsidian import App
from tests.page.wires import Wire
from tests.server import servers
from tests.server.servers import Running

pytestmark = pytest.mark.timeout(240)
GARDEN = (
    "# Garden\n\nBeds along the wall.\n\n## Watering\n\nEvery evening, with water from the barrel.\n"
    "Tomatoes get two cans.\n\n## Tools\n\nThe spade hangs in the shed.\n"
)
PROPOSES = '[clients.http]\nsmall = "propose"\n[clients.mcp]\nsmall = "propose"\n'
PICTURES = os.environ.get("KNAPPER_PICTURES", "")  # noqa: TID251 - a wish of whoever runs the tests


class Desk:
    """A vault, its server, and the app that is paired with it."""

    def __init__(
        self, app: App, server: Running, wire: Wire, vault: Path, connect: Callable[[], dict[str, Any]]
    ) -> None:
        self.home = vault.parent
        self.app = app
        self.tab = app.tab
        self.server = server
        self.wire = wire
        self.vault = vault
        self.connect = connect

    def read(self, path: str = "Garden.md") -> str:
        return (self.vault / path).read_bytes().decode()

    def propose(self, *edits: tuple[str, str], path: str = "Garden.md") -> list[str]:
        """Have an agent propose a replacement each."""
        made: list[str] = []
        with self.server.client() as agent:
            for old, new in edits:
                body = {"path": path, "old_text": old, "new_text": new}
                reply = agent.post("/tools/edit_file", json=body)
                assert reply.status_code == 200, reply.text
                made.append(reply.json()["proposal_id"])
        return made

    @contextmanager
    def restarted(self) -> Generator[None]:
        """Stop the server, and serve the vault at its port anew, as the configuration says by now."""
        config = (self.home / "config.toml").read_text(encoding="utf-8")
        port = str(self.server.port)
        self.wire.cut()
        _ = self.server.stop()
        with servers.serving(self.vault, "--port", port, home=self.home, config=config) as self.server:
            self.wire.mend()
            yield

    def status(self, proposal: str) -> str:
        with self.server.client() as agent:
            return str(agent.get(f"/proposals/{proposal}").json()["status"])

    def snap(self, window: Page, name: str) -> None:
        """Keep a picture of a window as it is."""
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            _ = window.screenshot(path=str(Path(PICTURES) / f"{name}.png"))

    def picture(self, name: str) -> None:
        """Keep a picture of what is shown: as it is, in dark, and at a phone's width."""
        if not PICTURES:
            return
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
        usual = self.tab.viewport_size
        for kind, theme, size in (
            ("", "light", usual),
            ("-dark", "dark", usual),
            ("-phone", "light", {"width": 390, "height": 844}),
        ):
            self.tab.evaluate("name => document.body.className = name", f"theme-{theme}")
            self.tab.set_viewport_size(size)  # pyright: ignore[reportArgumentType]
            self.tab.wait_for_timeout(150)
            self.tab.screenshot(path=str(Path(PICTURES) / f"{name}{kind}.png"))
        self.tab.evaluate("document.body.className = 'theme-light'")
        self.tab.set_viewport_size(usual)  # pyright: ignore[reportArgumentType]


def letting_in(app: App) -> str:
    return f'\n[server]\norigins = ["{app.address}"]\n'


@contextmanager
def desk(
    tab: Page,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    text: str = GARDEN,
    config: str = PROPOSES,
    others: Mapping[str, str] = MappingProxyType({}),
    *,
    streams: bool = False,
    waits: str = "Nothing pending",
) -> Generator[Desk]:
    """Serve a note and some others, and open it in the app, which is paired with the server.

    Args:
        streams: Let the app's origin in, as that of Obsidian itself is, so that answers may come by streams.
        waits: What the status bar says once it is connected.
    """
    vault = worlds.fill(home / "notes", {"Garden.md": text, **others}).resolve()
    (vault / "Garden.md").write_bytes(text.encode())

    def connect() -> dict[str, Any]:
        assert main.run(["--vault", str(vault), "connect", "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    with (
        obsidian.running(tab, vault, home) as app,
        servers.serving(vault, home=home, config=config + letting_in(app) * streams) as server,
        Wire(server.port) as wire,
    ):
        opened = Desk(app, server, wire, vault, connect)
        app.load("Garden.md")
        tab.evaluate("paths => window.paths = paths", ["Garden.md", *others])
        app.pair(wire.address, connect()["code"])
        expect(tab.locator("#status")).to_have_text(waits)
        yield opened


def test_what_an_agent_proposes_appears_in_the_open_note_and_is_accepted_by_mouse(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        (proposal,) = at.propose(("Tomatoes get two cans.", "Tomatoes get one can."))
        card = tab.get_by_role("group", name="Proposed change by")
        expect(card).to_be_visible()
        assert card.locator("ins").all_inner_texts() == ["one", "can"]
        assert tab.locator(".knapper-removed").all_inner_texts() == ["two", "cans"]
        at.picture("plugin-card")
        card.get_by_role("button", name="Accept", exact=True).click()
        expect(card).to_have_count(0)
        expect(tab.locator(".notice").last).to_have_text("Edit accepted")

        assert at.read() == GARDEN.replace("two cans", "one can")
        assert at.status(proposal) == "accepted"


def test_by_keys_one_goes_from_card_to_card_accepts_rejects_and_edits(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        names = at.propose(("Beds along", "Two beds along"), ("two cans", "one can"), ("The spade", "A spade"))
        cards = tab.get_by_role("group", name="Proposed change by")
        expect(cards).to_have_count(3)
        at.app.run("next-pending")
        expect(cards.first).to_be_focused()
        tab.keyboard.press("a")
        expect(cards).to_have_count(2)
        at.app.run("next-pending")
        expect(cards.first).to_be_focused()
        tab.keyboard.press("ArrowDown")
        expect(cards.last).to_be_focused()
        tab.keyboard.press("r")
        expect(cards).to_have_count(1)
        at.app.run("next-pending")
        expect(cards.first).to_be_focused()
        tab.keyboard.press("e")
        tab.get_by_label("Proposed text").fill("Every evening, with rain.\nTomatoes get three.\n")
        tab.keyboard.press("Control+Enter")
        expect(cards).to_contain_text("Tomatoes get three.")
        expect(cards).to_be_focused()  # it was drawn anew
        at.app.run("accept-next")
        expect(cards).to_have_count(0)

        assert "Two beds along" in at.read()
        assert "Tomatoes get three.\n" in at.read()
        assert "The spade" in at.read()
        assert [at.status(name) for name in names] == ["accepted", "accepted", "rejected"]


def test_unsaved_text_stays_and_an_acceptance_is_one_step_of_undo(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        (proposal,) = at.propose(("two cans", "one can"))
        card = tab.get_by_role("group", name="Proposed change by")
        expect(card).to_be_visible()
        tab.locator(".cm-content").click(position={"x": 60, "y": 10})
        tab.keyboard.press("Home")
        tab.keyboard.type("Unsaved ")
        card.get_by_role("button", name="Accept", exact=True).click()
        expect(card).to_have_count(0)
        wanted = GARDEN.replace("two cans", "one can").replace("# Garden", "Unsaved # Garden")
        expect(tab.locator(".notice").last).to_have_text("Edit accepted")

        assert at.app.text() == wanted
        assert at.read() == wanted
        assert at.status(proposal) == "accepted"
        tab.locator(".cm-content").focus()
        tab.keyboard.press("Control+z")
        expect(tab.locator(".cm-content")).to_contain_text("two cans")
        assert at.app.text() == GARDEN.replace("# Garden", "Unsaved # Garden")


def test_a_place_that_was_edited_meanwhile_shows_both_and_is_not_accepted(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        at.propose(("two cans", "one can"))
        card = tab.get_by_role("group", name="Proposed change by")
        expect(card).to_be_visible()
        tab.get_by_text("Tomatoes get two cans.").click()
        tab.keyboard.press("End")
        tab.keyboard.type(" Or three.")
        expect(card).to_contain_text("No longer applies")
        expect(card).to_contain_text("Tomatoes get two cans. Or three.")
        expect(card.get_by_role("button", name="Accept", exact=True)).to_have_count(0)
        at.picture("plugin-conflict")
        at.app.run("accept-note")
        expect(tab.locator(".notice").last).to_contain_text("nothing was accepted")

        assert at.app.text() == GARDEN.replace("two cans.", "two cans. Or three.")


def test_a_lost_server_is_said_and_found_again(tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with desk(tab, own_home, capsys) as at:
        at.wire.cut()
        expect(tab.locator("#status")).to_have_text("Knapper: not reachable")
        at.wire.mend()
        expect(tab.locator("#status")).to_have_text("Nothing pending")
        at.propose(("two cans", "one can"))
        expect(tab.get_by_role("group", name="Proposed change by")).to_be_visible()


def test_a_revoked_device_is_told_to_pair_again(tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with desk(tab, own_home, capsys):
        assert main.run(["clients", "revoke", "Obsidian"]) == 0
        expect(tab.locator("#status")).to_have_text("Knapper: pair again")
        expect(tab.locator(".notice").last).to_contain_text("Pair it again with `knap connect`")


def propose_over_mcp(at: Desk, old: str, new: str) -> float:
    """Have another program's MCP client propose a replacement; returns when it had its answer, in milliseconds."""

    async def propose() -> float:
        async with Client(f"{at.server.address}/mcp", auth=at.server.token) as agent:
            _ = await agent.call_tool("edit_file", {"path": "Garden.md", "old_text": old, "new_text": new})
            return time.time() * 1_000

    with ThreadPoolExecutor(1) as pool:  # Playwright's own loop has this thread
        return pool.submit(lambda: asyncio.run(propose())).result()


def test_what_an_mcp_client_proposes_is_heard_at_once_and_idle_there_is_one_long_poll(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tab.clock.install()
    with desk(tab, own_home, capsys) as at:
        assert tab.evaluate("plugin.connection.state.streams") is False  # the stand-in's origin isn't let in
        tab.evaluate(SEEN)
        late_ms: list[float] = []
        for number, (old, new) in enumerate(EDITS, 1):
            made = propose_over_mcp(at, old, new)
            expect(tab.get_by_role("group", name="Proposed change by")).to_have_count(number)
            late_ms.append(tab.evaluate("seen.at(-1)") - made)
        for view in ("open-search", "show-related", "open-runs", "open-vault-chat", "show-pending"):
            at.app.run(view)
        expect(tab.get_by_label("Side").get_by_role("group", name="Proposal by")).to_have_count(len(EDITS))
        # On a busy machine the server loads for a while what asks models; then one request is without an answer.
        tab.wait_for_function("asking.length === 1", polling=500, timeout=120_000)
        tab.evaluate("requests.length = 0")
        tab.wait_for_timeout(3_000)
        assert set(tab.evaluate("requests")) <= {"GET /events"}
        assert tab.evaluate("asking") == ["GET /events"]
        for _ in range(2):  # what was still being loaded at the first jump isn't asked for again at the second
            tab.wait_for_function(SETTLED, polling=1_000)
            tab.evaluate("requests.length = 0")
            tab.clock.fast_forward("10:00")
            expect(tab.locator("#status")).to_have_text("5 here, 5 pending")
        print(f"appeared {late_ms} ms after the agent had its answer")  # noqa: T201

        assert set(tab.evaluate("requests")) <= {"GET /events"}


EDITS = (
    ("Beds along", "Two beds along"),
    ("## Watering", "## Water"),
    ("two cans", "one can"),
    ("## Tools", "## Things"),
    ("The spade", "A spade"),
)
SEEN = """() => {
    window.seen = [];
    const look = () => {
        while (seen.length < document.querySelectorAll('.knapper-card').length) seen.push(Date.now());
    };
    new MutationObserver(look).observe(document.body, {childList: true, subtree: true});
}"""
"""Notes when each card stood in the note."""
SETTLED = """() => {
    const count = requests.filter((one) => one !== 'GET /events').length;
    const isSame = count === window.counted;
    window.counted = count;
    return isSame;
}"""


def test_it_is_loaded_again_and_again_in_a_vault_of_a_thousand_notes(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (PLUGIN_FOLDER / "main.js").read_text(encoding="utf-8")
    notes = {f"Notes/Note {number}.md": f"# Note {number}\n" for number in range(1_000)}
    with desk(tab, own_home, capsys, others=notes):
        took_ms: list[float] = []
        for _ in range(8):
            tab.evaluate("unload()")
            took_ms.append(float(tab.evaluate("code => load(code).then(() => onload_ms)", code)))
            expect(tab.locator("#status")).to_have_text("Nothing pending")
        print(f"onload: {[round(one, 1) for one in took_ms]} ms")  # noqa: T201


def test_the_panel_lists_what_waits_and_takes_a_change_back(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        at.propose(("two cans", "one can"))
        at.app.run("show-pending")
        side = tab.get_by_label("Side")
        row = side.get_by_role("group", name="Proposal by")
        expect(row).to_contain_text("Garden.md")
        at.picture("plugin-panel")
        assert axe.findings(tab) == []
        at.app.run("search-pending")
        tab.get_by_label("Find").fill("agent nowhere")
        expect(tab.get_by_text("No pending edits found")).to_be_visible()
        tab.get_by_label("Find").fill("one CAN")
        tab.get_by_role("option").click()
        expect(tab.get_by_role("group", name="Proposed change by")).to_be_visible()
        assert tab.evaluate("app.workspace.opened") == ["same Garden.md 7"]
        row.get_by_role("button", name="Accept all").click()
        expect(row).to_have_count(0)
        assert at.read() == GARDEN.replace("two cans", "one can")
        at.app.run("show-changes")
        expect(side.get_by_role("button", name="Undo", exact=True)).to_be_visible()
        assert axe.findings(tab) == []
        side.get_by_role("button", name="Undo", exact=True).click()
        expect(tab.locator(".notice").last).to_have_text("Change undone")

        assert at.read() == GARDEN


def test_fifty_proposals_are_drawn_in_a_long_note(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ("" if number % 4 == 3 else f"Line {number} of a note that is long enough." for number in range(20_000))
    text = "\n".join(lines) + "\n"
    with desk(tab, own_home, capsys, text=text) as at:
        at.propose(*[(f"Line {number} of", f"Row {number} of") for number in range(200, 20_000, 396)])
        expect(tab.locator("#status")).to_have_text("50 here, 50 pending")
        at.app.run("next-pending")
        expect(tab.locator(".knapper-card:focus")).to_have_count(1)
        for line, (with_it, without, listed, lines) in tab.evaluate(KEYS):
            print(f"a key in line {line}: {with_it:.2f} ms at the median with the plugin, {without:.2f} without")  # noqa: T201

            # At each key CodeMirror goes through these lines, which were up to 9,000 with a card far away.
            assert listed <= lines + 300


KEYS = """async () => {
    const editors = [app.workspace.active.editor.cm, bare()];
    const seen = [];
    for (const line of [10, 5_000, 10_000, 15_000, 19_990]) {
        const from = editors[0].state.doc.line(line).from;
        for (const editor of editors) editor.dispatch({selection: {anchor: from}, scrollIntoView: true});
        await new Promise((resolve) => setTimeout(resolve, 200));
        const spent_ms = editors.map(() => []);
        for (let round = 0; round < 100; round++) {
            for (const [which, editor] of editors.entries()) {
                await new Promise((resolve) => setTimeout(resolve));
                const begun = performance.now();
                editor.dispatch({changes: {from, insert: 'a'}, userEvent: 'input.type'});
                spent_ms[which].push(performance.now() - begun);
            }
        }
        const medians = spent_ms.map((all) => all.sort((one, other) => one - other)[50]);
        seen.push([line, [...medians, ...editors.map((editor) => editor.viewportLineBlocks.length)]]);
    }
    return seen;
}"""
"""Types at five places of the open note, and of an editor of the same text that has nothing of the plugin."""


def test_in_a_long_note_cards_stand_wherever_one_goes(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"Line {number} of a note.\n" for number in range(3_000))
    with desk(tab, own_home, capsys, text=text) as at:
        at.propose(*[(f"Line {number} of", f"Row {number} of") for number in (5, 1_000, 2_000, 2_995)])
        cards = tab.get_by_role("group", name="Proposed change by")
        expect(cards).to_have_count(1)
        expect(cards).to_contain_text("Row 5")
        tab.locator(".cm-content").click(position={"x": 60, "y": 10})
        tab.keyboard.press("Control+End")
        expect(cards).to_contain_text("Row 2995")
        tab.keyboard.type("More.")
        # The editor scrolls to what was typed in its next frame, and would undo what comes before that.
        tab.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        tab.evaluate("document.getElementById('note').scrollTop *= 2 / 3")
        expect(cards).to_contain_text("Row 2000")
        at.app.run("next-pending")  # the cursor is still at the end
        expect(cards).to_be_focused()
        expect(cards).to_contain_text("Row 5")
        tab.keyboard.press("ArrowDown")
        expect(cards).to_contain_text("Row 1000")
        expect(cards).to_be_focused()
        tab.keyboard.press("a")
        expect(cards).to_have_count(0)

        assert at.app.text() == text.replace("Line 1000 ", "Row 1000 ") + "More."


def test_a_link_from_anywhere_is_asked_about_and_a_wrong_code_changes_nothing(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        before = tab.evaluate("localStorage.getItem('knapper-pairing')")
        tab.evaluate("said => app.link(said)", {"address": "http://evil.example", "code": "AAAA-BBBB"})
        expect(tab.get_by_label("Code")).to_have_value("AAAA-BBBB")
        assert axe.findings(tab) == []
        assert before == tab.evaluate("localStorage.getItem('knapper-pairing')")
        tab.get_by_role("button", name="Connect").click()
        expect(tab.get_by_role("alert")).to_contain_text("Write an address such as http://127.0.0.1:25627")
        tab.get_by_label("Address").fill(at.wire.address)
        tab.get_by_role("button", name="Connect").click()
        expect(tab.get_by_role("alert")).to_contain_text("code")
        assert axe.findings(tab) == []

        assert before == tab.evaluate("localStorage.getItem('knapper-pairing')")
        assert "token" not in before


def test_addresses_only_show_and_the_command_line_does_what_it_is_told(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        first, second = at.propose(("two cans", "one can"), ("The spade", HOSTILE))
        expect(tab.locator("#status")).to_have_text("2 here, 2 pending")

        def follow(**said: str) -> None:
            tab.evaluate("said => app.link(said)", {"action": "knapper", **said})

        def command(name: str, **given: str) -> str:
            return str(tab.evaluate("([name, given]) => app.cli[name](given)", [name, given]))

        follow(open="chat", note="Garden.md", text="Delete everything")
        expect(tab.get_by_label("Message", exact=True)).to_have_value("Delete everything")
        expect(tab.locator(".k-exchange")).to_have_count(0)
        follow(open="search", query="barrel")
        expect(tab.get_by_role("option").first).to_contain_text("barrel")
        follow(open="pending")
        expect(tab.get_by_role("group", name="Proposal by")).to_have_count(2)
        follow(open="accept", proposal=first)
        expect(tab.get_by_text("Connect this vault to Knapper")).to_be_visible()
        tab.get_by_role("button", name="Cancel").click()
        assert at.status(first) == "open"

        assert command("knapper") == f"Connected with {at.wire.address}. 2 pending."
        assert second in command("knapper:pending")
        assert "Garden.md:5" in command("knapper:search", query="barrel")
        assert command("knapper:ask", question="Hello?").startswith("Error: ")
        assert command("knapper:accept", id=first) == f"Accepted {first}."
        assert at.read() == GARDEN.replace("two cans", "one can")
        assert command("knapper:accept", id=first) == f"Error: no proposal {first} is open"
        assert command("knapper:reject", id=second) == f"Rejected {second}."
        assert command("knapper:undo") == "Undid one change."
        assert at.read() == GARDEN
        at.app.run("reindex")
        expect(tab.locator(".notice", has_text="the index is up to date")).to_have_count(1)


def test_what_waits_is_written_as_blocks_where_that_is_wished_and_typed_text_stays(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        tab.locator(".cm-content").click(position={"x": 60, "y": 10})
        tab.keyboard.press("Home")
        tab.keyboard.type("Unsaved ")
        tab.evaluate("app.tab.setControlValue('showing', 'blocks')")
        (proposal,) = at.propose(("two cans", "one can"))
        expect(tab.locator(".notice").last).to_have_text("Shown as blocks in the note")
        expect(tab.locator(".cm-content")).to_contain_text("#ai_edit")
        expect(tab.get_by_role("group", name="Proposed change by")).to_have_count(0)
        assert at.app.text().startswith("Unsaved # Garden\n")
        assert "```ai-edit\n{" in at.read()
        tab.evaluate("app.tab.setControlValue('showing', 'off')")
        assert at.app.run("accept-all") is None
        expect(tab.locator(".cm-content")).not_to_contain_text("#ai_edit")

        assert at.read() == GARDEN.replace("two cans", "one can").replace("# Garden", "Unsaved # Garden")
        assert at.status(proposal) == "accepted"


HOSTILE = '<img src=x onerror="window.hurt=1"><script>window.hurt=1</script> [x](javascript:window.hurt=1) \u202e'


def test_what_an_agent_writes_is_text_wherever_it_is_shown(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        at.propose(("two cans", HOSTILE))
        expect(tab.get_by_role("group", name="Proposed change by")).to_contain_text("<img src=x")
        at.app.run("show-pending")

        assert tab.evaluate("window.hurt") is None
        assert tab.locator("#note img, #side img").count() == 0
