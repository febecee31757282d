"""Let what scripts can't have fail with a clear error, before it is asked of a system that isn't there."""

import io
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Final, NoReturn, cast

_PURE: Final = frozenset({"fspath", "strerror", "register_at_fork", "putenv", "unsetenv"})
_MESSAGE: Final = "scripts have no files, processes or environment; use the obsidian object"


class Nowhere:
    """Find no module: all there are were loaded before."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> NoReturn:
        """Refuse.

        Raises:
            ImportError: Always.
        """
        del path, target
        raise ImportError(f"there is no module '{name}' in scripts")


def refuse(*_: object, **__: object) -> NoReturn:
    """Stand where a function of the system stood.

    Raises:
        PermissionError: Always.
    """
    raise PermissionError(_MESSAGE)


def close() -> None:
    """Put refusals in the place of all functions that ask the system, wherever they were imported to."""
    system = sys.modules[os.name]
    asking = {id(value): value for value in (*_functions(system), io.open, io.open_code, time.sleep)}
    modules = cast("tuple[object, ...]", tuple(sys.modules.values()))  # None where a module is kept out
    for module in modules:
        if isinstance(module, ModuleType) and not module.__name__.startswith("_frozen_importlib"):
            _replace(module, asking)
    os.environ.clear()  # noqa: TID251 - the guest's own, so that it shows nothing of where it was built
    sys.meta_path[:] = [Nowhere()]
    sys.path.clear()
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()


def _functions(module: ModuleType) -> list[Callable[..., object]]:
    found = (value for name, value in vars(module).items() if name not in _PURE and not name.startswith("_"))
    return [value for value in found if callable(value) and not isinstance(value, type)]


def _replace(module: ModuleType, asking: dict[int, Callable[..., object]]) -> None:
    for name, value in tuple(vars(module).items()):
        if id(value) in asking:
            setattr(module, name, refuse)
