import contextlib
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, cast

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict, Unpack

from knapper.app import tables
from knapper.errors import BadInput, NotFound, StorageError
from knapper.jsontypes import JSONValue
from knapper.tools import registry
from knapper.tools.context import Context, ToolSelection
from knapper.tools.registry import ToolSpec, ToolTable
from knapper.tools.shapes import Answer
from tests.tools import opened


class Made(TypedDict):
    success: bool


class More(TypedDict, total=False):
    deep: bool
    tags: list[str]


def echo(
    context: Context, query: str, count: int = 1, mode: Literal["a", "b"] = "a", **more: Unpack[More]
) -> Annotated[Answer, Made]:
    """Say what was heard.

    At length.

    Args:
        context: The vault, as the client sees it.
        query: What to say, as ``code``.
        count: How many times.
        mode: How.
        deep: Whether deep.

    Returns:
        ``heard``: what was given.
    """
    shown: dict[str, JSONValue] = {"query": query, "count": count, "mode": mode}
    return {"success": True, "vault": context.vault, "heard": {**shown, **cast("dict[str, JSONValue]", more)}}


ECHO = ToolSpec(function=echo)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return opened.vault(tmp_path, {"A.md": "# A\n\nalpha\n"}).open("mcp")


def heard(context: Context, arguments: Mapping[str, object]) -> JSONValue:
    return registry.invoke_tool(ECHO, context, arguments)["heard"]


def test_a_schema_is_made_of_the_signature_and_the_docstring() -> None:
    shown = registry.parameter_schema(ECHO)

    properties = cast("dict[str, dict[str, JSONValue]]", shown["properties"])
    assert properties["query"] == {"description": "What to say, as `code`.", "type": "string"}
    assert properties["count"] == {"default": 1, "description": "How many times.", "type": "integer"}
    assert properties["mode"]["enum"] == ["a", "b"]
    assert properties["deep"] == {"description": "Whether deep.", "type": "boolean"}
    assert "context" not in properties
    assert (shown["required"], shown["additionalProperties"]) == (["query"], False)
    assert registry.describe(ECHO) == "Say what was heard.\n\nAt length.\n\nReturns `heard`: what was given."


def test_what_is_left_out_gets_its_default_or_stays_out(context: Context) -> None:
    assert heard(context, {"query": "x"}) == {"query": "x", "count": 1, "mode": "a"}
    assert heard(context, {"query": "x", "deep": False, "tags": ["t"]}) == {
        "query": "x",
        "count": 1,
        "mode": "a",
        "deep": False,
        "tags": ["t"],
    }


@pytest.mark.parametrize("guess", ["q", "search", "text"])
def test_a_name_that_is_often_guessed_is_understood(context: Context, guess: str) -> None:
    assert cast("dict[str, JSONValue]", heard(context, {guess: "x"}))["query"] == "x"


def test_the_right_name_wins_over_a_guess(context: Context) -> None:
    with pytest.raises(BadInput, match="q: there is no such parameter"):
        heard(context, {"query": "x", "q": "y"})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "query: it is needed"),
        ({"query": 3}, "query: input should be a valid string"),
        ({"query": "x", "count": "many"}, "count: input should be a valid integer"),
        ({"query": "x", "mode": "c"}, "mode: input should be 'a' or 'b'"),
        ({"query": "x", "colour": "red"}, "colour: there is no such parameter"),
    ],
)
def test_an_argument_that_cant_be_used_is_named(context: Context, arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        registry.invoke_tool(ECHO, context, arguments)

    assert problem in caught.value.message
    assert caught.value.code == "bad_arguments"
    assert caught.value.hint == "it takes query, count, mode, deep, tags"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": "abc"}, "search_vault can't be called so: limit: input should be a valid integer"),
        ({"limit": "abc", "folders": None}, "search_vault can't be called so: limit: input should be a valid integer"),
        ({"limit": 0}, "limit is 0"),
        ({"top_k": 201}, "top_k is 201"),
        ({"n_results": 0}, "n_results is 0"),
        ({"n_results": None, "k": 0}, "k is 0"),
        ({"search": " "}, "the query is empty"),
    ],
)
def test_a_bad_value_is_told_under_the_name_that_the_caller_gave(
    context: Context, arguments: dict[str, object], message: str
) -> None:
    row = tables.build_table().find("search_vault")
    query = {} if "search" in arguments else {"query": "x"}
    with pytest.raises(BadInput) as caught:
        registry.invoke_tool(row, context, {**query, **arguments})

    assert caught.value.message.startswith(message)
    assert str(caught.value) == caught.value.message


def test_however_many_arguments_are_unknown_the_answer_stays_short(context: Context) -> None:
    unknown: dict[str, object] = {f"{number}{'x' * 5_000}": 1 for number in range(1_000)}
    with pytest.raises(BadInput) as caught:
        registry.invoke_tool(ECHO, context, unknown)

    assert len(str(caught.value.as_dict())) < 20_000


SAMPLES: Mapping[str, object] = {"string": "x", "integer": 1, "array": [], "object": {}}


@pytest.mark.parametrize("row", tables.build_table().specs, ids=lambda row: row.name)
def test_null_for_what_needs_no_value_stands_for_left_out(row: ToolSpec) -> None:
    shown = registry.parameter_schema(row)
    known = cast("dict[str, dict[str, JSONValue]]", shown["properties"])
    needed = cast("list[str]", shown.get("required", []))
    least = {name: known[name].get("const", SAMPLES[str(known[name].get("type"))]) for name in needed}
    nulls = {name: None for name in known if name not in needed and name != "value"}

    assert registry.check_arguments(row, {**least, **nulls}) == registry.check_arguments(row, least)


def test_null_stays_where_it_is_a_value() -> None:
    row = tables.build_table().find("update_frontmatter")

    checked = registry.check_arguments(row, {"path": "A.md", "field": "k", "value": None, "operation": None})

    assert checked == {"path": "A.md", "field": "k", "value": None, "dry_run": False, "reason": ""}


def test_null_for_what_is_needed_is_refused(context: Context) -> None:
    with pytest.raises(BadInput, match="query: input should be a valid string"):
        heard(context, {"query": None, "count": None})


@pytest.mark.parametrize("given", [{"n_results": None, "limit": 3}, {"limit": 3, "n_results": None, "mode": None}])
def test_null_under_its_right_name_leaves_room_for_a_guess(given: dict[str, object]) -> None:
    row = tables.build_table().find("search_vault")

    assert registry.check_arguments(row, {"query": "x", **given})["n_results"] == 3


def test_null_under_a_guess_is_left_out_too() -> None:
    row = tables.build_table().find("search_vault")

    assert registry.check_arguments(row, {"query": "x", "limit": None})["n_results"] == 5


def test_null_for_a_vault_means_the_usual_one(context: Context) -> None:
    asked: list[str] = []
    table = ToolTable([ECHO, *tables.build_table().specs], ["one", "two"])

    def open_it(name: str) -> Context:
        asked.append(name)
        return context

    table.call("echo", {"query": "x", "vault": None}, open_it)
    inner = {"path": "A.md", "vault": None, "offset": None}
    read = table.call("call_tool", {"name": "read_file", "arguments": inner, "vault": None}, open_it)

    assert (asked, read["path"]) == (["", ""], "A.md")


@pytest.mark.parametrize("given", [{"query": "\ud800"}, {"query": "x", "tags": ["\udfff"]}, {"\ud800": 1}])
def test_half_a_character_is_refused(context: Context, given: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="Unicode"):
        registry.invoke_tool(ECHO, context, given)


def test_a_damaged_database_is_an_error_of_ours(context: Context, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database" * 200)

    def read(_: Context) -> Annotated[Answer, Made]:
        """Read it."""
        with contextlib.closing(sqlite3.connect(tmp_path / "bad.db")) as connection:
            return {"success": bool(connection.execute("SELECT * FROM a").fetchall())}

    def ask(_: Context) -> Annotated[Answer, Made]:
        """Ask wrongly."""
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            return {"success": bool(connection.execute("SELECT * FROM a").fetchall())}

    with pytest.raises(StorageError, match="is not a database"):
        registry.invoke_tool(ToolSpec(function=read), context, {})
    with pytest.raises(sqlite3.OperationalError):
        registry.invoke_tool(ToolSpec(function=ask), context, {})


def test_a_number_as_text_is_taken_for_a_number(context: Context) -> None:
    assert cast("dict[str, JSONValue]", heard(context, {"query": "x", "count": "3"}))["count"] == 3


def test_the_reason_and_a_dry_run_reach_the_writer_and_not_the_function(tmp_path: Path) -> None:
    vault = opened.vault(tmp_path, {"A.md": "alpha\n"})
    table = tables.build_table()
    arguments = {"path": "B.md", "content": "b\n", "reason": "because"}

    planned = table.call("create_file", {**arguments, "dry_run": True}, lambda _: vault.open("cli"))
    done = table.call("create_file", arguments, lambda _: vault.open("cli"))

    assert (planned["status"], done["status"]) == ("planned", "applied")
    listed = table.call("list_changes", {}, lambda _: vault.open("cli"))
    assert cast("list[dict[str, JSONValue]]", listed["results"])[0]["reason"] == "because"


def test_several_vaults_make_every_tool_take_one(tmp_path: Path) -> None:
    one, two = opened.vault(tmp_path / "1", {}), opened.vault(tmp_path / "2", {})
    contexts = {"one": one.open(), "two": two.open(), "": one.open()}
    table = ToolTable([ECHO], ["one", "two"])

    shown = cast("dict[str, JSONValue]", table.parameters(ECHO)["properties"])
    asked: list[str] = []
    table.call("echo", {"query": "x", "vault": "two"}, lambda name: (asked.append(name), contexts[name])[1])
    table.call("echo", {"query": "x"}, lambda name: (asked.append(name), contexts[name])[1])

    assert shown["vault"] == {
        "type": "string",
        "enum": ["one", "two"],
        "default": "one",
        "description": "Name of the vault to work in.",
    }
    assert asked == ["two", ""]


def test_a_tool_that_isnt_there_is_told_with_the_nearest(context: Context) -> None:
    with pytest.raises(NotFound) as caught:
        ToolTable([ECHO]).call("ehco", {}, lambda _: context)

    assert caught.value.hint == "did you mean 'echo'?"


@pytest.mark.parametrize(
    ("name", "choice", "hint"),
    [
        ("append", "full", "did you mean 'append_to_file' or 'append_to_section'?"),
        ("get_backlinks", "full", "did you mean 'get_links' or 'find_backlinks'?"),
        ("write_fil", "full", "did you mean 'write_file'?"),
        ("write_fil", "read-only", "did you mean 'read_file' or 'list_files_by_frontmatter'?"),
        ("list_all_tag", "full", "did you mean 'list_tags'?"),
        ("xyzzy", "full", "find_tool finds tools by what they do"),
    ],
)
def test_the_nearest_tools_are_those_that_the_caller_may_use(name: str, choice: ToolSelection, hint: str) -> None:
    with pytest.raises(NotFound) as caught:
        tables.build_table().find(name, choice)

    assert caught.value.hint == hint


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one name"):
        ToolTable([ECHO, ECHO])


def test_every_tool_describes_itself_and_its_answer() -> None:
    table = tables.build_table()

    for row in table.specs:
        parameters, answered = table.parameters(row), registry.answer_schema(row)
        jsonschema.Draft202012Validator.check_schema(parameters)
        jsonschema.Draft202012Validator.check_schema(answered)
        described = cast("dict[str, dict[str, JSONValue]]", parameters["properties"])
        undescribed = [name for name, one in described.items() if not one.get("description")]
        assert (row.name, undescribed) == (row.name, [])
        assert registry.summarize(row).endswith(".")


def test_a_list_that_goes_on_at_an_offset_takes_one() -> None:
    def told(row: ToolSpec) -> set[str]:
        return set(cast("dict[str, object]", registry.answer_schema(row)["properties"]))

    onward = {row.name for row in tables.build_table().specs if told(row) >= {"results", "next_offset"}}
    taking = {
        row.name for row in tables.build_table().specs if "offset" in registry.parse_parameters(row).model.model_fields
    }

    assert "get_links_recursive" in onward
    assert onward - taking == set()


def test_a_tool_is_found_by_what_it_does(context: Context) -> None:
    table = tables.build_table()

    def first(query: str) -> object:
        found = table.call("find_tool", {"query": query}, lambda _: context)
        return cast("list[dict[str, JSONValue]]", found["results"])[0]["name"]

    assert first("rename a tag everywhere") == "rename_tag"
    assert first("move a note") == "move_file"
    assert first("undo") == "undo_change"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("delete a note", "delete_file"),
        ("rename a note", "move_file"),
        ("overwrite a note", "write_file"),
        ("move many notes", "batch_move_files"),
        ("set a property on many notes", "batch_update_frontmatter"),
        ("add text at the top of a note", "prepend_to_file"),
        ("dead links", "broken_links"),
        ("revert a change", "undo_change"),
        ("search the internet", "web_search"),
    ],
)
def test_a_tool_is_found_by_other_words_than_its_own_beside_words_that_all_have(
    context: Context, query: str, name: str
) -> None:
    found = tables.build_table().call("find_tool", {"query": query}, lambda _: context)

    assert cast("list[dict[str, JSONValue]]", found["results"])[0]["name"] == name


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("which notes link to this one", "find_backlinks"),
        ("which notes mention Rain", "find_backlinks"),
        ("notes changed last week", "search_by_date_range"),
        ("recent notes", "search_by_date_range"),
    ],
)
def test_a_tool_is_among_those_found_by_the_question_it_answers(context: Context, query: str, name: str) -> None:
    found = tables.build_table().call("find_tool", {"query": query}, lambda _: context)

    assert name in [one["name"] for one in cast("list[dict[str, JSONValue]]", found["results"])]


def test_a_found_tool_can_be_called_and_calling_goes_no_further(context: Context) -> None:
    table = tables.build_table()

    read = table.call("call_tool", {"name": "read_file", "arguments": {"path": "A.md"}}, lambda _: context)
    assert read["content"] == "# A\n\nalpha\n"

    with pytest.raises(NotFound):
        table.call("call_tool", {"name": "call_tool", "arguments": {"name": "read_file"}}, lambda _: context)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(arguments=st.dictionaries(st.sampled_from(["query", "q", "count", "mode", "tags", "x"]) | st.text(), JSON))
def test_whatever_is_given_the_error_is_typed(arguments: dict[str, object]) -> None:
    with contextlib.suppress(BadInput):
        registry.check_arguments(ECHO, arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "problems"),
    [
        ("search_vault", {"query": "x", "folders": "en"}, {"folders": 'input should be a list, such as ["a"]'}),
        ("search_vault", {"query": "x", "folders": 5}, {"folders": "input should be a list"}),
        ("batch_move_files", {"moves": [{"source": 1}]}, {"moves.0.source": "input should be a valid string"}),
        ("batch_move_files", {"moves": [["a"]]}, {"moves.0": "input should be an object"}),
        (
            "create_file",
            {"path": "a.md", "frontmatter": ["a"]},
            {"frontmatter": "input should be a valid string, or input should be an object"},
        ),
        ("read_file", {"length": "x"}, {"path": "it is needed", "length": None}),
    ],
)
def test_what_is_wrong_with_arguments_is_told_by_their_names_and_in_words_of_json(
    name: str, arguments: Mapping[str, object], problems: Mapping[str, str | None]
) -> None:
    row = tables.build_table().find(name)

    with pytest.raises(BadInput) as caught:
        registry.check_arguments(row, arguments)

    found = cast("list[dict[str, str]]", caught.value.details["problems"])
    assert {one["parameter"] for one in found} == set(problems)
    assert all(one["problem"] == problems[one["parameter"]] for one in found if problems[one["parameter"]])
