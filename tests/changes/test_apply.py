import errno
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from knapper.changes.disk import apply as changes
from knapper.changes.disk import undo
from knapper.changes.disk.files import Files, hash_content
from knapper.changes.disk.plan import Effect, MakeFolder, MoveToTrash, Remove, RemoveFolder, Rename, Write
from knapper.changes.disk.transaction import State
from knapper.errors import BadInput, ConflictError, RefusedError, StorageError
from knapper.vault.paths import NotePath
from tests.changes.disks import META, HookedDisk, Nth, nothing, opened, picture, write

NOTE = NotePath("a/note.md")


def apply(state: State, *effects: Effect) -> changes.Applied:
    return changes.apply_effects(state, effects, META)


def test_a_note_is_replaced_and_nothing_is_left_over(root: Path, state: State) -> None:
    base = write(root, NOTE, b"one\r\n")

    applied = apply(state, Write(path=NOTE, base=base, content=b"two\r\n"))

    assert picture(root).keys() == {"a", NOTE}
    assert (root / NOTE).read_bytes() == b"two\r\n"
    assert [(one.path, one.before_hash, one.after_hash) for one in applied.files] == [
        (NOTE, base, hash_content(b"two\r\n"))
    ]


def test_mode_and_attributes_are_kept(root: Path, state: State) -> None:
    base = write(root, NOTE, b"one")
    (root / NOTE).chmod(0o640)
    try:
        os.setxattr(root / NOTE, "user.tag", b"red")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes here")

    apply(state, Write(path=NOTE, base=base, content=b"two"))

    assert (root / NOTE).stat().st_mode & 0o777 == 0o640
    assert os.getxattr(root / NOTE, "user.tag") == b"red"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(root: Path, state: State) -> None:
    base = write(root, NOTE, b"one")
    os.chown(root / NOTE, 1234, 2345)

    apply(state, Write(path=NOTE, base=base, content=b"two"))

    assert ((root / NOTE).stat().st_uid, (root / NOTE).stat().st_gid) == (1234, 2345)


def test_a_new_note_gets_its_folders(root: Path, state: State) -> None:
    applied = apply(state, Write(path=NotePath("x/y/z.md"), content=b"new"))

    assert (root / "x/y/z.md").read_bytes() == b"new"
    assert applied.files[0].before_path is None


def test_create_never_overwrites(root: Path, state: State) -> None:
    current = write(root, NOTE, b"there")

    with pytest.raises(ConflictError) as caught:
        apply(state, Write(path=NOTE, content=b"new"))

    assert caught.value.details["current_hash"] == current
    assert (root / NOTE).read_bytes() == b"there"


def test_every_conflict_is_named_and_nothing_is_done(root: Path, state: State) -> None:
    good = write(root, "good.md", b"good")
    write(root, "moved on.md", b"newer")
    before = picture(root)

    with pytest.raises(ConflictError) as caught:
        apply(
            state,
            Write(path=NotePath("good.md"), base=good, content=b"changed"),
            Write(path=NotePath("moved on.md"), base=hash_content(b"older"), content=b"x"),
            Write(path=NotePath("gone.md"), base=hash_content(b"gone"), content=b"x"),
        )

    assert caught.value.details["conflicts"] == [
        {
            "path": "moved on.md",
            "problem": "has changed",
            "expected_hash": hash_content(b"older"),
            "current_hash": hash_content(b"newer"),
        },
        {"path": "gone.md", "problem": "is gone", "expected_hash": hash_content(b"gone"), "current_hash": None},
    ]
    assert picture(root) == before


def test_content_that_is_there_already_is_no_change(root: Path, state: State) -> None:
    base = write(root, NOTE, b"same")

    applied = apply(state, Write(path=NOTE, base=base, content=b"same"))

    assert applied.change_id == ""
    assert undo.list_changes(state.journal).total == 0


def test_a_rename_moves_the_very_file(root: Path, state: State) -> None:
    base = write(root, NOTE, b"text")
    inode = (root / NOTE).stat().st_ino

    applied = apply(state, Rename(source=NOTE, target=NotePath("b/c/new.md"), base=base))

    assert (root / "b/c/new.md").stat().st_ino == inode
    assert not (root / NOTE).exists()
    assert (applied.files[0].before_path, applied.files[0].after_path) == (NOTE, "b/c/new.md")


def test_a_rename_never_overwrites(root: Path, state: State) -> None:
    write(root, NOTE, b"text")
    write(root, "other.md", b"other")

    with pytest.raises(ConflictError):
        apply(state, Rename(source=NOTE, target=NotePath("other.md")))

    assert (root / NOTE).read_bytes() + (root / "other.md").read_bytes() == b"textother"


def test_a_moved_note_can_be_edited_in_the_same_change(root: Path, state: State) -> None:
    base = write(root, NOTE, b"[[x]]")
    target = NotePath("b/note.md")

    applied = apply(state, Rename(source=NOTE, target=target), Write(path=target, base=base, content=b"[[a/x]]"))

    assert (root / target).read_bytes() == b"[[a/x]]"
    assert len(applied.files) == 1
    assert applied.files[0].before_path == NOTE
    assert applied.files[0].after_hash == hash_content(b"[[a/x]]")


def test_a_folder_moves_whole_and_notes_in_it_can_be_edited(root: Path, state: State) -> None:
    base = write(root, "old/deep/n.md", b"one")
    write(root, "old/.hidden", b"kept")

    applied = apply(
        state,
        Write(path=NotePath("old/deep/n.md"), base=base, content=b"two"),
        Rename(source=NotePath("old"), target=NotePath("new/place")),
        Write(path=NotePath("new/place/deep/n.md"), base=hash_content(b"two"), content=b"three"),
        Write(path=NotePath("old/again.md"), content=b"a new folder of the old name"),
    )

    assert picture(root).keys() == {
        "new", "new/place", "new/place/.hidden", "new/place/deep", "new/place/deep/n.md", "old", "old/again.md"
    }  # fmt: skip
    assert (root / "new/place/deep/n.md").read_bytes() == b"three"
    assert ("old/deep/n.md", "new/place/deep/n.md") in [(one.before_path, one.after_path) for one in applied.files]


def test_two_notes_can_change_names(root: Path, state: State) -> None:
    write(root, "a.md", b"A")
    write(root, "b.md", b"B")
    a, b, between = NotePath("a.md"), NotePath("b.md"), NotePath("between.md")

    apply(state, Rename(source=a, target=between), Rename(source=b, target=a), Rename(source=between, target=b))

    assert (root / "a.md").read_bytes() == b"B"
    assert picture(root).keys() == {"a.md", "b.md"}


def test_a_folder_cant_be_moved_into_itself(root: Path, state: State) -> None:
    write(root, NOTE, b"x")

    with pytest.raises(BadInput, match="into itself"):
        apply(state, Rename(source=NotePath("a"), target=NotePath("a/b")))


def test_trash_keeps_folders_and_adds_a_number(root: Path, state: State) -> None:
    write(root, NOTE, b"new")
    write(root, ".trash/a/note.md", b"old")

    applied = apply(state, MoveToTrash(path=NOTE))

    assert (root / ".trash/a/note 2.md").read_bytes() == b"new"
    assert (root / ".trash/a/note.md").read_bytes() == b"old"
    assert applied.files[0].after_path == ".trash/a/note 2.md"


def test_a_name_that_is_as_long_as_can_be_gets_its_number_in_the_trash(root: Path, state: State) -> None:
    note = NotePath("\u65e5" * 84 + ".md")
    write(root, note, b"new")
    write(root, f".trash/{note}", b"old")

    (trashed,) = apply(state, MoveToTrash(path=note)).files

    assert trashed.after_path == ".trash/" + "\u65e5" * 83 + " 2.md"
    assert (root / str(trashed.after_path)).read_bytes() == b"new"


def test_the_systems_trash_gets_the_note_and_the_journal_its_content(root: Path, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    state = opened(root, HookedDisk(hook=nothing, trashed=bin_))
    base = write(root, NOTE, b"text")

    apply(state, MoveToTrash(path=NOTE, base=base, where="system"))

    assert (bin_ / "note.md").read_bytes() == b"text"
    assert not (root / NOTE).exists()
    assert state.journal.content(base) == b"text"


def test_a_file_too_large_for_the_journal_goes_to_the_vaults_trash_and_it_says_so(root: Path, tmp_path: Path) -> None:
    state = opened(root, HookedDisk(hook=nothing, trashed=tmp_path))
    small = State(root=state.root, folder=state.folder, journal=state.journal, files=state.files, trash_limit=3)
    write(root, "big.pdf", b"1234")

    applied = apply(small, MoveToTrash(path=NotePath("big.pdf"), where="system"))

    assert (root / ".trash/big.pdf").read_bytes() == b"1234"
    assert "larger than 3 bytes" in applied.notices[0]


def test_what_lies_in_the_trash_cant_be_trashed_again(root: Path, state: State) -> None:
    write(root, ".trash/n.md", b"x")

    with pytest.raises(BadInput, match="in the trash already"):
        apply(state, MoveToTrash(path=NotePath(".trash/n.md")))


def test_only_an_empty_folder_is_removed(root: Path, state: State) -> None:
    write(root, NOTE, b"x")

    with pytest.raises(ConflictError, match="isn't empty"):
        apply(state, RemoveFolder(path=NotePath("a")))
    apply(state, Rename(source=NOTE, target=NotePath("b/note.md")), RemoveFolder(path=NotePath("a")))

    assert picture(root).keys() == {"b", "b/note.md"}


def test_a_removed_folders_name_is_free_in_the_same_change(root: Path, state: State) -> None:
    base = write(root, "x/new.md", b"new")
    write(root, "b/old.md", b"old")

    apply(
        state,
        Remove(path=NotePath("x/new.md"), base=base),
        RemoveFolder(path=NotePath("x")),
        Rename(source=NotePath("b"), target=NotePath("x")),
    )

    assert picture(root).keys() == {"x", "x/old.md"}


def test_folders_are_made_once(root: Path, state: State) -> None:
    apply(state, MakeFolder(path=NotePath("p/q")), MakeFolder(path=NotePath("p")))

    assert picture(root).keys() == {"p", "p/q"}


def test_a_file_in_the_place_of_a_folder_is_a_conflict(root: Path, state: State) -> None:
    write(root, "a", b"a file")

    with pytest.raises(ConflictError, match="is a file, not a folder"):
        apply(state, Write(path=NOTE, content=b"x"))


def test_a_link_inside_the_vault_is_edited_at_its_target(root: Path, state: State) -> None:
    base = write(root, "real.md", b"one")
    (root / "link.md").symlink_to("real.md")

    apply(state, Write(path=NotePath("link.md"), base=base, content=b"two"))

    assert (root / "link.md").is_symlink()
    assert (root / "real.md").read_bytes() == b"two"


@pytest.mark.parametrize("name", ["out.md", "folder/n.md", "folder/new.md"])
def test_a_link_out_of_the_vault_is_refused(root: Path, state: State, tmp_path: Path, name: str) -> None:
    base = write(tmp_path, "outside/n.md", b"secret")
    (root / "out.md").symlink_to(tmp_path / "outside/n.md")
    (root / "folder").symlink_to(tmp_path / "outside")

    with pytest.raises(RefusedError) as caught:
        apply(state, Write(path=NotePath(name), base=None if "new" in name else base, content=b"x"))

    assert caught.value.code == "outside_vault"
    assert picture(tmp_path / "outside") == {
        "n.md": ("file", (tmp_path / "outside/n.md").stat().st_mode & 0o777, b"secret")
    }


def test_a_relative_link_isnt_moved_to_where_it_breaks(root: Path, state: State) -> None:
    write(root, "real.md", b"one")
    (root / "link.md").symlink_to("real.md")

    with pytest.raises(BadInput, match="symbolic link"):
        apply(state, Rename(source=NotePath("link.md"), target=NotePath("sub/link.md")))
    apply(state, Rename(source=NotePath("link.md"), target=NotePath("other.md")))

    assert (root / "other.md").readlink() == Path("real.md")


def test_one_file_under_two_names_is_changed_under_one(root: Path, state: State) -> None:
    base = write(root, "real.md", b"one")
    (root / "link.md").symlink_to("real.md")

    with pytest.raises(BadInput, match="the same file"):
        apply(
            state,
            Write(path=NotePath("real.md"), base=base, content=b"two"),
            Write(path=NotePath("link.md"), base=hash_content(b"two"), content=b"three"),
        )

    assert (root / "real.md").read_bytes() == b"one"


def test_a_read_only_note_is_left_alone(root: Path, state: State) -> None:
    base = write(root, NOTE, b"one")
    (root / NOTE).chmod(0o444)
    before = picture(root)

    with pytest.raises(StorageError) as caught:
        apply(state, Write(path=NOTE, base=base, content=b"two"))

    assert caught.value.code == "read_only"
    assert picture(root) == before


def test_a_note_that_is_just_being_saved_anew_is_told_as_changed_and_not_as_read_only(
    root: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = write(root, NOTE, b"one")
    access = os.access

    def asked(path: Path, mode: int) -> bool:
        (root / NOTE).rename(root / "a/note.md~")
        return access(path, mode)

    monkeypatch.setattr(os, "access", asked)

    with pytest.raises(ConflictError, match="is gone") as caught:
        apply(state, Write(path=NOTE, base=base, content=b"two"))

    assert caught.value.details["conflicts"]
    assert (root / "a/note.md~").read_bytes() == b"one"


def test_a_note_that_is_moved_away_before_it_is_read_is_told_as_gone(root: Path) -> None:
    base = write(root, NOTE, b"one")

    @dataclass(frozen=True, kw_only=True)
    class MovingDisk(Files):
        def read(self, path: Path) -> bytes:
            path.rename(root / "a/note.md~")
            return super().read(path)

    with pytest.raises(ConflictError, match="is gone"):
        apply(opened(root, MovingDisk()), Write(path=NOTE, base=base, content=b"two"))

    assert (root / "a/note.md~").read_bytes() == b"one"


OPERATIONS = ["stage", "sync", "swap", "place", "mkdir", "rmdir", "trash", "sync_folder"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.ENOENT])
def test_whatever_the_disk_refuses_everything_is_as_before(
    root: Path, tmp_path: Path, operation: str, code: int
) -> None:
    def fail() -> None:
        raise OSError(code, os.strerror(code))

    bin_ = tmp_path / "bin"
    bin_.mkdir()
    state = opened(root, HookedDisk(hook=Nth(number=1, act=fail, operations=(operation,)), trashed=bin_))
    base = write(root, NOTE, b"one")
    write(root, "b/move.md", b"move")
    gone = write(root, "trash.md", b"trash")
    before = picture(root)

    with pytest.raises((StorageError, ConflictError)) as caught:
        apply(
            state,
            Write(path=NOTE, base=base, content=b"two"),
            Write(path=NotePath("new/n.md"), content=b"new"),
            Rename(source=NotePath("b/move.md"), target=NotePath("c/moved.md")),
            RemoveFolder(path=NotePath("b")),
            MoveToTrash(path=NotePath("trash.md"), base=gone, where="system"),
        )

    assert picture(root) == before
    assert state.journal.unfinished() == []
    if code != errno.ENOENT:
        assert os.strerror(code) in caught.value.message
        assert caught.value.details["errno"] == errno.errorcode[code]


ASKED: dict[str, Effect] = {
    "edit": Write(path=NOTE, base=hash_content(b"one"), content=b"two"),
    "create": Write(path=NotePath("new/n.md"), content=b"new"),
    "move": Rename(source=NOTE, target=NotePath("c/moved.md")),
    "trash": MoveToTrash(path=NOTE),
    "the system's trash": MoveToTrash(path=NOTE, where="system"),
    "no folder": RemoveFolder(path=NotePath("empty")),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_on_a_read_only_file_system_nothing_is_begun_that_stays_unfinished(
    root: Path, tmp_path: Path, asked: Effect
) -> None:
    def refuse(when: str, operation: str, path: Path) -> None:
        if when == "before" and operation not in {"sync", "sync_folder"}:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    write(root, NOTE, b"one")
    (root / "empty").mkdir()
    before = picture(root)
    state = opened(root, HookedDisk(hook=refuse, trashed=tmp_path))

    with pytest.raises(StorageError, match="Read-only") as caught:
        apply(state, asked)

    assert caught.value.hint == "the file system is mounted read-only"
    assert state.journal.unfinished() == []
    assert picture(root) == before


def test_a_full_disk_in_the_middle_of_a_temp_file_leaves_none(root: Path) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    state = opened(root, HookedDisk(hook=Nth(number=1, act=fail, when="after", operations=("stage",))))
    base = write(root, NOTE, b"one")

    with pytest.raises(StorageError, match=r"a/note\.md.*No space left"):
        apply(state, Write(path=NOTE, base=base, content=b"two"))

    assert picture(root).keys() == {"a", NOTE}


def test_an_interrupted_change_is_taken_back(root: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    state = opened(root, HookedDisk(hook=Nth(number=2, act=interrupt, operations=("swap",))))
    one, two = write(root, "1.md", b"1"), write(root, "2.md", b"2")
    before = picture(root)

    with pytest.raises(KeyboardInterrupt):
        apply(
            state,
            Write(path=NotePath("1.md"), base=one, content=b"x"),
            Write(path=NotePath("2.md"), base=two, content=b"x"),
        )

    assert picture(root) == before
    assert undo.list_changes(state.journal).total == 0


def test_a_way_back_that_fails_is_finished_at_the_next_start(root: Path) -> None:
    broken = [False]

    def fail(when: str, operation: str, path: Path) -> None:
        broken[0] |= (when, operation, path.name) == ("before", "swap", "2.md")
        if broken[0] and operation in {"swap", "unlink"}:
            raise OSError(errno.EIO, "Input/output error")

    state = opened(root, HookedDisk(hook=fail))
    one, two = write(root, "1.md", b"1"), write(root, "2.md", b"2")
    before = picture(root)

    with pytest.raises(StorageError) as caught:
        apply(
            state,
            Write(path=NotePath("1.md"), base=one, content=b"x"),
            Write(path=NotePath("2.md"), base=two, content=b"x"),
        )
    opened(root)

    assert caught.value.code == "unfinished"
    assert picture(root) == before
