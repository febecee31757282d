"""What a client that isn't a person hears of the journal, and what it may take back."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knapper.changes.writer import SubmitOptions
from knapper.config import ClientSettings
from knapper.errors import KnapError, NotFound, RefusedError
from knapper.tools import files, journal
from knapper.tools.context import Context
from knapper.vault import access
from tests.tools import opened
from tests.tools.opened import Opener

MCP = access.default_grants("mcp")
DRY = SubmitOptions(dry_run=True)


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, {"Mine.md": "One.\n", "Secret/Plan.md": "Hush.\n"})


def test_a_planned_undo_is_shown_to_who_could_do_it(vault: Opener) -> None:
    with vault.open() as context:
        files.append_to_file(context, "Secret/Plan.md", "x")
    (vault.root / "Secret/Plan.md").write_text("changed since\n", encoding="utf-8")
    hiding = replace(vault, hidden=("Secret/",))

    for client in ("mcp", "agent", "script"):
        with hiding.open(client, DRY) as context, pytest.raises(KnapError) as caught:
            journal.undo_change(context)
        assert caught.value.code == ("not_found" if client == "mcp" else "refused")
        assert "Plan" not in f"{caught.value.message}{caught.value.details}"


def test_changes_of_hidden_files_alone_are_as_if_they_were_not_there_to_undo(vault: Opener) -> None:
    with vault.open("mcp") as context:
        mine = files.append_to_file(context, "Mine.md", "x")
    with vault.open() as context:
        theirs = [str(files.append_to_file(context, "Secret/Plan.md", "x")["change_id"]) for _ in range(2)]
        missing = journal_answer(context, "nosuch")
    hiding = replace(vault, hidden=("Secret/",))

    with hiding.open("mcp") as context:
        assert journal_answer(context, theirs[0]) == missing.replace("nosuch", theirs[0])
        undone = journal.undo_change(context)

    assert undone["undone"] == [mine["change_id"]]
    assert (vault.text("Mine.md"), vault.text("Secret/Plan.md").count("x")) == ("One.\n", 2)


def journal_answer(context: Context, change_id: str) -> str:
    with pytest.raises(NotFound) as caught:
        journal.undo_change(context, change_id)
    return f"{caught.value.code} {caught.value.message} {caught.value.hint} {caught.value.details}"


def test_a_tainted_run_undoes_nothing(vault: Opener) -> None:
    with vault.open("mcp", SubmitOptions(run="r1")) as context:
        files.append_to_file(context, "Mine.md", "x")
        context.writer.taints.mark("mcp", "r1", "Clippings/Web.md")

        with pytest.raises(RefusedError, match="may not undo"):
            journal.undo_change(context, run="r1")


@pytest.mark.parametrize(
    "now",
    [
        replace(MCP, read_only=("Mine.md",)),
        replace(MCP, write=("Inbox/",)),
        replace(MCP, guarded=("Mine.md",)),
        replace(MCP, is_read_only=True),
        replace(MCP, small="propose", large="propose"),
    ],
)
def test_nobody_undoes_where_they_may_not_write_any_more(vault: Opener, now: access.Grants) -> None:
    with vault.open("mcp") as context:
        made = files.append_to_file(context, "Mine.md", "x")
    after = vault.text("Mine.md")

    for asked in (None, DRY):
        with vault.open(ClientSettings(grants=now), asked) as context, pytest.raises(RefusedError):
            journal.undo_change(context, str(made["change_id"]))
    assert vault.text("Mine.md") == after


@pytest.mark.parametrize("kept", [{"is_read_only": True}, {"read_only": ("Mine.md",)}, {"write": ("Inbox/",)}])
def test_a_persons_undo_is_held_to_the_path_rules_too(vault: Opener, kept: dict[str, Any]) -> None:
    with vault.open() as context:
        files.append_to_file(context, "Mine.md", "x")
    after = vault.text("Mine.md")
    person = ClientSettings(grants=replace(access.default_grants("cli"), **kept))
    with vault.open(person) as context, pytest.raises(RefusedError, match=r"may not change 'Mine\.md'") as caught:
        journal.undo_change(context)

    assert (caught.value.code, vault.text("Mine.md")) == ("not_writable", after)


def test_who_trashed_a_file_takes_it_out_again(vault: Opener) -> None:
    (vault.root / ".obsidian").mkdir()
    (vault.root / ".obsidian/app.json").write_text('{"trashOption": "local"}', encoding="utf-8")
    bold = ClientSettings(grants=replace(MCP, large="apply", write=("Mine.md",)))
    with vault.open(bold) as context:
        files.delete_file(context, "Mine.md")
        gone = (vault.root / "Mine.md").exists()
        journal.undo_change(context)

    assert (gone, vault.text("Mine.md")) == (False, "One.\n")


def test_why_a_hidden_file_was_changed_is_not_told(vault: Opener) -> None:
    with vault.open("cli", SubmitOptions(reason="the plan to leave")) as context:
        files.append_to_file(context, "Secret/Plan.md", "x")
    with replace(vault, hidden=("Secret/",)).open("mcp") as context:
        told = journal.list_changes(context)

    assert "leave" not in str(told)
    assert "Secret" not in str(told)


@pytest.mark.parametrize("path", ["Secret/Plan.md", "Secret", "secret/plan.md"])
def test_asking_about_a_hidden_path_tells_nothing(vault: Opener, path: str) -> None:
    with vault.open() as context:
        files.append_to_file(context, "Secret/Plan.md", "x")
        own = journal.list_changes(context, path="Secret")
    with replace(vault, hidden=("Secret/",)).open("mcp") as context:
        told = journal.list_changes(context, path=path)

    assert (own["total"], told["total"], told["results"]) == (1, 0, [])


def test_changes_of_hidden_files_alone_are_neither_listed_nor_counted(vault: Opener) -> None:
    (vault.root / ".obsidian").mkdir()
    (vault.root / ".obsidian/app.json").write_text('{"trashOption": "local"}', encoding="utf-8")
    with vault.open() as context:
        files.append_to_file(context, "Secret/Plan.md", "x")
        files.append_to_file(context, "Mine.md", "x")
        files.delete_file(context, "Secret/Plan.md")
    with replace(vault, hidden=("Secret/",)).open("mcp") as context:
        told: Mapping[str, Any] = journal.list_changes(context, limit=1)

    assert (told["total"], len(told["results"])) == (1, 1)
    assert told["results"][0]["files"][0]["path"] == "Mine.md"


def test_who_changed_hidden_files_too_hears_how_many_and_nobody_else(vault: Opener) -> None:
    (vault.root / "Secret/Links.md").write_text("[[Mine]]\n", encoding="utf-8")
    mover = ClientSettings(grants=replace(MCP, large="apply"), hidden=("Secret/",))
    with vault.open(mover) as context:
        files.move_file(context, "Mine.md", "Ours.md")
        own: Mapping[str, Any] = journal.list_changes(context)
    with vault.open(ClientSettings(grants=access.default_grants("http"), hidden=("Secret/",))) as context:
        others: Mapping[str, Any] = journal.list_changes(context)

    assert own["results"][0]["hidden_files"] == 1
    assert [file["path"] for file in others["results"][0]["files"]] == ["Mine.md"]
    assert "hidden_files" not in others["results"][0]
