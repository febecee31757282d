"""What is typed and what is accepted both stay in the note, however late its editor reads the file anew."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as Late

from tests.page.test_plugin import GARDEN, Desk, desk

pytestmark = pytest.mark.timeout(240)
LATE_MS = 900
EDITS = (("Beds along", "Two beds along"), ("two cans", "one can"), ("The spade", "A spade"))
ALL = GARDEN.replace("Beds along", "Two beds along").replace("two cans", "one can").replace("The spade", "A spade")


def wait_for_cards(at: Desk, count: int) -> None:
    expect(at.tab.get_by_role("group", name="Proposed change by")).to_have_count(count)


def accept_one(at: Desk) -> None:
    """Propose an edit, and accept it in the editor."""
    _ = at.propose(("two cans", "one can"))
    wait_for_cards(at, 1)
    at.app.run("accept-note")
    wait_for_text(at, GARDEN.replace("two cans", "one can"))


def type_first(at: Desk, text: str, key: str = "Control+Home") -> None:
    """Type at the beginning of the note, or where another key leads; nothing of it is saved."""
    at.tab.locator(".cm-content").click(position={"x": 60, "y": 10})
    at.tab.keyboard.press(key)
    at.tab.keyboard.type(text)


def wait_for_text(at: Desk, text: str) -> None:
    try:
        at.tab.wait_for_function("text => window.text() === text", arg=text)
    except Late:
        assert at.tab.evaluate("[window.text(), app.workspace.active.saved]") == [text, at.read()]  # shows what it is
        raise


@pytest.mark.parametrize("typed", ["", "Unsaved "], ids=["saved", "unsaved"])
def test_three_proposals_for_one_note_are_accepted_at_once_and_each_stays(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    with desk(tab, own_home, capsys) as at:
        proposals = at.propose(*EDITS)
        wait_for_cards(at, 3)
        tab.evaluate("ms => window.late_ms = ms", LATE_MS)
        if typed:
            type_first(at, typed)
        at.app.run("accept-all")
        wait_for_cards(at, 0)
        wait_for_text(at, typed + ALL)
        expect(tab.locator(".notice").last).to_have_text("Accepted 3 pending edits")

        assert at.read() == typed + ALL
        assert [at.status(name) for name in proposals] == ["accepted"] * 3


def test_quick_clicks_and_what_is_typed_and_saved_before_the_editor_reads_the_file_lose_nothing(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        _ = at.propose(*EDITS)
        wait_for_cards(at, 3)
        tab.evaluate("ms => window.late_ms = ms", LATE_MS)
        tab.wait_for_timeout(150)  # the last look at the usual pace
        for text in ("Two", "one"):  # by their text: a card's number changes as soon as one before it is accepted
            card = tab.get_by_role("group", name="Proposed change by").filter(has_text=text)
            card.get_by_role("button", name="Accept", exact=True).dispatch_event("click")
        tab.wait_for_function("requests.filter((one) => one.endsWith('/accept')).length > 0")
        type_first(at, "Typed", "Control+End")  # beside none of the two, which may be decided later than it is saved
        tab.evaluate("app.workspace.active.save()")
        wait_for_cards(at, 1)
        wanted = GARDEN.replace("Beds along", "Two beds along").replace("two cans", "one can") + "Typed"
        wait_for_text(at, wanted)
        tab.wait_for_function("window.text() === app.workspace.active.saved")

        assert at.read() == wanted


SAVE_BEFORE_THE_ANSWER = """(end) => {
  const plain = window.fetch;
  window.fetch = async (...given) => {
    const answer = await plain(...given);
    if (given[0] === "/proxy" && JSON.parse(given[1].body).url.endsWith(end)) {
      window.fetch = plain;
      app.workspace.active.editor.cm.dispatch({changes: {from: 0, insert: "Typed "}});
      await app.workspace.active.save();
    }
    return answer;
  };
}"""


@pytest.mark.parametrize("of_a_kind", ["cards", "blocks"])
def test_a_save_between_the_servers_write_and_its_answer_takes_nothing_back(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str], of_a_kind: str
) -> None:
    with desk(tab, own_home, capsys) as at:
        if of_a_kind == "blocks":
            tab.evaluate("app.tab.setControlValue('showing', 'blocks')")
        (proposal,) = at.propose(("two cans", "one can"))
        if of_a_kind == "blocks":
            tab.wait_for_function("text().split('#ai_edit').length === 2")
        else:
            wait_for_cards(at, 1)
        tab.evaluate("window.late_ms = 600_000")
        tab.evaluate(SAVE_BEFORE_THE_ANSWER, "/accept")
        at.app.run("accept-note")
        wanted = "Typed " + GARDEN.replace("two cans", "one can")
        wait_for_text(at, wanted)
        tab.wait_for_function("window.text() === app.workspace.active.saved")

        assert at.read() == wanted
        assert at.status(proposal) == "accepted"


def test_a_save_between_the_servers_undo_and_its_answer_brings_nothing_back(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        accept_one(at)
        tab.evaluate("window.late_ms = 600_000")
        tab.evaluate(SAVE_BEFORE_THE_ANSWER, "/changes/undo")
        at.app.run("undo-last")
        wait_for_text(at, "Typed " + GARDEN)
        tab.wait_for_function("window.text() === app.workspace.active.saved")

        assert at.read() == "Typed " + GARDEN


CUT_DIFFS = """() => {
  const plain = window.fetch;
  window.fetch = async (...given) => {
    const answer = await plain(...given);
    if (given[0] !== "/proxy" || !JSON.parse(given[1].body).url.endsWith("/changes/undo")) return answer;
    const {files, ...rest} = await answer.json();
    const cut = files.map((file) => ({...file, diff: file.diff.slice(0, 40), diff_truncated: true}));
    return new Response(JSON.stringify({...rest, files: cut}), {status: answer.status, headers: answer.headers});
  };
}"""


@pytest.mark.parametrize("is_saved_over", [False, True])
def test_a_note_whose_diff_was_cut_is_taken_anew_or_told_of(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str], is_saved_over: bool
) -> None:
    with desk(tab, own_home, capsys) as at:
        accept_one(at)
        if is_saved_over:
            tab.evaluate("window.late_ms = 600_000")
            tab.evaluate(SAVE_BEFORE_THE_ANSWER, "/changes/undo")
        tab.evaluate(CUT_DIFFS)
        at.app.run("undo-last")
        expect(tab.locator(".notice").last).to_have_text("Change undone")
        told = tab.locator(".notice", has_text="was saved while the server wrote a long change")
        expect(told).to_have_count(int(is_saved_over))
        if not is_saved_over:
            wait_for_text(at, GARDEN)
            assert at.read() == GARDEN


def test_what_fits_no_more_is_told_and_the_others_are_accepted_all_the_same(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        proposals = at.propose(*EDITS)
        wait_for_cards(at, 3)
        note = at.vault / "Garden.md"
        _ = note.write_text(GARDEN.replace("two cans", "three cans"), encoding="utf-8")
        wait_for_text(at, GARDEN.replace("two cans", "three cans"))
        at.app.run("accept-all")
        said = tab.locator(".notice").last
        expect(said).to_contain_text("Accepted 2 pending edits, but not 1: ")

        wait_for_text(at, ALL.replace("one can", "three cans").replace("two cans", "three cans"))
        assert [at.status(name) for name in proposals] == ["accepted", "stale", "accepted"]


def test_undo_over_a_note_with_unsaved_text_keeps_that_text(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        accept_one(at)
        tab.evaluate("window.late_ms = 600_000")
        type_first(at, "Unsaved ")
        at.app.run("undo-last")
        tab.wait_for_function("plugin.editors.written.length > 0")
        tab.evaluate("app.workspace.active.save()")  # as the app may, before it has read the file
        expect(tab.locator(".notice").last).to_have_text("Change undone")
        wait_for_text(at, "Unsaved " + GARDEN)
        tab.evaluate("app.workspace.active.save()")

        assert at.read() == "Unsaved " + GARDEN


def test_blocks_are_counted_found_stepped_through_and_decided_as_cards_are(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        tab.evaluate("app.tab.setControlValue('showing', 'blocks')")
        proposals = at.propose(EDITS[1], EDITS[2])
        status = tab.locator("#status")
        tab.wait_for_function("text().split('#ai_edit').length === 3")
        expect(status).to_have_text("2 here, 2 pending")
        tab.evaluate("app.workspace.active.editor.setSelection({line: 0, ch: 0}, {line: 0, ch: 0})")
        at.app.run("next-pending")
        at.app.run("accept-next")
        tab.wait_for_function("text().includes('one can') && text().split('#ai_edit').length === 2")
        expect(status).to_have_text("1 here, 1 pending")
        at.app.run("search-pending")
        expect(tab.get_by_role("option")).to_contain_text("A spade")
        tab.get_by_role("option").click()
        at.app.run("reject-next")
        accepted = GARDEN.replace("two cans", "one can")
        wait_for_text(at, accepted)
        assert [at.status(name) for name in proposals] == ["accepted", "rejected"]

        edit = '{"id":"mine","type":"replace","before":"Beds along the wall.","after":"No beds."}'
        block = f"```ai-edit\n{edit}\n```\n#ai_edit\n"
        _ = (at.vault / "Garden.md").write_text(accepted.replace("Beds along the wall.\n", block), encoding="utf-8")
        expect(status).to_have_text("1 here, 1 pending")
        at.app.run("show-pending")
        expect(tab.get_by_role("group", name="Blocks in Garden.md")).to_be_visible()
        at.app.run("accept-all")
        wait_for_text(at, accepted.replace("Beds along the wall.", "No beds."))
        expect(status).to_have_text("Nothing pending")


def test_commands_for_a_note_and_for_all_do_as_they_are_called_and_say_where_nothing_waits(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        said = tab.locator(".notice").last
        for command in ("next-pending", "accept-next", "reject-next", "accept-note", "reject-note", "draw-pending"):
            tab.evaluate("document.querySelectorAll('.notice').forEach((one) => one.remove())")
            at.app.run(command)
            expect(said).to_have_text("No pending edits in current note")
        at.app.run("reject-all")
        expect(said).to_have_text("No pending edits found")

        proposals = at.propose(*EDITS[:2])
        wait_for_cards(at, 2)
        tab.evaluate("app.workspace.active.editor.setSelection({line: 0, ch: 0}, {line: 0, ch: 0})")
        at.app.run("previous-pending")
        expect(tab.get_by_role("group", name="Proposed change by").last).to_be_focused()
        at.app.run("reject-note")
        wait_for_cards(at, 0)
        expect(said).to_have_text("Rejected 2 pending edits")
        proposals += at.propose(EDITS[2])
        wait_for_cards(at, 1)
        at.app.run("reject-all")
        wait_for_cards(at, 0)
        expect(said).to_have_text("Rejected 1 pending edit")
        assert [at.status(name) for name in proposals] == ["rejected"] * 3
        assert at.read() == GARDEN

        _ = at.propose(EDITS[1])
        wait_for_cards(at, 1)
        at.app.run("draw-pending")
        expect(said).to_have_text("Shown as blocks in the note")
        tab.wait_for_function("text().includes('#ai_edit')")
        tab.evaluate("window.open = (address) => void (window.asked = address)")
        at.app.run("search-drawn")
        assert tab.evaluate("asked") == "obsidian://search?query=%23ai_edit"
        at.app.run("accept-all")
        wait_for_text(at, GARDEN.replace("two cans", "one can"))
        at.app.run("undo-run")
        tab.get_by_label("Find").fill("garden")
        tab.get_by_role("option").first.click()
        expect(said).to_contain_text("undone")


def test_what_is_being_written_in_a_card_stays_while_other_proposals_come_and_go(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        _ = at.propose(EDITS[1])
        wait_for_cards(at, 1)
        at.app.run("next-pending")
        expect(tab.get_by_role("group", name="Proposed change by")).to_be_focused()
        tab.keyboard.press("e")
        written = tab.get_by_label("Proposed text")
        written.fill("Tomatoes get nine cans.\n")
        _ = at.propose(EDITS[0], EDITS[2])
        wait_for_cards(at, 3)
        expect(written).to_be_focused()
        expect(written).to_have_value("Tomatoes get nine cans.\n")
        tab.get_by_role("group", name="Proposed change by").last.get_by_role("button", name="Reject").click()
        wait_for_cards(at, 2)
        expect(written).to_have_value("Tomatoes get nine cans.\n")
        written.press("Control+Enter")
        at.app.run("accept-all")
        wait_for_cards(at, 0)

        assert "nine cans" in at.read()


def block_of(name: str, before: str, after: str) -> str:
    """Write an edit block by hand."""
    return f'```ai-edit\n{{"id":"{name}","type":"replace","before":"{before}","after":"{after}"}}\n```\n#ai_edit\n'


def test_blocks_of_notes_that_are_not_open_are_counted_and_decided_too(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = {"Old.md": f"# Old\n\n{block_of('one', 'A.', 'B.')}", "Plain.md": "# Plain\n"}
    with desk(tab, own_home, capsys, others=old, waits="0 here, 1 pending") as at:
        status = tab.locator("#status")
        note = at.vault / "Plain.md"
        _ = note.write_text(f"# Plain\n\n{block_of('two', 'C.', 'D.')}", encoding="utf-8")
        tab.evaluate("app.vault.trigger('modify', app.vault.getAbstractFileByPath('Plain.md'))")
        expect(status).to_have_text("0 here, 2 pending")
        tab.evaluate("requests.length = 0")
        tab.evaluate("app.vault.trigger('modify', app.vault.getAbstractFileByPath('Garden.md'))")
        _ = (at.vault / "Third.md").write_text("# Third\n", encoding="utf-8")
        tab.evaluate("app.vault.trigger('modify', app.vault.getAbstractFileByPath('Third.md'))")
        tab.wait_for_function("requests.includes('GET /blocks')")
        assert tab.evaluate("requests.filter((one) => one === 'GET /blocks').length") == 1

        at.app.run("show-pending")
        tab.get_by_role("group", name="Blocks in Old.md").get_by_role("button", name="Accept all").click()
        expect(status).to_have_text("0 here, 1 pending")
        tab.get_by_role("group", name="Blocks in Plain.md").get_by_role("button", name="Reject all").click()
        expect(status).to_have_text("Nothing pending")
        assert at.read("Old.md") == "# Old\n\nB.\n"
        assert at.read("Plain.md") == "# Plain\n\nC.\n"

        _ = note.write_text(f"# Plain\n\n{block_of('three', 'E.', 'F.')}", encoding="utf-8")
        tab.evaluate("app.vault.trigger('modify', app.vault.getAbstractFileByPath('Plain.md'))")
        expect(status).to_have_text("0 here, 1 pending")
        tab.evaluate("app.vault.trigger('delete', app.vault.getAbstractFileByPath('Plain.md'))")
        expect(status).to_have_text("Nothing pending")


def test_what_was_changed_since_it_was_shown_is_not_accepted(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        (proposal,) = at.propose(EDITS[1])
        card = tab.get_by_role("group", name="Proposed change by")
        expect(card).to_contain_text("one can")
        # The plugin hears no news: what it shows is old, and so is the digest that it accepts.
        tab.evaluate("plugin.waiting.take = () => undefined")
        shown = tab.evaluate("id => plugin.waiting.proposals.get(id).digest", proposal)
        tab.evaluate(
            "([id, digest]) => plugin.connection.client.raw('PUT', `/proposals/${id}/hunks/1.1`,"
            " {body: {digest, new_text: 'Tomatoes get nine cans.\\n'}})",
            [proposal, shown],
        )
        card.get_by_role("button", name="Accept", exact=True).click()
        expect(tab.locator(".notice").last).to_contain_text("it was changed meanwhile; look at it again")
        assert at.read() == GARDEN
        assert at.status(proposal) == "open"
        expect(card).to_contain_text("nine cans")
        assert tab.evaluate("id => plugin.waiting.proposals.get(id).digest", proposal) != shown
        card.get_by_role("button", name="Accept", exact=True).click()
        expect(card).to_have_count(0)
        assert "nine cans" in at.read()


SAVED = """async (proposal) => {
    const view = app.workspace.active, cm = view.editor.cm;
    const top = () => cm.state.doc.lineAt(cm.posAtDOM(document.querySelector('.knapper-card'))).number;
    const before = top(), begun = performance.now();
    cm.dispatch({changes: {from: 0, insert: 'One\\nTwo\\nThree\\n'}});
    const moved_ms = performance.now() - begun, after = top();
    const saving = performance.now();
    await view.save();
    const saved_ms = performance.now() - saving;
    for (;;) {
        const {files} = await plugin.connection.client.raw('GET', `/proposals/${proposal}`);
        if (files[0].hunks[0].line === 11) break;
    }
    return {before, after, moved_ms, saved_ms, server_ms: performance.now() - saving};
}"""


def test_after_a_save_by_hand_the_places_are_right_in_the_editor_at_once_and_at_the_server_soon(
    tab: Page, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk(tab, own_home, capsys) as at:
        (proposal,) = at.propose(EDITS[1])
        wait_for_cards(at, 1)
        times = tab.evaluate(SAVED, proposal)
        print({name: round(value, 1) for name, value in times.items()})  # noqa: T201

        assert times["after"] == times["before"] + 3
        assert at.read() == "One\nTwo\nThree\n" + GARDEN
        at.app.run("accept-next")
        wait_for_text(at, "One\nTwo\nThree\n" + GARDEN.replace("two cans", "one can"))
