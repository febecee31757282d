"""Proposals and the journal as tools: shapes, who may decide, and what can go wrong."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from knapper.changes.disk.undo import One
from knapper.changes.writer import SubmitOptions
from knapper.config import ClientSettings
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.tools import files, journal, proposals
from knapper.tools.context import Context
from knapper.vault import access
from tests.tools import opened
from tests.tools.opened import Opener

NOTE = "# Garden\n\nOne.\n\nTwo.\n\nThree.\n"


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, {"Garden.md": NOTE, "Secret/Plan.md": NOTE})


def propose(vault: Opener, client: str = "agent", *texts: tuple[str, str]) -> str:
    """Let a client propose a new text for the whole of Garden.md; gives the proposal's id."""
    with vault.open(client, SubmitOptions(reason="better", propose=True)) as context:
        note = vault.text("Garden.md")
        for old, new in texts or (("One.", "1."), ("Three.", "3.")):
            note = note.replace(old, new)
        hash_ = context.view.read("Garden.md").hash
        return str(files.write_file(context, "Garden.md", note, hash_)["proposal_id"])


def show(context: Context, name: str) -> Mapping[str, Any]:
    return proposals.show_proposal(context, name)


def test_a_list_tells_what_waits_and_why(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        found: Mapping[str, Any] = proposals.list_proposals(context, "open")

    assert (found["total"], found["limit"], found["offset"]) == (1, 20, 0)
    row = found["results"][0]
    assert (row["id"], row["status"], row["client"], row["path"], row["reason"]) == (
        name,
        "open",
        "agent",
        "Garden.md",
        "better",
    )
    assert row["items"] == {"open": 2}


def test_a_list_knows_what_somebody_saved_meanwhile(vault: Opener) -> None:
    name = propose(vault)
    before = vault.text("Garden.md")

    with vault.open() as context:
        _ = (vault.root / "Garden.md").write_text("all new\n", encoding="utf-8")
        stale: Mapping[str, Any] = proposals.list_proposals(context)
        waiting = proposals.list_proposals(context, "open")
        _ = (vault.root / "Garden.md").write_text(before.replace("One.", "Uno."), encoding="utf-8")
        half: Mapping[str, Any] = proposals.list_proposals(context)
        _ = (vault.root / "Garden.md").write_text(before, encoding="utf-8")
        again: Mapping[str, Any] = proposals.list_proposals(context)

    row = stale["results"][0]
    assert (row["id"], row["status"], row["items"]) == (name, "stale", {"stale": 2})
    assert waiting["total"] == 0
    assert half["results"][0]["items"] == {"open": 1, "stale": 1}
    assert again["results"][0]["status"] == "open"


def test_what_has_turned_stale_or_fits_again_is_in_the_list_of_that_status(vault: Opener) -> None:
    propose(vault)
    before = vault.text("Garden.md")

    with vault.open() as context:
        _ = (vault.root / "Garden.md").write_text("all new\n", encoding="utf-8")
        stale = proposals.list_proposals(context, "stale")
        _ = (vault.root / "Garden.md").write_text(before, encoding="utf-8")
        fitting = proposals.list_proposals(context, "open")

    assert (stale["total"], fitting["total"]) == (1, 1)


def test_a_list_is_of_a_status_and_a_path(vault: Opener) -> None:
    propose(vault)

    with vault.open() as context:
        assert proposals.list_proposals(context, "rejected")["total"] == 0
        assert proposals.list_proposals(context, path="Secret")["total"] == 0
        with pytest.raises(BadInput):
            proposals.list_proposals(context, "waiting")
        with pytest.raises(BadInput):
            proposals.list_proposals(context, limit=0)


def test_a_proposal_shows_hunks_with_words(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        shown = show(context, name)

    assert (shown["status"], shown["client"], len(shown["digest"])) == ("open", "agent", 32)
    (file,) = shown["files"]
    assert (file["path"], file["kind"], [one["id"] for one in file["hunks"]]) == ("Garden.md", "edit", ["1.1", "1.2"])
    assert (file["hunks"][0]["line"], file["hunks"][0]["old"], file["hunks"][0]["new"]) == (3, "One.\n", "1.\n")
    assert "-One.\n+1.\n" in file["diff"]


def test_a_hunk_is_accepted_and_the_rest_waits(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        done = proposals.accept_proposal(context, name, show(context, name)["digest"], hunks=["1.2"])
        left = show(context, name)

    assert (done["status"], done["path"], done["proposal_id"]) == ("applied", "Garden.md", name)
    assert vault.text("Garden.md") == NOTE.replace("Three.", "3.")
    assert [one["state"] for one in left["files"][0]["hunks"]] == ["open", "accepted"]
    assert left["change_ids"] == [done["change_id"]]


def test_what_was_not_shown_is_not_accepted(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        digest = show(context, name)["digest"]
        proposals.edit_proposal(context, name, digest, "1.1", "uno.\n")
        with pytest.raises(ConflictError) as caught:
            proposals.accept_proposal(context, name, digest)

    assert caught.value.code == "digest_mismatch"
    assert vault.text("Garden.md") == NOTE


def test_a_planned_decision_says_what_it_would_do_and_does_nothing(vault: Opener) -> None:
    name = propose(vault)

    with vault.open("cli", SubmitOptions(dry_run=True)) as context:
        before = show(context, name)
        accepted: Mapping[str, Any] = proposals.accept_proposal(context, name, before["digest"], hunks=["1.2"])
        rejected = proposals.reject_proposal(context, name, "no", hunks=["1.1"])
        with pytest.raises(ConflictError):
            proposals.accept_proposal(context, name, "another")
        after = show(context, name)

    assert (accepted["status"], [row["path"] for row in accepted["files"]]) == ("planned", ["Garden.md"])
    assert "+3.\n" in accepted["files"][0]["diff"]
    assert (rejected["status"], rejected["files"], rejected["hunks"]) == ("planned", ["Garden.md"], ["1.1"])
    assert (after, vault.text("Garden.md")) == (before, NOTE)


def test_an_edited_hunk_is_accepted_as_edited(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        digest = show(context, name)["digest"]
        edited: Mapping[str, Any] = proposals.edit_proposal(context, name, digest, "1.1", "uno.\n")
        proposals.accept_proposal(context, name, edited["digest"])

    assert edited["files"][0]["hunks"][0]["edited"] is True
    assert vault.text("Garden.md") == NOTE.replace("One.", "uno.").replace("Three.", "3.")


CAREFUL = ClientSettings(grants=replace(access.default_grants("mcp"), large="propose"))


@pytest.mark.parametrize("client", ["agent", "script", CAREFUL])
def test_only_a_person_accepts_what_another_proposed(vault: Opener, client: str | ClientSettings) -> None:
    name = propose(vault, "agent", ("One.", "1."), ("Two.", "2."), ("Three.", "3."), ("# Garden", "# G"))

    with vault.open(client) as context, pytest.raises(RefusedError):
        proposals.accept_proposal(context, name, show(context, name)["digest"])

    assert vault.text("Garden.md") == NOTE


def test_a_program_accepts_what_it_would_apply_itself_but_nothing_of_who_read_foreign_text(vault: Opener) -> None:
    name = propose(vault)
    with vault.open("agent", SubmitOptions(propose=True)) as context:
        context.writer.taints.mark("agent", "", "Clippings/Web.md")
        tainted = str(files.delete_file(context, "Garden.md")["proposal_id"])

    with vault.open() as context:
        digest = show(context, tainted)["digest"]
    with vault.open("mcp") as context:
        with pytest.raises(RefusedError, match="had read untrusted content"):
            proposals.accept_proposal(context, tainted, digest)
        done = proposals.accept_proposal(context, name, show(context, name)["digest"])

    assert done["status"] == "applied"


def test_a_client_rejects_its_own_and_no_others(vault: Opener) -> None:
    name = propose(vault)

    with vault.open("mcp") as context:
        with pytest.raises(RefusedError):
            proposals.reject_proposal(context, name, "mine now")
        with pytest.raises(RefusedError):
            proposals.edit_proposal(context, name, show(context, name)["digest"], "1.1", "x\n")
    with vault.open("agent") as context:
        part = proposals.reject_proposal(context, name, "worse", hunks=["1.1"])
        done = proposals.reject_proposal(context, name, "no")
        shown = show(context, name)

    assert (part["status"], done["status"]) == ("open", "rejected")
    assert shown["files"][0]["hunks"][0]["reason"] == "worse"


@pytest.mark.parametrize("hunks", [["1.9"], ["9.1"], ["x"]])
def test_a_part_that_is_not_there_is_told(vault: Opener, hunks: list[str]) -> None:
    name = propose(vault)

    with vault.open() as context, pytest.raises(NotFound):
        proposals.accept_proposal(context, name, show(context, name)["digest"], hunks=hunks)


def test_a_proposal_about_hidden_files_is_not_there(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Garden.md": NOTE})
    name = propose(vault)
    hiding = opened.Opener(root=vault.root, state=vault.state, hidden=("Garden.md",))

    with hiding.open("mcp") as context:
        assert proposals.list_proposals(context)["total"] == 0
        with pytest.raises(NotFound):
            show(context, name)


def test_a_move_and_the_links_that_follow_are_one_group(vault: Opener) -> None:
    (vault.root / "Link.md").write_text("[[Garden]]\n", encoding="utf-8")

    with vault.open(asked=SubmitOptions(propose=True)) as context:
        name = str(files.move_file(context, "Garden.md", "Yard.md")["proposal_id"])
        shown = show(context, name)

    assert {file["path"]: file["follows"] for file in shown["files"]} == {"Garden.md": False, "Link.md": True}
    assert len({file["group"] for file in shown["files"]}) == 1
    assert shown["links_rewritten"][0]["new"] == "[[Yard]]"


def test_blocks_are_drawn_listed_and_resolved_to_exact_bytes(vault: Opener) -> None:
    name = propose(vault)

    with vault.open() as context:
        proposals.show_proposal_in_notes(context, name)
        found: Mapping[str, Any] = proposals.list_blocks(context, "Garden.md")
        first, second = (row["id"] for row in found["results"])
        proposals.resolve_blocks(context, "Garden.md", accept=[first], reject=[second])
        states = [one["state"] for one in show(context, name)["files"][0]["hunks"]]

    assert [(row["type"], row["before"], row["after"]) for row in found["results"]] == [
        ("replace", "One.\n", "1.\n"),
        ("replace", "Three.\n", "3.\n"),
    ]
    assert vault.text("Garden.md") == NOTE.replace("One.", "1.")
    assert states == ["accepted", "rejected"]


def test_what_cannot_be_drawn_is_told_and_waits_on(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Garden.md": f"---\nstatus: open\n---\n{NOTE}"})
    name = propose(vault, "agent", ("open", "done"), ("One.", "1."), ("Three.", "3."))

    with vault.open() as context:
        done = proposals.show_proposal_in_notes(context, name)
        found: Mapping[str, Any] = proposals.list_blocks(context, "Garden.md")
        proposals.resolve_blocks(context, "Garden.md", accept=[found["results"][0]["id"]])
        left: Mapping[str, Any] = proposals.list_blocks(context, "Garden.md")
        shown = show(context, name)
        proposals.accept_proposal(context, name, shown["digest"], hunks=["1.3"])
        again: Mapping[str, Any] = proposals.list_blocks(context, "Garden.md")
        states = [one["state"] for one in show(context, name)["files"][0]["hunks"]]

    assert [note for note in done["notes"] if note.startswith("1.1 of Garden.md isn't shown")]
    assert [(row["before"], row["after"]) for row in found["results"]] == [("One.\n", "1.\n"), ("Three.\n", "3.\n")]
    assert [row["after"] for row in left["results"]] == ["3.\n"]
    assert again["results"] == []
    assert states == ["open", "accepted", "accepted"]
    assert vault.text("Garden.md") == f"---\nstatus: open\n---\n{NOTE}".replace("One.", "1.").replace("Three.", "3.")


@pytest.mark.parametrize(
    ("accept", "reject", "error"),
    [
        ([], [], BadInput),
        (["all"], ["x"], BadInput),
        (["x"], ["x"], BadInput),
        (["x"], [], NotFound),
        (["all"], [], NotFound),
    ],
)
def test_blocks_that_cannot_be_resolved_are_told(
    vault: Opener, accept: list[str], reject: list[str], error: type[KnapError]
) -> None:
    with vault.open() as context, pytest.raises(error):
        proposals.resolve_blocks(context, "Garden.md", accept=accept, reject=reject)


def test_a_damaged_block_is_reported_and_left_alone(vault: Opener) -> None:
    name = propose(vault, "agent", ("One.", "1."))

    with vault.open() as context:
        proposals.show_proposal_in_notes(context, name)
        hurt = vault.text("Garden.md").replace('"after":"1.', '"after":"100.')
        (vault.root / "Garden.md").write_text(hurt, encoding="utf-8")
        found: Mapping[str, Any] = proposals.list_blocks(context, "Garden.md")
        with pytest.raises(ConflictError):
            proposals.resolve_blocks(context, "Garden.md", accept=["all"])

    assert found["results"][0]["problem"] == "its text was changed by hand"
    assert vault.text("Garden.md") == hurt


def test_changes_are_listed_newest_first_with_who_and_why(vault: Opener) -> None:
    with vault.open("mcp", SubmitOptions(reason="shorter", run="r1")) as context:
        first = files.edit_file(context, "Garden.md", "One.", "1.")
    with vault.open() as context:
        second = files.create_file(context, "New.md", "x\n")
        found: Mapping[str, Any] = journal.list_changes(context)
        mine: Mapping[str, Any] = journal.list_changes(context, client="mcp", run="r1")

    assert [row["id"] for row in found["results"]] == [second["change_id"], first["change_id"]]
    assert [row["files"][0]["action"] for row in found["results"]] == ["created", "edited"]
    assert (mine["total"], mine["results"][0]["reason"], mine["results"][0]["run"]) == (1, "shorter", "r1")


def test_undo_gives_back_the_bytes_and_can_be_undone(vault: Opener) -> None:
    with vault.open() as context:
        change = files.edit_file(context, "Garden.md", "One.", "1.")
        undone: Mapping[str, Any] = journal.undo_change(context)
        back = vault.text("Garden.md")
        again = journal.undo_change(context, str(undone["change_id"]))

    assert back == NOTE
    assert undone["undone"] == [change["change_id"]]
    assert again["success"] is True
    assert vault.text("Garden.md") == NOTE.replace("One.", "1.")


def test_a_planned_undo_shows_the_difference_and_does_nothing(vault: Opener) -> None:
    with vault.open() as context:
        files.edit_file(context, "Garden.md", "One.", "1.")
    with vault.open(asked=SubmitOptions(dry_run=True)) as context:
        planned: Mapping[str, Any] = journal.undo_change(context)

    assert planned["status"] == "planned"
    assert "-1.\n+One.\n" in planned["files"][0]["diff"]
    assert "1." in vault.text("Garden.md")


def test_an_undo_names_the_later_changes_that_stand_in_its_way_and_what_to_do(vault: Opener) -> None:
    with vault.open(asked=SubmitOptions(run="r")) as context:
        first = str(files.edit_file(context, "Garden.md", "One.", "1.")["change_id"])
        files.edit_file(context, "Secret/Plan.md", "One.", "1.")
    with vault.open() as context:
        back = files.edit_file(context, "Garden.md", "1.", "A.")["change_id"]
        journal.undo_change(context, str(back))
        second = str(files.edit_file(context, "Garden.md", "1.", "2.")["change_id"])
        third = str(files.edit_file(context, "Garden.md", "2.", "3.")["change_id"])
        with pytest.raises(ConflictError) as alone:
            journal.undo_change(context, first)
        with pytest.raises(ConflictError) as with_others:
            journal.undo_change(context, run="r")
    with vault.open(asked=SubmitOptions(dry_run=True)) as context:
        planned: Mapping[str, Any] = journal.undo_change(context, first)
    with vault.open() as context:
        journal.undo_change(context, third)
        journal.undo_change(context, second)
        journal.undo_change(context, first)

    message = alone.value.message
    assert message.startswith("'Garden.md' has changed; nothing was changed; later changes: ")
    assert [message.count(one) for one in (third, second, str(back))] == [1, 1, 0]
    assert message.count(" by cli: 'Garden.md')") == 2
    assert alone.value.hint == f"undo what came later first: {third}, then {second}"
    rows = cast("list[dict[str, object]]", alone.value.details["later"])
    assert [(row["id"], row["client"], row["paths"]) for row in rows] == [
        (third, "cli", ["Garden.md"]),
        (second, "cli", ["Garden.md"]),
    ]
    assert with_others.value.hint == f"{alone.value.hint}, or take back the other files only (--partial)"
    assert planned["left"][0]["later"] == [third, second]
    assert "One." in vault.text("Garden.md")


def test_an_undo_tells_that_another_program_changed_the_file_after_later_changes(vault: Opener) -> None:
    with vault.open() as context:
        first = str(files.edit_file(context, "Garden.md", "One.", "1.")["change_id"])
        second = files.edit_file(context, "Garden.md", "1.", "2.")["change_id"]
        (vault.root / "Garden.md").write_text("mine\n", encoding="utf-8")
        with pytest.raises(ConflictError) as caught:
            journal.undo_change(context, first)

    way = "take back what another program changed in 'Garden.md', then undo what came later"
    assert caught.value.hint == f"{way}: {second}"


def test_an_undo_names_no_later_change_that_the_client_may_not_know(vault: Opener) -> None:
    with vault.open() as context:
        first = str(files.edit_file(context, "Garden.md", "One.", "1.")["change_id"])
        files.edit_file(context, "Garden.md", "1.", "2.")
        stranger = access.default_grants("phone", "mcp")
        view = context.view.with_policy(replace(context.view.policy, client="phone", hidden=("Garden.md",)))
        writer = replace(context.writer, grants=stranger, context=replace(context.writer.context, view=view))
        changes = context.writer.undoable(One(change_id=first))

        assert len(context.writer.find_later(changes, ["Garden.md"])) == 1
        assert not writer.find_later(changes, ["Garden.md"])


def test_an_undo_tells_that_a_later_change_is_hidden_from_the_client_and_not_which(vault: Opener) -> None:
    phone = ClientSettings(grants=access.default_grants("phone", "mcp"), hidden=("Secret/",))
    with vault.open(phone) as context:
        first = str(files.edit_file(context, "Garden.md", "One.", "1.")["change_id"])
    with vault.open() as context:
        moved = str(files.move_file(context, "Garden.md", "Secret/Garden.md")["change_id"])
    with vault.open(phone) as context, pytest.raises(ConflictError) as caught:
        journal.undo_change(context, first)

    way = "ask a person to undo a later change of 'Garden.md' first, which this client may not see"
    assert caught.value.hint == way
    assert not [part for part in ("Secret", moved, "by cli") if part in str(caught.value.as_dict())]


def test_an_undo_leaves_what_was_changed_since_if_asked_to(vault: Opener) -> None:
    with vault.open(asked=SubmitOptions(run="r")) as context:
        files.edit_file(context, "Garden.md", "One.", "1.")
        files.append_to_file(context, "Secret/Plan.md", "More.")
        (vault.root / "Garden.md").write_text("mine\n", encoding="utf-8")
        with pytest.raises(ConflictError) as caught:
            journal.undo_change(context, run="r")
        done: Mapping[str, Any] = journal.undo_change(context, run="r", partial=True)

    assert "Garden.md" in str(caught.value)
    assert [row["path"] for row in done["left"]] == ["Garden.md"]
    assert (vault.text("Garden.md"), vault.text("Secret/Plan.md")) == ("mine\n", NOTE)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, NotFound),
        ({"change_id": "none"}, NotFound),
        ({"run": "none"}, NotFound),
        ({"proposal_id": "none"}, NotFound),
        ({"since": "soon"}, BadInput),
        ({"run": "a", "since": "2026-01-01"}, BadInput),
    ],
)
def test_what_cannot_be_undone_is_told(vault: Opener, arguments: dict[str, str], error: type[KnapError]) -> None:
    with vault.open() as context, pytest.raises(error):
        journal.undo_change(context, **cast("Any", arguments))


def test_agents_never_undo(vault: Opener) -> None:
    with vault.open() as context:
        files.edit_file(context, "Garden.md", "One.", "1.")

    with vault.open("agent") as context, pytest.raises(RefusedError):
        journal.undo_change(context)
