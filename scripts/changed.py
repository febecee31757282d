"""Name the files that `scripts/check --changed` looks at: what changed against a base, and what imports that."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DECIDE_FOR_ALL: Final = ("pyproject.toml", "requirements.lock")
"""They set how every file is judged: the rules, and the types of other packages."""


class CannotTell(Exception):
    """What changed can't be found out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is to be checked."""

    lint: list[str] = field(default_factory=list[str])
    """Changed Python files that are there."""
    types: list[str] = field(default_factory=list[str])
    """Those of them that the type checker is for, and the modules that import a changed one directly."""
    all_for: str = ""
    """The changed file because of which everything is checked."""


def select(root: Path, base: str) -> Selection:
    """Choose what is checked after the changes since *base*.

    Raises:
        CannotTell: It isn't a clone, or there is no such base.
    """
    paths = changed(root, base)
    if decisive := sorted(paths.intersection(DECIDE_FOR_ALL)):
        return Selection(all_for=decisive[0])
    python = {path for path in paths if path.endswith(".py")}
    there = {path for path in python if (root / path).is_file()}
    typed = type_checked(root)
    return Selection(lint=sorted(there), types=sorted(there & typed | importers(root, python, typed)))


def changed(root: Path, base: str) -> set[str]:
    """Name the files that differ from where *base* and HEAD parted, committed or not; deleted and untracked ones too.

    A renamed file counts twice: as deleted, and as new.

    Raises:
        CannotTell: It isn't a clone, or there is no such base.
    """
    _ = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    different = _git(root, "diff", "-z", "--name-only", "--no-renames", "--no-relative", "--merge-base", base, "--")
    untracked = _git(root, "ls-files", "-z", "--others", "--exclude-standard")
    return {path for path in (different + untracked).split("\0") if path}


def type_checked(root: Path) -> set[str]:
    """Name the Python files that the type checker's settings include."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["basedpyright"]
    places = [root / one for one in settings["include"]]
    files = [path for place in places for path in (place.rglob("*.py") if place.is_dir() else [place])]
    return {path.relative_to(root).as_posix() for path in files if path.is_file()}


def importers(root: Path, paths: Iterable[str], candidates: Iterable[str]) -> set[str]:
    """Find the candidates that import one of the modules directly.

    Goes one step: who imports an importer isn't found. Only a package's ``__init__`` is looked through, as it hands on
    what it imports.

    Args:
        root: The project's folder.
        paths: Files of the imported modules, which may have been deleted.
        candidates: Files that may import them.

    Returns:
        Candidates that do; none for no paths.
    """
    wanted = {module_name(path) for path in paths}
    if not wanted:
        return set()
    imports = {path: set(imported(root / path)) for path in candidates}
    found: set[str] = set()
    while more := {path for path, names in imports.items() if path not in found and names & wanted}:
        found |= more
        wanted = {module_name(path) for path in more if path.endswith("/__init__.py")}
    return found


def module_name(path: str) -> str:
    """Return the name that a file is imported by: ``src/knapper/vault/links.py`` is ``knapper.vault.links``."""
    parts = path.removeprefix("src/").removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path) -> Iterator[str]:
    """Yield what a file imports: modules, and what is taken from them, which may be modules too."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # the linter tells, where it is a changed file
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:  # the linter lets no relative import in
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rows(selection: Selection) -> Iterator[str]:
    """Yield what scripts/check reads: ``lint PATH``, ``types PATH`` or ``all PATH``, each ended by NUL."""
    if selection.all_for:
        yield f"all {selection.all_for}\0"
    yield from (f"lint {path}\0" for path in selection.lint)
    yield from (f"types {path}\0" for path in selection.types)


def main() -> None:
    """Write the rows for the base that is named on the command line."""
    try:
        selection = select(ROOT, sys.argv[1])
    except CannotTell as error:
        sys.exit(f"check: {error}")
    sys.stdout.buffer.write("".join(rows(selection)).encode("utf-8", "surrogateescape"))


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)  # noqa: S603, S607
    except OSError:
        raise CannotTell("--changed needs git, and there is none") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise CannotTell(said or f"there is no commit '{arguments[-1].removesuffix('^{commit}')}' to compare with")
    return done.stdout.decode("utf-8", "surrogateescape")


if __name__ == "__main__":
    main()
