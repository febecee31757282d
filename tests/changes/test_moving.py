"""What moves, where to, and what is told of it."""

import os
from pathlib import Path

import pytest

from knapper.changes import rules
from knapper.changes.rules import VaultFacts
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, RefusedError
from knapper.vault import access
from knapper.vault.access import Policy
from tests.changes import relinking

FILES = {
    "A.md": "[[B]] [[sub/C]]\n",
    "B.md": "[[A]]\n",
    "sub/C.md": "[[B]] [b](../B.md)\n",
    "sub/pic.png": "x",
    "Journal/day.md": "[[B]] [[sub/C]]\n",
}
CLIENT = Policy(client="mcp", hidden=("Journal/",))
GROUND = VaultFacts(visible=CLIENT.visible, resolve=lambda path: path)


@pytest.mark.parametrize(
    ("source", "destination", "code"),
    [
        ("B.md", "A.md", "exists"),
        ("B.md", "a.MD", "exists"),
        ("B.md", "sub", "exists"),
        ("sub", "B.md", "exists"),
        ("sub", "Journal", "exists"),
        ("sub", "sub/inner", "into_itself"),
        ("sub", "SUB/inner", "into_itself"),
        ("B.md", "B.md", "no_change"),
        ("B.md", "B", "no_change"),
        ("sub", "sub/", "into_itself"),
        ("sub/C.md", "SUB/C.md", "no_change"),
        ("B.md", "A.md/B.md", "not_a_folder"),
        ("B.md", "../B.md", "outside_vault"),
        ("B.md", "what?.md", "forbidden_character"),
        ("B.md", "con.md", "reserved_name"),
        ("B.md", ".obsidian/B.md", "hidden"),
        ("nothing.md", "B2.md", "not_found"),
        ("", "B2.md", "bad_input"),
    ],
)
def test_a_move_that_cant_be_made_is_refused(tmp_path: Path, source: str, destination: str, code: str) -> None:
    world = relinking.make(tmp_path, FILES)

    with pytest.raises(KnapError) as raised:
        world.draft((source, destination))

    assert raised.value.code == code
    assert raised.value.hint


def test_nothing_is_overwritten_and_a_free_name_is_told(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {**FILES, "A 1.md": ""})

    with pytest.raises(ConflictError, match=r"'A\.md' exists already") as raised:
        world.draft(("B.md", "A.md"))

    assert "'A 2.md'" in raised.value.hint


def test_the_hint_for_a_folder_names_the_place_in_it(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    with pytest.raises(ConflictError) as raised:
        world.draft(("B.md", "sub"))

    assert "'sub/B.md'" in raised.value.hint


def test_a_slash_at_the_end_means_into_that_folder(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    draft = world.draft(("B.md", "new/deep/"), ("sub/pic.png", "Journal/"))

    assert [file.target for file in draft.files if file.target] == ["new/deep/B.md", "Journal/pic.png"]


def test_a_note_keeps_its_ending_where_none_is_given(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    assert world.draft(("B.md", "Better")).files[0].target == "Better.md"


def test_a_folder_moves_as_a_whole_and_into_folders_that_are_not_there_yet(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    draft = world.move(("sub", "x/y/sub"))

    assert draft.folders == (("sub", "x/y/sub"),)
    assert draft.by_query
    assert world.text("x/y/sub/C.md") == "[[B]] [b](../../../B.md)\n"
    assert world.text("A.md") == FILES["A.md"]  # the end of a path is enough
    assert not (world.root / "sub").exists()


def test_the_case_of_a_name_can_be_changed_and_links_stay(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    draft = world.move(("B.md", "b.md"))

    assert (world.root / "b.md").exists()
    assert draft.rewritten == ()


def test_the_case_of_a_folder_can_be_changed(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    world.move(("sub", "Sub"))

    assert world.text("Sub/C.md") == FILES["sub/C.md"]
    assert world.text("A.md") == FILES["A.md"]


def test_an_existing_folder_is_spelled_as_on_disk(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    assert world.draft(("B.md", "SUB/B.md")).files[0].target == "sub/B.md"


def test_moves_that_get_in_each_others_way_are_refused(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)
    for moves in (
        (("A.md", "x.md"), ("B.md", "X.md")),
        (("A.md", "x.md"), ("A.md", "y.md")),
        (("sub", "other"), ("sub/C.md", "C.md")),
        (("A.md", "sub/A.md"), ("sub", "other")),
        (("A.md", "other/A.md"), ("sub", "other")),
    ):
        with pytest.raises(BadInput) as raised:
            world.draft(*moves)

        assert raised.value.code == "overlap"


def test_files_that_move_together_keep_their_links(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    world.move(("B.md", "z/B.md"), ("sub/C.md", "z/C.md"))

    assert world.text("z/C.md") == "[[B]] [b](B.md)\n"
    assert world.text("A.md") == "[[B]] [[z/C]]\n"


def test_a_file_that_becomes_a_note_and_back(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"A.md": "[[t.txt]] [t](t.txt) ![[t.txt]]\n", "t.txt": "[[A]]\n"})

    draft = world.move(("t.txt", "t.md"))

    assert world.text("A.md") == "[[t]] [t](t.md) ![[t]]\n"
    assert "t.md is read as a note from now on, and no more as an attachment" in draft.notices
    world.move(("t.md", "t.txt"))
    assert world.text("A.md") == "[[t.txt]] [t](t.txt) ![[t.txt]]\n"
    assert world.text("t.txt") == "[[A]]\n"


def test_what_is_hidden_cant_be_moved_nor_moved_to(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    for source in ("Journal/day.md", "Journal"):
        with pytest.raises(NotFound):
            world.draft((source, "x.md"), policy=CLIENT)
    for source, destination in (("B.md", "Journal/B.md"), ("B.md", "Journal/day.md"), ("sub", "Journal/sub")):
        with pytest.raises(RefusedError) as raised:
            world.draft((source, destination), policy=CLIENT)
        assert raised.value.code == "hidden"


@pytest.mark.parametrize("source", ["B.md", "sub"])
@pytest.mark.parametrize(
    "destination",
    ["Journal", "journal", "Journal/", "Journal/day.md", "JOURNAL/Day.md", "Journal/day.md/x", "link/day.md", "A"],
)
def test_no_answer_to_a_move_tells_what_is_hidden_where_it_would_go(
    tmp_path: Path, source: str, destination: str
) -> None:
    bare = {path: text for path, text in FILES.items() if not path.startswith("Journal/")}
    policy = Policy(client="mcp", hidden=("Journal/", "A 1.md"))
    told: list[str] = []
    for name, files in (("full", {**FILES, "A 1.md": ""}), ("bare", bare)):
        world = relinking.make(tmp_path / name, files)
        (world.root / "link").symlink_to("Journal")
        try:
            draft = world.draft((source, destination), policy=policy)
            told.append(str([(file.path, file.target) for file in draft.files if not file.hidden]))
        except KnapError as error:
            told.append(f"{error.code} {error.message} {error.hint}")

    assert told[0] == told[1]


def test_a_folder_moves_for_one_reason_whether_or_not_something_in_it_is_hidden(tmp_path: Path) -> None:
    hidden = {"sub/Journal/x.md": "x"}
    worlds = [relinking.make(tmp_path / name, {**FILES, **more}) for name, more in (("a", hidden), ("b", {}))]

    drafts = [world.draft(("sub", "other"), policy=CLIENT) for world in worlds]

    assert [draft.folders for draft in drafts] == [(), (("sub", "other"),)]
    assert {rules.why_large(draft) for draft in drafts} == {"it moves a folder"}
    assert {rules.judge(draft, access.default_grants("cli"), GROUND).reason for draft in drafts} == {
        "it moves a folder"
    }


def test_links_in_hidden_files_follow_and_are_only_counted(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    draft = world.draft(("sub/C.md", "new/C.md"), policy=CLIENT)

    [hidden] = [file for file in draft.files if file.hidden]
    assert (hidden.path, hidden.cause, hidden.after) == ("Journal/day.md", "link", b"[[B]] [[new/C]]\n")
    assert "1 link in files that aren't yours to see followed too" in draft.notices
    assert {one.path for one in draft.rewritten} == {"A.md"}
    assert "Journal" not in " ".join(draft.notices)


@pytest.mark.parametrize(
    ("text", "source", "destination"),
    [
        ("[[day]] ![[day]]\n", "B.md", "day.md"),
        ("[[day]] [[2026/plan]] [x](Journal/day.md) [x](./Journal/day.md)\n", "V.md", "new/V.md"),
        ("[[day]]\n", "V.md", "Journal2/day.md"),
    ],
)
def test_a_link_to_a_hidden_file_becomes_what_one_to_nothing_becomes(
    tmp_path: Path, text: str, source: str, destination: str
) -> None:
    seen = {"B.md": "b\n", "V.md": text}
    hidden = {"Journal/day.md": "x", "Journal/2026/plan.md": "x"}
    full, bare = relinking.make(tmp_path / "full", {**seen, **hidden}), relinking.make(tmp_path / "bare", seen)

    there, nowhere = (world.draft((source, destination), policy=CLIENT) for world in (full, bare))

    assert [(file.path, file.after) for file in there.files] == [(file.path, file.after) for file in nowhere.files]
    assert (there.rewritten, there.notices) == (nowhere.rewritten, nowhere.notices)


def test_without_the_owners_view_hidden_files_stay_and_are_counted(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)

    draft = world.draft(("sub/C.md", "new/C.md"), policy=CLIENT, owner=CLIENT)

    assert {file.path for file in draft.files} == {"A.md", "sub/C.md"}
    assert "1 file not yours to see may link there, and stays as it is" in draft.notices


def test_a_folder_with_hidden_files_is_moved_file_by_file(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {**FILES, "sub/Journal/x.md": "[[C]]"})

    draft = world.draft(("sub", "other"), policy=CLIENT)

    assert draft.folders == ()
    assert {file.path for file in draft.files if file.target} == {"sub/C.md", "sub/pic.png"}


def test_a_move_brings_nothing_to_light_that_the_vault_ignores(tmp_path: Path) -> None:
    files = {**FILES, ".knapignore": "/sub/drafts/\n", "sub/drafts/x.md": ""}
    world = relinking.make(tmp_path, files)

    by_client = world.draft(("sub", "other"), policy=CLIENT)
    by_owner = world.draft(("sub", "other"))

    assert by_client.folders == ()
    assert by_owner.folders == (("sub", "other"),)


def test_an_index_that_is_behind_is_told_and_the_disk_counts(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)
    (world.root / "A.md").write_bytes(b"now [[C]] and [[sub/C|c]] [x](sub/C.md)\n")

    draft = world.draft(("sub/C.md", "new/C.md"))

    [follower] = [file for file in draft.files if file.path == "A.md"]
    assert follower.after == b"now [[C]] and [[new/C|c]] [x](new/C.md)\n"
    assert any(notice.startswith("the index is behind by 1 file") for notice in draft.notices)


def test_a_file_that_the_index_knows_and_that_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"A.md": "[[B]]\n", "x/B.md": "", "yyy/B.md": ""})
    (world.root / "x/B.md").unlink()

    draft = world.draft(("yyy/B.md", "z/C.md"))

    assert [one.new for one in draft.rewritten] == ["[[C]]"]


def test_an_index_that_isnt_complete_is_told(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, FILES)
    world.engine.store.set_meta("complete", "0")

    assert any("isn't complete yet" in notice for notice in world.draft(("B.md", "x/B.md")).notices)


def test_links_that_heal_are_told(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"A.md": "[[Missing]]\n", "B.md": ""})

    draft = world.draft(("B.md", "Missing.md"))

    assert draft.notices == ("1 link that led nowhere will lead to a file",)
    assert draft.rewritten == ()


def test_what_was_rewritten_is_listed_by_file_and_line(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"A.md": "one\n\n[[B|b]] ![[B#h]]\n", "B.md": "[[B]]\n"})

    draft = world.draft(("B.md", "New.md"))

    assert [(one.path, one.line, one.old, one.new) for one in draft.rewritten] == [
        ("A.md", 3, "[[B|b]]", "[[New|b]]"),
        ("A.md", 3, "![[B#h]]", "![[New#h]]"),
        ("B.md", 1, "[[B]]", "[[New]]"),
    ]
    assert draft.named == 1


@pytest.mark.skipif(os.name == "nt", reason="a folder's permissions mean something else")
def test_a_link_by_a_symbolic_name_is_rewritten_in_the_file_itself(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"A.md": "[[sub/C]]\n", "sub/C.md": ""})
    (world.root / "alias.md").symlink_to("A.md")
    world.engine.refresh()

    draft = world.draft(("sub/C.md", "new/C.md"))

    assert [file.path for file in draft.files if file.cause == "link"] == ["A.md"]


def test_another_unicode_form_of_a_name_is_no_other_name(tmp_path: Path) -> None:
    world = relinking.make(tmp_path, {"A.md": "[[e\u0301]] [[x/\u00e9]]\n", "x/e\u0301.md": ""})

    draft = world.move(("x/e\u0301.md", "x/\u00e9.md"))

    assert [file.path for file in draft.files] == ["x/e\u0301.md"]
    assert world.meanings()["A.md"] == [("e\u0301", "x/\u00e9.md"), ("x/\u00e9", "x/\u00e9.md")]
