import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from knapper.changes.disk import apply, files, storage, undo
from knapper.changes.disk.files import hash_content
from knapper.changes.disk.plan import Effect, MakeFolder, MoveToTrash, Remove, RemoveFolder, Rename, Write
from knapper.changes.disk.transaction import State
from knapper.errors import StorageError
from knapper.system import private
from knapper.vault.paths import NotePath
from tests.changes.disks import META, Death, Fate, HookedDisk, nothing, opened, picture, save_over, write

When = Literal["before", "after"]
POINTS = 60
"""More than any change here has operations."""


def p(path: str) -> NotePath:
    return NotePath(path)


SCENES: dict[str, list[Effect]] = {
    "one note": [Write(path=p("a/1.md"), base=hash_content(b"1"), content=b"one")],
    "several notes": [
        Write(path=p("a/1.md"), base=hash_content(b"1"), content=b"one"),
        Write(path=p("a/2.md"), base=hash_content(b"2"), content=b"two"),
        Write(path=p("b/3.md"), base=hash_content(b"3"), content=b"three"),
    ],
    "a new note": [Write(path=p("new/folder/n.md"), content=b"new")],
    "a note gone": [Remove(path=p("a/1.md"), base=hash_content(b"1"))],
    "a note moved": [Rename(source=p("b/3.md"), target=p("c/3.md"), base=hash_content(b"3"))],
    "a folder made": [MakeFolder(path=p("x/y"))],
    "the trash": [MoveToTrash(path=p("a/1.md")), MoveToTrash(path=p("a/2.md"), where="system")],
    "a folder moved, links rewritten": [
        Rename(source=p("a"), target=p("c/d")),
        Write(path=p("c/d/1.md"), base=hash_content(b"1"), content=b"one"),
        Write(path=p("b/3.md"), base=hash_content(b"3"), content=b"three"),
    ],
    "everything": [
        Write(path=p("a/1.md"), base=hash_content(b"1"), content=b"one"),
        Rename(source=p("b/3.md"), target=p("c/3.md"), base=hash_content(b"3")),
        Write(path=p("c/3.md"), base=hash_content(b"3"), content=b"three"),
        RemoveFolder(path=p("b")),
        MoveToTrash(path=p("a/2.md")),
        Rename(source=p("a"), target=p("b")),
        Write(path=p("a/new.md"), content=b"new"),
        MoveToTrash(path=p("bin.pdf"), where="system"),
    ],
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for path in ("a/1.md", "a/2.md", "b/3.md"):
        write(root, path, path[2:3].encode())
    write(root, "bin.pdf", b"%PDF")
    (root / "a/1.md").chmod(0o640)
    return root


def plain(path: Path) -> dict[str, tuple[str, int, bytes]]:
    """A picture without modes: a note that comes back from the system's trash is new."""
    return {name: (kind, 0, content) for name, (kind, _, content) in picture(path).items()}


def die(root: Path, number: int, when: When, effects: list[Effect], *, bin_: Path) -> bool:
    """Apply effects until the disk's operation of this number kills; say whether it did."""
    state = opened(root, HookedDisk(hook=Fate(number=number, when=when), trashed=bin_))
    try:
        apply.apply_effects(state, effects, META)
    except Death:
        return True
    finally:
        state.journal.shut()
    return False


@pytest.mark.slow  # dozens of deaths, each with a recovery and three undos
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("scene", SCENES)
def test_a_kill_at_any_operation_leaves_all_or_none(root: Path, tmp_path: Path, scene: str, when: When) -> None:
    effects, before = SCENES[scene], picture(root)
    seen, killed = set[str](), True

    for number in range(1, POINTS):
        bin_ = tmp_path / f"bin {number}"
        bin_.mkdir()
        killed = die(root, number, when, effects, bin_=bin_)
        state = opened(root, HookedDisk(hook=nothing, trashed=bin_))
        after = plain(root)
        if undo.list_changes(state.journal).total:
            seen.add("all")
            undo.undo(state, undo.Last(), META)
            undo.undo(state, undo.One(change_id=state.journal.select("undone = 0")[0].id), META)
            assert plain(root) == after
            undo.undo(state, undo.Last(), META)
        else:
            seen.add("none")
        (tmp_path / "state/journal.db").unlink()
        assert plain(root) == {name: (kind, 0, text) for name, (kind, _, text) in before.items()}
        assert state.journal.unfinished() == []
        state.journal.shut()
        if not killed:
            break

    assert not killed
    assert {"before": "none", "after": "all"}[when] in seen


def test_a_kill_between_the_journals_steps_leaves_all_or_none(
    root: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    before = picture(root)
    for phase, outcome in (("ready", "none"), ("applied", "all"), ("close", "all"), ("begin", "none")):
        with subtests.test(phase):
            state = opened(root)

            def die_here(*_: object, **__: object) -> None:
                raise Death

            monkeypatch.setattr(type(state.journal), phase, die_here)
            monkeypatch.setattr(type(state.journal), "forget", die_here)
            monkeypatch.setattr("knapper.changes.disk.transaction.roll_back", die_here)
            with pytest.raises(Death):
                apply.apply_effects(state, SCENES["several notes"], META)
            monkeypatch.undo()
            state.journal.shut()
            state = opened(root)

            assert undo.list_changes(state.journal).total == (outcome == "all")
            if outcome == "all":
                undo.undo(state, undo.Last(), META)
            assert picture(root) == before
            state.journal.prune(max_age_days=-1)
            state.journal.shut()


def test_what_an_editor_saved_after_the_kill_wins_and_is_reported(root: Path, tmp_path: Path) -> None:
    effects = SCENES["several notes"]
    assert die(root, 8, "before", effects, bin_=tmp_path)
    assert (root / "a/1.md").read_bytes() == b"one"
    save_over(root / "a/1.md", b"by hand")

    state, recovered = apply.open_state(root, tmp_path / "state")

    assert (root / "a/1.md").read_bytes() == b"by hand"
    assert (root / "a/2.md").read_bytes() == b"2"
    assert recovered[0].outcome == "taken back"
    assert any("a/1.md" in notice for notice in recovered[0].notices)
    assert not list(root.rglob(f"{files.TEMP_PREFIX}*"))
    assert [copy.read_bytes() for copy in state.conflicts_folder.iterdir()] == [b"1"]


def test_a_change_that_another_process_is_making_is_left_alone(root: Path, tmp_path: Path) -> None:
    assert die(root, 3, "before", SCENES["several notes"], bin_=tmp_path)
    temps = sorted(root.rglob(f"{files.TEMP_PREFIX}*"))
    assert temps

    with storage.hold_write_lock(tmp_path / "state", timeout_s=0):
        state, recovered = apply.open_state(root, tmp_path / "state")

    assert recovered == []
    assert sorted(root.rglob(f"{files.TEMP_PREFIX}*")) == temps
    assert apply.find_stray_temp_files(state) == []


def test_the_next_write_finishes_what_a_dead_process_left(root: Path, tmp_path: Path) -> None:
    alive = opened(root)
    assert die(root, 9, "before", SCENES["several notes"], bin_=tmp_path)

    apply.apply_effects(alive, [Write(path=p("b/3.md"), base=hash_content(b"3"), content=b"mine")], META)

    assert [(root / path).read_bytes() for path in ("a/1.md", "a/2.md", "b/3.md")] == [b"1", b"2", b"mine"]
    assert not list(root.rglob(f"{files.TEMP_PREFIX}*"))


def test_temp_files_that_no_journal_explains_are_listed_and_kept(root: Path) -> None:
    stray = root / "a" / files.temp_name("0000000000-another", 0)
    stray.write_bytes(b"of another machine")

    state = opened(root)

    assert apply.find_stray_temp_files(state) == [stray]
    assert stray.exists()


@pytest.mark.parametrize("cut", ["linked", "replaced"])
def test_a_kill_inside_an_emulated_exchange_is_mended(root: Path, cut: str) -> None:
    def halfway(temp: Path, target: Path) -> None:
        os.link(target, temp.with_name(temp.name + "-old"))
        if cut == "replaced":
            temp.replace(target)
        raise Death

    kill(root, halfway)

    opened(root)

    assert (root / "a/1.md").read_bytes() in {b"1", b"one"}
    assert not list(root.rglob(f"{files.TEMP_PREFIX}*"))


@pytest.mark.parametrize("scene", ["a new note", "a note gone", "a note moved"])
def test_a_kill_between_giving_a_new_name_and_taking_the_old_is_mended(root: Path, scene: str) -> None:
    before = picture(root)

    class Disk(HookedDisk):
        def place(self, source: Path, target: Path) -> None:
            os.link(source, target)
            raise Death(target)

        def mend(self, temp: Path) -> None:
            raise Death(temp)

    state = opened(root, Disk(hook=nothing))
    with pytest.raises(Death):
        apply.apply_effects(state, SCENES[scene], META)
    state.journal.shut()

    state = opened(root)

    assert not list(root.rglob(f"{files.TEMP_PREFIX}*"))
    if undo.list_changes(state.journal).total:
        undo.undo(state, undo.Last(), META)
    assert picture(root) == before


def kill(root: Path, act: Callable[[Path, Path], None]) -> None:
    class Disk(HookedDisk):
        def swap(self, temp: Path, target: Path) -> None:
            act(temp, target)

        def mend(self, temp: Path) -> None:
            raise Death(temp)

    state: State = opened(root, Disk(hook=nothing))
    with pytest.raises(Death):
        apply.apply_effects(state, SCENES["one note"], META)
    state.journal.shut()


def test_a_state_folder_that_cant_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "state").write_text("a file", encoding="utf-8")

    with pytest.raises(StorageError) as caught:
        _ = apply.open_state(tmp_path / "vault", tmp_path / "state" / "notes")

    assert f"the state folder {tmp_path / 'state' / 'notes'}, where changes are recorded" in caught.value.message
    assert "KNAP_STATE_DIR" in caught.value.hint


@pytest.mark.parametrize("scene", ["one note", "several notes"])
def test_the_journal_says_that_names_change_only_when_the_new_texts_are_on_the_disk(root: Path, scene: str) -> None:
    """Otherwise what a power cut leaves of a text would count as the one that was displaced."""
    phases: list[str] = []

    def look(when: str, operation: str, path: Path) -> None:
        del path
        if (when, operation) == ("after", "sync"):
            phases.extend(change.phase for change in state.journal.unfinished())

    state = opened(root, HookedDisk(hook=look))
    apply.apply_effects(state, SCENES[scene], META)

    assert phases == ["staging"] * len(SCENES[scene])


def test_a_disk_that_does_not_tell_whether_a_change_is_under_way_refuses_the_next_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = opened(root)

    def fail(folder: Path) -> bool:
        raise OSError(errno.EIO, "Input/output error", str(folder))

    monkeypatch.setattr(private, "is_marked", fail)
    with pytest.raises(StorageError, match="Input/output error"):
        apply.apply_effects(state, SCENES["one note"], META)
