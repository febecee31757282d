"""Say what a script may import and call; these are rules for clear errors, and the sandbox is the wall."""

import builtins
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Final, NoReturn

ALLOWED: Final = (
    *("json", "re", "datetime", "collections", "itertools", "functools", "math", "hashlib", "pathlib", "typing"),
    *("dataclasses", "enum", "yaml"),
)
"""Modules that a script may import, with their submodules."""
DISABLED: Final = ("eval", "exec", "compile", "open", "input", "breakpoint")
_LEFT_OUT: Final = frozenset((*DISABLED, "__import__", "help", "exit", "quit", "copyright", "credits", "license"))


class Refused(Exception):
    """Say that a script asked for what the sandbox's rules don't have."""


def namespace() -> dict[str, object]:
    """Make the builtins of a script."""
    kept = {name: value for name, value in vars(builtins).items() if name not in _LEFT_OUT}
    return {**kept, **{name: _disabled(name) for name in DISABLED}, "__import__": load}


def load(
    name: str,
    variables: Mapping[str, object] | None = None,
    local: Mapping[str, object] | None = None,
    wanted: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """Import what may be imported; this is what the statement calls.

    Raises:
        ImportError: The module isn't one of those.
    """
    del variables, local
    if level or not is_allowed(name):
        raise ImportError(refusal(name))
    module = sys.modules.get(name)
    if module is None:
        raise ImportError(f"there is no module '{name}' in scripts")
    return module if wanted else sys.modules[name.partition(".")[0]]


def is_allowed(name: str) -> bool:
    """Tell whether a script may import a module."""
    return name == "__future__" or name.partition(".")[0] in ALLOWED


def refusal(name: str) -> str:
    """Say why a module can't be imported, and which can."""
    return f"'{name}' can't be imported in scripts; these can: {', '.join(ALLOWED)}"


def _disabled(name: str) -> Callable[..., NoReturn]:
    def disabled(*_: object, **__: object) -> NoReturn:
        raise Refused(f"{name}() is disabled in scripts")

    return disabled
