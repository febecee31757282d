"""Whatever is given to any tool, what comes back is an answer or a typed error, and both are JSON."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knapper.app import Hub, open_hub, tables
from knapper.tools import registry
from knapper.tools.registry import ToolSpec
from tests import compiled
from tests.parity import surfaces
from tests.properties import scaled

TEXTS: Final = (
    "",
    " ",
    "\0",
    "\ud800",
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\Windows\\win.ini",
    "\\\\server\\share",
    "file:///etc/passwd",
    ".obsidian/app.json",
    ".git/config",
    "Garden.md",
    "garden.MD",
    "Garden.md\n",
    "Garden.md/",
    "Plans",
    "Plans/..",
    "a" * 300 + ".md",
    "a/" * 500,
    "💧" * 80,
    "e\u0301.md",
    "\u202etxt.exe",
    "CON.md",
    "[[Garden]]",
    "#^|[]",
    "%",
    "_",
    "'; DROP TABLE files; --",
    '"unclosed',
    "NEAR(a b, 5) AND *",
    "(" * 200,
    "a" * 20_000,
    "2026-13-45",
    "9999-12-31",
    "0000-00-00",
    "status=",
    "=open",
    "!!~x",
    "^block",
    "# ",
    "######## x",
    "# A > ## B > ### C",
    "replace:1-99999999999999999999",
    "insert:-1",
    "after:",
    "sha256:zz",
    "<script>alert(1)</script>",
    "http://169.254.169.254/",
    "{{date}}",
)
NUMBERS: Final = (0, 1, -1, 2, 1_000, 1_001, 2**31, 2**63, 2**64, -(2**63), 10**30)
_UNCHECKED: Final = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
_NUMBERS: Final = st.sampled_from(NUMBERS)
_PLAIN: Final[dict[str, st.SearchStrategy[Any]]] = {
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "boolean": st.booleans(),
    "object": st.dictionaries(st.sampled_from(TEXTS), st.sampled_from((*TEXTS, *NUMBERS)), max_size=3),
    "null": st.none(),
}
ROWS: Final = tables.build_table().specs


@pytest.fixture(scope="module")
def hub(code_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Hub]:
    state = tmp_path_factory.mktemp("state")
    compiled.put(code_folder, state)
    with open_hub(surfaces.settings(tmp_path_factory.mktemp("hostile"), state)) as opened:
        yield opened


def values(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Give what fits a parameter's type, and sometimes what doesn't."""
    return st.one_of(fitting(node), fitting(node), st.sampled_from((None, True, 1.5, [], {}, *TEXTS, *NUMBERS)))


def fitting(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Give what fits a type."""
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if "anyOf" in node:
        return st.one_of(*(fitting(one) for one in node["anyOf"]))
    if node.get("type") == "array":
        return st.lists(fitting(node.get("items", {})), max_size=8)
    return _PLAIN.get(str(node.get("type")), st.sampled_from(TEXTS) | st.text(max_size=50))


def arguments(row: ToolSpec) -> st.SearchStrategy[dict[str, Any]]:
    """Give arguments for a tool: all that are needed, and some of the others."""
    shown = registry.parameter_schema(row)
    known = cast("dict[str, dict[str, Any]]", shown["properties"])
    needed = set(cast("list[str]", shown.get("required", [])))
    return st.fixed_dictionaries(
        {name: values(known[name]) for name in known if name in needed},
        optional={name: values(known[name]) for name in known if name not in needed},
    )


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_whatever_is_given_comes_back_typed(hub: Hub, row: ToolSpec) -> None:
    outside = hub.open().vault.path.parent
    before = {path.name for path in outside.iterdir()}

    @settings(max_examples=scaled(25), deadline=None, suppress_health_check=_UNCHECKED, database=None)
    @given(given=arguments(row))
    def check(given: dict[str, Any]) -> None:
        answer = hub.table.answer(row.name, given, lambda vault: hub.context(client=surfaces.CLIENT, vault=vault))
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()
        assert answer["success"] or (answer["code"] and answer["error"])
        assert len(text) < 5_000_000

    check()
    assert {path.name for path in outside.iterdir()} == before
