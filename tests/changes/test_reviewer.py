"""Deciding on proposals through the one door: nothing half done, and nothing left unsaid."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from knapper.changes.drafts import EditText
from knapper.changes.proposals.note_blocks import NoteBlockStore
from knapper.changes.proposals.taint import Taints
from knapper.changes.reviewer import Reviewer
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, ConflictError, RefusedError
from knapper.vault import access
from tests.changes import desks
from tests.changes.desks import World

NOTES = {
    "A.md": "# A\n\nalpha\n\nstays\n\nbeta\n\nstays\n\ngamma\n",
    "B.md": "# B\n\nalpha\n",
}
WAIT = SubmitOptions(propose=True)


def proposed(world: World) -> str:
    """Let a change of two places in one note, and one in another, wait."""
    requests = [
        EditText(path="A.md", old="alpha", new="ALPHA"),
        EditText(path="A.md", old="gamma", new="GAMMA"),
        EditText(path="B.md", old="alpha", new="ALPHA"),
    ]
    return world.submit(*requests, asked=WAIT).proposal_id


def test_a_rejection_that_fails_at_a_broken_block_rejects_nothing(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = proposed(world)
        world.reviewer.note_blocks.draw(name)
        note = world.root / "B.md"
        note.write_bytes(note.read_bytes().replace(b"```ai-edit\n", b""))
        torn = world.tree()
        with pytest.raises(ConflictError, match="opening fence is gone"):
            world.reviewer.reject(name, "no")

        assert world.writer.proposals.show(name).status == "open"
        assert world.tree() == torn


def test_a_broken_block_that_is_taken_out_by_hand_stands_in_nobodys_way(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = proposed(world)
        world.reviewer.note_blocks.draw(name)
        (world.root / "B.md").write_text(NOTES["B.md"], encoding="utf-8")
        rejected = world.reviewer.reject(name, "no")

        assert (rejected.status, world.text("A.md"), world.text("B.md")) == ("rejected", NOTES["A.md"], NOTES["B.md"])


def test_what_did_not_fit_any_more_is_told_with_what_was_accepted(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = proposed(world)
        (world.root / "B.md").write_text("# B\n\nomega\n", encoding="utf-8")
        done = world.reviewer.accept(name, world.reviewer.refit(name).digest)

        assert world.text("A.md") == NOTES["A.md"].replace("alpha", "ALPHA").replace("gamma", "GAMMA")
        assert world.text("B.md") == "# B\n\nomega\n"
        (notice,) = done.notices
        assert "'B.md'" in notice
        assert "'A.md'" not in notice


def test_accepting_a_part_says_nothing_of_the_rest(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = proposed(world)
        done = world.reviewer.accept(name, world.reviewer.refit(name).digest, hunks=("1.1",))

        assert done.notices == ()


def test_what_does_not_fit_is_not_drawn_and_the_rest_is(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = proposed(world)
        (world.root / "B.md").write_text("# B\n\nomega\n", encoding="utf-8")
        world.reviewer.note_blocks.draw(name)
        drawn = world.text("A.md").count("#ai_edit")
        (world.root / "A.md").write_text("all is new\n", encoding="utf-8")
        with pytest.raises(BadInput, match="can be shown") as caught:
            world.reviewer.note_blocks.draw(name)

        assert (drawn, world.text("B.md")) == (2, "# B\n\nomega\n")
        assert caught.value.hint


def test_parts_that_several_accept_at_once_are_never_said_not_to_fit(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n\n" for number in range(8))
    with desks.world(tmp_path, {"A.md": text}) as world:
        requests = [EditText(path="A.md", old=f"line {number}\n", new=f"LINE {number}\n") for number in range(8)]
        name = world.submit(*requests, asked=WAIT).proposal_id
        parts = [hunk.id for file in world.writer.proposals.show(name).files for hunk in file.hunks]

        def accept(part: str) -> str:
            while True:
                try:
                    return world.reviewer.accept(name, world.reviewer.refit(name).digest, hunks=(part,)).status
                except ConflictError as error:
                    if error.code != "digest_mismatch":  # another part was accepted since it was shown
                        raise

        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(accept, parts))

        assert done == ["applied"] * 8
        assert world.text("A.md") == text.replace("line", "LINE")
        assert world.writer.proposals.show(name).status == "accepted"


def test_the_yes_of_a_person_who_was_asked_is_good_for_the_clients_own_proposal_alone(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        name = proposed(world)
        digest = world.writer.proposals.show(name).digest
        other = replace(world.writer, grants=access.default_grants("http"))

        with pytest.raises(RefusedError, match="another client's"):
            Reviewer(writer=other, is_confirmed=True).accept(name, digest)

        assert world.writer.proposals.show(name).status == "open"


def test_accepting_what_no_note_shows_reads_no_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("no note has a block")

    with desks.world(tmp_path, NOTES) as world:
        name = proposed(world)
        digest = world.reviewer.refit(name).digest
        for method in ("get", "sync_texts"):
            monkeypatch.setattr(NoteBlockStore, method, refuse)
        _ = world.reviewer.accept(name, digest)

        assert world.text("B.md") == NOTES["B.md"].replace("alpha", "ALPHA")


def test_a_person_accepts_without_a_look_at_who_read_foreign_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def ask(*whom: object) -> bool:
        asked.extend(whom)
        return False

    with desks.world(tmp_path, NOTES) as world:
        name = proposed(world)
        digest = world.reviewer.refit(name).digest
        monkeypatch.setattr(Taints, "is_tainted", ask)
        _ = world.reviewer.accept(name, digest)

        assert world.writer.grants.is_person
        assert asked == []
