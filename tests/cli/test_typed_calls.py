"""What `calls.call` is declared to return is what the tool that it names returns."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final, get_overloads

from knapper import cli
from knapper.cli import calls
from tests.sources import parsed

_OVERLOADS: Final[dict[str, str]] = {
    re.sub(r"Literal\[[\"'](.*)[\"']\]", r"\1", one.__annotations__["tool"]): one.__annotations__["return"]
    for one in get_overloads(calls.call)
}


def declared(tool: str) -> str:
    """Give the name of the type that a tool is declared to return; some modules hold their annotations as text."""
    module, _, name = tool.rpartition(".")
    annotation: Any = inspect.signature(getattr(import_module(f"knapper.tools.{module}"), name)).return_annotation
    return annotation if isinstance(annotation, str) else annotation.__name__


def test_every_declared_answer_is_the_tools_own() -> None:
    assert {tool: declared(tool) for tool in _OVERLOADS} == _OVERLOADS


def test_every_call_of_a_command_has_a_declared_answer() -> None:
    called = {
        node.args[1].value
        for path in Path(cli.__file__).parent.rglob("*.py")
        if "calls.call(" in path.read_text(encoding="utf-8")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "calls.call"
        if isinstance(node.args[1], ast.Constant)
    }

    assert called == _OVERLOADS.keys()
