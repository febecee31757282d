"""Folders that somebody exchanges for symbolic links between the look and the write."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from knapper.changes.disk import apply
from knapper.changes.disk.files import hash_content
from knapper.changes.disk.plan import Effect, MakeFolder, MoveToTrash, Rename, Write
from knapper.errors import KnapError
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
