"""One module alone makes files and folders of the state."""

import ast
from pathlib import Path
from typing import Final

import pytest

from tests.sources import parsed

pytestmark = pytest.mark.timeout(60)  # all sources are parsed, which takes long on a busy machine
SOURCES: Final = Path(__file__).parents[2] / "src" / "knapper"
MAKERS: Final = frozenset(
    {"FileLock", "chmod", "makedirs", "mkdir", "mkdtemp", "mkstemp", "mknod", "touch", "write_bytes", "write_text"}
)
"""Calls that make files or folders, or give them modes; `open` isn't among them, as many things here have one."""
ELSEWHERE: Final = {
    "changes/disk/storage.py": "opens databases to read",
    "config/editing.py": "writes the configuration",
    "service/definition.py": "writes the settings of the system's services",
    "service/platforms.py": "makes the folder of the system's log",
    "agents/evals/suite.py": "writes vaults of its own, to measure models",
    "agents/evals/trials.py": "writes into those vaults",
    "codemode/sandbox/pool.py": "tells the system to count memory anew",
    "cli/plugin.py": "writes Obsidian's plugin into the vault",
    "changes/disk/files.py": "writes the vault's files and folders",
    "cli/commands/bench.py": "makes vaults of its own, to measure models",
    "cli/commands/config.py": "makes the folder of the configuration",
    "changes/disk/transaction.py": "makes the vault's folders",
    "cli/commands/completion.py": "writes the settings of shells",
    "cli/completion/answering.py": "opens the state to read",
    "index/refresh.py": "touches rows",
    "server/mcp/install.py": "writes the settings of other programs",
    "system/private.py": "makes the state",
}


def _calls(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(parsed(file)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_private = isinstance(owner, ast.Name) and owner.id == "private"
        if not is_private and (name in MAKERS or _connects_to_file(node, name, owner)):
            names.add(name)
    return names


def _connects_to_file(node: ast.Call, name: str, owner: ast.expr | None) -> bool:
    is_sqlite = isinstance(owner, ast.Name) and owner.id == "sqlite3" and name == "connect"
    return is_sqlite and not (isinstance(node.args[0], ast.Constant) and node.args[0].value == ":memory:")


def test_no_other_module_makes_files_or_folders_of_the_state() -> None:
    makers = {file.relative_to(SOURCES).as_posix(): names for file in SOURCES.rglob("*.py") if (names := _calls(file))}

    assert {path: names for path, names in makers.items() if path not in ELSEWHERE} == {}
