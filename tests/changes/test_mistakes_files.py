"""Hold what earlier systems got wrong with files and links; each test has the mistake's name."""

import errno
import os
from pathlib import Path

import pytest

from knapper.changes.disk import apply
from knapper.changes.disk.files import Files
from knapper.changes.disk.plan import Write
from knapper.changes.drafts import AddText, Create, EditText, Move, Request, Rewrite, Trash
from knapper.errors import KnapError, RefusedError, StorageError
from knapper.vault import parser
from knapper.vault.paths import NotePath
from tests.changes import desks, disks
from tests.changes.desks import World
from tests.changes.disks import HookedDisk, Nth

NOTES = {
    "A.md": "---\nup: '[[B#Head]]'\n---\n# A\n\n[[B]] ![[B#^id]] [b](B.md) `[[B]]`\n\n| x |\n|-|\n| [[B\\|b]] |\n",
    "B.md": "# Head\n\ntext ^id\n\n[[A]]\n",
    "Map.canvas": '{"nodes":[{"id":"1","type":"file","file":"B.md"}],"edges":[]}',
}


def led_to(world: World, path: str) -> list[str]:
    """Tell where a note's links lead, in their order."""
    return [str(edge.path) for edge in world.index.graph.outgoing(world.writer.context.view.path(path))]


def test_moves_break_no_links(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        before = led_to(world, "A.md")
        world.submit(Create(path="Other/B.md", content="a rival\n"))
        world.submit(Move(source="B.md", destination="Deep/Er/C C.md"))
        after, text = led_to(world, "A.md"), world.text("A.md")

        assert len(before) == 5
        assert after == [one.replace("B.md", "Deep/Er/C C.md") for one in before]
        assert "`[[B]]`" in text
        assert '"file":"Deep/Er/C C.md"' in world.text("Map.canvas")


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a right of their own there")
def test_symbolic_links_to_outside_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "o.md").write_text("theirs\n", encoding="utf-8")
    with desks.world(tmp_path, NOTES) as world:
        (world.root / "way").symlink_to(outside, target_is_directory=True)
        (world.root / "link.md").symlink_to(outside / "o.md")
        requests: list[Request] = [
            AddText(path="link.md", content="x", where="end"),
            AddText(path="way/o.md", content="x", where="end"),
            Rewrite(path="link.md", content="x", base=parser.content_hash(b"theirs\n")),
            Create(path="way/new.md", content="x"),
            Move(source="A.md", destination="way/A.md"),
            Move(source="way/o.md", destination="o.md"),
            Trash(path="way/o.md"),
            Trash(path="link.md"),
        ]
        for one in requests:
            with pytest.raises(RefusedError) as caught:
                world.submit(one)
            assert caught.value.code == "outside_vault"

        assert [(file.name, file.read_text(encoding="utf-8")) for file in outside.iterdir()] == [("o.md", "theirs\n")]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_writes_are_atomic(tmp_path: Path, number: int) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    root = tmp_path / "vault"
    state = disks.opened(root, HookedDisk(hook=Nth(number=number, act=fail, operations=("swap",))))
    bases = {name: disks.write(root, name, name.encode()) for name in ("a.md", "b.md", "c.md")}
    before = disks.picture(root)
    with pytest.raises(StorageError):
        apply.apply_effects(
            state, [Write(path=NotePath(name), base=base, content=b"new") for name, base in bases.items()], disks.META
        )
    state.journal.shut()

    assert disks.picture(root) == before


def test_a_failed_batch_of_edits_of_one_note_leaves_it_whole(tmp_path: Path) -> None:
    with desks.world(tmp_path, NOTES) as world:
        before = world.tree()
        with pytest.raises(KnapError):
            world.submit(EditText(path="B.md", old="text ^id", new="x"), EditText(path="B.md", old="text", new="y"))

        assert world.tree() == before


def test_a_name_that_the_trash_finds_too_long_has_a_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    with desks.world(tmp_path, NOTES) as world:
        monkeypatch.setattr(Files, "trash", refuse)
        with pytest.raises(StorageError) as caught:
            world.submit(Trash(path="B.md"))

        assert "shorter name" in caught.value.hint
        assert (world.root / "B.md").exists()
