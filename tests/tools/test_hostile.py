"""Every tool that reads, called with whatever a caller may think of: a typed error or an answer of the said shape."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from knapper.errors import KnapError
from knapper.tools import registry
from knapper.tools.context import Context
from knapper.tools.registry import ToolSpec
from knapper.tools.table import TOOLS
from knapper.vault.access import Policy
from tests.index import worlds
from tests.properties import scaled

OWN = frozenset({
    "criteria", "info", "links", "neighbors", "notes", "overview", "passages", "reading", "search", "status", "tags",
})  # fmt: skip
READING = [row for row in TOOLS if row.effect == "read" and row.function.__module__.rpartition(".")[2] in OWN]
NOTES = {
    "Garden.md": "---\nstatus: open\nDate: 2023-08-11\n---\n# Garden\n\n[[Shed]] [[Diary]] ![[Shed]] #home\n",
    "Work/Shed.md": "[[Garden]] [[Gone]] %_' paint\n",
    "Secret/Diary.md": "---\naliases: [Hush]\nstatus: open\nDate: 2023-08-11\n---\n# Hush\n\n[[Garden]] #hush #home\n",
    "Secret/Lonely.md": "garden\n",
}
HIDDEN = ("Diary.md", "Hush", "#hush", '"hush"', "Lonely")
"""What no answer may hold; that a visible note links to ``Diary`` is no secret."""
NASTY = [
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "%",
    "_",
    "'",
    '"',
    '""',
    "';DROP TABLE files;--",
    "a" * 10_001,
    "😀" * 3_000,
    "../..",
    "/",
    "//host/share",
    "C:\\x",
    "*",
    "-",
    "!",
    "=",
    "[[",
    "]]",
    "#^|",
    "NEAR(",
    "title:a",
    "{a}:b",
    "2026-02-30",
    "Garden.md",
    "Secret",
    "Secret/Diary.md",
    "Hush",
]
TEXTS = st.sampled_from(NASTY) | st.text(max_size=30) | st.characters(codec=None, max_codepoint=0x10FFFF)
NUMBERS = st.sampled_from([0, 1, -1, 2, 200, 1_000, 1_001, 2**31, 2**63, -(2**63) - 1, 10**30])


def no_writer() -> NoReturn:
    raise AssertionError("reading opens nothing to write with")


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    with tempfile.TemporaryDirectory() as folder:
        root = worlds.fill(Path(folder).resolve() / "v", NOTES)
        index = worlds.engine(root, Path(folder) / "s", worlds.WordEmbedder())
        index.refresh()
        view = index.view.with_policy(Policy(client="guest", hidden=("Secret/",)))
        with Context(vault="v", view=view, index=index, open_writer=no_writer, close=index.close) as opened:
            yield opened


def values(kind: object) -> st.SearchStrategy[object]:
    """Give values of a parameter's type, as far as it has one."""
    origin = get_origin(kind)
    if kind is bool:
        return st.booleans()
    if kind is int:
        return NUMBERS
    if kind is str:
        return TEXTS
    if origin is not None and str in get_args(kind):
        return st.lists(TEXTS, max_size=3)
    return st.sampled_from([*get_args(kind), "no such choice"])


def arguments(row: ToolSpec) -> st.SearchStrategy[dict[str, object]]:
    fields = registry.parse_parameters(row).model.model_fields
    needed = {name: values(field.annotation) for name, field in fields.items() if field.is_required()}
    others = {name: values(field.annotation) for name, field in fields.items() if not field.is_required()}
    return st.fixed_dictionaries(needed, optional=others)


def checked(row: ToolSpec, answer: Mapping[str, object]) -> str:
    """Hold an answer to the shape that its tool says, and give it as JSON."""
    TypeAdapter(registry.answer_type(row)).validate_python(answer, strict=True)
    told = set(registry.answer_schema(row)["properties"])  # type: ignore[arg-type]
    assert set(answer) <= told, f"{row.name} doesn't say that it gives {set(answer) - told}"
    return json.dumps(answer)


@pytest.mark.parametrize("row", READING, ids=lambda row: row.name)
@given(data=st.data())
@settings(
    max_examples=scaled(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_tool_answers_or_says_why_not_and_tells_nothing_hidden(
    context: Context, row: ToolSpec, data: st.DataObject
) -> None:
    given_ = data.draw(arguments(row))

    answer: Mapping[str, Any] | None = None
    with suppress(KnapError):
        answer = row.function(context, **given_)

    if answer is not None:
        said = checked(row, answer)
        asked = json.dumps(given_, default=str)
        assert not [secret for secret in HIDDEN if secret in said and secret not in asked]


PLAIN: dict[str, dict[str, Any]] = {
    "search_vault": {"query": "garden hush"},
    "find_notes": {"fields": ["preview", "tags", "aliases", "properties", "hash"]},
    "read_file": {"path": "Garden.md", "expand_embeds": True},
    "fetch_note": {"path": "Garden.md"},
    "note_info": {"path": "Garden.md"},
    "find_backlinks": {"note_name": "Garden"},
    "find_outlinks": {"path": "Garden.md"},
    "get_links": {"path": "Garden.md"},
    "get_links_recursive": {"path": "Garden.md", "depth": 3},
    "list_files_by_frontmatter": {"field": "status", "value": "open"},
    "search_by_date_range": {"start_date": "2023-08-11", "end_date": "2023-08-11", "date_type": "created"},
    "search_by_folder": {"folder": "", "recursive": True},
    "search_keyword": {"query": "garden"},
    "search_semantic": {"query": "garden"},
    "search_task_relevant": {"task": "garden hush", "current_note": "Garden.md"},
}


@pytest.mark.parametrize("row", READING, ids=lambda row: row.name)
def test_a_tool_answers_in_the_shape_it_says_and_counts_nothing_hidden(context: Context, row: ToolSpec) -> None:
    answer = row.function(context, **PLAIN.get(row.name, {}))

    said = checked(row, answer)
    assert answer["success"] is True
    assert not [secret for secret in HIDDEN if secret in said]
    if row.name in {"find_notes", "search_by_folder", "list_notes", "view_all_notes"}:
        assert answer["total"] == 2
