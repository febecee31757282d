"""A hunk that is edited while a block shows it: the block follows, and says what the proposal says at every moment."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knapper.changes.disk.undo import One
from knapper.changes.drafts import EditText
from knapper.changes.proposals import store
from knapper.changes.reviewer import Reviewer
from knapper.changes.writer import SubmitOptions
from knapper.errors import ConflictError, RefusedError
from knapper.vault import access
from tests.changes import desks
from tests.changes.desks import World
from tests.properties import scaled

NOTES = {"A.md": "# A\n\nalpha\n\nstays\n\nbeta\n\nstays\n\ngamma\n", "B.md": "# B\n\nalpha\n"}
EDITED = NOTES["A.md"].replace("alpha", "other\nlines").replace("gamma", "GAMMA")


def drawn(world: World) -> str:
    """Let two edits of one note wait, and show them in it."""
    requests = [EditText(path="A.md", old="alpha", new="ALPHA"), EditText(path="A.md", old="gamma", new="GAMMA")]
    name = world.submit(*requests, asked=SubmitOptions(propose=True)).proposal_id
    world.reviewer.note_blocks.draw(name)
    return name


def edit(world: World, name: str, text: str, hunk: str = "1.1") -> str:
    """Edit a hunk as it is shown now; gives the change that drew its block anew."""
    return world.reviewer.edit(name, world.reviewer.refit(name).digest, hunk, text).change_id


def text_of(world: World, name: str) -> bytes:
    return world.reviewer.refit(name).files[0].hunks[0].hunk.new


def accept_proposal(world: World, name: str) -> None:
    world.reviewer.accept(name, world.reviewer.refit(name).digest)


def accept_blocks(world: World, name: str) -> None:
    assert name
    world.reviewer.note_blocks.resolve("A.md", "accept")


BOTH_WAYS = pytest.mark.parametrize("accept", [accept_proposal, accept_blocks])


@BOTH_WAYS
def test_an_edited_hunk_is_accepted_alike_from_its_note_and_from_its_proposal(
    tmp_path: Path, accept: Callable[[World, str], None]
) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        edit(world, name, "other\nlines\n")
        between = world.text("A.md")
        accept(world, name)

        assert '"after":"other\\nlines\\n"' in between
        assert between.count("#ai_edit") == 2
        assert world.text("A.md") == EDITED
        assert world.writer.proposals.show(name).status == "accepted"


def test_rejecting_what_was_edited_gives_the_note_back(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        edit(world, name, "other\n")
        world.reviewer.reject(name)

        assert world.text("A.md") == NOTES["A.md"]


@BOTH_WAYS
def test_taking_back_the_redrawn_block_takes_back_the_text(
    tmp_path: Path, accept: Callable[[World, str], None]
) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        before = world.text("A.md")
        world.writer.undo(One(change_id=edit(world, name, "other\nlines\n")))
        undone = world.text("A.md"), text_of(world, name)
        accept(world, name)

        assert undone == (before, b"ALPHA\n")
        assert world.text("A.md") == NOTES["A.md"].replace("alpha", "ALPHA").replace("gamma", "GAMMA")
        assert world.writer.proposals.show(name).status == "accepted"


@BOTH_WAYS
def test_doing_it_again_brings_the_text_back(tmp_path: Path, accept: Callable[[World, str], None]) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        taken_back = world.writer.undo(One(change_id=edit(world, name, "other\nlines\n")))
        world.writer.undo(One(change_id=taken_back.applied.change_id))
        accept(world, name)

        assert world.text("A.md") == EDITED
        assert world.writer.proposals.show(name).status == "accepted"


def test_a_text_that_is_edited_again_after_an_undo_counts(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        world.writer.undo(One(change_id=edit(world, name, "one\n")))
        edit(world, name, "two\n")
        edit(world, name, "other\nlines\n")
        world.reviewer.note_blocks.resolve("A.md", "accept")

        assert world.text("A.md") == EDITED


def test_a_block_that_a_person_edited_is_left_alone_with_its_proposal(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        digest = world.reviewer.refit(name).digest
        note = world.root / "A.md"
        note.write_bytes(note.read_bytes().replace(b'"after":"ALPHA', b'"after":"MINE'))
        before = world.tree()
        with pytest.raises(ConflictError, match="changed by hand") as caught:
            world.reviewer.edit(name, digest, "1.1", "other\n")

        assert caught.value.code == "block_broken"
        assert world.tree() == before
        assert world.writer.proposals.show(name).files[0].hunks[0].hunk.new == b"ALPHA\n"


def test_who_may_not_write_the_note_changes_nothing_of_the_proposal(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        before = world.tree()
        barred = replace(world.writer, grants=replace(access.default_grants("cli"), small="refuse", large="refuse"))
        digest = world.reviewer.refit(name).digest
        with pytest.raises(RefusedError):
            Reviewer(writer=barred).edit(name, digest, "1.1", "other\n")

        assert world.tree() == before
        assert text_of(world, name) == b"ALPHA\n"
        assert world.reviewer.refit(name).digest == digest


def test_who_has_read_foreign_text_puts_none_of_it_into_a_note(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        agent = replace(world.writer, grants=access.default_grants("agent"))
        agent.taints.mark("agent", "", "Clippings/Web.md")
        change = EditText(path="A.md", old="alpha", new="ALPHA")
        name = agent.submit([change], SubmitOptions(propose=True)).proposal_id
        reviewer = Reviewer(writer=agent)
        reviewer.edit(name, reviewer.refit(name).digest, "1.1", "while it only waits\n")
        world.reviewer.note_blocks.draw(name)
        before = world.text("A.md")
        with pytest.raises(RefusedError, match=r"shown in 'A\.md'"):
            reviewer.edit(name, reviewer.refit(name).digest, "1.01", "do as they say\n")
        edit(world, name, "as I say\n")

        assert "while it only waits" in before
        assert "as I say" in world.text("A.md")


def test_a_kill_before_the_note_is_written_leaves_the_text_as_it_was(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        digest, note = world.reviewer.refit(name).digest, world.root / "A.md"
        path = world.writer.proposals.show(name).files[0].path
        world.writer.proposals.note_blocks.edit(name, digest, "1.1", "other\n", {path: note.read_bytes()})

        assert text_of(world, name) == b"ALPHA\n"
        assert world.reviewer.refit(name).digest == digest


def test_a_block_that_was_taken_out_by_hand_does_not_come_back(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        (world.root / "A.md").write_text(NOTES["A.md"], encoding="utf-8")
        change = edit(world, name, "other\nlines\n")

        assert (change, world.text("A.md")) == ("", NOTES["A.md"])
        assert text_of(world, name) == b"other\nlines\n"


def test_a_text_that_no_block_can_show_waits_outside_of_the_note(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        between = EditText(path="A.md", old="beta", new="BETA")
        world.reviewer.note_blocks.draw(world.submit(between, asked=SubmitOptions(propose=True)).proposal_id)
        before = world.text("A.md")
        opens_a_fence = "```\n"
        edited = world.reviewer.edit(name, world.reviewer.refit(name).digest, "1.1", opens_a_fence)
        left = world.text("A.md").count("#ai_edit")
        world.writer.undo(One(change_id=edited.change_id))

        assert (before.count("#ai_edit"), left, len(edited.notices)) == (3, 1, 1)
        assert world.text("A.md") == before
        assert text_of(world, name) == b"ALPHA\n"


def test_proposals_of_an_earlier_version_are_read_and_edited(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = drawn(world)
        with closing(sqlite3.connect(tmp_path / "state" / store.FILE)) as database:
            database.executescript("DROP TABLE drawings; DROP TABLE behalves; PRAGMA user_version = 1;")
        again = store.open_proposals(tmp_path / "state")
        reviewer = Reviewer(writer=replace(world.writer, proposals=again))
        reviewer.edit(name, reviewer.refit(name).digest, "1.1", "other\nlines\n")
        reviewer.note_blocks.resolve("A.md", "accept")
        again.shut()

        assert world.text("A.md") == EDITED


TEXTS = st.sampled_from(
    ["x\n", "x\ny\n", "```\ncode\n```\n", "$$\nx\n", "", "%%\n", "#ai_edit\n", "- a\n  - b\n", "<b>\n"]
)


@settings(max_examples=scaled(15))
@given(edits=st.lists(st.tuples(st.sampled_from(["1.1", "1.2"]), TEXTS, st.booleans()), max_size=4))
def test_whatever_was_edited_and_taken_back_both_ways_to_accept_give_one_text(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, str, bool]]
) -> None:
    texts: list[str] = []
    for accept in (accept_proposal, accept_blocks):
        with desks.world(tmp_path_factory.mktemp("way"), NOTES) as world:
            name = drawn(world)
            for hunk, text, is_undone in edits:
                change = edit(world, name, text, hunk)
                if change and is_undone:
                    world.writer.undo(One(change_id=change))
            accept(world, name)
            if world.writer.proposals.show(name).status == "open":  # what no block could show
                accept_proposal(world, name)
            texts.append(world.text("A.md"))

    assert texts[0] == texts[1]
