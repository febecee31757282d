"""An editor that saves at the worst moments: what it wrote last stands, and nothing of it is lost."""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pytest

from knapper.changes.disk import apply, files, undo
from knapper.changes.disk.files import Files, Stamp, hash_content
from knapper.changes.disk.plan import Effect, MoveToTrash, Remove, Rename, Step, Write
from knapper.changes.disk.transaction import ExecutionContext, keep_conflict_copy
from knapper.errors import ConflictError, KnapError
from knapper.vault.paths import NotePath
from tests.changes.disks import META, HookedDisk, Nth, opened, save_over, write

NOTE = NotePath("note.md")
OTHER = NotePath("other.md")
TEXT, OURS = b"as it was", b"as we want it"

Save = Callable[[Path, bytes], object]


def save_into(path: Path, content: bytes) -> None:
    path.write_bytes(content)


SAVES: dict[str, Save] = {"renames over": save_over, "writes into": save_into}


@dataclass(kw_only=True)
class Editor:
    """A hook that saves a numbered text at some of the moments around exchanges of names."""

    note: Path
    save: Save
    moments: set[int]
    seen: int = 0
    saved: list[bytes] = field(default_factory=list)

    def __call__(self, when: str, operation: str, path: Path) -> None:
        del when  # before and after count alike
        if operation not in {"swap", "place"} or path.name.startswith("."):
            return
        self.seen += 1
        if self.seen in self.moments:
            content = b"save %d" % self.seen
            self.save(self.note, content)
            self.saved.append(content)


def kept(root: Path) -> set[bytes]:
    """Everything that lies in the vault or on the shelf."""
    places = [root, root.parent / "state/conflicts"]
    return {path.read_bytes() for place in places for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("moments", [{1}, {2}, {3}, {1, 2}, {1, 3}, {1, 2, 3}, {1, 2, 3, 4}, {1, 3, 5}, {1, 2, 4, 6}])
def test_a_save_around_an_exchange_is_never_lost(tmp_path: Path, save: str, moments: set[int]) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    editor = Editor(note=root / NOTE, save=SAVES[save], moments=moments)
    state = opened(root, HookedDisk(hook=editor))

    try:
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)
    except ConflictError:
        assert undo.list_changes(state.journal).total == 0

    current = (root / NOTE).read_bytes()
    assert current == (editor.saved[-1] if editor.saved else OURS)
    assert {path.name for path in root.iterdir()} == {NOTE}


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("first", range(1, 6))
@pytest.mark.parametrize("second", range(1, 6))
def test_two_editors_texts_are_both_kept(tmp_path: Path, save: str, first: int, second: int) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    editor = Editor(note=root / NOTE, save=SAVES[save], moments={first, second})
    state = opened(root, HookedDisk(hook=editor))

    try:
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)
    except ConflictError:
        assert OURS not in kept(root)

    assert (root / NOTE).read_bytes() == (editor.saved[-1] if editor.saved else OURS)


def test_a_save_is_kept_however_long_the_notes_name_is(tmp_path: Path) -> None:
    shelf, temp = tmp_path / "shelf", tmp_path / ".knap-tmp-0m3k9x2a1b-7h2mq9xw-0"
    temp.write_bytes(b"a save")
    here = ExecutionContext(root=tmp_path, files=Files(), conflicts_folder=shelf, content=lambda _: b"")
    keep_conflict_copy(here, temp, Step(kind="replace", source=NotePath("\u65e5" * 84 + ".md")))

    (copy,) = shelf.iterdir()
    assert copy.read_bytes() == b"a save"
    assert copy.name.startswith("knap-tmp-0m3k9x2a1b-7h2mq9xw-0-\u65e5\u65e5")
    assert copy.suffix == ".md"
    assert str(copy) in here.notices[0]


def test_a_note_that_an_editor_has_renamed_for_its_backup_is_a_conflict(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    backup = root / "note.md~"

    def rename_first(when: str, operation: str, path: Path) -> None:
        del path
        if (when, operation) == ("before", "stage"):
            (root / NOTE).rename(backup)

    state = opened(root, HookedDisk(hook=rename_first))

    with pytest.raises(ConflictError, match=r"'note\.md' was saved by another program meanwhile; nothing was changed"):
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)

    assert backup.read_bytes() == TEXT
    assert [path.name for path in root.iterdir()] == [backup.name]


def test_a_save_before_one_exchange_takes_the_whole_change_back(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    one, two = write(root, NOTE, b"1"), write(root, OTHER, b"2")
    state = opened(
        root, HookedDisk(hook=Nth(number=2, act=lambda: save_over(root / OTHER, b"mine"), operations=("swap",)))
    )

    with pytest.raises(ConflictError, match=r"other\.md") as caught:
        apply.apply_effects(
            state, [Write(path=NOTE, base=one, content=b"x"), Write(path=OTHER, base=two, content=b"x")], META
        )

    assert caught.value.details["current_hash"] == hash_content(b"mine")
    assert (root / NOTE).read_bytes() == b"1"
    assert (root / OTHER).read_bytes() == b"mine"


def test_a_file_saved_while_its_change_is_taken_back_stays_as_saved(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    one, two = write(root, NOTE, b"1"), write(root, OTHER, b"2")

    def meddle() -> None:
        save_over(root / OTHER, b"mine")
        save_over(root / NOTE, b"mine too")

    state = opened(root, HookedDisk(hook=Nth(number=2, act=meddle, operations=("swap",))))

    with pytest.raises(ConflictError):
        apply.apply_effects(
            state, [Write(path=NOTE, base=one, content=b"x"), Write(path=OTHER, base=two, content=b"x")], META
        )

    assert (root / NOTE).read_bytes() == b"mine too"
    assert b"1" in kept(root)


class NoLeases(HookedDisk):
    """A system that can't tell whether a program has a file open."""

    def settled_hash(self, path: Path) -> str | None:
        return hash_content(path.read_bytes()) if path.exists() else None

    def inspect(self, path: Path) -> tuple[Stamp | None, str | None]:
        return self.stamp(path), self.settled_hash(path)

    def is_settled(self, path: Path) -> bool:
        del path
        return True


EFFECTS: dict[str, Effect] = {
    "replaced": Write(path=NOTE, base=hash_content(TEXT), content=OURS),
    "created": Write(path=NotePath("new.md"), content=OURS),
    "moved": Rename(source=NOTE, target=NotePath("moved.md"), base=hash_content(TEXT)),
    "trashed": MoveToTrash(path=NOTE, base=hash_content(TEXT)),
    "removed": Remove(path=NOTE, base=hash_content(TEXT)),
}


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("name", [NOTE, "new.md", "moved.md", ".trash/note.md"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_whatever_is_done_and_saved_meanwhile_no_save_is_lost(
    tmp_path: Path, effect: str, name: str, save: str
) -> None:
    for number in range(1, 8):
        for when in ("before", "after"):
            root = tmp_path / f"{number} {when}/vault"
            write(root, NOTE, TEXT)
            (root / ".trash").mkdir()
            saved: list[bytes] = []

            def meddle(path: Path = root / name, saved: list[bytes] = saved) -> None:
                SAVES[save](path, b"saved by hand")
                saved.append(b"saved by hand")

            state = opened(root, HookedDisk(hook=Nth(number=number, when=when, act=meddle)))
            try:
                apply.apply_effects(state, [EFFECTS[effect]], META)
                state.journal.prune(max_age_days=-1)
            except KnapError:
                assert TEXT in kept(root) or saved
            assert set(saved) <= kept(root)
            assert not list(root.rglob(".knap-tmp-*"))
            state.journal.shut()


@dataclass(kw_only=True)
class Swaps:
    """A hook that acts around the exchanges of names, and counts them."""

    acts: dict[tuple[str, int], Callable[[], object]] = field(default_factory=dict)
    """What to do before or after the exchange of a number, the first being 1."""
    seen: int = 0

    def __call__(self, when: str, operation: str, path: Path) -> None:
        del path
        if operation != "swap":
            return
        self.seen += when == "before"
        self.acts.get((when, self.seen), lambda: None)()


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_file_that_a_program_is_still_writing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    swaps = Swaps()
    state = opened(root, HookedDisk(hook=swaps, wait_s=60.0))
    slow = (root / NOTE).open("r+b")

    def finish(_: float) -> None:
        with contextlib.closing(slow):
            slow.write(b"slow")

    monkeypatch.setattr(files.time, "sleep", finish)
    with pytest.raises(ConflictError, match="was saved by another program"):
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)

    assert (root / NOTE).read_bytes() == b"slow" + TEXT[4:]
    assert swaps.seen == 0


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_text_that_will_be_refused_for_an_open_file_is_never_seen(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    one, two = write(root, NOTE, TEXT), write(root, OTHER, b"2")
    swaps = Swaps()
    state = opened(root, HookedDisk(hook=swaps, wait_s=0.05))
    both = [Write(path=NOTE, base=one, content=OURS), Write(path=OTHER, base=two, content=OURS)]

    with (root / OTHER).open("r+b"), pytest.raises(ConflictError, match="open for writing"):
        apply.apply_effects(state, both, META)

    assert swaps.seen == 0
    assert {path.name for path in root.iterdir()} == {NOTE, OTHER}


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_refused_text_is_withdrawn_before_anything_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    opened_late, seen = list[BinaryIO](), list[bytes]()
    swaps = Swaps(acts={("before", 1): lambda: opened_late.append((root / NOTE).open("r+b"))})
    state = opened(root, HookedDisk(hook=swaps, wait_s=0.05))

    def look(_: float) -> None:
        seen.append((root / NOTE).read_bytes())

    monkeypatch.setattr(files.time, "sleep", look)

    with pytest.raises(ConflictError):
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)
    opened_late[0].close()

    assert swaps.seen == 2
    assert seen
    assert OURS not in seen
    assert (root / NOTE).read_bytes() == TEXT


@pytest.mark.parametrize("save", SAVES)
def test_a_save_that_is_overwritten_by_who_read_a_refused_text_has_a_copy(tmp_path: Path, save: str) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    read = list[bytes]()
    swaps = Swaps(
        acts={
            ("before", 1): lambda: SAVES[save](root / NOTE, b"theirs"),
            ("after", 1): lambda: read.append((root / NOTE).read_bytes()),
            ("after", 2): lambda: SAVES[save](root / NOTE, read[0] + b", and more"),
        }
    )
    state = opened(root, HookedDisk(hook=swaps))

    with pytest.raises(ConflictError) as caught:
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)

    (copy,) = state.conflicts_folder.iterdir()
    assert copy.read_bytes() == b"theirs"
    assert (root / NOTE).read_bytes() == OURS + b", and more"
    assert str(caught.value.details["notices"]).count(str(copy)) == 1


def test_every_one_of_several_displaced_saves_has_a_copy_of_its_own(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    swaps = Swaps(
        acts={
            ("before", 1): lambda: save_over(root / NOTE, b"first"),
            ("before", 2): lambda: save_over(root / NOTE, b"second"),
            ("before", 3): lambda: save_over(root / NOTE, b"third"),
            ("after", 4): lambda: save_over(root / NOTE, b"last"),
        }
    )
    state = opened(root, HookedDisk(hook=swaps))

    with pytest.raises(ConflictError) as caught:
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)

    copies = list(state.conflicts_folder.iterdir())
    assert sorted(copy.read_bytes() for copy in copies) == [b"first", b"second", b"third"]
    assert [str(caught.value.details["notices"]).count(f"{copy}'") for copy in copies] == [1, 1, 1]
    assert (root / NOTE).read_bytes() == b"last"


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_slow_save_that_is_overwritten_by_who_read_a_refused_text_has_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    slow = list[BinaryIO]()

    def finish(_: float) -> None:
        with contextlib.closing(slow[0]) as file:
            file.write(b"slow")

    swaps = Swaps(
        acts={
            ("before", 1): lambda: slow.append((root / NOTE).open("wb")),
            ("after", 2): lambda: save_over(root / NOTE, b"over it"),
        }
    )
    state = opened(root, HookedDisk(hook=swaps, wait_s=60.0))
    monkeypatch.setattr(files.time, "sleep", finish)

    with pytest.raises(ConflictError):
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)

    assert [copy.read_bytes() for copy in state.conflicts_folder.iterdir()] == [b"slow"]
    assert (root / NOTE).read_bytes() == b"over it"


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_displaced_file_that_was_opened_late_is_waited_for_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    (tmp_path / "second name").hardlink_to(root / NOTE)
    late = list[BinaryIO]()

    def finish(_: float) -> None:
        with contextlib.closing(late[0]) as file:
            file.write(b"late")

    act = Nth(number=1, act=lambda: late.append((tmp_path / "second name").open("r+b")), operations=("sync_folder",))
    state = opened(root, HookedDisk(hook=act, wait_s=60.0))
    monkeypatch.setattr(files.time, "sleep", finish)
    applied = apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)

    assert [copy.read_bytes() for copy in state.conflicts_folder.iterdir()] == [b"late" + TEXT[4:]]
    assert str(state.conflicts_folder) in applied.notices[0]


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_file_that_stays_open_for_writing_is_left_to_its_program(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    state = opened(root, Files(wait_s=0.05))

    with (root / NOTE).open("r+b") as slow:
        with pytest.raises(ConflictError, match="open for writing in another program"):
            apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)
        slow.write(b"slow")

    assert (root / NOTE).read_bytes() == b"slow" + TEXT[4:]


def test_where_names_cant_be_exchanged_a_save_into_the_file_still_stands(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    hook = Nth(number=1, act=lambda: save_into(root / NOTE, b"mine"), operations=("swap",))
    state = opened(root, HookedDisk(hook=hook, native=None))

    with pytest.raises(ConflictError):
        apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)

    assert (root / NOTE).read_bytes() == b"mine"
    assert {path.name for path in root.iterdir()} == {NOTE}


def test_a_late_write_into_a_displaced_file_is_seen_at_the_second_look(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    one, two = write(root, NOTE, TEXT), write(root, OTHER, b"2")
    with (root / NOTE).open("r+b", buffering=0) as late:

        def write_late() -> None:
            late.write(b"late")

        hook = Nth(number=2, act=write_late, operations=("swap",))
        state = opened(root, NoLeases(hook=hook))
        with pytest.raises(ConflictError):
            apply.apply_effects(
                state, [Write(path=NOTE, base=one, content=OURS), Write(path=OTHER, base=two, content=OURS)], META
            )

    assert (root / NOTE).read_bytes() == b"late" + TEXT[4:]
    assert (root / OTHER).read_bytes() == b"2"


def test_a_write_into_a_displaced_file_after_the_second_look_is_kept_as_a_copy(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    base = write(root, NOTE, TEXT)
    with (root / NOTE).open("r+b", buffering=0) as late:

        def write_late() -> None:
            late.write(b"late")

        state = opened(root, NoLeases(hook=Nth(number=1, act=write_late, operations=("sync_folder",))))
        applied = apply.apply_effects(state, [Write(path=NOTE, base=base, content=OURS)], META)

    assert (root / NOTE).read_bytes() == OURS
    assert [copy.read_bytes() for copy in state.conflicts_folder.iterdir()] == [b"late" + TEXT[4:]]
    assert str(state.conflicts_folder) in applied.notices[0]
