"""Copies of what other programs saved while a change was made, so that none of it is lost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from knapper.changes.disk.files import Files, HeldFile, hash_content
from knapper.changes.disk.plan import Step
from knapper.errors import KnapError
from knapper.system import opening
from knapper.vault import paths

_MAX_SUFFIX: Final = 16


def copy_paths(folder: Path, temp: Path, step: Step) -> Iterator[Path]:
    """Yield the names for copies of a displaced file: ``knap-tmp-<change>-<step>-<note>.md``, then numbered ones."""
    # The change's id and the step's number come first, so that shortening a long name keeps copies distinct.
    begin = temp.name.lstrip(".")
    for number in count(1):
        stem = f"{begin}-{paths.stem(step.path)}" if number == 1 else f"{begin}-{number}-{paths.stem(step.path)}"
        yield folder / paths.fit_name(stem, paths.suffix(step.path)[:_MAX_SUFFIX])


def add_notices(error: KnapError, notices: Sequence[str]) -> KnapError:
    """Add to an error what an editor saved meanwhile, and where it is."""
    if notices:
        error.details["notices"] = list(notices)
        error.hint = "; ".join([*notices, error.hint])
    return error


def find_moved_away(files: Files, root: Path, steps: Sequence[Step]) -> Iterator[str]:
    """Yield a notice for each step whose temp file went elsewhere with its folder, before the steps are taken back.

    Args:
        files: The disk.
        root: The vault's real folder.
        steps: Those that may have been done.
    """
    for step in steps:
        temp = root / step.temp
        if not step.temp or files.stamp(temp) is not None:
            continue
        # A created or removed file has no temp file at times, a replaced one always.
        if step.kind == "replace" or not opening.is_folder((root / (step.target_at or step.source_at)).parent):
            yield (
                f"the folder of '{step.path}' was moved meanwhile: look there whether the note is as it was, and for "
                f"the file '{temp.name}', which holds its other text"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Save:
    step: Step
    temp: Path
    file: HeldFile | None
    """The open file where a program was still writing it."""
    content: bytes = b""


@dataclass(slots=True, kw_only=True)
class DisplacedSaves:
    """Saves of other programs that an exchange displaced for a moment, and that have their names back.

    Who read the refused text in that moment may save over them, so a copy of each is kept.
    """

    files: Files
    folder: Path
    """Folder for the copies."""
    _saves: list[_Save] = field(default_factory=list[_Save], init=False)

    def add(self, temp: Path, step: Step) -> None:
        """Read a displaced file, or hold it open while a program writes it; the copy is written by `keep`.

        A folder, link or pipe that took the file's name has no copy: it goes back as it is.

        Raises:
            OSError: It can't be read.
        """
        # Waiting and writing come later, when the file has its name back.
        if not opening.is_file(temp):
            return
        is_settled, file = self.files.is_settled(temp), self.files.hold(temp)
        content = file.read(timeout_s=0) if is_settled else b""
        self._saves.append(_Save(step=step, temp=temp, file=None if is_settled else file, content=content))

    def keep(self) -> list[str]:
        """Write the copies, and return a notice for each; a program that still writes is waited for."""
        notices: list[str] = []
        while self._saves:
            save = self._saves.pop(0)
            try:
                content = save.file.read(timeout_s=self.files.wait_s) if save.file else save.content
                if hash_content(content) == save.step.before:
                    # The program had opened the file, and saved nothing.
                    continue
                copy = self._write_copy(save, content)
            except OSError as error:
                notices.append(f"'{save.step.path}': no copy of what another program saved could be kept: {error}")
                continue
            if copy is None:
                # The same text was kept when its name was lost for good.
                continue
            notices.append(
                f"'{save.step.path}': what another program saved was displaced for a moment, and has its name back; "
                f"a copy is in '{copy}'"
            )
        return notices

    def _write_copy(self, save: _Save, content: bytes) -> Path | None:
        for copy in copy_paths(self.folder, save.temp, save.step):
            if self.files.stamp(copy) is None:
                self.files.keep(content, copy)
                return copy
            if self.files.read(copy) == content:
                return None
        return None
