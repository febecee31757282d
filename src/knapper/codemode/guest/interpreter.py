"""Run one script: check it, give it its names, and tell what became of it."""

import ast
import json
import sys
import types
from collections.abc import Callable, Mapping
from typing import Final, TextIO, TypedDict, cast

from knapper.codemode.guest import clock, results, rules, streams
from knapper.codemode.guest.obsidian import Host, Obsidian

FILE: Final = "<script>\ud800"
"""Names the script; half a character, so that Python doesn't look for a file of that name to quote from it."""
_MOST_MESSAGE: Final = 2_000


class Job(TypedDict, total=False):
    """Say what is to be run."""

    script: str
    now: float
    """Seconds since 1970, UTC."""
    offset: int
    """Of local time from UTC, in seconds."""
    methods: list[str]
    """Methods of `obsidian` beyond those that it always has."""
    result_bytes: int


def run(job: str, call: Callable[[str], str], emit: Callable[[str], None]) -> str:
    """Run the script of a job.

    Args:
        job: A `Job` as JSON.
        call: Calls the host.
        emit: Takes what is printed.

    Returns:
        ``{"kind": "ok", "result": …}`` or ``{"kind": …, "error": …}``, as JSON.
    """
    asked = cast("Job", json.loads(job))
    clock.CLOCK.now = asked.get("now", 0.0)
    clock.CLOCK.offset = asked.get("offset", 0)
    host = Host(call)
    printed = streams.Printed(emit)
    sys.stdout = sys.stderr = cast("TextIO", printed)
    try:
        outcome = _run(asked, Obsidian(host, asked.get("methods", [])))
    finally:
        printed.flush()
    return outcome


def _run(asked: Job, obsidian: Obsidian) -> str:
    script = asked.get("script", "")
    try:
        tree = ast.parse(script, FILE)
        check(tree)
        code = compile(tree, FILE, "exec", dont_inherit=True)
    except ImportRefused as error:
        return _failed("refused", f"line {error.lineno}: ImportError: {error.msg}")
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        return _failed("syntax", f"{place}{type(error).__name__}: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        return _failed("syntax", f"the script can't be read: {_told(error)}")
    names: dict[str, object] = {"__name__": "__main__", "__builtins__": rules.namespace(), "obsidian": obsidian}
    module = types.ModuleType("__main__")  # dataclasses and typing look names up in a class's module
    vars(module).update(names)
    sys.modules["__main__"] = module
    try:
        exec(code, vars(module))  # noqa: S102 - what this module is for; the sandbox is the wall
    except SystemExit as end:
        if end.code:
            return _failed("error", f"{_place(end)}SystemExit: {str(end.code)[:_MOST_MESSAGE]}")
    except BaseException as error:  # noqa: BLE001 - whatever a script raises is its outcome
        return _failed(_kind(error), f"{_place(error)}{_told(error)}")
    return results.encode(vars(module).get("__result__"), asked.get("result_bytes", 200_000))


def check(tree: ast.Module) -> None:
    """Find what can't work before anything has run.

    Raises:
        SyntaxError: The script imports what can't be imported, or names `__import__`.
    """
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        for name in names:
            if not rules.is_allowed(name):
                raise _wrong(rules.refusal(name), node)
        if isinstance(node, ast.Name) and node.id == "__import__":
            raise _wrong("__import__ is disabled in scripts; write an import statement", node)


def _wrong(message: str, node: ast.AST) -> SyntaxError:
    return ImportRefused(message, (FILE, getattr(node, "lineno", None), None, None))


class ImportRefused(SyntaxError):
    """Say that a script imports what it can't."""


def _kind(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "memory"
    return "refused" if isinstance(error, rules.Refused | PermissionError) else "error"


def _told(error: BaseException) -> str:
    """Name an exception and what it says, whatever its class does when it is asked."""
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - a script's class may raise anything here
        text = ""
    name = type.__getattribute__(type(error), "__name__")
    text = text if isinstance(text, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance] - it may be any subclass
    return f"{name}: {text[:_MOST_MESSAGE]}" if text else str(name)


def _place(error: BaseException) -> str:
    """Name the script's lines that led to an exception, innermost first."""
    lines: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == FILE:
            within = "" if code.co_name == "<module>" else f" in {code.co_name}"
            lines.append(f"line {trace.tb_lineno}{within}")
        trace = trace.tb_next
    if not lines:
        return ""
    called = f" (called from {lines[0]})" if len(lines) > 1 else ""
    return f"{lines[-1]}{called}: "


def _failed(kind: str, error: str) -> str:
    told: Mapping[str, object] = {"kind": kind, "error": results.clean(error)}
    return json.dumps(told, ensure_ascii=False)
