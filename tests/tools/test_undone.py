"""A proposal that was accepted and taken back says so, on every surface, for as long as it isn't done again."""

import contextlib
import itertools
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from knapper.changes.writer import SubmitOptions
from knapper.cli.render import changes
from knapper.tools import files, journal, proposals
from knapper.tools.context import Context
from tests.tools import opened
from tests.tools.opened import Opener

NOTE = "# Garden\n\nOne.\n\nTwo.\n\nThree.\n"


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, {"Garden.md": NOTE})


def propose(vault: Opener) -> str:
    """Let an agent propose two hunks; gives the proposal's id."""
    with vault.open("agent", SubmitOptions(propose=True)) as context:
        text = NOTE.replace("One.", "1.").replace("Three.", "3.")
        return str(files.write_file(context, "Garden.md", text, context.view.read("Garden.md").hash)["proposal_id"])


def accept(context: Context, name: str, *hunks: str) -> str:
    digest = str(proposals.show_proposal(context, name)["digest"])
    return str(proposals.accept_proposal(context, name, digest, (), hunks)["change_id"])


def undo(context: Context, change: str) -> str:
    return str(journal.undo_change(context, change)["change_id"])


def told(context: Context, name: str) -> tuple[str, str | None, list[str] | None]:
    """Give what a list says of a proposal, which showing it says, too."""
    shown: Mapping[str, Any] = proposals.show_proposal(context, name)
    listed: dict[str, Any] = next(row for row in answer(context) if row["id"] == name)
    facts = [(one["status"], one.get("undone"), one.get("undone_by")) for one in (shown, listed)]

    assert facts[0] == facts[1]
    return facts[0]


def answer(context: Context) -> list[dict[str, Any]]:
    found: Any = proposals.list_proposals(context)
    return found["results"]


def test_an_undone_proposal_names_the_undo_until_that_is_undone(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        change = accept(context, name)
        before = told(context, name)
        taken_back = undo(context, change)
        after = told(context, name)
        undo(context, taken_back)

        assert before == ("accepted", None, None)
        assert after == ("accepted", "all", [taken_back])
        assert told(context, name) == ("accepted", None, None)


def test_a_proposal_that_was_undone_once_more_names_what_to_undo(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        change = accept(context, name)
        again = undo(context, undo(context, change))
        undo(context, again)
        _, undone, by = told(context, name)
        assert by
        undo(context, by[0])

        assert undone == "all"
        assert told(context, name) == ("accepted", None, None)
        assert vault.text("Garden.md") != NOTE


def test_undoing_one_of_two_steps_is_a_part(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        accept(context, name, "1.1")
        second = undo(context, accept(context, name, "1.2"))

        assert told(context, name) == ("accepted", "part", [second])


def test_what_was_accepted_as_a_block_in_its_note_is_undone_with_its_proposal(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        proposals.show_proposal_in_notes(context, name)
        done: Mapping[str, Any] = proposals.resolve_blocks(context, "Garden.md", accept=["all"])
        undone: Mapping[str, Any] = journal.undo_change(context, proposal_id=name)

        assert (done["proposal_id"], undone["undone"]) == (name, [done["change_id"]])
        assert told(context, name) == ("accepted", "all", [undone["change_id"]])


def test_rejecting_blocks_in_a_note_accepts_nothing(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        proposals.show_proposal_in_notes(context, name)
        done: Mapping[str, Any] = proposals.resolve_blocks(context, "Garden.md", reject=["all"])
        undo(context, done["change_id"])

        assert "proposal_id" not in done
        assert told(context, name) == ("rejected", None, None)


def test_what_the_journal_has_dropped_is_still_undone(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        undo(context, accept(context, name))
        context.writer.state.journal.prune(max_age_days=-1)

        assert told(context, name) == ("accepted", "all", None)


def test_the_command_line_says_what_took_a_proposal_back(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        by = undo(context, accept(context, name))
        listed = changes.render_proposals(proposals.list_proposals(context))
        shown = changes.render_proposal(proposals.show_proposal(context, name))

        assert f"what was accepted was undone by {by}" in click.unstyle(listed)
        assert f"what was accepted was undone by {by}" in click.unstyle(shown)


NEAR = ("One.\nTwo.\nThree.\nFour.\nFive.\n", "1.\nTwo.\n3.\nand more\nFour.\n")


def propose_near(vault: Opener) -> tuple[str, list[str]]:
    """Let an agent propose three hunks with one line between each; gives the proposal's id and theirs."""
    (vault.root / "Garden.md").write_text(NEAR[0], encoding="utf-8")
    with vault.open("agent", SubmitOptions(propose=True)) as context:
        name = str(files.write_file(context, "Garden.md", NEAR[1], context.view.read("Garden.md").hash)["proposal_id"])
        shown: Mapping[str, Any] = proposals.show_proposal(context, name)
    return name, [hunk["id"] for hunk in shown["files"][0]["hunks"]]


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
@pytest.mark.parametrize("is_together", [False, True], ids=["one by one", "together"])
def test_a_part_fits_again_once_its_neighbours_are_undone(
    vault: Opener, order: tuple[int, int, int], *, is_together: bool
) -> None:
    name, hunks = propose_near(vault)
    first, second, third = (hunks[number] for number in order)
    alone = ["1.\nTwo.\nThree.\nFour.\nFive.\n", "One.\nTwo.\n3.\nand more\nFour.\nFive.\n"]

    with vault.open() as context:
        made = accept(context, name, first)
        if is_together:
            again = accept(context, name, second)
            undo(context, again)
            undo(context, made)
        else:
            undo(context, made)
            undo(context, accept(context, name, second))
        accept(context, name, third)

        assert vault.text("Garden.md") == [*alone, "One.\nTwo.\nThree.\nFour.\n"][order[2]]


def test_a_part_fits_after_its_neighbour_was_undone_and_done_again(vault: Opener) -> None:
    name, (*_, last) = propose_near(vault)

    with vault.open() as context:
        undone = undo(context, accept(context, name, last))
        proposals.show_proposal(context, name)
        undo(context, undone)
        change = accept(context, name)
        text = vault.text("Garden.md")
        undo(context, change)

    assert text == NEAR[1]
    assert vault.text("Garden.md") == "One.\nTwo.\nThree.\nFour.\n"


def test_an_undo_has_the_diffs_of_what_it_edited(vault: Opener) -> None:
    with vault.open() as context:
        edit = str(files.append_to_file(context, "Garden.md", "Four.")["change_id"])
        made = str(files.create_file(context, "New.md", "new\n")["change_id"])
        removed = journal.undo_change(context, made)["files"]
        edited = journal.undo_change(context, edit)["files"]

    assert [(file["path"], file.get("diff", "")) for file in removed] == [("New.md", "")]
    assert [file["path"] for file in edited] == ["Garden.md"]
    assert "\n-Four.\n" in edited[0].get("diff", "")


def test_an_undo_is_told_without_a_diff_where_the_journal_has_a_content_no_longer(vault: Opener) -> None:
    with vault.open() as context:
        edit = files.append_to_file(context, "Garden.md", "Four.")
        journal_file = context.writer.state.folder / "journal.db"
        with contextlib.closing(sqlite3.connect(journal_file)) as database:
            database.execute("UPDATE blobs SET content = x'00' WHERE hash = ?", (edit.get("hash"),))
            database.commit()
        done = journal.undo_change(context, str(edit["change_id"]))

    assert vault.text("Garden.md") == NOTE
    assert ["diff" in file for file in done["files"]] == [False]
