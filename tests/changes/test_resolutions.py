"""Blocks in notes that were resolved by hand, or by a process that ended before it could say so."""

import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from knapper.changes.disk import apply
from knapper.changes.disk.undo import Last
from knapper.changes.drafts import EditText
from knapper.changes.proposals import store
from knapper.changes.writer import SubmitOptions
from knapper.errors import StorageError
from tests.changes import desks
from tests.changes.desks import World

NOTE = "# A\n\nalpha\n\nstays\n\nbeta\n\nstays\n\ngamma\n"
DONE = NOTE.replace("alpha", "ALPHA").replace("gamma", "GAMMA")


def proposed(world: World) -> str:
    requests = [EditText(path="A.md", old="alpha", new="ALPHA"), EditText(path="A.md", old="gamma", new="GAMMA")]
    return world.submit(*requests, asked=SubmitOptions(propose=True)).proposal_id


def drawn(world: World) -> str:
    name = proposed(world)
    world.reviewer.note_blocks.draw(name)
    return name


def states(world: World, name: str) -> list[str]:
    return ["stale" if one.stale else one.state for one in world.reviewer.refit(name).files[0].hunks]


def put(world: World, text: str) -> None:
    (world.root / "A.md").write_bytes(text.encode())


@contextmanager
def failing(world: World, table: str, act: str = "INSERT") -> Generator[None]:
    """Let nothing be put into a table, or taken out of it, as if the process had ended just before."""
    file = world.writer.state.folder / store.FILE
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(f"CREATE TRIGGER fails BEFORE {act} ON {table} BEGIN SELECT RAISE(ABORT, 'killed'); END")
    with pytest.raises(StorageError):
        yield
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("DROP TRIGGER fails")


def test_a_kill_after_blocks_were_put_into_a_note_leaves_them_known(tmp_path: Path) -> None:
    with desks.world(tmp_path, {"A.md": NOTE}) as world:
        name = proposed(world)
        with failing(world, "shown"):
            world.reviewer.note_blocks.draw(name)
        assert world.text("A.md").count("#ai_edit") == 2

        assert states(world, name) == ["open", "open"]
        world.reviewer.accept(name, world.reviewer.refit(name).digest)
        assert world.text("A.md") == DONE


def test_a_kill_after_blocks_were_accepted_in_a_note_leaves_that_known(tmp_path: Path) -> None:
    with desks.world(tmp_path, {"A.md": NOTE}) as world:
        name = drawn(world)
        with failing(world, "acceptances"):
            world.reviewer.note_blocks.resolve("A.md", "accept")
        assert world.text("A.md") == DONE

        found = world.reviewer.refit(name)
        assert found.status == "accepted"
        (change,) = found.changes
        assert world.writer.undo(Last()).changes == (change,)


def test_a_kill_in_a_rejection_leaves_no_block_of_what_is_rejected(tmp_path: Path) -> None:
    with desks.world(tmp_path, {"A.md": NOTE}) as world:
        name = drawn(world)
        with failing(world, "hunks", "DELETE"):
            world.reviewer.reject(name, "no", hunks=["1.1"])

        assert (world.text("A.md").count("#ai_edit"), states(world, name)) == (1, ["open", "open"])
        assert world.reviewer.reject(name, "no").status == "rejected"
        assert world.text("A.md") == NOTE


def test_a_block_that_was_accepted_by_hand_is_no_longer_waited_for(tmp_path: Path) -> None:
    with desks.world(tmp_path, {"A.md": NOTE}) as world:
        name = drawn(world)
        first = world.text("A.md").index("```ai-edit")
        after = world.text("A.md").index("#ai_edit\n") + len("#ai_edit\n")
        put(world, world.text("A.md")[:first] + "ALPHA\n" + world.text("A.md")[after:])

        assert states(world, name) == ["accepted", "open"]
        world.reviewer.accept(name, world.reviewer.refit(name).digest)
        assert world.text("A.md") == DONE
        assert world.writer.proposals.show(name).status == "accepted"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(NOTE, ["open", "open"], id="taken out: they wait outside of the note"),
        pytest.param(NOTE.replace("alpha", "other"), ["stale", "open"], id="another text: nobody guesses"),
        pytest.param(NOTE.replace("alpha\n\n", ""), ["stale", "open"], id="gone with its text: nobody guesses"),
    ],
)
def test_what_became_of_blocks_that_are_gone_is_not_guessed(tmp_path: Path, text: str, expected: list[str]) -> None:
    with desks.world(tmp_path, {"A.md": NOTE}) as world:
        name = drawn(world)
        put(world, text)

        assert states(world, name) == expected


def test_blocks_whose_drawing_was_undone_wait_and_come_back_with_it(tmp_path: Path) -> None:
    with desks.world(tmp_path, {"A.md": NOTE}) as world:
        name = drawn(world)
        with_blocks = world.text("A.md")
        world.writer.undo(Last())

        assert (world.text("A.md"), states(world, name)) == (NOTE, ["open", "open"])

        world.reviewer.note_blocks.draw(name)

        assert world.text("A.md") == with_blocks


def reject(world: World, name: str) -> None:
    world.reviewer.reject(name, "no")


def edit(world: World, name: str) -> None:
    world.reviewer.edit(name, world.writer.proposals.show(name).digest, "1.1", "other\n")


@pytest.mark.parametrize("decide", [reject, edit])
def test_who_decides_waits_for_what_is_being_applied(tmp_path: Path, decide: Callable[[World, str], None]) -> None:
    with desks.world(tmp_path, {"A.md": NOTE}) as world:
        name = proposed(world)
        before = world.writer.proposals.show(name).digest
        waiting = threading.Thread(target=decide, args=(world, name))
        with apply.hold_lock(world.writer.state):
            waiting.start()
            waiting.join(0.3)
            while_held = world.writer.proposals.show(name)
        waiting.join()

        assert (while_held.status, while_held.digest) == ("open", before)
        assert world.writer.proposals.show(name).digest != before
