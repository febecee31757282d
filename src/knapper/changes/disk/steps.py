"""Name the steps that a transaction is made of, as the journal keeps them, and sum them up by file."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from knapper.vault.paths import NotePath

StepKind = Literal["replace", "create", "remove", "move", "discard", "mkdir", "rmdir"]
NOWHERE = NotePath("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Hold one step: enough to do it, to tell after a kill whether it was done, and to take it back.

    A replaced note has the same ``source`` and ``target``; a new one no source, a removed one no target.
    """

    kind: StepKind
    source: NotePath = NOWHERE
    """Path in the vault before; empty where nothing was."""
    target: NotePath = NOWHERE
    """Path in the vault after; empty where nothing is."""
    source_at: str = ""
    """Where the source lies below the vault's real folder, symbolic links followed."""
    target_at: str = ""
    before: str | None = None
    """Hash before; None for folders."""
    after: str | None = None
    mode: int | None = None
    """Permission bits of what was there before, or of the new file or folder."""
    temp: str = ""
    """The temp file's place below the vault's real folder; empty where none is needed."""
    inode: str = ""
    """Of what is moved; a text, since some systems' numbers are too large for the journal."""
    is_folder: bool = False
    """Whether a folder is moved."""

    @property
    def path(self) -> str:
        """The path to name in messages."""
        return self.source or self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """Say what became of one file, or of a folder that was moved whole.

    A moved and edited note is one result; one that came and went within the change is none.
    """

    before_path: NotePath | None
    after_path: NotePath | None
    before_hash: str | None
    after_hash: str | None
    is_folder: bool = False

    @property
    def path(self) -> NotePath:
        """The path now, or the last one it had."""
        return self.after_path or self.before_path or NOWHERE


def results(steps: Iterable[Step]) -> tuple[FileResult, ...]:
    """Sum steps up by file, in the order in which the files were first touched."""
    found: list[FileResult] = []
    at: dict[str, int] = {}
    for step in steps:
        if step.kind in {"mkdir", "rmdir"}:
            continue
        number = at.pop(step.source, None)
        before = found[number] if number is not None else _first(step)
        after = replace(before, after_path=step.target or None, after_hash=step.after)
        if number is None:
            number = len(found)
            found.append(after)
        else:
            found[number] = after
        if step.is_folder:
            found = [_carried(one, step) for one in found]
            at = {one.after_path: place for place, one in enumerate(found) if one.after_path}
        elif step.target:
            at[step.target] = number
    return tuple(one for one in found if one.before_path or one.after_path)


def _first(step: Step) -> FileResult:
    return FileResult(
        before_path=step.source or None,
        after_path=None,
        before_hash=step.before,
        after_hash=None,
        is_folder=step.is_folder,
    )


def _carried(one: FileResult, step: Step) -> FileResult:
    prefix = step.source + "/"
    if one.after_path is None or not one.after_path.startswith(prefix):
        return one
    return replace(one, after_path=NotePath(f"{step.target}/{one.after_path[len(prefix) :]}"))
