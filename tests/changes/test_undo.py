from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from knapper.changes.disk import apply
from knapper.changes.disk import undo as undoing
from knapper.changes.disk.files import hash_content
from knapper.changes.disk.journal import Change
from knapper.changes.disk.plan import ChangeMeta, Effect, MakeFolder, MoveToTrash, RemoveFolder, Rename, Write
from knapper.changes.disk.transaction import State
from knapper.changes.disk.undo import Last, OfProposal, OfRun, One, Selector, Since
from knapper.errors import BadInput, ConflictError, NotFound
from knapper.vault.paths import NotePath
from tests.changes.disks import META, HookedDisk, nothing, opened, picture, write

A, B, NEW = NotePath("a.md"), NotePath("b.md"), NotePath("x/y/new.md")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    write(root, A, b"a")
    write(root, B, b"b")
    return root


def edit(state: State, path: NotePath, old: bytes, new: bytes, meta: ChangeMeta = META) -> str:
    return apply.apply_effects(state, [Write(path=path, base=hash_content(old), content=new)], meta).change_id


def undo(state: State, selector: Selector | None = None, *, partial: bool = False) -> undoing.Undone:
    return undoing.undo(state, selector or Last(), META, partial=partial)


def test_the_last_change_is_taken_back_then_the_one_before(root: Path, state: State) -> None:
    edit(state, A, b"a", b"a1")
    edit(state, A, b"a1", b"a2")

    undo(state)
    assert (root / A).read_bytes() == b"a1"
    undo(state)
    assert (root / A).read_bytes() == b"a"
    with pytest.raises(NotFound, match="nothing to undo"):
        undo(state)


def test_an_undo_is_taken_back_by_its_id(root: Path, state: State) -> None:
    change = edit(state, A, b"a", b"a1")
    first = undo(state)

    undo(state, One(change_id=first.applied.change_id))
    assert (root / A).read_bytes() == b"a1"
    assert not state.journal.show(change).undone
    undo(state)

    assert (root / A).read_bytes() == b"a"
    assert state.journal.show(change).undone


def test_a_change_is_undone_once(state: State) -> None:
    change = edit(state, A, b"a", b"a1")
    first = undo(state)

    with pytest.raises(BadInput) as caught:
        undo(state, One(change_id=change))

    assert caught.value.code == "already_undone"
    assert first.applied.change_id in caught.value.hint


def test_a_new_note_goes_and_so_do_its_empty_folders(root: Path, state: State) -> None:
    before = picture(root)
    apply.apply_effects(state, [Write(path=NEW, content=b"new")], META)

    undo(state)

    assert picture(root) == before


def test_a_new_notes_folder_stays_if_something_else_lies_in_it(root: Path, state: State) -> None:
    apply.apply_effects(state, [Write(path=NEW, content=b"new")], META)
    write(root, "x/other.md", b"other")

    undo(state)

    assert picture(root).keys() == {A, B, "x", "x/other.md"}


def test_a_moved_folder_comes_back(root: Path, state: State) -> None:
    write(root, "dir/.obsidian-like", b"hidden")
    before = picture(root)
    apply.apply_effects(state, [Rename(source=A, target=NotePath("dir/a.md"))], META)
    apply.apply_effects(state, [Rename(source=NotePath("dir"), target=NotePath("p/q"))], META)

    undo(state)
    undo(state)

    assert picture(root) == before


def test_trash_is_taken_back_from_the_vaults_and_from_the_systems(root: Path, tmp_path: Path) -> None:
    (root / B).chmod(0o640)
    state = opened(root, HookedDisk(hook=nothing, trashed=tmp_path))
    before = picture(root)
    apply.apply_effects(state, [MoveToTrash(path=A), MoveToTrash(path=B, where="system")], META)
    assert picture(root).keys() == {".trash", ".trash/a.md"}

    undo(state)

    assert picture(root) == before


@pytest.mark.parametrize("leads_to", ["a.md", "nowhere.md"])
def test_a_symbolic_link_comes_out_of_the_trash_whatever_it_leads_to_there(
    root: Path, state: State, leads_to: str
) -> None:
    link = NotePath("links/to.md")
    (root / "links").mkdir()
    (root / link).symlink_to(root / A)
    inner = root / "in.md"
    inner.symlink_to("a.md")
    before = picture(root)
    apply.apply_effects(state, [MoveToTrash(path=link), MoveToTrash(path=NotePath("in.md"))], META)
    after = picture(root)
    write(root, leads_to, b"changed since")
    write(root, f".trash/{leads_to}", b"another one that lies in the trash")

    redone = undo(state)

    assert picture(root).keys() - {".trash", f".trash/{leads_to}", leads_to} == before.keys() - {leads_to}
    assert inner.readlink() == Path("a.md")

    undo(state, One(change_id=redone.applied.change_id))

    assert picture(root).keys() - {f".trash/{leads_to}", leads_to} == after.keys() - {leads_to}


def test_a_symbolic_link_that_was_made_anew_since_is_no_longer_the_one_that_was_moved(root: Path, state: State) -> None:
    (root / "in.md").symlink_to("a.md")
    apply.apply_effects(state, [Rename(source=NotePath("in.md"), target=NotePath("to.md"))], META)
    (root / "to.md").unlink()
    (root / "to.md").symlink_to("b.md")

    with pytest.raises(ConflictError, match=r"'to\.md' has changed"):
        undo(state)

    assert (root / "to.md").readlink() == Path("b.md")


def test_a_removed_folder_comes_back_with_its_mode(root: Path, state: State) -> None:
    (root / "empty").mkdir()
    (root / "empty").chmod(0o750)
    before = picture(root)
    apply.apply_effects(state, [RemoveFolder(path=NotePath("empty"))], META)

    undo(state)

    assert picture(root) == before


def test_a_file_changed_since_is_refused_and_named(root: Path, state: State) -> None:
    apply.apply_effects(
        state,
        [Write(path=A, base=hash_content(b"a"), content=b"a1"), Write(path=B, base=hash_content(b"b"), content=b"b1")],
        META,
    )
    write(root, A, b"by hand")

    with pytest.raises(ConflictError, match=r"'a\.md' has changed") as caught:
        undo(state)

    assert [one["path"] for one in conflicts(caught.value)] == [A]
    assert (root / B).read_bytes() == b"b1"


def test_later_changes_of_a_renamed_file_are_found_by_its_names(root: Path, state: State) -> None:
    moved = NotePath("c/d/a.md")
    first = edit(state, A, b"a", b"a1")
    aside = apply.apply_effects(state, [Rename(source=B, target=NotePath("b2.md"))], META).change_id
    renamed = apply.apply_effects(state, [Rename(source=A, target=NotePath("c/a.md"))], META).change_id
    folder = apply.apply_effects(state, [Rename(source=NotePath("c"), target=NotePath("c2"))], META).change_id
    back = apply.apply_effects(state, [Rename(source=NotePath("c2"), target=NotePath("c/d"))], META).change_id
    last = edit(state, moved, b"a1", b"a2")

    later = undoing.find_later(state.journal, [state.journal.show(first)], [A])

    assert (root / moved).read_bytes() == b"a2"
    assert [one.change.id for one in later] == [last, back, folder, renamed]
    assert all(one.paths == (A,) for one in later)
    assert aside not in {one.change.id for one in later}


def test_a_later_change_counts_until_it_is_undone_and_again_once_that_is_taken_back(state: State) -> None:
    first = state.journal.show(edit(state, A, b"a", b"a1"))
    second = edit(state, A, b"a1", b"a2")

    def later() -> list[str]:
        return [one.change.id for one in undoing.find_later(state.journal, [first], [A])]

    assert later() == [second]
    back = undo(state)
    assert not later()
    undo(state, One(change_id=back.applied.change_id))
    assert later() == [second]


def test_a_file_that_is_gone_is_explained_by_a_later_change_that_took_it_away_alone(state: State) -> None:
    def way(first: Change) -> str:
        later = undoing.find_later(state.journal, [first], [A])
        return undoing.explain_way(later, {A: None}, rest_fits=False)

    first = state.journal.show(edit(state, A, b"a", b"a1"))
    second = edit(state, A, b"a1", b"a2")
    assert way(first) == f"take back what another program changed in '{A}', then undo what came later: {second}"

    moved = apply.apply_effects(state, [Rename(source=A, target=NotePath("c/a.md"))], META).change_id
    assert way(first) == f"undo what came later first: {moved}, then {second}"


def conflicts(error: ConflictError) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", error.details["conflicts"])


def test_the_rest_is_undone_when_asked_and_what_stays_is_told(root: Path, state: State) -> None:
    apply.apply_effects(
        state,
        [
            Write(path=A, base=hash_content(b"a"), content=b"a1"),
            Rename(source=B, target=NotePath("c/b.md")),
            Write(path=NotePath("c/b.md"), base=hash_content(b"b"), content=b"b1"),
            Write(path=NEW, content=b"new"),
        ],
        META,
    )
    write(root, "c/b.md", b"by hand")

    undone = undo(state, partial=True)

    assert (root / A).read_bytes() == b"a"
    assert (root / "c/b.md").read_bytes() == b"by hand"
    assert not (root / "x").exists()
    assert [one.path for one in undone.left] == ["c/b.md"]


def test_a_partial_undo_that_could_do_nothing_is_refused(root: Path, state: State) -> None:
    edit(state, A, b"a", b"a1")
    write(root, A, b"by hand")

    with pytest.raises(ConflictError):
        undo(state, partial=True)


@pytest.mark.parametrize("selector", [OfRun(run="r1"), OfProposal(proposal="p1")])
def test_all_of_a_run_or_proposal_is_one_undo(root: Path, state: State, selector: Selector) -> None:
    mine = ChangeMeta(client="agent", run="r1", proposal="p1")
    before = picture(root)
    edit(state, A, b"a", b"a1", mine)
    edit(state, A, b"a1", b"a2", mine)
    apply.apply_effects(state, [Rename(source=A, target=NEW)], mine)

    undone = undo(state, selector)

    assert picture(root) == before
    assert len(undone.changes) == 3
    assert [one.after_path for one in undone.applied.files] == [A]


def test_what_others_changed_stays_when_a_run_is_undone(root: Path, state: State) -> None:
    edit(state, A, b"a", b"a1", ChangeMeta(client="agent", run="r1"))
    edit(state, B, b"b", b"b1")

    undo(state, OfRun(run="r1"))

    assert (root / A).read_bytes() + (root / B).read_bytes() == b"ab1"


def test_everything_since_a_time_is_taken_back_with_undos_of_older_changes(root: Path, state: State) -> None:
    old = edit(state, A, b"a", b"a1")
    backdate(state, old)
    edit(state, B, b"b", b"b1")
    undo(state)
    undo(state, One(change_id=old))
    edit(state, B, b"b", b"b2")

    undo(state, Since(at=datetime.now(UTC) - timedelta(minutes=5)))

    assert (root / A).read_bytes() + (root / B).read_bytes() == b"a1b"


def backdate(state: State, change_id: str) -> None:
    with state.journal.reading() as database:
        database.execute("UPDATE changes SET at = '2020-01-01T00:00:00.000+00:00' WHERE id = ?", (change_id,))


def test_what_was_pruned_says_so(state: State) -> None:
    change = edit(state, A, b"a", b"a1")
    state.journal.prune(max_age_days=-1)

    for selector in (Last(), One(change_id=change), Since(at=datetime.now(UTC) - timedelta(minutes=5))):
        with pytest.raises(NotFound, match="journal") as caught:
            undo(state, selector)
        assert (caught.value.code, "journal.max_mb" in caught.value.hint) == ("pruned", True)


def test_a_run_of_which_some_was_pruned_is_taken_back_as_far_as_it_goes_only_if_asked_for(
    root: Path, state: State
) -> None:
    old = edit(state, A, b"a", b"a1", ChangeMeta(client="cli", run="r"))
    backdate(state, old)
    edit(state, B, b"b", b"b1", ChangeMeta(client="cli", run="r"))
    state.journal.prune(max_age_days=30)

    with pytest.raises(ConflictError, match=f"change '{old}' of 2020-01-01 isn't in the journal any more") as caught:
        undo(state, OfRun(run="r"))
    unchanged = (root / B).read_bytes()
    undone = undo(state, OfRun(run="r"), partial=True)

    assert (caught.value.code, unchanged) == ("pruned", b"b1")
    assert ((root / A).read_bytes(), (root / B).read_bytes()) == (b"a1", b"b")
    assert any(old in notice for notice in undone.applied.notices)


def test_undone_changes_that_were_pruned_are_no_loss(state: State) -> None:
    edit(state, A, b"a", b"a1")
    undo(state)
    state.journal.prune(max_age_days=-1)
    edit(state, B, b"b", b"b1")

    undone = undo(state, Since(at=datetime.now(UTC) - timedelta(minutes=5)))

    assert len(undone.changes) == 1


def test_an_undo_tells_why_in_the_journal(state: State) -> None:
    change = edit(state, A, b"a", b"a1")

    undone = undo(state)

    told = state.journal.show(undone.applied.change_id)
    assert told.reason == f"undo of {change}"
    assert told.undoes == (change,)


def test_folders_made_before_stay(root: Path, state: State) -> None:
    (root / "there").mkdir()
    apply.apply_effects(state, [MakeFolder(path=NotePath("there/new"))], META)

    undo(state)

    assert picture(root).keys() == {A, B, "there"}


def test_effects_on_each_other_are_undone_in_reverse(root: Path, state: State) -> None:
    before = picture(root)
    swap: list[Effect] = [
        Rename(source=A, target=NotePath("t.md")),
        Rename(source=B, target=A),
        Rename(source=NotePath("t.md"), target=B),
        Write(path=A, base=hash_content(b"b"), content=b"edited"),
    ]
    apply.apply_effects(state, swap, META)

    undo(state)

    assert picture(root) == before


def test_an_undo_interrupted_as_it_holds_leaves_its_change_undoable(
    root: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = edit(state, A, b"a", b"a1")
    applied = state.journal.applied

    def interrupt(change_id: str, *, durable: bool = True) -> None:
        applied(change_id, durable=durable)
        raise KeyboardInterrupt

    monkeypatch.setattr(state.journal, "applied", interrupt)
    with pytest.raises(KeyboardInterrupt):
        undo(state)
    monkeypatch.undo()

    assert (root / A).read_bytes() == b"a1"
    assert not state.journal.show(change).undone
    undo(state)
    assert (root / A).read_bytes() == b"a"
