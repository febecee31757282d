"""A vault as one client may see it; everything that reads a vault's files goes through here."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from knapper.errors import Ambiguous, BadInput, ConflictError, KnapError, NotFound, RefusedError, StorageError
from knapper.system import opening
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
MAX_CANDIDATES: Final = 20
"""Files that an error about an ambiguous name lists."""


class FindNamed(Protocol):
    """Finds the files that a name may mean in an index: by the end of their path, or by their title or an alias."""

    def __call__(self, name: str, policy: Policy, *, certain: bool) -> Sequence[NotePath]:
        """Return the files that *policy* shows, by path.

        Args:
            name: The name as a caller wrote it.
            policy: The client's; what it hides is neither returned nor counted, and takes no time of its own.
            certain: Wait until the index holds the whole vault, as a write needs it.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A vault as one client may see it, by the client's policy and the vault's ignore rules."""

    root: Path
    policy: Policy
    ignore: IgnoreRules
    settings: ObsidianSettings
    alike: Callable[[NotePath], Iterable[NotePath] | None] | None = None
    """Finds paths similar to a missing one in an index, best first, hidden ones included; returns None if it can't."""
    named: FindNamed | None = None
    """Finds files by name in an index; None where there is no index."""
    folders: vault_files.KnownFolders | None = None
    """Of a view that one batch of paths is looked up in; None looks up every folder anew."""

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

    def parse(self, raw: str) -> NotePath:
        """Check the form of a path as a caller wrote it; it need not be there.

        Only a person names places by absolute paths: to others an answer would tell where the vault lies. An existing
        file that they see may be named so in `path`, `locate` and `read`, since its name tells nothing new.

        Raises:
            BadInput: The text isn't a valid path.
            RefusedError: It leads out of the vault, or is absolute (code ``outside_vault``).
        """
        if paths.is_absolute(raw) and not self.policy.may_know_places:
            raise paths.unknown_place_error()
        return paths.parse(raw, root=self.root)

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

    def locate(self, raw: str, *, certain: bool = False) -> NotePath:
        """Return the file that a caller names by its path, or by a name as in Obsidian.

        A path that exists wins. Otherwise, in this order: the path without ``.md``; the end of a path, such as
        ``Work/Plan`` for ``2026/Work/Plan.md``; a note's title or one of its aliases. Case and Unicode form don't
        count, nor do the brackets of a wikilink.

        Args:
            raw: The path or name, as a caller wrote it.
            certain: Wait until the index knows every file, so that a name that fits several isn't taken for one.

        Raises:
            Ambiguous: Several visible files have the name; the hint and ``details["candidates"]`` list them.
            KnapError: As for `path`; for a missing file, the error is that of the path.
        """
        name = strip_brackets(raw)
        if paths.is_absolute(name) and not self.policy.may_know_places:
            return self._resolve_absolute(name).path
        try:
            path = paths.parse(name, root=self.root)
        except BadInput as error:
            # On Windows a title or alias may hold what no file's name can.
            named = self._find_named(name, certain=certain) if error.code == "forbidden_character" else None
            if named is None:
                raise
            return named
        folder_error: NotFound | None = None
        try:
            return self._find(path).path
        except NotFound as error:
            folder_error = error if error.code == "is_folder" else None
        # A change of a folder's name would mean the folder, so no note is taken for it.
        if certain and (folder_error is not None or self.find_folder(path) is not None):
            raise folder_error or self._missing_error(path)
        if not paths.name_key(path).endswith(paths.NOTE_SUFFIX):
            with suppress(NotFound, BadInput):
                return self._find(paths.parse(f"{path}{paths.NOTE_SUFFIX}", root=self.root)).path
        named = self._find_named(name, certain=certain)
        if named is None:
            raise folder_error or self._missing_error(path)
        return named

    def _find_named(self, name: str, *, certain: bool) -> NotePath | None:
        """Return the file that has a name, as `locate` says, or None.

        Raises:
            Ambiguous: Several have it.
        """
        # without those that are gone since they were indexed
        found = self.named(name, self.policy, certain=certain) if self.named is not None else ()
        matches = [on_disk for each in found if (on_disk := self._visible_path(each)) is not None]
        if len(matches) > 1:
            listed = list(matches[:MAX_CANDIDATES])
            more = f", and {len(matches) - len(listed)} more" if len(matches) > len(listed) else ""
            hint = "give the path of one: " + ", ".join(map(repr, listed)) + more
            message = f"{len(matches)} files are named {paths.quote_path(name)}"
            raise Ambiguous(message, hint=hint, code="ambiguous_name", details={"candidates": listed})
        return matches[0] if matches else None

    def find(self, path: NotePath, *, must_exist: bool = True) -> vault_files.ResolvedFile:
        """Return what a path refers to on disk, as far as the client may know; errors are those of `find_path`."""
        return vault_files.find_path(self.root, path, must_exist=must_exist, visible=self.visible, known=self.folders)

    def find_folder(self, path: NotePath) -> NotePath | None:
        """Return a folder as spelled on disk, or None where there is none that the client may know of.

        One that is empty is there. One whose files are all hidden from the client isn't: what hides them may name them
        one by one, and would be given away by the folder.
        """
        if not self.visible(NotePath(f"{path}/note.md")):
            return None
        try:
            resolved = self.find(path)
        except (NotFound, RefusedError, StorageError):
            return None
        is_shown = self.visible(NotePath(f"{resolved.target}/note.md")) and opening.is_folder(resolved.place)
        if is_shown and not self.policy.sees_all:
            (listed,) = walk.list_places(self.root, self.ignore, [resolved.path])
            is_shown = not listed or any(map(self._is_file_visible, listed))
        return resolved.path if is_shown else None

    def new_path(self, raw: str) -> NotePath:
        """Check the path of a new file.

        Raises:
            BadInput: The text isn't a valid path, or some system can't store the name.
            RefusedError: The file would be hidden from this client, ignored, or outside the vault.
            ConflictError: The path already exists (code ``exists``); nothing is ever overwritten.
        """
        path = self.parse(raw)
        # A file must not get the name of a hidden folder either, hence the second check.
        if not (self.visible(path) and self.visible(NotePath(f"{path}/note.md"))):
            hint = "choose another folder; hidden and ignored ones aren't written to"
            raise RefusedError(
                f"{paths.quote_path(path)} can't be made: it wouldn't be visible", hint=hint, code="hidden"
            )
        file = self.find(path, must_exist=False)
        if opening.exists(file.place):
            hint = "edit it, or choose another name"
            raise ConflictError(f"{paths.quote_path(file.path)} exists already", hint=hint, code="exists")
        _ = paths.check_new(file.path, root=self.root)
        return file.path

    def read(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> Note:
        """Read a note; errors are those of `path` and of `knapper.vault.parser.read_note`."""
        # Imported here, as loading the Markdown parser takes 60 ms.
        from knapper.vault import parser  # noqa: PLC0415 - the parser's 60 ms, which listing and searching needn't cost

        file = self._resolve(raw)
        return parser.make_note(file.path, vault_files.read_bytes(file.place, shown_as=file.path, max_bytes=max_bytes))

    def read_optional(self, path: NotePath) -> bytes | None:
        """Read a file that needn't be there; None where no visible one is. It may not be named as a caller wrote it.

        Paths like a missing one, which the error of `read` names, aren't looked for: that takes time.

        Raises:
            KnapError: As for `read`, but for a missing file.
        """
        with suppress(NotFound):
            file = self.find(path, must_exist=False)
            if opening.is_file(file.place):
                return vault_files.read_bytes(file.place, shown_as=file.path)
        return None

    def read_head(self, raw: str) -> Note:
        """Read a note of which only the properties matter, and parse nothing else; errors are those of `read`."""
        from knapper.vault import parser  # noqa: PLC0415 - as in `read`

        file = self._resolve(raw)
        return parser.make_note(
            file.path, vault_files.read_bytes(file.place, shown_as=file.path), read=parser.parse_head
        )

    def read_bytes(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> bytes:
        """Read any file, such as a canvas or an attachment; errors are those of `read`."""
        file = self._resolve(raw)
        return vault_files.read_bytes(file.place, shown_as=file.path, max_bytes=max_bytes)

    def read_listed(self, listed: FileStat) -> bytes:
        """Read a file that was listed just now, so that its path needn't be looked up; errors are those of `read`."""
        if listed.target is None:
            # Where a part of the path has become a link since, or the vault's folder is one, it is looked up.
            with suppress(NotFound):
                # Not by Path: a refresh reads a thousand files so.
                return vault_files.read_bytes(f"{self.root}/{listed.path}", shown_as=listed.path)
        return self.read_bytes(listed.path)

    @contextmanager
    def open_bytes(self, raw: str, *, max_bytes: int = vault_files.DEFAULT_MAX_BYTES) -> Generator[BinaryIO]:
        """Open any file to read it in pieces; errors are those of `read`."""
        file = self._resolve(raw)
        with vault_files.open_bytes(file.place, shown_as=file.path, max_bytes=max_bytes) as opened:
            yield opened

    def list_files(
        self, *, on_problem: Callable[[Skipped], None] = lambda _: None, is_unchanged: walk.IsUnchanged | None = None
    ) -> Iterator[FileStat]:
        """List the visible files in the order of `knapper.vault.walk.list_files`, and report only their problems.

        Args:
            on_problem: Receives each file or folder that can't be listed.
            is_unchanged: As `knapper.vault.walk.list_files` takes it; only for the owner's view.

        Raises:
            StorageError: The vault's own folder can't be read.
        """

        def tell(skipped: Skipped) -> None:
            if self.policy.visible(NotePath(skipped.path)):
                on_problem(skipped)

        files = walk.list_files(self.root, self.ignore, on_problem=tell, is_unchanged=is_unchanged)
        return filter(self._is_file_visible, files)

    def list_files_at(self, path: Path) -> tuple[NotePath | None, list[FileStat]]:
        """List the visible files that a path on disk refers to right now: one, all below a folder, or none.

        Returns:
            The path in the vault, None where it isn't one of the vault; and the files.
        """
        inside = self._inside(path)
        return inside, self.list_places([inside])[0] if inside is not None else []

    def list_places(self, places: Sequence[NotePath]) -> list[list[FileStat]]:
        """List the visible files of several places, each as `list_files_at` does; in the order of the places."""
        listed = walk.list_places(self.root, self.ignore, places)
        return [[file for file in files if self._is_file_visible(file)] for files in listed]

    def paths_inside(self, touched: Iterable[Path]) -> list[NotePath]:
        """Return the paths in the vault of paths on disk, without those that aren't one of the vault."""
        return [inside for path in touched if (inside := self._inside(path)) is not None]

    def _inside(self, path: Path) -> NotePath | None:
        try:
            return paths.parse(str(path), root=self.root)
        except KnapError:
            return None

    def for_batch(self) -> View:
        """Return a view of the same vault for one batch of paths, which looks up each folder once."""
        return replace(self, folders=vault_files.KnownFolders(self.root))

    def with_policy(self, policy: Policy) -> View:
        """Return a view of the same vault with another policy."""
        return replace(self, policy=policy)

    def _is_file_visible(self, file: FileStat) -> bool:
        return self.policy.visible(file.path) and (file.target is None or self.policy.visible(file.target))

    def _resolve(self, raw: str) -> vault_files.ResolvedFile:
        if paths.is_absolute(raw) and not self.policy.may_know_places:
            return self._resolve_absolute(raw)
        path = paths.parse(raw, root=self.root)
        try:
            return self._find(path)
        except NotFound as error:
            if error.code == "is_folder":
                raise
            raise self._missing_error(path) from None

    def _find(self, path: NotePath) -> vault_files.ResolvedFile:
        """Find a visible file; the error about a missing one names no similar ones, which would take time."""
        file = self.find(path)
        if opening.is_file(file.place):
            return file
        listed = self.list_files_at(file.file)[1]
        if any(one.path == file.path for one in listed):
            return file  # it was replaced by another file just then
        if listed:
            raise self._folder_error(file.path, "name a file in it")
        raise vault_files.missing_file_error(path, ())

    def _resolve_absolute(self, raw: str) -> vault_files.ResolvedFile:
        """Find a visible file by its absolute path; whatever else is wrong gives the same error, and as soon."""
        try:
            file = self.find(paths.parse(raw, root=self.root))
        except KnapError:
            raise paths.unknown_place_error() from None
        if not opening.is_file(file.place):
            raise paths.unknown_place_error()
        return file

    def _folder_error(self, path: NotePath, hint: str) -> NotFound:
        return NotFound(f"{paths.quote_path(path)} is a folder", hint=hint, code="is_folder")

    def _missing_error(self, path: NotePath) -> NotFound:
        folder = self.find_folder(path)
        if folder is not None:
            return self._folder_error(folder, "no file in it is shown here: name another, or make one in it")
        similar = self.alike(path) if self.alike else None
        if similar is None:
            names = (file.path for file in islice(self.list_files(), HINTED_NAMES))
            return vault_files.missing_file_error(path, vault_files.nearest_paths(path, names))
        visible_paths = (visible_path for each in similar if (visible_path := self._visible_path(each)))
        return vault_files.missing_file_error(path, list(islice(visible_paths, vault_files.HINTED_PATHS)))

    def _visible_path(self, path: NotePath) -> NotePath | None:
        try:
            return self.find(path).path
        except KnapError:
            return None


def strip_brackets(raw: str) -> str:
    """Return what a whole wikilink leads to, such as ``Plan`` for ``[[Plan|the plan]]``; other text as it is."""
    text = raw.strip()
    if not (text.startswith("[[") and text.endswith("]]")):
        return raw
    return text[2:-2].partition("|")[0].strip() or raw
