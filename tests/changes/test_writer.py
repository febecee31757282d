"""The writer: one door, the same rules for everybody, and nothing half done."""

import itertools
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, cast

import pytest

from knapper.changes.disk import undo
from knapper.changes.drafts import (
    AddText,
    AtPosition,
    Create,
    EditProperty,
    EditSection,
    EditText,
    Move,
    RenameTag,
    Request,
    Restore,
    Rewrite,
    Trash,
)
from knapper.changes.reviewer import Reviewer
from knapper.changes.writer import SubmitOptions
from knapper.errors import Ambiguous, BadInput, CallerError, ConflictError, KnapError, NotFound, RefusedError
from knapper.index.search import SearchRequest
from knapper.tools import answers
from knapper.vault import access, parser
from knapper.vault.access import Policy, Scope
from tests.changes import desks

NOTES = {
    "A.md": "---\nstatus: open\ntags: [x]\n---\n# One\n\nalpha\n\n# Two\n\nbeta [[B]]\n",
    "B.md": "gamma #x\n",
    "crlf.md": "# T\r\n\r\nline\r\n",
    "Preferences.md": "- be short\n",
}


def test_every_kind_of_request_is_applied_and_taken_back_byte_for_byte(tmp_path: Path) -> None:
    requests: list[Request] = [
        EditText(path="A.md", old="alpha", new="ALPHA"),
        AtPosition(path="A.md", position="after:# Two", content="new line"),
        AtPosition(path="New/Made.md", position="create", content="hello"),
        EditSection(path="A.md", heading="# One", content="rest", how="append"),
        AddText(path="crlf.md", content="more", where="end"),
        EditProperty(path="A.md", word="set", name="status", value="done"),
        Rewrite(path="B.md", content="whole\n", base=parser.content_hash(NOTES["B.md"].encode())),
        Create(path="C.md", content="x", properties={"k": 1}),
        RenameTag(old="x", new="y", paths=("A.md", "B.md")),
        Move(source="B.md", destination="sub/B2.md"),
        Trash(path="crlf.md"),
    ]
    with desks.world(tmp_path, NOTES) as world:
        before = world.tree()
        for request in requests:
            submission = world.submit(request)
            assert submission.status == "applied", request
            assert world.tree() != before
            world.writer.undo(undo.One(change_id=submission.change_id))
            assert world.tree() == before, request


def test_a_batch_gives_one_result_in_whatever_order_it_comes(tmp_path: Path) -> None:
    batch: list[Request] = [
        AtPosition(path="A.md", position="insert:7", content="before alpha"),
        AtPosition(path="A.md", position="replace:11", content="second"),
        AddText(path="A.md", content="end", where="end"),
        EditProperty(path="A.md", word="set", name="status", value="done"),
    ]
    results: set[bytes] = set()
    with desks.world(tmp_path, NOTES) as world:
        for order in itertools.permutations(batch):
            change = world.writer.submit(order).change_id
            results.add(world.tree()["A.md"])
            world.writer.undo(undo.One(change_id=change))

    assert len(results) == 1
    assert b"before alpha\nalpha" in results.pop()


def test_overlapping_edits_are_refused_and_nothing_is_half_applied(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        before = world.tree()
        with pytest.raises(BadInput, match="overlap"):
            world.submit(
                AtPosition(path="A.md", position="replace:5-7", content="x"),
                AtPosition(path="A.md", position="delete:7-9"),
            )

        assert world.tree() == before


def test_the_items_of_a_batch_that_can_be_done_go_on_and_the_others_are_listed(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        submission = world.submit(
            EditText(path="A.md", old="alpha", new="ALPHA"),
            EditText(path="B.md", old="not there", new="x"),
            EditText(path="Missing.md", old="a", new="b"),
        )

        assert submission.status == "applied"
        assert [(one.number, one.error.code) for one in submission.failures] == [
            (1, "text_not_found"),
            (2, "not_found"),
        ]
        assert "ALPHA" in world.text("A.md")
        assert answers.write_result(submission)["failures"]


def test_a_batch_of_which_nothing_can_be_done_lists_every_failure(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        before = world.tree()
        unlike = [EditText(path="Nowhere.md", old="a", new="b"), EditText(path="A.md", old="not there", new="b")]
        alike = [Move(source="Gone.md", destination="X.md"), Move(source="Lost.md", destination="Y.md")]

        with pytest.raises(CallerError, match=r"Nowhere\.md.*A\.md") as differing:
            world.writer.submit(unlike)
        with pytest.raises(NotFound) as same:
            world.writer.submit(alike)

        rows = cast("list[dict[str, object]]", differing.value.as_dict()["failures"])
        assert [(row["request"], row["path"]) for row in rows] == [(0, "Nowhere.md"), (1, "A.md")]
        assert all(row["code"] and row["error"] for row in rows)
        assert differing.value.code == "batch_failed"
        assert same.value.code == "not_found"
        assert world.tree() == before


def test_a_dry_run_shows_the_diff_and_writes_nothing(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        before = world.tree()
        submission = world.submit(EditText(path="A.md", old="alpha", new="ALPHA"), asked=SubmitOptions(dry_run=True))

        assert (submission.status, world.tree()) == ("planned", before)
        assert "-alpha\n+ALPHA" in submission.files[0].diff


def test_an_edit_against_an_older_state_moves_to_where_its_text_stands(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        first = world.submit(EditText(path="B.md", old="gamma", new="gamma\ndelta\nepsilon\nzeta\neta\ntheta"))
        seen = str(first.files[0].after_hash)
        world.submit(AddText(path="B.md", content="on top", where="start"))
        moved = world.submit(AtPosition(path="B.md", position="replace:4", content="ZETA", base=seen))

        assert world.text("B.md").splitlines() == ["on top", "", "gamma", "delta", "epsilon", "ZETA", "eta", "theta #x"]
        assert "changed since" in moved.notices[0]


@pytest.mark.parametrize("approved", [False, True], ids=["tried again", "approved"])
def test_only_a_write_that_nobody_approved_is_tried_again_after_another_save(tmp_path: Path, approved: bool) -> None:
    seen = NOTES["B.md"]
    saves = iter([f"{seen}delta\nepsilon\n"])
    with desks.world(tmp_path, {**NOTES, "B.md": f"{seen}delta\n"}) as world:

        def save_and_read(_: str) -> bytes:
            """Answer between the reading and the writing of the note, in which another program saves it once."""
            for text in saves:
                (world.root / "B.md").write_text(text, encoding="utf-8")
            return seen.encode()

        writer = replace(world.writer, context=replace(world.writer.context, read_version=save_and_read))
        base = parser.content_hash(seen.encode())
        edit: list[Request] = [AtPosition(path="B.md", position="start", content="on top", base=base)]
        with pytest.raises(ConflictError, match="has changed") if approved else nullcontext():
            writer.submit(edit, SubmitOptions(approved_by_person=approved))

        assert world.text("B.md").startswith("gamma" if approved else "on top")
        assert world.text("B.md").endswith("delta\nepsilon\n")


def test_an_edit_against_an_unknown_state_is_refused_with_the_current_hash(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world, pytest.raises(ConflictError) as caught:
        world.submit(AtPosition(path="B.md", position="replace:1", content="x", base="sha256:" + "0" * 64))

    assert caught.value.details["current_hash"] == parser.content_hash(NOTES["B.md"].encode())


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (EditText(path="A.md", old="", new="x"), BadInput),
        (EditText(path="A.md", old="a", new="b"), Ambiguous),
        (EditText(path="../x.md", old="a", new="b"), KnapError),
        (EditText(path=".obsidian/app.json", old="a", new="b"), NotFound),
        (EditSection(path="A.md", heading="One", content="x", how="replace", strict=True), BadInput),
        (EditSection(path="A.md", heading="# Three", content="x", how="append"), NotFound),
        (Create(path="A.md"), ConflictError),
        (Create(path="a.MD"), ConflictError),
        (Create(path=".git/x.md"), RefusedError),
        (Move(source="A.md", destination="B.md"), KnapError),
        (Move(source="Nope.md", destination="C.md"), NotFound),
        (Trash(path="Nope.md"), NotFound),
        (Restore(path="Nope.md"), NotFound),
        (RenameTag(old="nope", new="y"), NotFound),
        (RenameTag(old="x", new="123"), BadInput),
        (Rewrite(path="B.md", content="x", base="sha256:0"), ConflictError),
    ],
)
def test_what_cannot_be_done_says_so_and_changes_nothing(
    tmp_path: Path, request_: Request, error: type[KnapError]
) -> None:
    with desks.world(tmp_path, NOTES) as world:
        before = world.tree()
        with pytest.raises(error):
            world.submit(request_)

        assert world.tree() == before


def test_a_write_is_found_by_the_next_search(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        world.submit(Create(path="Zeppelin.md", content="helium\n"))
        hits = world.index.search(SearchRequest(text="helium", mode="keyword")).hits

        assert [hit.row.note for hit in hits] == ["Zeppelin.md"]


def test_trash_and_restore_bring_a_note_back(tmp_path: Path) -> None:
    notes_ = {**NOTES, ".obsidian/app.json": '{"trashOption": "local"}'}
    with desks.world(tmp_path, notes_) as world:
        before = world.tree()
        world.submit(Trash(path="B.md"))
        assert world.tree()[".trash/B.md"] == before["B.md"]
        world.submit(Restore(path="B.md"))

        assert world.tree() == before


@pytest.mark.parametrize(
    ("client", "requests", "status"),
    [
        ("cli", [Trash(path="B.md")], "applied"),
        ("cli", [RenameTag(old="x", new="y")], "proposed"),
        ("cli", [AddText(path=f"n{n}.md", content="x", where="end") for n in range(6)], "proposed"),
        ("cli", [AddText(path=f"n{n}.md", content="x", where="end") for n in range(5)], "applied"),
        ("mcp", [EditText(path="A.md", old="alpha", new="x")], "applied"),
        ("mcp", [Trash(path="B.md")], "applied"),
        ("mcp", [Move(source="B.md", destination="C.md")], "applied"),
        ("mcp", [AtPosition(path="A.md", position="replace:7", content="x")], "applied"),
        ("mcp", [AddText(path="Preferences.md", content="- x", where="end")], "applied"),
        ("mcp", [AddText(path=f"n{n}.md", content="x", where="end") for n in range(5)], "applied"),
        ("mcp", [AddText(path=f"n{n}.md", content="x", where="end") for n in range(6)], "proposed"),
        ("http", [RenameTag(old="x", new="y")], "proposed"),
        ("agent", [EditText(path="A.md", old="alpha", new="x")], "proposed"),
        ("script", [Create(path="New.md", content="x")], "proposed"),
        ("stranger", [Create(path="New.md", content="x")], "proposed"),
    ],
)
def test_the_client_s_rules_say_what_becomes_of_a_change(
    tmp_path: Path, client: str, requests: list[Request], status: str
) -> None:
    made = {**NOTES, **{f"n{n}.md": "text\n" for n in range(6)}}
    with desks.world(tmp_path, made, client=client) as world:
        before = world.tree()
        submission = world.writer.submit(requests)

        assert submission.status == status
        assert (world.tree() == before) == (status == "proposed")


def test_who_has_read_foreign_text_only_proposes_until_a_person_clears_it(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES, client="mcp") as world:
        world.writer.taints.mark("mcp", "", "Clippings/page.md")
        tainted = world.submit(EditText(path="A.md", old="alpha", new="x"))
        with pytest.raises(RefusedError):
            world.writer.undo(undo.Last())

        assert tainted.status == "proposed"


@pytest.mark.parametrize("client", ["agent", "script", "stranger"])
def test_agents_and_scripts_neither_accept_nor_undo(tmp_path: Path, client: str) -> None:
    with desks.world(tmp_path, NOTES, client=client) as world:
        made = world.submit(Create(path="New.md", content="x"))
        digest = world.reviewer.refit(made.proposal_id).digest
        with pytest.raises(RefusedError):
            world.reviewer.accept(made.proposal_id, digest)
        with pytest.raises(RefusedError):
            world.writer.undo(undo.Last())


def test_a_proposal_is_accepted_by_hunk_and_the_rest_stays_open(tmp_path: Path) -> None:
    lines = "".join(f"line {n}\n" for n in range(30))
    with desks.world(tmp_path, {"L.md": lines}) as world:
        made = world.submit(
            EditText(path="L.md", old="line 2\n", new="two\n"),
            EditText(path="L.md", old="line 25\n", new="twenty-five\n"),
            asked=SubmitOptions(propose=True),
        )
        shown = world.reviewer.refit(made.proposal_id)
        accepted = world.reviewer.accept(made.proposal_id, shown.digest, hunks=["1.2"])

        assert accepted.status == "applied"
        assert world.text("L.md") == lines.replace("line 25\n", "twenty-five\n")
        assert world.reviewer.refit(made.proposal_id).status in {"open", "partly_accepted"}


def test_a_proposal_whose_note_changed_elsewhere_is_fitted_and_accepted(tmp_path: Path) -> None:
    lines = "".join(f"line {n}\n" for n in range(30))
    with desks.world(tmp_path, {"L.md": lines}) as world:
        made = world.submit(EditText(path="L.md", old="line 25\n", new="x\n"), asked=SubmitOptions(propose=True))
        (world.root / "L.md").write_text("first\n" + lines)
        shown = world.reviewer.refit(made.proposal_id)
        world.reviewer.accept(made.proposal_id, shown.digest)

        assert world.text("L.md") == "first\n" + lines.replace("line 25\n", "x\n")


def test_a_proposal_whose_place_changed_is_stale_and_cannot_be_accepted(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        made = world.submit(EditText(path="B.md", old="gamma", new="x"), asked=SubmitOptions(propose=True))
        (world.root / "B.md").write_text("entirely other\n")
        shown = world.reviewer.refit(made.proposal_id)
        with pytest.raises(KnapError):
            world.reviewer.accept(made.proposal_id, shown.digest)

        assert shown.status == "stale"
        assert world.text("B.md") == "entirely other\n"


def test_what_was_confirmed_cannot_be_swapped(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        made = world.submit(EditText(path="B.md", old="gamma", new="x"), asked=SubmitOptions(propose=True))
        shown = world.reviewer.refit(made.proposal_id)
        world.writer.proposals.note_blocks.edit(made.proposal_id, shown.digest, "1.1", "evil #x\n", {})
        with pytest.raises(ConflictError):
            world.reviewer.accept(made.proposal_id, shown.digest)

        assert world.text("B.md") == NOTES["B.md"]


def test_a_client_changes_nothing_that_it_may_not_see(tmp_path: Path) -> None:
    hidden = Policy(client="cli", hidden=("B.md", "secret/"))
    with desks.world(tmp_path, {**NOTES, "secret/s.md": "[[A]]\n"}, policy=hidden) as world:
        with pytest.raises(NotFound):
            world.submit(EditText(path="B.md", old="gamma", new="x"))
        with pytest.raises(RefusedError):
            world.submit(Create(path="secret/new.md"))
        moved = world.submit(Move(source="A.md", destination="A9.md"))

        assert world.text("secret/s.md") == "[[A9]]\n"
        assert "secret" not in str(answers.write_result(moved))
        assert moved.hidden == 1


def test_enforcement_holds_where_no_note_is_open(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        narrow = replace(world.writer, grants=replace(world.writer.grants, editable="current"))
        with pytest.raises(RefusedError, match="no note is open"):
            narrow.submit([EditText(path="A.md", old="alpha", new="x")])
        done = narrow.submit(
            [EditText(path="A.md", old="alpha", new="x")], SubmitOptions(scope=Scope(paths=frozenset({"A.md"})))
        )

        assert done.status == "applied"


def test_a_refused_item_leaves_the_others_of_a_batch(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        writer = replace(world.writer, grants=replace(world.writer.grants, read_only=("B.md",)))
        done = writer.submit([EditText(path="A.md", old="alpha", new="x"), EditText(path="B.md", old="gamma", new="y")])

        assert (done.status, [one.path for one in done.refusals]) == ("applied", ["B.md"])
        assert world.text("B.md") == NOTES["B.md"]


def test_the_index_forgets_the_place_that_an_undone_move_had_led_to(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        world.submit(Move(source="B.md", destination="sub/B2.md"))

        world.writer.undo(undo.Last())

        assert sorted(world.index.store.file_states()) == sorted(NOTES)


def test_a_client_takes_back_only_its_own_changes_of_files_that_it_sees(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as person:
        theirs = person.submit(EditText(path="A.md", old="alpha", new="x"))
        other = replace(person.writer, grants=access.default_grants("mcp"))
        with pytest.raises(RefusedError, match="its own changes"):
            other.undo(undo.One(change_id=theirs.change_id))
        mine = other.submit([EditText(path="A.md", old="beta", new="y")])
        hidden = replace(
            other,
            context=replace(other.context, view=other.context.view.with_policy(Policy(client="mcp", hidden=("A.md",)))),
        )
        with pytest.raises(RefusedError, match="that it may change"):
            hidden.undo(undo.One(change_id=mine.change_id))

        other.undo(undo.One(change_id=mine.change_id))
        assert "beta" in person.text("A.md")


def test_blocks_go_into_no_note_that_the_rules_keep_from_the_client(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        made = world.submit(EditText(path="B.md", old="gamma", new="x"), asked=SubmitOptions(propose=True))
        keeper = Reviewer(writer=replace(world.writer, grants=replace(world.writer.grants, read_only=("B.md",))))
        with pytest.raises(RefusedError):
            keeper.note_blocks.draw(made.proposal_id)

        assert world.text("B.md") == NOTES["B.md"]


def test_an_interrupt_after_the_write_names_the_change(tmp_path: Path) -> None:
    """Whoever isn't told so makes the change again: text is added twice."""

    def interrupt(_: object) -> NoReturn:
        raise KeyboardInterrupt

    with desks.world(tmp_path, NOTES) as world:
        writer = replace(world.writer, on_touched=interrupt)
        with pytest.raises(KeyboardInterrupt) as caught:
            writer.submit([AddText(path="B.md", content="more", where="end")])
        change = undo.select_changes(writer.state.journal, undo.Last())[0].id

        assert world.text("B.md").endswith("more\n")
        assert caught.value.__notes__ == [f"change {change} was made: `knap undo {change}` takes it back"]


def test_an_undo_offers_a_part_only_where_another_file_is_left(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        world.submit(AddText(path="B.md", content="more", where="end"))
        (world.root / "B.md").write_text("by an editor\n", encoding="utf-8")
        with pytest.raises(ConflictError) as whole:
            world.writer.undo(undo.Last())
        with pytest.raises(ConflictError) as part:
            world.writer.undo(undo.Last(), partial=True)

        assert "--partial" not in whole.value.hint + part.value.hint
