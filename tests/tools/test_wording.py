"""What a language model reads of each tool: every sentence has to be understood without the others."""

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from knapper.app import tables
from knapper.tools import registry

_LEANING: Final = re.compile(
    r"^(As (for|there|showing|reading)\b|Likewise|Which\.|(Returns:? )?The same\b|Its? )", re.MULTILINE
)
_NAMED: Final = re.compile(r"\b(?:call|with|to|as|that|of) ((?:[a-z]+_)+[a-z]+)\b")
_LENGTHS: Final = range(13, 400)
TABLE: Final = tables.build_table(("one", "two"))


def parameters() -> Iterator[tuple[str, str]]:
    """Give each tool's parameters, with what is said of them."""
    for row in TABLE.specs:
        for name, one in cast("dict[str, dict[str, Any]]", TABLE.parameters(row)["properties"]).items():
            yield f"{row.name}.{name}", one.get("description", "")


def test_every_parameter_is_explained_by_itself() -> None:
    wrong = [
        (name, text)
        for name, text in parameters()
        if len(text) not in _LENGTHS or not text.endswith(".") or _LEANING.search(text)
    ]

    assert wrong == []


def test_every_description_stands_alone_and_ends() -> None:
    told = {row.name: registry.describe(row) for row in TABLE.specs}
    wrong = [
        (name, text)
        for name, text in told.items()
        if not text.endswith(".") or _LEANING.search(text) or re.search(r"``|[A-Za-z]+Error\b", text)
    ]

    assert wrong == []


def test_every_tool_that_is_named_is_there() -> None:
    known = {row.name for row in TABLE.specs} | {name.partition(".")[2] for name, _ in parameters()}
    told = [*(registry.describe(row) for row in TABLE.specs), *(text for _, text in parameters())]

    assert {name for text in told for name in _NAMED.findall(text)} - known == set()


def test_a_tool_that_writes_says_that_its_change_may_wait() -> None:
    silent = [row.name for row in TABLE.specs if row.takes_submit_options and "proposed" not in registry.describe(row)]

    assert silent == []
