"""Hold the sizes of files, functions and signatures."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "knapper").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

MAX_FILE = 700
MAX_INIT = 40
MAX_TEST_FILE = 900
MAX_FUNCTION = 50
MAX_PARAMETERS = 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[tuple[str, Function]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, Function):
            yield f"{name_of(path)}:{node.lineno} {node.name}", node


def lines_without_docstring(function: Function) -> int:
    stop = function.end_lineno or function.lineno
    lines = stop - function.lineno + 1
    if ast.get_docstring(function) is None:
        return lines
    docstring = function.body[0]
    return lines - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def parameters(function: Function) -> list[str]:
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, *([spec.vararg] if spec.vararg else []), *spec.kwonlyargs]
    every += [spec.kwarg] if spec.kwarg else []
    return [parameter.arg for parameter in every if parameter.arg not in {"self", "cls"}]


def file_limit(path: Path) -> int:
    if ROOT / "tests" in path.parents:
        return MAX_TEST_FILE
    return MAX_INIT if path.name == "__init__.py" else MAX_FILE


@pytest.mark.parametrize("path", [*SOURCES, *TESTS], ids=name_of)
def test_a_file_is_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= file_limit(path), f"{name_of(path)}: {lines} lines, at most {file_limit(path)}: split it by noun"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_are_short(path: Path) -> None:
    found = {name: lines_without_docstring(function) for name, function in functions(path)}

    assert {name: lines for name, lines in found.items() if lines > MAX_FUNCTION} == {}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_functions_take_few_parameters(path: Path) -> None:
    found = {name: parameters(function) for name, function in functions(path)}

    assert {name: names for name, names in found.items() if len(names) > MAX_PARAMETERS} == {}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_module_keeps_no_state(path: Path) -> None:
    tree = parsed(path)
    named = {name.id: name.lineno for name in assigned(tree)}
    changing = {name: line for name, line in named.items() if not is_constant(name)}
    rebound = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Global)]

    assert changing == {}, "a module's names are constants (UPPER_CASE), types (CapWords) or dunders"
    assert rebound == []


def assigned(tree: ast.Module) -> Iterator[ast.Name]:
    """Yield the names that assignments at the top of a module bind."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        for target in targets:
            yield from (part for part in ast.walk(target) if isinstance(part, ast.Name))


def is_constant(name: str) -> bool:
    bare = name.lstrip("_")
    return bare[:1].isupper() or (name.startswith("__") and name.endswith("__"))


SAMPLE = '''
async def long(self, a, /, b, *rest, c, **more):
    """Say
    more.
    """
    return a
'''


def test_a_docstring_is_not_counted_and_every_kind_of_parameter_is() -> None:
    function = next(node for node in ast.walk(ast.parse(SAMPLE)) if isinstance(node, Function))

    assert lines_without_docstring(function) == 2
    assert parameters(function) == ["a", "b", "rest", "c", "more"]
