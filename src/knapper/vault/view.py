"""A vault as one client may see it; everything that reads a vault's files goes through here."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from knapper.errors import ConflictError, KnapError, NotFound, RefusedError
from knapper.vault import files as vault_files
from knapper.vault import obsidian, paths, walk
from knapper.vault.access import Policy
from knapper.vault.obsidian import ObsidianSettings
from knapper.vault.paths import NotePath
from knapper.vault.walk import FileStat, IgnoreRules, Skipped

if TYPE_CHECKING:
    from knapper.vault.parser import Note


HINTED_NAMES: Final = 20_000
"""Names that are compared with a missing one to find similar ones."""


def _ignore_problem(_: Skipped) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A vault as one client may see it, by the client's policy and the vault's ignore rules."""

    root: Path
    policy: Policy
    ignore: IgnoreRules
    settings: ObsidianSettings
    alike: Callable[[NotePath], Iterable[NotePath] | None] | None = None
    """Finds paths similar to a missing one in an index, best first, hidden ones included; returns None if it can't."""

    @classmethod
    def open(cls, root: Path, policy: Policy) -> View:
        """Open a vault with a policy and the vault's own ignore rules.

        Raises:
            SetupError: The vault's ``.knapignore`` can't be read.
        """
        obsidian_settings = obsidian.read_settings(root)
        return cls(
            root=root, policy=policy, ignore=IgnoreRules.load(root, obsidian_settings), settings=obsidian_settings
        )

    def visible(self, path: NotePath) -> bool:
        """Return whether a file of this path would be visible, without looking at the disk."""
        return not self.ignore.hides(path) and self.policy.visible(path)

    def path(self, raw: str) -> NotePath:
        """Check a path as a caller wrote it, and return it as spelled in the listing.

        An ignored or hidden file, or a link to one, raises the same error as a missing file.

        Raises:
            BadInput: The text isn't a valid path.
            NotFound: No visible file matches; the hint names the most similar visible ones.
            Ambiguous: Several spellings match, none of them exactly.
            RefusedError: The path, or a symbolic link, leads out of the vault (code ``outside_vault``).
            StorageError: A folder can't be read, or links form a loop.
        """
        return self._resolve(raw).path

    def new_path(self, raw: str) -> NotePath:
        """Check the path of a new file.

        Raises:
            BadInput: The text isn't a valid path, or some system can't store the name.
            RefusedError: The file would be hidden from this client, ignored, or outside the vault.
            ConflictError: The path already exists (code ``exists``); nothing is ever overwritten.
        """
        path = paths.parse(raw, root=self.root)
        # A file must not get the name of a hidden folder either, hence the second check.
        if not (self.visible(path) and self.visible(NotePath(f"{path}/note.md"))):
            hint = "choose another folder; hidden and ignored ones aren't written to"
            raise RefusedError(
                f"{paths.quote_path(path)} can't be made: it wouldn't be visible", hint=hint, code="hidden"
            )
        file = vault_files.find_path(self.root, path, must_exist=False, visible=self.visible)
        if os.path.lexists(file.file):
            hint = "edit it, or choose another name"
            raise ConflictError(f"{paths.quote_path(file.path)} exists already", hint=hint, code="exists")
        _ = paths.check_new(file.path, root=self.root)
        return file.path

    def read(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> Note:
        """Read a note; errors are those of `path` and of `knapper.vault.parser.read_note`."""
        # Imported here, as loading the Markdown parser takes 60 ms.
        from knapper.vault import parser  # noqa: PLC0415 - the parser's 60 ms, which listing and searching needn't cost

        file = self._resolve(raw)
        return parser.make_note(file.path, vault_files.read_bytes(file.file, shown_as=file.path, max_bytes=max_bytes))

    def read_head(self, raw: str) -> Note:
        """Read a note of which only the properties matter, and parse nothing else; errors are those of `read`."""
        from knapper.vault import parser  # noqa: PLC0415 - as in `read`

        file = self._resolve(raw)
        return parser.make_note(
            file.path, vault_files.read_bytes(file.file, shown_as=file.path), read=parser.parse_head
        )

    def read_bytes(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> bytes:
        """Read any file, such as a canvas or an attachment; errors are those of `read`."""
        file = self._resolve(raw)
        return vault_files.read_bytes(file.file, shown_as=file.path, max_bytes=max_bytes)

    @contextmanager
    def open_bytes(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> Generator[BinaryIO]:
        """Open any file to read it in pieces; errors are those of `read`."""
        file = self._resolve(raw)
        with vault_files.open_bytes(file.file, shown_as=file.path, max_bytes=max_bytes) as opened:
            yield opened

    def list_files(self, *, on_problem: Callable[[Skipped], None] = _ignore_problem) -> Iterator[FileStat]:
        """List the visible files in the order of `knapper.vault.walk.list_files`, and report only their problems.

        Raises:
            StorageError: The vault's own folder can't be read.
        """

        def tell(skipped: Skipped) -> None:
            if self.policy.visible(NotePath(skipped.path)):
                on_problem(skipped)

        return filter(self._is_file_visible, walk.list_files(self.root, self.ignore, on_problem=tell))

    def list_files_at(self, path: Path) -> tuple[NotePath | None, list[FileStat]]:
        """List the visible files that a path on disk refers to right now: one, all below a folder, or none.

        Returns:
            The path in the vault, None where it isn't one of the vault; and the files.
        """
        try:
            inside = paths.parse(str(path), root=self.root)
        except KnapError:
            return None, []
        return inside, [
            file for file in walk.list_files_at(self.root, self.ignore, inside) if self._is_file_visible(file)
        ]

    def with_policy(self, policy: Policy) -> View:
        """Return a view of the same vault with another policy."""
        return replace(self, policy=policy)

    def _is_file_visible(self, file: FileStat) -> bool:
        return self.policy.visible(file.path) and (file.target is None or self.policy.visible(file.target))

    def _resolve(self, raw: str) -> vault_files.ResolvedFile:
        path = paths.parse(raw, root=self.root)
        try:
            file = vault_files.find_path(self.root, path, visible=self.visible)
        except NotFound:
            raise self._missing_error(path) from None
        if not file.file.is_file():
            raise self._folder_error(file.path) if self.list_files_at(file.file)[1] else self._missing_error(path)
        return file

    def _folder_error(self, path: NotePath) -> NotFound:
        return NotFound(f"{paths.quote_path(path)} is a folder", hint="name a file in it", code="is_folder")

    def _missing_error(self, path: NotePath) -> NotFound:
        similar = self.alike(path) if self.alike else None
        if similar is None:
            names = (file.path for file in islice(self.list_files(), HINTED_NAMES))
            return vault_files.missing_file_error(path, vault_files.nearest_paths(path, names))
        visible_paths = (visible_path for each in similar if (visible_path := self._visible_path(each)))
        return vault_files.missing_file_error(path, list(islice(visible_paths, vault_files.HINTED_PATHS)))

    def _visible_path(self, path: NotePath) -> NotePath | None:
        try:
            return vault_files.find_path(self.root, path, visible=self.visible).path
        except KnapError:
            return None
