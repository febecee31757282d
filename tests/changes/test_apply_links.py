"""Folders that somebody exchanges for symbolic links between the look and the write."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from knapper.changes.disk import apply
from knapper.changes.disk.files import hash_content
from knapper.changes.disk.plan import Effect, MakeFolder, MoveToTrash, Remove, Rename, Write
from knapper.errors import ConflictError, KnapError
from knapper.vault.paths import NotePath
from tests.changes.disks import META, Death, HookedDisk, Nth, opened, picture, write

FIRST, NOTE, OTHER, NEW = NotePath("a.md"), NotePath("folder/n.md"), NotePath("other.md"), NotePath("folder/new.md")
EDIT = Write(path=NOTE, base=hash_content(NOTE.encode()), content=b"edited")
EFFECTS: dict[str, list[Effect]] = {
    "edit": [EDIT],
    "create": [Write(path=NEW, base=None, content=b"new")],
    "move into": [Rename(source=OTHER, target=NotePath("folder/other.md"), base=hash_content(OTHER.encode()))],
    "move out": [Rename(source=NOTE, target=NotePath("moved.md"), base=hash_content(NOTE.encode()))],
    "trash": [MoveToTrash(path=NOTE, base=hash_content(NOTE.encode()))],
    "new folder": [MakeFolder(path=NotePath("folder/below"))],
}


def exchange(root: Path, outside: Path) -> Callable[[], None]:
    """Put a link to a folder outside in the place of one in the vault, with the same notes in it."""

    def act() -> None:
        (root / "folder").rename(root.parent / "taken away")
        (root / "folder").symlink_to(outside, target_is_directory=True)

    return act


@pytest.mark.parametrize("effects", EFFECTS.values(), ids=EFFECTS.keys())
@pytest.mark.parametrize("when", ["stage", "sync"])
def test_a_folder_that_becomes_a_link_meanwhile_leads_no_write_out_of_the_vault(
    tmp_path: Path, effects: list[Effect], when: str
) -> None:
    root, outside = tmp_path / "vault", tmp_path / "outside"
    for path in (NOTE, OTHER, FIRST):
        write(root, path, path.encode())
    shutil.copytree(root / "folder", outside)
    before = picture(outside)
    hook = Nth(number=1, when="after", act=exchange(root, outside), operations=(when,))
    state = opened(root, HookedDisk(hook=hook))
    begin = Write(path=FIRST, base=hash_content(FIRST.encode()), content=b"is staged, and taken back")

    with pytest.raises(KnapError, match=r"'folder' became a symbolic link|No such file|Not a directory"):
        apply.apply_effects(state, [begin, *effects], META)

    assert picture(outside) == before
    assert {path: (root / path).read_bytes() for path in (FIRST, OTHER)} == {
        FIRST: FIRST.encode(),
        OTHER: OTHER.encode(),
    }
    assert state.journal.unfinished() == []


@pytest.mark.parametrize("content", [b"edited", b"another text"])
def test_a_way_back_leads_not_out_of_the_vault_either(tmp_path: Path, content: bytes) -> None:
    root, outside = tmp_path / "vault", tmp_path / "outside"
    write(root, NOTE, NOTE.encode())
    write(outside, "n.md", content)
    write(outside, "new.md", b"new")
    act = exchange(root, outside)

    def die() -> None:
        act()
        raise Death

    state = opened(root, HookedDisk(hook=Nth(number=1, when="after", act=die, operations=("swap",))))
    new = Write(path=NEW, base=None, content=b"new")
    with pytest.raises(Death):
        apply.apply_effects(state, [EDIT, new], META)

    assert picture(outside).keys() == {"n.md", "new.md"}
    assert (outside / "n.md").read_bytes() == content


def put_link(note: Path) -> None:
    note.unlink()
    note.symlink_to("elsewhere.md")


def put_pipe(note: Path) -> None:
    note.unlink()
    os.mkfifo(note)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes, and links need rights there")
@pytest.mark.parametrize("put", [put_link, put_pipe])
@pytest.mark.parametrize("path", ["folder/n.md", "a.md"])
def test_what_takes_a_notes_name_just_before_the_exchange_stands(
    tmp_path: Path, put: Callable[[Path], None], path: str
) -> None:
    root = tmp_path / "vault"
    write(root, FIRST, b"")
    write(root, NOTE, b"")
    edits = [Write(path=one, base=hash_content((root / one).read_bytes()), content=b"new") for one in (FIRST, NOTE)]
    hook = Nth(number=1, act=lambda: put(root / path), operations=("swap",))
    state = opened(root, HookedDisk(hook=hook))

    with pytest.raises(ConflictError, match="was saved by another program"):
        apply.apply_effects(state, edits, META)

    assert not (root / path).is_file()
    assert len([one for one in root.rglob("*") if not one.is_dir()]) == 2
    assert state.journal.unfinished() == []
    apply.apply_effects(state, [Write(path=NotePath("next.md"), content=b"next")], META)


def test_a_folder_that_becomes_a_link_before_the_old_text_is_deleted_blocks_nothing(tmp_path: Path) -> None:
    root, outside = tmp_path / "vault", tmp_path / "outside"
    write(root, NOTE, NOTE.encode())
    shutil.copytree(root / "folder", outside)
    before = picture(outside)
    hook = Nth(number=1, act=exchange(root, outside), operations=("unlink",))
    apply.apply_effects(opened(root, HookedDisk(hook=hook)), [EDIT], META)

    state, recovered = apply.open_state(root, tmp_path / "state")

    (aside,) = (tmp_path / "taken away").glob(".knap-tmp-*")
    assert [one.outcome for one in recovered] == ["finished"]
    assert aside.name in recovered[0].notices[0]
    assert picture(outside) == before
    apply.apply_effects(state, [Write(path=NotePath("next.md"), content=b"next")], META)


@pytest.mark.parametrize("effect", [EDIT, Remove(path=NOTE, base=hash_content(NOTE.encode()))], ids=["edit", "remove"])
def test_an_error_tells_of_a_folder_that_was_moved_with_the_old_text_in_it(tmp_path: Path, effect: Effect) -> None:
    root = tmp_path / "vault"
    write(root, NOTE, NOTE.encode())
    hook = Nth(number=1, when="after", act=lambda: (root / "folder").rename(root / "moved") and None)
    hook.operations = ("swap", "place")
    state = opened(root, HookedDisk(hook=hook))

    with pytest.raises(KnapError) as caught:
        apply.apply_effects(state, [effect], META)

    (aside,) = (root / "moved").glob(".knap-tmp-*")
    assert aside.read_bytes() == NOTE.encode()
    assert aside.name in caught.value.hint
