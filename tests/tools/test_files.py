"""Making notes, changing their text, and the trash: shapes, and each documented error."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.changes.writer import SubmitOptions
from knapper.cli.render import changes
from knapper.config import ClientSettings
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.jsontypes import JSONValue
from knapper.tools import answers, files, journal, notes, reading, search
from knapper.tools.context import Context
from knapper.vault import access
from tests.tools import opened
from tests.tools.opened import Opener

Call = Callable[[Context, str], Mapping[str, Any]]

WRITERS: dict[str, Call] = {
    "append_to_file": lambda context, path: files.append_to_file(context, path, "x"),
    "prepend_to_file": lambda context, path: files.prepend_to_file(context, path, "x"),
    "replace_section": lambda context, path: files.replace_section(context, path, "## A", "x"),
    "append_to_section": lambda context, path: files.append_to_section(context, path, "## A", "x"),
    "edit_file": lambda context, path: files.edit_file(context, path, "a", "b"),
    "edit_at": lambda context, path: files.edit_at(context, path, "end", "b"),
    "delete_file": files.delete_file,
    "write_file": lambda context, path: files.write_file(context, path, "x", "sha256:0"),
}


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(
        tmp_path,
        {
            "Garden.md": "---\nstatus: open\n---\n# Garden\n\n## Watering\n\nEvery evening.\n\n## Tasks\n\n- weed\n",
            "Secret/Plan.md": "## A\n",
            ".obsidian/app.json": '{"trashOption": "local"}',
        },
        hidden=("Secret/",),
    )


def test_the_diffs_of_an_answer_have_a_bound_and_say_where_they_are_cut(vault: Opener) -> None:
    long = "".join(f"line {number}\n" for number in range(50_000))
    plan, do = SubmitOptions(dry_run=True), SubmitOptions()
    with vault.open() as context:
        made = files.create_file(context, "Long.md", long)
        digest = context.view.read("Long.md").hash
        planned = files.write_file(replace(context, submit_options=plan), "Long.md", long.upper(), digest)
        wrote = files.write_file(replace(context, submit_options=do), "Long.md", long.upper(), digest)
        undoing = journal.undo_change(replace(context, submit_options=plan))
        undone = journal.undo_change(replace(context, submit_options=do))
        small = files.edit_file(context, "Garden.md", "Every", "Each")
        now = context.view.read("Long.md").hash

    for answer in (made, planned, wrote, undoing, undone):
        (row,) = answer.get("files", [])
        assert row.get("diff_truncated") is True
        assert 150_000 < len(row.get("diff", "")) <= answers.MAX_DIFF_CHARS
    # By which a client sees that what it has read anew is what was written.
    assert undone["files"][0].get("hash") == now
    assert "diff_truncated" not in small.get("files", [])[0]
    planned_text = changes.render_outcome(planned)
    assert "Long.md: the rest of the difference is too long to be shown" in planned_text


def test_the_bound_is_one_for_all_files_of_an_answer(vault: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    with vault.open() as context:
        for name in "abc":
            _ = files.create_file(context, f"{name}.md", "#old\n")
        monkeypatch.setattr(answers, "MAX_DIFF_CHARS", 80)
        rows = notes.rename_tag(context, "old", "new", ["a.md", "b.md", "c.md"]).get("files", ())

    assert [(bool(row.get("diff")), row.get("diff_truncated", False)) for row in rows] == [
        (True, False),
        (True, True),
        (False, True),
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_a_missing_file_is_not_found(vault: Opener, name: str) -> None:
    with vault.open() as context, pytest.raises(NotFound, match=r"Gardn\.md") as caught:
        WRITERS[name](context, "Gardn.md")

    assert "Garden.md" in caught.value.hint


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("path", ["../outside.md", "/etc/passwd"])
def test_a_path_out_of_the_vault_is_refused(vault: Opener, name: str, path: str) -> None:
    with vault.open() as context, pytest.raises(RefusedError) as caught:
        WRITERS[name](context, path)

    assert caught.value.code == "outside_vault"


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("path", [".obsidian/app.json", "Secret/Plan.md"])
def test_excluded_and_hidden_folders_look_as_if_nothing_were_there(vault: Opener, name: str, path: str) -> None:
    before = vault.text(path)

    with vault.open() as context, pytest.raises(NotFound):
        WRITERS[name](context, path)

    assert vault.text(path) == before


def test_an_applied_change_tells_path_status_hash_and_id(vault: Opener) -> None:
    with vault.open() as context:
        done = files.append_to_file(context, "garden.md", "More.")
        read = reading.read_file(context, "Garden.md")

    assert (done["success"], done["status"], done["path"]) == (True, "applied", "Garden.md")
    assert done["hash"] == read["hash"]
    assert done["change_id"]
    assert vault.text("Garden.md").endswith("- weed\nMore.\n")


def test_text_at_the_beginning_comes_after_the_properties(vault: Opener) -> None:
    with vault.open() as context:
        files.prepend_to_file(context, "Garden.md", "First.")

    assert vault.text("Garden.md").startswith("---\nstatus: open\n---\n\nFirst.\n\n# Garden\n")


def test_a_proposal_tells_the_hash_that_the_note_still_has(vault: Opener) -> None:
    before = vault.text("Garden.md")

    with vault.open(asked=SubmitOptions(propose=True)) as context:
        hash_ = reading.read_file(context, "Garden.md")["hash"]
        done = files.append_to_file(context, "Garden.md", "More.")

    assert (done["status"], done["path"], done["hash"]) == ("proposed", "Garden.md", hash_)
    assert done["proposal_id"]
    assert vault.text("Garden.md") == before


def test_a_dry_run_changes_nothing_and_shows_the_difference(vault: Opener) -> None:
    before = vault.text("Garden.md")

    with vault.open(asked=SubmitOptions(dry_run=True)) as context:
        done: Mapping[str, Any] = files.append_to_file(context, "Garden.md", "More.")

    assert done["status"] == "planned"
    assert "+More." in done["files"][0]["diff"]
    assert vault.text("Garden.md") == before


def test_an_agent_only_proposes(vault: Opener) -> None:
    with vault.open("agent") as context:
        done = files.append_to_file(context, "Garden.md", "More.")

    assert done["status"] == "proposed"


@pytest.mark.parametrize("client", ["mcp", "http"])
def test_a_program_applies_what_names_its_files_and_can_take_it_back(vault: Opener, client: str) -> None:
    before = vault.text("Garden.md")
    with vault.open(client) as context:
        moved = files.move_file(context, "Garden.md", "Old/Garden.md")
        batch = files.batch_move_files(context, [{"source": "Old/Garden.md", "destination": "Older/Garden.md"}])
        trashed = files.delete_file(context, "Older/Garden.md")
        undone = [journal.undo_change(context, str(one["change_id"])) for one in (trashed, batch, moved)]

    assert [one["status"] for one in (moved, batch, trashed, *undone)] == ["applied"] * 6
    assert vault.text("Garden.md") == before


def test_a_new_note_gets_its_properties_and_folders(vault: Opener) -> None:
    with vault.open() as context:
        done = files.create_file(context, "Plans/Week.md", "# Week\n", '{"tags": ["meeting"], "open": true}')

    assert done["path"] == "Plans/Week.md"
    assert vault.text("Plans/Week.md") == "---\ntags:\n  - meeting\nopen: true\n---\n# Week\n"


def test_a_new_note_never_overwrites(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(ConflictError) as caught:
        files.create_file(context, "Garden.md", "x")

    assert caught.value.code == "exists"


@pytest.mark.parametrize("given", ["{", "[1]", '"text"'])
def test_properties_that_are_no_object_are_refused(vault: Opener, given: str) -> None:
    with vault.open() as context, pytest.raises(BadInput) as caught:
        files.create_file(context, "New.md", "", given)

    assert caught.value.code == "invalid_json"
    assert not (vault.root / "New.md").exists()


@pytest.mark.parametrize(
    ("path", "code"), [("../New.md", "outside_vault"), (".obsidian/x.md", "hidden"), ("Secret/x.md", "hidden")]
)
def test_a_new_note_lies_where_it_can_be_seen(vault: Opener, path: str, code: str) -> None:
    with vault.open() as context, pytest.raises(RefusedError) as caught:
        files.create_file(context, path, "x")

    assert caught.value.code == code


def test_old_text_that_is_missing_shows_what_is_most_like_it(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(NotFound) as caught:
        files.edit_file(context, "Garden.md", "Every morning.", "x")

    assert caught.value.code == "text_not_found"
    assert "line 8" in caught.value.hint


def test_old_text_that_stands_several_times_lists_the_lines(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(KnapError) as caught:
        files.edit_file(context, "Garden.md", "## ", "# ")

    assert (caught.value.code, caught.value.details["lines"]) == ("text_ambiguous", [6, 10])


def test_a_match_in_another_spelling_is_reported(vault: Opener) -> None:
    (vault.root / "Quote.md").write_text("It\u2019s \u201clate\u201d\n", encoding="utf-8")

    with vault.open() as context:
        done: Mapping[str, Any] = files.edit_file(context, "Quote.md", 'It\'s "late"', "It is late")

    assert "quotes" in done["notes"][0]


def test_a_change_made_against_an_older_note_moves_along_or_is_refused(vault: Opener) -> None:
    with vault.open() as context:
        old = str(reading.read_file(context, "Garden.md")["hash"])
        files.edit_file(context, "Garden.md", "Every evening.", "Every night.")
        moved: Mapping[str, Any] = files.edit_file(context, "Garden.md", "weed", "mow", 1, old)
        with pytest.raises(ConflictError) as caught:
            files.edit_file(context, "Garden.md", "Every evening.", "Never.", 1, old)

    assert moved["status"] == "applied"
    assert moved["notes"]
    assert caught.value.details["current_hash"] == moved["hash"]


def test_a_whole_note_is_replaced_only_with_its_hash(vault: Opener) -> None:
    (vault.root / "Dos.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")

    with vault.open() as context:
        hash_ = str(reading.read_file(context, "Dos.md")["hash"])
        with pytest.raises(ConflictError) as stale:
            files.write_file(context, "Dos.md", "three\n", "sha256:0")
        with pytest.raises(BadInput) as missing:
            files.write_file(context, "Dos.md", "three\n", "")
        files.write_file(context, "Dos.md", "three\nfour\n", hash_)

    assert (stale.value.code, missing.value.code) == ("stale", "hash_needed")
    assert (vault.root / "Dos.md").read_bytes() == b"\xef\xbb\xbfthree\r\nfour\r\n"


def test_a_whole_note_with_mixed_endings_keeps_those_of_lines_that_stay(vault: Opener) -> None:
    (vault.root / "Mixed.md").write_bytes(b"one\r\ntwo\nthree\n")

    with vault.open() as context:
        hash_ = str(reading.read_file(context, "Mixed.md")["hash"])
        files.write_file(context, "Mixed.md", "one\r\ntwo\nfour\n", hash_)

    assert (vault.root / "Mixed.md").read_bytes().startswith(b"one\r\ntwo\nfour")


def test_positions_are_read_as_documented(vault: Opener) -> None:
    with vault.open() as context:
        files.edit_at(context, "Garden.md", "after:## Tasks", "- [ ] first")
        files.edit_at(context, "Garden.md", "delete:8")
        with pytest.raises(BadInput) as caught:
            files.edit_at(context, "Garden.md", "replace:99", "x")

    assert "- [ ] first\n\n- weed" in vault.text("Garden.md")
    assert "Every evening" not in vault.text("Garden.md")
    assert caught.value.code == "no_such_line"


def test_a_deleted_file_is_in_the_trash(vault: Opener) -> None:
    before = vault.text("Garden.md")

    with vault.open() as context:
        done: Mapping[str, Any] = files.delete_file(context, "Garden.md")

    assert done["files"][0]["action"] == "trashed"
    assert vault.text(".trash/Garden.md") == before


def test_files_come_out_of_the_trash_and_overwrite_nothing(vault: Opener) -> None:
    before = vault.text("Garden.md")
    with vault.open() as context:
        files.create_file(context, "Old.md", "old\n")
        for name in ("Garden.md", "Old.md"):
            files.delete_file(context, name)
        done: Mapping[str, Any] = files.restore_files(context, ["Garden.md"])
        files.create_file(context, "Old.md", "another\n")
        with pytest.raises(KnapError, match=r"Old\.md"):
            files.restore_files(context, ["Old.md", "Never.md"])

    assert (done["status"], vault.text("Garden.md"), vault.text("Old.md")) == ("applied", before, "another\n")
    assert vault.text(".trash/Old.md") == "old\n"


def test_a_file_is_not_deleted_if_it_changed_since_it_was_read(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(ConflictError):
        files.delete_file(context, "Garden.md", "sha256:0")

    assert (vault.root / "Garden.md").exists()


def test_many_who_append_to_one_note_at_once_all_succeed(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Log.md": "start\n"})

    def append(number: int) -> JSONValue:
        with vault.open("mcp") as context:
            return [files.append_to_file(context, "Log.md", f"{number} {turn}")["status"] for turn in range(3)]

    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(append, range(6)))

    assert told == [["applied"] * 3] * 6
    assert sorted(vault.text("Log.md").splitlines()[1:]) == sorted(f"{n} {turn}" for n in range(6) for turn in range(3))


def test_a_change_that_is_written_is_told_of_though_the_index_is_damaged(vault: Opener) -> None:
    with vault.open() as context:
        context.freshen()
        for file in vault.state.rglob("index.db*"):
            file.write_bytes(b"\xa5" * file.stat().st_size)
        told = files.append_to_file(context, "Garden.md", "more")

    assert told["status"] == "applied"
    assert vault.text("Garden.md").endswith("more\n")


def test_taking_much_text_out_waits_for_a_persons_word_where_large_changes_do(vault: Opener) -> None:
    long = "evening and morning " * 200
    (vault.root / "Long.md").write_text(f"# Long\n\nkept\n\n{long}\n", encoding="utf-8")
    careful = ClientSettings(grants=replace(access.default_grants("mcp"), large="propose"))
    with vault.open(careful) as context:
        little = opened.call(context, "edit_file", path="Long.md", old_text="kept", new_text="")
        much = opened.call(context, "edit_file", path="Long.md", old_text=long, new_text="")

    assert little["status"] == "applied"
    assert (much["status"], much["success"]) == ("proposed", True)
    assert "characters out of 'Long.md'" in str(much)
    assert long in vault.text("Long.md")


def test_a_changed_huge_note_is_left_to_the_next_indexing_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knapper.index.engine.MAX_INLINE_BYTES", 1_000)
    vault = opened.vault(tmp_path, {"Huge.md": "# Huge\n\n" + "word " * 400, "Small.md": "# Small\n"})
    with vault.open() as context:
        context.index.refresh()
        edit = files.append_to_file(context, "Huge.md", "zebra")
        small = files.append_to_file(context, "Small.md", "zebra")
        found = search.search_vault(context, "zebra", mode="keyword")
        undone = journal.undo_change(context, str(edit["change_id"]))
        files.append_to_file(context, "Huge.md", "zebra")
        made = files.create_file(context, "New.md", "zebra " * 400)
        context.index.refresh()
        later = search.search_vault(context, "zebra", mode="keyword")

    told = "Huge.md is large: search finds its new text after the next `knap index`, or while `knap watch` runs"
    assert (edit.get("notes"), undone.get("notes")) == ([told], [told])
    assert ("notes" in small, "notes" in made) == (False, False)  # a new name is always indexed at once
    assert [hit["source"] for hit in found["results"]] == ["Small.md"]
    assert "1 changed file isn't in the index yet" in found.get("notes", [""])[0]
    assert {hit["source"] for hit in later["results"]} == {"Huge.md", "New.md", "Small.md"}
