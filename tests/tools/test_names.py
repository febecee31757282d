"""Names as in Obsidian, for every tool: ends of paths, titles, aliases; ambiguous ones are listed, never guessed."""

import json
from pathlib import Path
from typing import Any

import pytest

from knapper.config import ClientSettings
from knapper.index import engine, refresh
from knapper.system import private
from knapper.tools import files
from knapper.tools.context import Context
from knapper.vault import access
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from tests.index import worlds
from tests.tools import opened
from tests.tools.opened import Opener

NOTES = {
    "Home.md": "# Start here\n\nSee [[Internal links]].\n",
    "Deep/Down/Internal links.md": (
        "---\naliases: [Links inside, Über uns]\ntitle: How to link\n---\n# Linking notes\n\ntext\n"
    ),
    "Deep/Down/Board.canvas": "{}",
    "2026/Work/Plan.md": "one\n",
    "2025/Work/Plan.md": "two\n",
    "2025/Plan of all.md": '# Sum: of "all"\n',
    "Café/Crème.md": "cream\n",
    "Secret/Vault key.md": "---\naliases: [Treasure]\n---\nhidden\n",
    "Secret/Work/Plan.md": "hidden plan\n",
    "Secret/Home.md": "hidden home\n",
}
LINKS = "Deep/Down/Internal links.md"


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    return opened.vault(tmp_path, NOTES)


HIDING = ClientSettings(grants=access.default_grants("cli"), hidden=("Secret/",))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Home", "Home.md"),
        ("HOME.MD", "Home.md"),
        ("[[Home]]", "Home.md"),
        ("[[Internal links|these]]", LINKS),
        ("Internal links", LINKS),
        ("internal LINKS.md", LINKS),
        ("Down/Internal links", LINKS),
        ("Deep/Down/Internal links", LINKS),
        ("Links inside", LINKS),
        ("u\u0308ber UNS", LINKS),
        ("How to link", LINKS),
        ("linking notes", LINKS),
        ("2026/Work/plan", "2026/Work/Plan.md"),
        ('sum: of "all"', "2025/Plan of all.md"),
        ("Start here", "Home.md"),
        ("cre\u0300me", "Café/Crème.md"),
        ("Board.canvas", "Deep/Down/Board.canvas"),
        ("Treasure", "Secret/Vault key.md"),
    ],
)
def test_a_note_is_read_by_any_name_that_a_link_could_have(vault: Opener, name: str, path: str) -> None:
    with vault.open() as context:
        read = opened.call(context, "read_file", path=name)

    assert read.get("path") == path, read


@pytest.mark.parametrize(
    ("tool", "parameter"),
    [
        ("read_file", "path"),
        ("note_info", "path"),
        ("find_outlinks", "path"),
        ("get_links", "path"),
        ("get_links_recursive", "path"),
        ("broken_links", "path"),
        ("transcribe_audio", "path"),
    ],
)
def test_every_reading_tool_takes_names(vault: Opener, tool: str, parameter: str) -> None:
    with vault.open() as context:
        answer = opened.call(context, tool, **{parameter: "Links inside"})

    assert answer["success"] is True, answer


WRITES: list[tuple[str, dict[str, Any]]] = [
    ("append_to_file", {"path": "?", "content": "more"}),
    ("prepend_to_file", {"path": "?", "content": "more"}),
    ("edit_file", {"path": "?", "old_text": "text", "new_text": "words"}),
    ("replace_section", {"path": "?", "heading": "# Linking notes", "content": "none"}),
    ("append_to_section", {"path": "?", "heading": "# Linking notes", "content": "none"}),
    ("update_frontmatter", {"path": "?", "field": "a", "value": "1"}),
    ("batch_update_frontmatter", {"paths": ["?"], "field": "a", "value": "1"}),
    ("move_file", {"source": "?", "destination": "Moved.md"}),
    ("batch_move_files", {"moves": [{"source": "?", "destination": "Moved.md"}]}),
    ("delete_file", {"path": "?"}),
]


def _with_name(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    filled: dict[str, Any] = json.loads(json.dumps(arguments).replace('"?"', json.dumps(name)))
    return filled


@pytest.mark.parametrize(("tool", "arguments"), WRITES)
def test_every_writing_tool_takes_names(vault: Opener, tool: str, arguments: dict[str, Any]) -> None:
    with vault.open() as context:
        answer = opened.call(context, tool, **_with_name(arguments, "Links inside"))

    assert answer.get("status") == "applied", answer
    assert not (vault.root / LINKS).exists() or vault.text(LINKS) != NOTES[LINKS]


@pytest.mark.parametrize(("tool", "arguments"), [("read_file", {"path": "?"}), *WRITES])
def test_a_name_that_several_notes_have_is_never_guessed(vault: Opener, tool: str, arguments: dict[str, Any]) -> None:
    with vault.open(HIDING) as context:
        answer = opened.call(context, tool, **_with_name(arguments, "Work/Plan"))

    assert (answer["success"], answer["code"]) == (False, "ambiguous_name"), answer
    assert answer["candidates"] == ["2025/Work/Plan.md", "2026/Work/Plan.md"]
    assert "2025/Work/Plan.md" in answer["hint"]
    assert [vault.text(path) for path in ("2025/Work/Plan.md", "2026/Work/Plan.md")] == ["two\n", "one\n"]


def test_a_batch_lists_the_ambiguous_name_and_changes_the_others(vault: Opener) -> None:
    with vault.open() as context:
        answer = opened.call(
            context, "batch_update_frontmatter", paths=["Work/Plan", "Links inside"], field="a", value="1"
        )

    assert [failure["code"] for failure in answer["failures"]] == ["ambiguous_name"]
    assert "a: " in vault.text(LINKS)


def test_a_path_that_exists_wins_over_names_and_a_files_name_over_titles(tmp_path: Path) -> None:
    vault = opened.vault(
        tmp_path,
        {"Home.md": "1", "Old/Home.md": "2", "Old/Start.md": "3", "Other.md": "---\naliases: [Start, Home]\n---\n"},
    )
    with vault.open() as context:
        found = [opened.call(context, "read_file", path=name)["path"] for name in ("Home", "Old/Home", "Start")]

    assert found == ["Home.md", "Old/Home.md", "Old/Start.md"]


def test_a_hidden_note_is_neither_found_nor_counted_nor_told_apart_from_none(vault: Opener) -> None:
    with vault.open(HIDING) as context:
        by_alias, by_nothing = (opened.call(context, "read_file", path=name) for name in ("Treasure", "Treasury"))
        alone = opened.call(context, "read_file", path="Home")
        key = opened.call(context, "append_to_file", path="Vault key", content="x")

    assert {**by_alias, "error": ""} == {**by_nothing, "error": ""}
    assert alone["path"] == "Home.md"
    assert key["code"] == "not_found"
    assert "Secret" not in f"{by_alias}{key}"


def test_a_hidden_name_takes_no_time_of_its_own(vault: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    matched: list[str] = []
    visible = Policy.visible

    def look(policy: Policy, path: NotePath) -> bool:
        matched.append(path)
        return visible(policy, path)

    with vault.open(HIDING) as context:
        assert context.view.named is not None
        _ = context.view.named("Vault kex", context.view.policy, certain=False)
        monkeypatch.setattr(Policy, "visible", look)
        found = context.view.named("Vault key", context.view.policy, certain=False)

    assert (list(found), matched) == ([], [])


def test_a_folders_name_is_no_note_for_a_change(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Plans/a.md": "1", "Deep/Plans.md": "2", "Deep/Empty.md": "3"})
    (vault.root / "Empty").mkdir()
    with vault.open() as context:
        read = opened.call(context, "read_file", path="Plans")
        deleted = opened.call(context, "delete_file", path="Plans")
        emptied = opened.call(context, "delete_file", path="Empty")
        moved = opened.call(context, "move_file", source="Plans", destination="Archive/")

    assert read["path"] == "Deep/Plans.md"
    assert (deleted["code"], emptied["code"]) == ("is_folder", "is_folder")
    assert moved["status"] in {"applied", "proposed"}
    assert (vault.root / "Deep/Plans.md").exists()


def test_an_empty_folder_is_called_a_folder_and_a_hidden_one_is_not_known(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Plans/a.md": "1"})
    for name in ("Empty", "Secret", "Plans/Deep"):
        (vault.root / name).mkdir()

    with vault.open() as context, vault.open(HIDING) as guarded:
        filled = opened.call(context, "read_file", path="Plans")
        empty = [opened.call(context, "read_file", path=name) for name in ("Empty", "empty/", "Plans/Deep")]
        missing, secret = (opened.call(guarded, "read_file", path=name) for name in ("Secrex", "Secret"))

    assert (filled["error"], filled["hint"]) == ("'Plans' is a folder", "name a file in it")
    assert [one["error"] for one in empty] == [f"'{name}' is a folder" for name in ("Empty", "Empty", "Plans/Deep")]
    assert {one["hint"] for one in empty} == {"no file in it is shown here: name another, or make one in it"}
    assert secret == json.loads(json.dumps(missing).replace("Secrex", "Secret"))


def test_a_name_is_found_a_moment_after_the_note_was_saved(vault: Opener) -> None:
    with vault.open() as context:
        missing = opened.call(context, "edit_file", path="Brand new", old_text="x", new_text="y")
        worlds.fill(vault.root, {"In/here.md": "---\naliases: Brand new\n---\nx\n"})
        edited = opened.call(context, "edit_file", path="Brand new", old_text="x\n", new_text="y\n")
        worlds.fill(vault.root, {"In/there.md": "---\naliases: Brand new\n---\nx\n"})
        again = opened.call(context, "edit_file", path="Brand new", old_text="y\n", new_text="z\n")

    assert missing["code"] == "not_found"
    assert edited["path"] == "In/here.md"
    assert again["code"] == "ambiguous_name"


def test_nothing_is_changed_by_a_name_while_the_index_may_lack_another_note_of_it(
    vault: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_NAMES_LOCK_WAIT_S", 0.05)
    with vault.open() as context:
        _ = context.index.refresh()
        worlds.fill(vault.root, {"Other/Internal links.md": "second\n"})
        with private.acquire_process_lock(context.index.folder, refresh.WRITE_LOCK_FILE, wait_s=0):
            by_name = opened.call(context, "append_to_file", path="Internal links", content="x")
            by_path = opened.call(context, "append_to_file", path=LINKS, content="x")

    assert (by_name["code"], "give the note's path" in by_name["hint"]) == ("conflict", True)
    assert by_path["status"] == "applied"


def test_new_notes_are_made_where_they_are_named_also_where_another_note_has_the_name(vault: Opener) -> None:
    with vault.open() as context:
        made = opened.call(context, "create_file", path="Internal links", content="mine")

    assert made["path"] == "Internal links.md"
    assert vault.text(LINKS) == NOTES[LINKS]


def test_an_error_that_quotes_a_foreign_note_by_name_taints_as_by_path(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Clippings/Web page.md": "theirs is this text\n"})
    with vault.open("agent") as context:
        _ = opened.call(context, "edit_file", path="Web page", old_text="theirs is that text", new_text="x")

        assert context.writer.taints.is_tainted("agent", "")


def test_a_name_of_any_text_is_only_a_name(vault: Opener) -> None:
    hostile = ['"', 'a" OR title_words', "*", "NEAR(", "aliases:x", "\u202e", "[[", "]]", "[[|]]", "a" * 3000, "🙂"]
    with vault.open() as context:
        answers = [opened.call(context, "read_file", path=name) for name in hostile]

    assert {answer["code"] for answer in answers} <= {"not_found", "bad_input", "forbidden_character"}, answers


def test_restoring_and_internal_reads_take_paths_only(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Old/Preferences.md": "- mine\n"})
    with vault.open() as context:
        listed = opened.call(context, "list_preferences")
        _ = files.delete_file(context, "Old/Preferences.md")

        assert not listed["results"]
        assert opened.call(context, "restore_files", names=["Preferences"])["success"] is False


def changed_everywhere(vault: Opener) -> None:
    """Have every note changed once, and a change of every note proposed."""
    with vault.open() as context:
        for path in NOTES:
            if path.endswith(".md"):
                assert opened.call(context, "append_to_file", path=path, content="more")["status"] == "applied"
    with vault.open("agent") as context:
        for path in NOTES:
            if path.endswith(".md"):
                assert opened.call(context, "append_to_file", path=path, content="yet more")["status"] == "proposed"


def filtered(context: Context, tool: str, path: str) -> set[str]:
    """Name the files of what a filter by path lists."""
    answer = opened.call(context, tool, path=path)
    assert answer["success"], answer
    if tool == "list_proposals":
        return {row["path"] for row in answer["results"]}
    return {file["path"] for row in answer["results"] for file in row["files"]}


LISTS = ("list_changes", "list_proposals")


@pytest.mark.parametrize("tool", LISTS)
def test_filters_by_path_take_names(vault: Opener, tool: str) -> None:
    changed_everywhere(vault)
    with vault.open() as context:
        for name in (
            LINKS,
            LINKS.lower(),
            "Links inside",
            "[[Internal links|these]]",
            "Down/internal links",
            LINKS[:-3],
        ):
            assert filtered(context, tool, name) == {LINKS}, name
        assert filtered(context, tool, "u\u0308ber UNS") == {LINKS}
        assert filtered(context, tool, "Cafe\u0301/Crème") == {"Café/Crème.md"}
        assert filtered(context, tool, "2026") == {"2026/Work/Plan.md"}
        assert filtered(context, tool, "secret/") == {"Secret/Vault key.md", "Secret/Work/Plan.md", "Secret/Home.md"}
        assert filtered(context, tool, "Nothing of this name") == set()


@pytest.mark.parametrize("tool", LISTS)
def test_a_filter_by_a_name_of_several_notes_lists_them(vault: Opener, tool: str) -> None:
    changed_everywhere(vault)
    with vault.open(HIDING) as context:
        answer = opened.call(context, tool, path="Work/Plan")
        hidden = opened.call(context, tool, path="Treasure"), opened.call(context, tool, path="Treasury")

    assert (answer["code"], answer["candidates"]) == ("ambiguous_name", ["2025/Work/Plan.md", "2026/Work/Plan.md"])
    assert hidden[0] == hidden[1]
    assert hidden[0]["results"] == []


@pytest.mark.parametrize("tool", LISTS)
def test_a_filter_by_a_path_that_is_gone_means_that_path_and_no_other_note(vault: Opener, tool: str) -> None:
    changed_everywhere(vault)
    with vault.open() as context:
        _ = opened.call(context, "delete_file", path="Home.md")
        _ = opened.call(context, "move_file", source="2025/Plan of all.md", destination="New/Plan of all.md")
        # Another note has the end of the path by now, and a note that was never changed has the title.
        worlds.fill(vault.root, {"Else/Home.md": "# Plan of all\n"})

        assert "Home.md" in filtered(context, tool, "Home.md")
        assert "Else/Home.md" not in filtered(context, tool, "Home.md")
        assert filtered(context, tool, "2025/Plan of all.md") >= {"2025/Plan of all.md"}
        assert filtered(context, tool, "Else/Home") == set()


def test_a_filter_takes_a_folder_before_a_note_of_its_name(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"Plans/a.md": "1", "Deep/Plans.md": "2"})
    with vault.open() as context:
        for path in ("Plans/a.md", "Deep/Plans.md"):
            _ = opened.call(context, "append_to_file", path=path, content="x")

        assert filtered(context, "list_changes", "plans") == {"Plans/a.md"}
        assert filtered(context, "list_changes", "Plans.md") == {"Deep/Plans.md"}


@pytest.mark.parametrize("tool", LISTS)
def test_a_filter_that_leads_out_of_the_vault_is_refused(vault: Opener, tool: str) -> None:
    with vault.open() as person, vault.open("mcp") as program:
        for path in ("../x.md", "/etc/passwd", "C:/x.md"):
            assert opened.call(person, tool, path=path)["code"] == "outside_vault", path
        told = {str(opened.call(program, tool, path=path)) for path in ("/etc/passwd", f"{vault.root}/None.md")}

    assert len(told) == 1
