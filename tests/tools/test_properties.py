"""Properties: of one note, of several, and what can go wrong."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from knapper.errors import BadInput, KnapError, NotFound
from knapper.jsontypes import JSONValue
from knapper.tools import files, registry, table
from tests.tools import opened
from tests.tools.opened import Opener

NOTE = "---\n# kept\ntags: [a]  # mine\nid: 007\ndone: no\n---\nText.\n"


@pytest.fixture
def vault(tmp_path: Path) -> Opener:
    names = {f"N{number}.md": NOTE for number in range(7)}
    return opened.vault(tmp_path, {**names, "Bad.md": "---\ntitle: [open\n---\nKept.\n", "Plain.md": "Text.\n"})


@pytest.mark.parametrize(
    ("value", "operation", "line"),
    [
        ("b", "append", "tags: [a, b]  # mine"),
        ("a", "append", "tags: [a]  # mine"),
        ('["p", "q"]', "set", "tags: [p, q]  # mine"),
        (["p", "q"], "set", "tags: [p, q]  # mine"),
        ("labels", "rename", "labels: [a]  # mine"),
    ],
)
def test_one_line_changes_and_the_rest_stays(
    vault: Opener, value: JSONValue, operation: files.PropertyOperation, line: str
) -> None:
    with vault.open() as context:
        done = files.update_frontmatter(context, "N0.md", "tags", value=value, operation=operation)

    assert (done["success"], done["path"]) == (True, "N0.md")
    assert vault.text("N0.md") == NOTE.replace("tags: [a]  # mine", line)


def test_what_is_there_already_is_a_success_without_a_change(vault: Opener) -> None:
    with vault.open() as context:
        done = files.update_frontmatter(context, "N0.md", "tags", value="a", operation="append")

    assert (done["success"], done["message"]) == (True, "nothing had to change")
    assert "change_id" not in done


def test_a_property_is_removed_with_its_line(vault: Opener) -> None:
    with vault.open() as context:
        files.update_frontmatter(context, "N0.md", "done", operation="remove")

    assert vault.text("N0.md") == NOTE.replace("done: no\n", "")


def test_appending_makes_the_list(vault: Opener) -> None:
    with vault.open() as context:
        files.update_frontmatter(context, "Plain.md", "aliases", value="Other", operation="append")

    assert vault.text("Plain.md") == "---\naliases:\n  - Other\n---\nText.\n"


def test_invalid_yaml_is_refused_and_left_alone(vault: Opener) -> None:
    before = vault.text("Bad.md")

    with vault.open() as context:
        with pytest.raises(KnapError) as caught:
            files.update_frontmatter(context, "Bad.md", "x", value="1")
        with pytest.raises(BadInput):
            files.read_properties(context, "Bad.md")

    assert caught.value.code == "invalid_yaml"
    assert vault.text("Bad.md") == before


@pytest.mark.parametrize(
    ("value", "operation", "code"),
    [
        (["x"], "rename", "bad_input"),
        ("[1", "set", "invalid_json"),
        ("x", cast("files.PropertyOperation", "add"), "bad_input"),
    ],
)
def test_a_value_or_operation_that_makes_no_sense_is_refused(
    vault: Opener, value: JSONValue, operation: files.PropertyOperation, code: str
) -> None:
    with vault.open() as context, pytest.raises(BadInput) as caught:
        files.update_frontmatter(context, "N0.md", "tags", value=value, operation=operation)

    assert caught.value.code == code


def test_a_value_has_to_be_given(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(BadInput, match="needs a value"):
        files.update_frontmatter(context, "N0.md", "tags")

    assert vault.text("N0.md") == NOTE


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        (5, "k: 5\n"),
        (1.5, "k: 1.5\n"),
        (True, "k: true\n"),
        (None, "k:\n"),
        ("5", 'k: "5"\n'),
        (["a", 1, None], "k:\n  - a\n  - 1\n  - null\n"),
        ({"a": 1}, "k:\n  a: 1\n"),
        ([], "k: []\n"),
    ],
)
def test_a_value_is_written_as_the_type_that_it_has(vault: Opener, value: JSONValue, lines: str) -> None:
    row = next(row for row in table.TOOLS if row.name == "update_frontmatter")
    with vault.open() as context:
        registry.invoke_tool(row, context, {"path": "Plain.md", "field": "k", "value": value})
        read = files.read_properties(context, "Plain.md")["properties"]

    assert read == {"k": value}
    assert vault.text("Plain.md") == f"---\n{lines}---\nText.\n"


def test_a_value_keeps_its_type_whatever_the_property_had(vault: Opener) -> None:
    with vault.open() as context:
        files.update_frontmatter(context, "N0.md", "tags", value=5)
        files.batch_update_frontmatter(context, ["N0.md"], "id", value=False)

    assert vault.text("N0.md") == NOTE.replace("tags: [a]", "tags: 5").replace("id: 007", "id: false")


@pytest.mark.parametrize(
    ("before", "value", "notice"),
    [
        ("4", "good", "N.md: k was a number and becomes text"),
        ("4", 5, None),
        ("4", "5", None),
        ("true", "maybe", "N.md: k was true or false and becomes text"),
        ("true", "off", None),
        ("[a, b]", "c", None),
        ("[a, b]", '"c"', "N.md: k was a list and becomes text"),
        ("{a: 1}", ["a"], "N.md: k was a map and becomes a list"),
        ("word", 5, "N.md: k was text and becomes a number"),
        ("", "word", None),
        ("4", None, None),
    ],
)
def test_another_type_is_told_in_a_note(tmp_path: Path, before: str, value: JSONValue, notice: str | None) -> None:
    with opened.vault(tmp_path, {"N.md": f"---\nk: {before}\n---\n"}).open() as context:
        answer = files.update_frontmatter(context, "N.md", "K", value=value)

    assert answer["status"] == "applied"
    assert answer.get("notes", []) == ([notice] if notice else [])


def test_a_property_that_is_missing_cannot_be_removed(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(NotFound):
        files.update_frontmatter(context, "N0.md", "nothing", operation="remove")


def test_a_batch_goes_on_after_a_failure_and_lists_it(vault: Opener) -> None:
    with vault.open() as context:
        done: Mapping[str, Any] = files.batch_update_frontmatter(
            context, ["N0.md", "Missing.md", "Bad.md", "N1.md", "N0.md"], "status", value="x"
        )

    assert (done["status"], done["message"]) == ("applied", "applied: 2 of 4")
    assert [row["path"] for row in done["files"]] == ["N0.md", "N1.md"]
    assert [(row["path"], row["code"]) for row in done["failures"]] == [
        ("Missing.md", "not_found"),
        ("Bad.md", "invalid_yaml"),
    ]
    assert "status: x\n" in vault.text("N1.md")


def test_more_than_five_notes_are_a_proposal(vault: Opener) -> None:
    with vault.open() as context:
        done = files.batch_update_frontmatter(context, [f"N{n}.md" for n in range(6)], "status", value="x")

    assert done["status"] == "proposed"
    assert vault.text("N0.md") == NOTE


def test_a_batch_of_nothing_is_refused(vault: Opener) -> None:
    with vault.open() as context, pytest.raises(BadInput):
        files.batch_update_frontmatter(context, [], "status", value="x")


def test_notes_are_chosen_by_folder_and_tag(tmp_path: Path) -> None:
    vault = opened.vault(
        tmp_path,
        {"A/one.md": "#x/y\n", "a/two.md": "text\n", "B/three.md": "#x\n", "Hidden/four.md": "#x\n"},
        hidden=("Hidden/",),
    )

    with vault.open() as context:
        assert files.select_notes(context, tags=["x"]) == ["A/one.md", "B/three.md"]
        assert files.select_notes(context, folders=["A"], tags=["x"]) == ["A/one.md"]
        assert set(files.select_notes(context, folders=["a/"])) == {"A/one.md", "a/two.md"}
