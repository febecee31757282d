"""Hold where the steps of one change are done, and what an editor's saves meanwhile lead to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from knapper.changes.disk.files import OPEN, Files, Stamp
from knapper.changes.disk.steps import Step
from knapper.errors import ConflictError
from knapper.vault import paths

_ENDING: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Hold where and with what the steps of one change are done."""

    root: Path
    """The vault's real folder."""
    files: Files
    shelf: Path
    """Folder for what an editor saved and another save displaced."""
    content: Callable[[str], bytes]
    """Gives the journal's content for a hash."""
    notices: list[str] = field(default_factory=list[str])
    looks: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    """What each displaced file was like when it was found to be the expected one, by temp path."""

    def at(self, relative: str) -> Path:
        """Tell where a step's place is on disk."""
        return self.root / relative

    def clear(self, relative: str) -> None:
        """Take a temp file away if it is there: a read-only file system refuses even where nothing is."""
        if self.files.stamp(self.at(relative)) is not None:
            self.files.unlink(self.at(relative))

    def strayed(self, step: Step) -> str:
        """Tell which folder on the way to a step's places is a symbolic link by now; empty for none.

        When the step was planned, all links were followed: whoever put one there since may lead out of the vault.
        """
        ways = {folder for at in (step.source_at, step.target_at, step.temp) for folder in paths.parent_folders(at)}
        return min((folder for folder in ways if self.at(folder).is_symlink()), default="")


def changed(step: Step, current: str | None) -> ConflictError:
    """Make the error for a file that an editor saved while it was being changed."""
    if current == OPEN:
        return ConflictError(
            f"'{step.path}' is open for writing in another program; nothing was changed",
            hint="close it there, then try again",
            details={"path": step.path, "current_hash": None},
        )
    return ConflictError(
        f"'{step.path}' was saved by another program meanwhile; nothing was changed",
        hint="read the file again and make the change against what it holds now",
        details={"path": step.path, "current_hash": current},
    )


def led_away(folder: str) -> ConflictError:
    """Make the error for a folder that became a symbolic link while something in it was being changed."""
    return ConflictError(
        f"'{folder}' became a symbolic link meanwhile; nothing was changed",
        hint="look at who put it there, then try again",
        details={"path": folder, "current_hash": None},
    )


def appeared(site: Site, step: Step) -> ConflictError:
    """Make the error for a file that appeared where a step was to put one."""
    current = site.files.settled(site.at(step.target_at))
    return ConflictError(
        f"'{step.target}' was made by another program meanwhile; nothing was changed",
        hint="choose another name, or edit that file",
        details={"path": step.target, "current_hash": current},
    )


def shelve(site: Site, temp: Path, step: Step) -> None:
    """Keep a copy of what no name holds any more, and say where."""
    begin = f"{temp.name.lstrip('.')}-{paths.stem(step.path)}"
    copy = site.shelf / paths.fit_name(begin, paths.suffix(step.path)[:_ENDING])  # what tells copies apart isn't cut
    site.files.copy(temp, copy)
    site.files.unlink(temp)
    site.notices.append(f"'{step.path}': an earlier save by another program is kept in '{copy}'")
