"""Hold the sizes of files, functions and signatures."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import parsed

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "knapper").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

MAX_FILE = 700
MAX_INIT = 40
MAX_TEST_FILE = 900
MAX_FUNCTION = 50
MAX_PARAMETERS = 6

# Each test looks at all modules: with a test for each of them, most of the time went into beginning 1,800 tests.
pytestmark = pytest.mark.timeout(120)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


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


def test_files_are_short() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (*SOURCES, *TESTS)}
    long = {name_of(path): (count, file_limit(path)) for path, count in lines.items() if count > file_limit(path)}

    assert len(SOURCES) > 100 < len(TESTS)
    assert long == {}, "lines and the most there may be: split these files by noun"


def test_functions_are_short() -> None:
    found = {name: lines_without_docstring(function) for path in SOURCES for name, function in functions(path)}

    assert len(found) > 1_000
    assert {name: lines for name, lines in found.items() if lines > MAX_FUNCTION} == {}


def test_functions_take_few_parameters() -> None:
    found = {name: parameters(function) for path in SOURCES for name, function in functions(path)}

    assert len(found) > 1_000
    assert {name: names for name, names in found.items() if len(names) > MAX_PARAMETERS} == {}


def test_modules_keep_no_state() -> None:
    changing = {
        f"{name_of(path)}:{name.lineno} {name.id}"
        for path in SOURCES
        for name in assigned(parsed(path))
        if not is_constant(name.id)
    }
    rebound = {
        f"{name_of(path)}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Global)
    }

    assert changing == set(), "a module's names are constants (UPPER_CASE), types (CapWords) or dunders"
    assert rebound == set()


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
