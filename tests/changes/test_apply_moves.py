"""Moves where the disk has its own mind: systems that ignore case, links, and other programs' folders."""

import errno
from pathlib import Path

import pytest

from knapper.changes.disk import apply as changes
from knapper.changes.disk import files, undo
from knapper.changes.disk.files import Files, Stamp, hash_content
from knapper.changes.disk.plan import Effect, Remove, RemoveFolder, Rename, Write
from knapper.changes.disk.transaction import State
from knapper.errors import BadInput, ConflictError, StorageError
from knapper.vault import parser
from knapper.vault.paths import NotePath
from tests.changes.disks import META, Death, HookedDisk, Nth, opened, picture, save_over, write

NOTE = NotePath("note.md")


class CaselessDisk(Files):
    """A disk that answers to a name in any case, as macOS's and Windows' do; faked, never run there."""

    def stamp(self, path: Path) -> Stamp | None:
        return super().stamp(self._there(path))

    def fingerprint(self, path: Path) -> str:
        return super().fingerprint(self._there(path))

    def respell(self, source: Path, target: Path) -> None:
        self._there(source).rename(target)

    @staticmethod
    def _there(path: Path) -> Path:
        if path.parent.is_dir():
            return next((one for one in path.parent.iterdir() if one.name.lower() == path.name.lower()), path)
        return path


def apply(state: State, *effects: Effect) -> changes.Applied:
    return changes.apply_effects(state, effects, META)


def test_only_the_case_of_a_name_changes_on_a_system_that_ignores_it(root: Path) -> None:
    state = opened(root, CaselessDisk())
    base = write(root, NOTE, b"text")

    apply(state, Rename(source=NOTE, target=NotePath("NOTE.md"), base=base))
    assert picture(root).keys() == {"NOTE.md"}
    undo.undo(state, undo.Last(), META)

    assert picture(root).keys() == {NOTE}


def test_a_name_in_another_case_is_taken_on_a_system_that_ignores_it(root: Path) -> None:
    state = opened(root, CaselessDisk())
    write(root, NOTE, b"text")
    write(root, "other.md", b"other")

    with pytest.raises(ConflictError, match="already exists"):
        apply(state, Write(path=NotePath("Note.MD"), content=b"new"))
    with pytest.raises(ConflictError, match="already exists"):
        apply(state, Rename(source=NotePath("other.md"), target=NotePath("NOTE.md")))


@pytest.mark.parametrize("done", [True, False])
def test_a_kill_around_a_change_of_case_loses_nothing(root: Path, done: bool) -> None:
    class Dying(CaselessDisk):
        def respell(self, source: Path, target: Path) -> None:
            if done:
                super().respell(source, target)
            raise Death

        def sync_folder(self, path: Path) -> None:
            raise Death(path)

        def names(self, path: Path) -> list[str]:
            raise Death(path)

    state = opened(root, Dying())
    write(root, NOTE, b"text")
    with pytest.raises(Death):
        apply(state, Rename(source=NOTE, target=NotePath("NOTE.md")))
    state.journal.shut()

    opened(root, CaselessDisk())

    assert picture(root).keys() == {"NOTE.md" if done else NOTE}


def test_a_file_changed_between_check_and_move_is_moved_back(root: Path) -> None:
    hook = Nth(number=1, act=lambda: save_over(root / NOTE, b"by hand"), operations=("place",))
    state = opened(root, HookedDisk(hook=hook))
    base = write(root, NOTE, b"text")

    with pytest.raises(ConflictError, match="saved by another program"):
        apply(state, Rename(source=NOTE, target=NotePath("new.md"), base=base))

    assert picture(root).keys() == {NOTE}
    assert (root / NOTE).read_bytes() == b"by hand"


def test_a_file_made_anew_while_its_move_is_taken_back_leaves_both_and_it_says_so(root: Path) -> None:
    def meddle() -> None:
        write(root, NOTE, b"anew")
        raise OSError(errno.EIO, "Input/output error")

    state = opened(root, HookedDisk(hook=Nth(number=1, act=meddle, operations=("rmdir",))))
    write(root, NOTE, b"text")
    (root / "d").mkdir()

    with pytest.raises(StorageError) as caught:
        apply(state, Rename(source=NOTE, target=NotePath("new.md")), RemoveFolder(path=NotePath("d")))

    assert (root / NOTE).read_bytes() + (root / "new.md").read_bytes() == b"anewtext"
    assert "'new.md' can't go back to 'note.md'" in caught.value.hint
    assert caught.value.details["notices"]


def test_a_folder_that_fills_up_meanwhile_stays(root: Path) -> None:
    def fill() -> None:
        write(root, "d/.DS_Store", b"x")

    state = opened(root, HookedDisk(hook=Nth(number=1, act=fill, operations=("rmdir",))))
    write(root, "d/x.md", b"x")

    with pytest.raises(ConflictError, match="isn't empty any more"):
        apply(state, Rename(source=NotePath("d/x.md"), target=NotePath("y.md")), RemoveFolder(path=NotePath("d")))

    assert picture(root).keys() == {"d", "d/.DS_Store", "d/x.md"}


def test_a_folder_that_takes_a_notes_name_meanwhile_stays(root: Path) -> None:
    def replace() -> None:
        (root / NOTE).unlink()
        (root / NOTE).mkdir()

    state = opened(root, HookedDisk(hook=Nth(number=1, act=replace, operations=("swap",))))
    base = write(root, NOTE, b"text")

    with pytest.raises(ConflictError):
        apply(state, Write(path=NOTE, base=base, content=b"new"))

    assert picture(root) == {NOTE: ("folder", (root / NOTE).stat().st_mode & 0o777, b"")}


def test_a_note_deleted_between_the_exchange_and_its_way_back_stays_deleted(root: Path) -> None:
    one, two = write(root, NOTE, b"1"), write(root, "other.md", b"2")

    def gone(when: str, operation: str, path: Path) -> None:
        if (when, operation, path.name) == ("before", "swap", "other.md"):
            (root / NOTE).unlink()
            (root / "other.md").unlink()

    state = opened(root, HookedDisk(hook=gone))

    with pytest.raises(ConflictError):
        apply(
            state,
            Write(path=NOTE, base=one, content=b"x"),
            Write(path=NotePath("other.md"), base=two, content=b"x"),
        )

    assert picture(root) == {}
    assert [copy.read_bytes() for copy in state.conflicts_folder.iterdir()] == [b"1"]


def test_a_linked_folder_inside_the_vault_is_written_at_its_place(root: Path) -> None:
    state = opened(root)
    base = write(root, "real/n.md", b"one")
    (root / "link").symlink_to("real")
    before = picture(root)

    apply(
        state,
        Write(path=NotePath("link/n.md"), base=base, content=b"two"),
        Write(path=NotePath("link/new.md"), content=b"new"),
        Rename(source=NotePath("link/new.md"), target=NotePath("moved.md")),
    )
    assert (root / "real/n.md").read_bytes() == b"two"
    assert (root / "moved.md").read_bytes() == b"new"
    undo.undo(state, undo.Last(), META)

    assert picture(root) == before


def test_a_link_inside_a_folder_that_moves_isnt_followed_in_the_same_change(root: Path) -> None:
    state = opened(root)
    base = write(root, "real/n.md", b"one")
    (root / "d").mkdir()
    (root / "d/link").symlink_to(root / "real")

    with pytest.raises(BadInput, match="behind a symbolic link"):
        apply(
            state,
            Rename(source=NotePath("d"), target=NotePath("e")),
            Write(path=NotePath("e/link/n.md"), base=base, content=b"two"),
        )

    assert (root / "d").is_dir()


@pytest.mark.parametrize(
    "effect", [Rename(source=NOTE, target=NotePath("x/new.md")), Remove(path=NOTE, base=hash_content(b"1"))]
)
def test_a_file_deleted_between_check_and_act_is_a_conflict(root: Path, effect: Effect) -> None:
    state = opened(root, HookedDisk(hook=Nth(number=1, act=lambda: (root / NOTE).unlink(), operations=("place",))))
    write(root, NOTE, b"1")

    with pytest.raises(ConflictError):
        apply(state, effect)

    assert picture(root) == {}


def test_a_very_large_file_is_moved_unread(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_HASHED_BYTES", 3)
    state = opened(root)
    write(root, "big.pdf", b"12345")

    applied = apply(state, Rename(source=NotePath("big.pdf"), target=NotePath("a/big.pdf")))

    assert (applied.files[0].after_hash or "").startswith("stat:5-")
    undo.undo(state, undo.Last(), META)
    assert picture(root).keys() == {"big.pdf"}


def test_a_vault_that_isnt_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere"):
        changes.open_state(tmp_path / "nowhere", tmp_path / "state")


def test_hashes_are_those_that_notes_are_read_with() -> None:
    assert hash_content(b"text") == parser.content_hash(b"text")


def test_what_became_of_an_earlier_process_is_told_with_the_next_change(root: Path) -> None:
    def die() -> None:
        raise Death

    write(root, NOTE, b"1")
    alive = opened(root)

    class Stuck(HookedDisk):
        def mend(self, temp: Path) -> None:
            raise Death(temp)

    stuck = opened(root, Stuck(hook=Nth(number=1, act=die, operations=("swap",))))
    with pytest.raises(Death):
        apply(stuck, Write(path=NOTE, base=hash_content(b"1"), content=b"2"))

    applied = apply(alive, Write(path=NotePath("other.md"), content=b"x"))

    assert "cut short, is taken back: note.md" in applied.notices[0]
