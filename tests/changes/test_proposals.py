import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knapper.changes.disk.files import hash_content
from knapper.changes.disk.transaction import State
from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.proposals import store as proposals_store
from knapper.changes.proposals.model import Proposal
from knapper.changes.proposals.parts import ProposalTerms
from knapper.changes.proposals.store import ProposalFilter, Proposals
from knapper.errors import BadInput, ConflictError, NotFound, StorageError
from knapper.vault.paths import NotePath
from tests.changes import generated, waiting
from tests.changes.disks import opened, picture, write
from tests.changes.waiting import META, Clock, create, edit, move, propose, trash
from tests.properties import scaled

BEFORE = b"# A\n\none\ntwo\nthree\n\nfour\nfive\nsix\n\nseven\n"
AFTER = b"# A\n\nONE\ntwo\nthree\n\nfour\nfive\nsix\n\nSEVEN\neight\n"


def kept(state: State, proposal: Proposal) -> Proposal:
    """Read a proposal as another process would."""
    other = proposals_store.open_proposals(state.folder, clock=lambda: proposal.created)
    try:
        return other.show(proposal.id)
    finally:
        other.shut()


def test_a_proposal_is_shown_as_it_was_made(state: State, store: Proposals) -> None:
    draft = Draft(files=(edit("a.md", BEFORE, AFTER), create("b.md", b"new\n")), notices=("look",), by_query=True)

    made = store.save(draft, META, ProposalTerms(why="too many files", tainted=True))
    shown = store.show(made.id)

    assert shown == made == kept(state, made)
    assert (shown.client, shown.run, shown.reason, shown.why) == ("agent", "run-1", "tidy up", "too many files")
    assert (shown.status, shown.tainted, shown.by_query, shown.notices) == ("open", True, True, ("look",))
    assert [(file.number, file.kind, file.base) for file in shown.files] == [
        (1, "edit", hash_content(BEFORE)),
        (2, "create", None),
    ]
    assert [(one.id, one.hunk.old, one.hunk.new) for one in shown.files[0].hunks] == [
        ("1.1", b"one\n", b"ONE\n"),
        ("1.2", b"seven\n", b"SEVEN\neight\n"),
    ]
    assert shown.files[0].after == AFTER
    assert "-one\n+ONE\n" in shown.files[0].unified
    assert shown.files[0].hunks[0].hunk.words[0].text == "one\n"
    assert shown.files[1].after == b"new\n"
    assert not (store.find().proposals[0].items["stale"])


def test_accepting_all_gives_what_was_proposed(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("a.md"), BEFORE)
    write(root, NotePath("c.md"), b"gone")
    write(root, NotePath("d.md"), b"moved")
    made = propose(
        store,
        edit("a.md", BEFORE, AFTER),
        create("b/b.md", b"new\n"),
        trash("c.md", b"gone"),
        move("d.md", "e.md", b"moved"),
    )

    done = waiting.accept(state, store, made)

    assert done.status == "accepted"
    assert len(done.changes) == 1
    assert (root / "a.md").read_bytes() == AFTER
    assert picture(root).keys() == {"a.md", "b", "b/b.md", ".trash", ".trash/c.md", "e.md"}
    with pytest.raises(ConflictError, match="is accepted"):
        store.select(made.id, done.digest)


def test_one_hunk_is_accepted_and_the_rest_waits_on_where_it_stands_now(
    root: Path, state: State, store: Proposals
) -> None:
    write(root, NotePath("a.md"), BEFORE)
    made = propose(store, edit("a.md", BEFORE, AFTER))

    half = waiting.accept(state, store, made, hunks=["1.1"])

    assert (root / "a.md").read_bytes() == BEFORE.replace(b"one", b"ONE")
    assert half.status == "open"
    assert [one.state for one in half.files[0].hunks] == ["accepted", "open"]
    assert half.files[0].after == AFTER
    assert waiting.accept(state, store, half).status == "accepted"
    assert (root / "a.md").read_bytes() == AFTER


def test_neighbours_do_not_make_each_other_stale(root: Path, state: State, store: Proposals) -> None:
    before, after = b"a\nx\nb\ny\nc\n", b"A\nnew\nx\nB\ny\nC\n"
    write(root, NotePath("a.md"), before)
    made = propose(store, edit("a.md", before, after))

    for number in (2, 1, 3):
        made = waiting.accept(state, store, made, hunks=[f"1.{number}"])

    assert made.status == "accepted"
    assert (root / "a.md").read_bytes() == after


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=scaled(40))
@given(data=st.data(), before=generated.notes())
def test_any_hunks_accepted_in_any_order_and_the_rest_rejected_give_the_exact_bytes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, before: bytes
) -> None:
    root = tmp_path_factory.mktemp("any") / "vault"
    state = opened(root)
    own = proposals_store.open_proposals(state.folder)
    after = data.draw(generated.edits(before))
    if after == before:
        return
    write(root, NotePath("a.md"), before)
    made = propose(own, edit("a.md", before, after))
    hunks = [one.id for one in made.files[0].hunks]
    order = data.draw(st.permutations(hunks))
    wanted = order[: data.draw(st.integers(0, len(order)))]
    chosen = {one.id: one.hunk for one in made.files[0].hunks if one.id in wanted}
    pieces: list[bytes] = []
    at = 0
    for one in sorted(chosen.values(), key=lambda hunk: hunk.start):
        pieces += [before[at : one.start], one.new]
        at = one.start + len(one.old)

    for name in wanted:
        made = waiting.accept(state, own, made, hunks=[name])
        assert kept(state, made) == made
    if len(wanted) < len(hunks):
        made = own.reject(made.id, "no")
        assert kept(state, made) == made

    assert (root / "a.md").read_bytes() == b"".join([*pieces, before[at:]])
    assert made.status == ("accepted" if len(wanted) == len(hunks) else "partly_accepted" if wanted else "rejected")
    if len(wanted) == len(hunks):
        assert (root / "a.md").read_bytes() == after
    own.shut()
    state.journal.shut()


def test_what_was_not_shown_can_not_be_accepted(root: Path, store: Proposals) -> None:
    write(root, NotePath("a.md"), BEFORE)
    made = propose(store, edit("a.md", BEFORE, AFTER), create("b.md", b"fine\n"))
    changed = store.note_blocks.edit(made.id, made.digest, "2.1", "swapped\n", {}).proposal

    with pytest.raises(ConflictError) as error:
        store.select(made.id, made.digest)

    assert error.value.code == "digest_mismatch"
    assert changed.digest not in str(error.value.as_dict())
    assert store.select(made.id, changed.digest).draft.files[1].after == b"swapped\n"


def test_a_digest_is_of_one_proposal_and_all_it_would_do(store: Proposals) -> None:
    drafts = [
        [create("a.md", b"x")],
        [create("b.md", b"x")],
        [create("a.md", b"y")],
        [edit("a.md", b"", b"x")],
        [move("a.md", "b.md", b"x")],
        [move("a.md", "c.md", b"x")],
        [trash("a.md", b"x")],
        [trash("a.md", b"y")],
        [create("a.md", b"x")],
    ]

    digests = {propose(store, *files).digest for files in drafts}

    assert len(digests) == len(drafts)


def test_text_that_only_moved_elsewhere_is_still_what_was_shown(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("a.md"), b"above\n" + BEFORE + b"below\n")
    made = propose(store, edit("a.md", BEFORE, AFTER.replace(b"SEVEN\neight", b"seven")))

    fitted = store.rebase(made.id, waiting.look(root, made))
    waiting.accept(state, store, made)

    assert fitted.digest == made.digest
    assert fitted.files[0].hunks[0].hunk.old_start_line == 4
    assert (root / "a.md").read_bytes() == b"above\n" + BEFORE.replace(b"one", b"ONE") + b"below\n"


def test_a_hunk_whose_place_changed_is_stale_and_the_others_are_not(root: Path, state: State, store: Proposals) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER))
    write(root, NotePath("a.md"), BEFORE.replace(b"two", b"2"))

    now = store.rebase(made.id, waiting.look(root, made))
    first, last = now.files[0].hunks

    assert now.status == "open"
    assert first.stale is not None
    assert (first.stale.code, last.stale) == ("changed", None)
    assert "2\n" in first.stale.current_text
    with pytest.raises(ConflictError) as error:
        store.select(made.id, now.digest, hunks=["1.1"])
    assert error.value.code == "stale"
    with pytest.raises(ConflictError):
        store.select(made.id, made.digest)
    waiting.accept(state, store, now, files=["a.md"])
    assert (root / "a.md").read_bytes() == AFTER.replace(b"ONE\ntwo", b"one\n2")
    assert store.show(made.id).status == "stale"


def test_what_was_stale_fits_again_when_the_text_is_back(root: Path, store: Proposals) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER))
    store.rebase(made.id, {NotePath("a.md"): b"all else\n"})

    assert store.show(made.id).status == "stale"
    assert store.find(ProposalFilter(status="stale")).proposals[0].items["stale"] == 2
    back = store.rebase(made.id, {NotePath("a.md"): BEFORE})
    assert back.status == "open"
    assert back.digest == made.digest
    assert not root.joinpath("a.md").exists()


@pytest.mark.parametrize(
    ("file", "now", "code"),
    [
        (edit("a.md", BEFORE, AFTER), None, "gone"),
        (create("a.md", b"x"), b"taken", "exists"),
        (trash("a.md", b"x"), None, "gone"),
        (trash("a.md", b"x"), b"changed", "changed"),
        (move("a.md", "b.md", b"x"), None, "gone"),
        (move("a.md", "b.md", b"[[x]]\n", b"[[y]]\n"), b"other\n", "changed"),
    ],
)
def test_a_file_that_is_no_longer_what_it_was_is_told(
    file: FileDraft, now: bytes | None, code: str, store: Proposals
) -> None:
    made = propose(store, file)

    found = store.rebase(made.id, {file.path: now})

    one = found.files[0]
    stale = one.stale or one.hunks[0].stale
    assert stale is not None
    assert (stale.code, found.status) == (code, "stale")
    with pytest.raises(ConflictError) as error:
        store.select(made.id, found.digest)
    assert code in str(error.value.details)


def test_a_move_takes_the_note_along_as_it_is_now_unless_its_place_is_taken(store: Proposals) -> None:
    made = propose(store, move("a.md", "b.md", b"[[x]]\n\nold\n\nend\n", b"[[y]]\n\nold\n\nend\n"))
    path, target = NotePath("a.md"), NotePath("b.md")

    moved = store.rebase(made.id, {path: b"[[x]]\n\nold\n\nend\nmore\n", target: None})
    taken = store.rebase(made.id, {path: b"[[x]]\n\nold\n\nend\n", target: b"there"})

    assert moved.files[0].after == b"[[y]]\n\nold\n\nend\nmore\n"
    assert moved.digest == made.digest
    assert taken.files[0].stale is not None
    assert taken.files[0].stale.code == "exists"


def test_large_files_move_without_their_bytes(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("film.mp4"), b"\0" * 1000)
    made = propose(
        store,
        FileDraft(path=NotePath("film.mp4"), base=None, target=NotePath("x/film.mp4"), needs=frozenset({"move"})),
    )

    assert made.files[0].hunks == ()
    waiting.accept(state, store, made)
    assert (root / "x/film.mp4").exists()


def test_links_go_with_their_move_and_not_without(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("a.md"), b"a")
    write(root, NotePath("b.md"), b"b")
    write(root, NotePath("l.md"), b"[[a]]\n")
    made = propose(
        store,
        move("a.md", "x/a.md", b"a", request=0),
        move("b.md", "x/b.md", b"b", request=1),
        edit("l.md", b"[[a]]\n", b"[[x/a]]\n", cause="link", requests={0}),
    )

    for files, hunks in ((["l.md"], []), ([], ["3.1"])):
        with pytest.raises(BadInput) as error:
            store.select(made.id, made.digest, files=files, hunks=hunks)
        assert error.value.code == "bound"
    part = waiting.accept(state, store, made, files=["a.md"])

    assert (root / "l.md").read_bytes() == b"[[x/a]]\n"
    assert [file.state for file in part.files] == ["accepted", "open", "accepted"]
    assert store.reject(made.id, "stays", files=["b.md"]).status == "partly_accepted"


def test_moves_that_share_a_link_go_together(store: Proposals) -> None:
    made = propose(
        store,
        move("a.md", "x/a.md", b"a", request=0),
        move("b.md", "x/b.md", b"b", request=1),
        edit("l.md", b"[[a]] [[b]]\n", b"[[x/a]] [[x/b]]\n", cause="link", requests={0, 1}),
    )

    with pytest.raises(BadInput, match=r"goes together with all of 'b\.md'"):
        store.select(made.id, made.digest, files=["a.md"])
    selection = store.select(made.id, made.digest, files=["a.md", "b.md"])
    assert len(selection.draft.files) == 3
    store.abandon(selection)
    stale = store.rebase(made.id, {NotePath("l.md"): b"other\n"})
    assert stale.status == "stale"


def test_a_folder_goes_whole(root: Path, state: State, store: Proposals) -> None:
    write(root, NotePath("A/a.md"), b"a")
    write(root, NotePath("A/b.md"), b"b")
    files = (move("A/a.md", "B/a.md", b"a"), move("A/b.md", "B/b.md", b"b", request=1))
    made = store.save(Draft(files=files, folders=((NotePath("A"), NotePath("B")),)), META)

    with pytest.raises(BadInput):
        store.select(made.id, made.digest, files=["A/a.md"])
    assert waiting.accept(state, store, made).status == "accepted"
    assert picture(root).keys() == {"B", "B/a.md", "B/b.md"}


def test_a_hunk_is_edited_before_it_is_accepted(root: Path, state: State, store: Proposals) -> None:
    before, after = BEFORE.replace(b"\n", b"\r\n"), AFTER.replace(b"\n", b"\r\n")
    write(root, NotePath("a.md"), before)
    made = propose(store, edit("a.md", before, after))

    changed = store.note_blocks.edit(made.id, made.digest, "1.1", "uno\ndue", {}).proposal

    assert kept(state, changed) == changed
    assert changed.files[0].hunks[0].edited
    assert [one.id for one in changed.files[0].hunks] == ["1.1", "1.2"]
    waiting.accept(state, store, changed)
    assert (root / "a.md").read_bytes() == after.replace(b"ONE", b"uno\r\ndue")
    with pytest.raises(ConflictError):
        store.note_blocks.edit(made.id, changed.digest, "1.1", "again", {})


def test_an_edit_that_would_change_nothing_is_a_rejection(store: Proposals) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER))

    with pytest.raises(BadInput, match="changes nothing"):
        store.note_blocks.edit(made.id, made.digest, "1.1", "one", {})


def test_what_another_process_did_is_seen_at_once(state: State, store: Proposals, clock: Clock) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER))
    shown = store.show(made.id)
    other = proposals_store.open_proposals(state.folder, clock=clock)

    other.reject(made.id, "no", hunks=["1.1"])

    assert store.show(made.id) == other.show(made.id) != shown
    other.shut()


def test_what_was_not_kept_after_all_is_not_remembered(state: State, store: Proposals) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER))
    with sqlite3.connect(state.folder / proposals_store.FILE) as database:
        database.execute("CREATE TRIGGER no BEFORE UPDATE ON proposals BEGIN SELECT RAISE(ABORT, 'full'); END")
    database.close()

    with pytest.raises(StorageError, match="full"):
        store.reject(made.id, "no")

    assert store.show(made.id) == made


def test_rejected_parts_stay_visible_with_the_reason(store: Proposals) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER), create("b.md", b"x"))

    part = store.reject(made.id, "not so", hunks=["1.1"])
    whole = store.reject(made.id, "not at all")

    assert (part.status, part.files[0].hunks[0].reason, part.digest != made.digest) == ("open", "not so", True)
    assert (whole.status, whole.rejection) == ("rejected", "not at all")
    assert [one.state for one in whole.files[0].hunks] == ["rejected", "rejected"]
    assert store.find(ProposalFilter(status="rejected")).total == 1
    with pytest.raises(ConflictError):
        store.reject(made.id, "again")


@pytest.mark.parametrize(
    ("chosen", "error", "code"),
    [
        ({"files": ["no.md"]}, NotFound, "file_not_found"),
        ({"hunks": ["9.1"]}, NotFound, "hunk_not_found"),
        ({"hunks": ["1.9"]}, NotFound, "hunk_not_found"),
        ({"hunks": ["1.\u00b2"]}, NotFound, "hunk_not_found"),
        ({"hunks": ["rm -rf"]}, NotFound, "hunk_not_found"),
        ({"hunks": ["2.1"]}, BadInput, "bound"),
    ],
)
def test_what_is_not_there_is_not_chosen(
    chosen: dict[str, list[str]], error: type[Exception], code: str, store: Proposals
) -> None:
    made = propose(store, edit("a.md", BEFORE, AFTER), move("b.md", "c.md", b"x\n", b"y\n"))

    with pytest.raises(error) as caught:
        store.select(made.id, made.digest, files=chosen.get("files", ()), hunks=chosen.get("hunks", ()))

    assert getattr(caught.value, "code", "") == code


def test_a_proposal_expires(store: Proposals, clock: Clock) -> None:
    made = propose(store, create("a.md", b"x"))
    short = store.save(Draft(files=(create("b.md", b"x"),)), META, ProposalTerms(days=1))

    clock.pass_days(2)
    assert [one.status for one in store.find().proposals] == ["expired", "open"]
    clock.pass_days(29)

    with pytest.raises(ConflictError, match="is expired") as error:
        store.select(made.id, made.digest)
    assert "again" in error.value.hint
    assert store.show(short.id).status == "expired"


def test_a_proposal_takes_the_place_of_another(store: Proposals) -> None:
    old = propose(store, create("a.md", b"x"))
    new = store.save(Draft(files=(create("a.md", b"better"),)), META, ProposalTerms(supersedes=old.id))

    with pytest.raises(ConflictError, match=new.id):
        store.select(old.id, old.digest)
    with pytest.raises(NotFound):
        store.save(Draft(files=(create("b.md", b"x"),)), META, ProposalTerms(supersedes="none"))
    assert store.find().total == 2


def test_nothing_is_not_proposed(store: Proposals) -> None:
    with pytest.raises(BadInput):
        propose(store, edit("a.md", BEFORE, BEFORE))


def test_proposals_are_listed_by_what_they_are_about(store: Proposals) -> None:
    first = propose(store, edit("Notes/a.md", BEFORE, AFTER))
    second = store.save(Draft(files=(move("b.md", "Notes/Deep/b.md", b"x"),)), replace(META, client="mcp"))
    third = propose(store, create("Journal/c.md", b"secret"), create("d.md", b"x"))

    def listed(wanted: ProposalFilter) -> list[str]:
        return [one.id for one in store.find(wanted).proposals]

    assert listed(ProposalFilter()) == [third.id, second.id, first.id]
    assert listed(ProposalFilter(client="mcp")) == [second.id]
    assert listed(ProposalFilter(path="notes")) == [second.id, first.id]
    assert listed(ProposalFilter(path="NOTES/A.md")) == [first.id]
    assert listed(ProposalFilter(run="run-2")) == []
    assert listed(ProposalFilter(visible=lambda path: not path.startswith("Journal/"))) == [second.id, first.id]
    page = store.find(limit=1, offset=1)
    assert ([one.id for one in page.proposals], page.total) == ([second.id], 3)
    assert store.find(limit=3).proposals[2].items == {"open": 2, "stale": 0, "accepted": 0, "rejected": 0}


def test_whoever_may_not_see_a_file_does_not_see_its_proposal(store: Proposals) -> None:
    def visible(path: NotePath) -> bool:
        return not path.startswith("Journal/")

    hidden = propose(store, create("Journal/a.md", b"secret"))
    moved = propose(
        store,
        move("a.md", "b.md", b"x"),
        edit("Journal/l.md", b"[[a]] secret\n", b"[[b]] secret\n", cause="link", requests={0}),
    )

    with pytest.raises(NotFound) as error:
        store.show(hidden.id, visible=visible)
    with pytest.raises(NotFound) as other:
        store.show("none", visible=visible)
    shown = store.show(moved.id, visible=visible)

    assert error.value.message.replace(hidden.id, "none") == other.value.message
    assert [file.path for file in shown.files] == ["a.md"]
    assert shown.digest == moved.digest


def test_contents_are_kept_once_and_no_longer_than_needed(state: State, store: Proposals, clock: Clock) -> None:
    for made in [propose(store, edit("a.md", BEFORE, AFTER)) for _ in range(5)]:
        store.reject(made.id, "no")
    with sqlite3.connect(state.folder / proposals_store.FILE) as database:
        kept = database.execute("SELECT count(*) FROM blobs").fetchone()[0]
        clock.pass_days(60)
        store.find()
        dropped = store.prune(max_age_days=30)
        left = database.execute("SELECT count(*) FROM blobs").fetchone()[0]
    database.close()

    assert (kept, dropped, left) == (3, 5, 0)
