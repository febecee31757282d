from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knapper.changes import reviewer
from knapper.changes.disk import apply as changes
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.disk.transaction import State
from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.proposals import note_blocks, store
from knapper.changes.proposals.model import Proposal
from knapper.changes.proposals.store import Proposals
from knapper.changes.text import blocks, splices
from knapper.errors import BadInput, ConflictError, NotFound
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from tests.changes import generated, waiting
from tests.changes.disks import opened, write
from tests.changes.waiting import create, edit, move, propose, trash
from tests.properties import scaled

NOTE = NotePath("a.md")
BEFORE = b"# A\n\none\n\nstays\n\ntwo\n\nstays\n\nthree\n"
AFTER = b"# A\n\nONE\n\nstays\n\nTWO\n\nstays\n\nTHREE\n"


def apply(state: State, draft: Draft) -> None:
    changes.apply_effects(state, list(draft.effects()), ChangeMeta(client="cli"))


def draw(state: State, store: Proposals, made: Proposal) -> None:
    """Show a proposal in its note."""
    found, noted = reviewer.fit_to_files(store, state.root, made.id)
    shown = store.note_blocks.get(made.id).get(NOTE, {})
    raw = noted.get(NOTE, (state.root / NOTE).read_bytes())
    drawn = note_blocks.render_note(found.files[0], raw, shown)
    apply(state, drawn.draft)
    store.note_blocks.put(made.id, NOTE, drawn.blocks)


def accept(state: State, store: Proposals, made: Proposal, *, hunks: tuple[str, ...] = ()) -> Proposal:
    view = View.open(state.root, Policy())
    selection = reviewer.select_parts(store, view, made.id, store.show(made.id).digest, hunks=hunks)
    return store.mark_accepted(selection, waiting.do(state, selection))


def resolve(state: State, block: str, choice: blocks.BlockChoice) -> None:
    """Resolve a block as an editor's plugin does."""
    raw = (state.root / NOTE).read_bytes()
    made = blocks.resolve_blocks(splices.take_snapshot(raw), {block: choice})
    (state.root / NOTE).write_bytes(splices.merge(raw, made))


@pytest.fixture
def made(root: Path, state: State, store: Proposals) -> Proposal:
    write(root, NOTE, BEFORE)
    made = propose(store, edit(NOTE, BEFORE, AFTER))
    draw(state, store, made)
    return made


def test_each_hunk_stands_in_the_note_as_a_block_of_its_own(root: Path, store: Proposals, made: Proposal) -> None:
    shown = store.note_blocks.get(made.id)[NOTE]

    found = blocks.find_blocks(splices.take_snapshot((root / NOTE).read_bytes()))

    assert [(block.before, block.after) for block in found] == [
        ("one\n", "ONE\n"),
        ("two\n", "TWO\n"),
        ("three\n", "THREE\n"),
    ]
    assert [shown[block.id] for block in found] == [("1.1",), ("1.2",), ("1.3",)]
    assert store.show(made.id).digest == made.digest


def test_drawing_again_changes_nothing(root: Path, state: State, store: Proposals, made: Proposal) -> None:
    raw = (root / NOTE).read_bytes()

    draw(state, store, made)

    assert (root / NOTE).read_bytes() == raw


def test_accepting_one_leaves_the_other_blocks_standing(
    root: Path, state: State, store: Proposals, made: Proposal
) -> None:
    half = accept(state, store, made, hunks=("1.2",))

    raw = (root / NOTE).read_bytes()
    shown = store.note_blocks.get(made.id)[NOTE]
    assert [shown[block.id] for block in blocks.find_blocks(splices.take_snapshot(raw))] == [("1.1",), ("1.3",)]
    assert b"TWO" in raw
    assert half.status == "open"
    assert accept(state, store, made).status == "accepted"
    assert (root / NOTE).read_bytes() == AFTER
    assert store.note_blocks.get(made.id) == {}


def test_a_kill_after_accepting_leaves_the_blocks_known(
    root: Path, state: State, store: Proposals, made: Proposal
) -> None:
    selection = reviewer.select_parts(store, View.open(root, Policy()), made.id, made.digest, hunks=("1.1",))
    waiting.do(state, selection)

    assert store.reconcile(state.journal) == [made.id]
    assert accept(state, store, made).status == "accepted"
    assert (root / NOTE).read_bytes() == AFTER


def test_rejecting_gives_the_note_back_byte_for_byte(
    root: Path, state: State, store: Proposals, made: Proposal
) -> None:
    store.reject(made.id, "no", hunks=["1.1"])
    apply(state, reviewer.draft_block_removal(store, root, made.id))
    part = (root / NOTE).read_bytes()
    store.reject(made.id, "no")
    apply(state, reviewer.draft_block_removal(store, root, made.id))

    assert part.startswith(b"# A\n\none\n")
    assert part.count(b"#ai_edit") == 2
    assert (root / NOTE).read_bytes() == BEFORE
    assert reviewer.draft_block_removal(store, root, made.id).files == ()


def test_what_a_person_did_to_blocks_in_the_note_is_read_back(
    root: Path, state: State, store: Proposals, made: Proposal
) -> None:
    first, second, third = sorted(shown := store.note_blocks.get(made.id)[NOTE], key=lambda name: shown[name])
    resolve(state, first, "accept")
    resolve(state, third, "reject")

    seen = note_blocks.read_decisions(made.files[0], (root / NOTE).read_bytes(), shown)
    now = store.note_blocks.mark(made.id, seen.states, "in the note")
    store.note_blocks.put(made.id, NOTE, seen.blocks)

    assert seen.states == {"1.1": "accepted", "1.3": "rejected"}
    assert (list(seen.blocks), seen.problems) == ([second], ())
    assert [one.state for one in now.files[0].hunks] == ["accepted", "open", "rejected"]
    assert accept(state, store, made).status == "partly_accepted"
    assert (root / NOTE).read_bytes() == AFTER.replace(b"THREE", b"three")


def test_a_block_that_was_edited_is_told_and_neither_accepted_nor_taken_out(
    root: Path, state: State, store: Proposals, made: Proposal
) -> None:
    raw = (root / NOTE).read_bytes().replace(b'"ONE', b'"MINE')
    (root / NOTE).write_bytes(raw)

    seen = note_blocks.read_decisions(made.files[0], raw, store.note_blocks.get(made.id)[NOTE])

    assert (seen.states, len(seen.blocks)) == ({}, 2)
    assert seen.problems == ("line 3: its text was changed by hand",)
    with pytest.raises(ConflictError) as error:
        accept(state, store, made)
    assert error.value.code == "block_broken"
    assert (root / NOTE).read_bytes() == raw


def test_a_block_that_was_deleted_with_its_text_is_not_guessed(root: Path, store: Proposals, made: Proposal) -> None:
    raw = (root / NOTE).read_bytes()
    block = blocks.find_blocks(splices.take_snapshot(raw))[0]
    cut = raw[: block.start] + b"something else\n" + raw[block.stop :]

    seen = note_blocks.read_decisions(made.files[0], cut, store.note_blocks.get(made.id)[NOTE])

    assert seen.states == {}
    assert "neither side" in seen.problems[0]


def test_only_edits_that_fit_are_shown(root: Path, store: Proposals) -> None:
    write(root, NotePath("c.md"), b"c")
    made = propose(
        store, create("b.md", b"x"), move("c.md", "d.md", b"c"), trash("e.md", b"e"), edit(NOTE, BEFORE, AFTER)
    )

    for file in made.files[:3]:
        with pytest.raises(ConflictError):
            note_blocks.render_note(file, b"c", {})
    with pytest.raises(ConflictError):
        note_blocks.render_note(made.files[3], BEFORE + b"more\n", {})
    front = propose(store, edit("f.md", b"---\na: 1\n---\n", b"---\na: 2\n---\n"))
    with pytest.raises(BadInput):
        note_blocks.render_note(front.files[0], b"---\na: 1\n---\n", {})


def test_nothing_is_chosen_for_who_may_not_see_it(root: Path, store: Proposals, made: Proposal) -> None:
    view = View.open(root, Policy(hidden=("a.md",)))

    with pytest.raises(NotFound):
        reviewer.select_parts(store, view, made.id, made.digest)


def test_what_is_gone_taken_or_led_away_is_stale(root: Path, store: Proposals) -> None:
    write(root, NotePath("b.md"), b"b")
    write(root, NotePath("taken.md"), b"t")
    write(root, NotePath("film.mp4"), b"\0" * 100)
    outside = root.parent / "outside.md"
    outside.write_bytes(b"x\n")
    (root / "link.md").symlink_to(outside)
    files = (
        edit("gone.md", b"x\n", b"y\n"),
        edit("link.md", b"x\n", b"y\n"),
        move("b.md", "taken.md", b"b"),
        create("taken.md", b"mine"),
    )
    made = propose(store, *files)

    found, noted = reviewer.fit_to_files(store, root, made.id)

    causes = [file.stale or file.hunks[0].stale for file in found.files]
    assert [cause.code if cause else "" for cause in causes] == ["gone", "gone", "exists", "exists"]
    assert (found.status, noted) == ("stale", {})


def test_a_large_file_is_looked_for_and_not_read(root: Path, store: Proposals) -> None:
    film = FileDraft(path=NotePath("film.mp4"), base=None, target=NotePath("x/film.mp4"), needs=frozenset({"move"}))
    made = propose(store, film)
    gone, _ = reviewer.fit_to_files(store, root, made.id)
    write(root, NotePath("film.mp4"), b"\0" * 100)

    there, _ = reviewer.fit_to_files(store, root, made.id)

    assert (gone.status, there.status, there.files[0].before) == ("stale", "open", None)


def test_links_in_notes_that_are_not_shown_follow_without_being_named(root: Path, store: Proposals) -> None:
    write(root, NOTE, b"a")
    write(root, NotePath("Journal/l.md"), b"[[a]]\n")
    link = edit("Journal/l.md", b"[[a]]\n", b"[[b]]\n", cause="link", requests={0})
    made = propose(store, move(NOTE, "b.md", b"a"), link)

    selection = reviewer.select_parts(store, View.open(root, Policy(hidden=("Journal/",))), made.id, made.digest)

    assert [(file.path, file.hidden) for file in selection.draft.files] == [(NOTE, False), ("Journal/l.md", True)]


def test_a_file_is_hidden_if_it_is_so_on_either_side_of_its_move() -> None:
    draft = Draft(files=(edit("a.md", b"a", b"b"), move("b.md", "Hidden/b.md", b"b"), edit("Hidden/c.md", b"a", b"b")))

    marked = store.mark_hidden(draft, lambda path: not path.startswith("Hidden/"))

    assert [file.hidden for file in marked.files] == [False, True, True]


def test_two_notes_may_change_places(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("a.md"), b"a")
    write(root, NotePath("b.md"), b"b")
    made = propose(store, move("a.md", "c.md", b"a"), move("b.md", "a.md", b"b", request=1))

    assert accept(state, store, made).status == "accepted"
    assert ((root / "c.md").read_bytes(), (root / "a.md").read_bytes()) == (b"a", b"b")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=scaled(25))
@given(data=st.data(), before=generated.notes())
def test_drawn_and_accepted_in_any_order_gives_what_was_proposed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, before: bytes
) -> None:
    root = tmp_path_factory.mktemp("any") / "vault"
    state = opened(root)
    own = store.open_proposals(state.folder)
    after = data.draw(generated.edits(before))
    write(root, NOTE, before)
    try:
        made = propose(own, edit(NOTE, before, after))
        draw(state, own, made)
    except (BadInput, ConflictError):  # nothing changes, or it can't be shown there
        return
    order = data.draw(st.permutations([one.id for one in made.files[0].hunks]))

    for name in order:
        made = accept(state, own, made, hunks=(name,))

    assert (made.status, (root / NOTE).read_bytes()) == ("accepted", after)
    own.shut()
    state.journal.shut()
