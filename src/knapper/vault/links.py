"""Resolve what a link points to: which note, and which heading in it."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from knapper.vault import paths
from knapper.vault.paths import NotePath

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_HEADING_NOISE: Final = re.compile(r"[!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\\s]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The file that a link's target resolves to."""

    path: NotePath | None
    """None where no file matches."""
    ambiguous: tuple[NotePath, ...] = ()
    """All files that match equally well, *path* included; empty where *path* is the only match."""


def find_named(target: str, lookup: Callable[[str], Sequence[NotePath]]) -> list[NotePath]:
    """Return all files whose path ends with a target, ``.md`` left out or not; in the order of the look-ups.

    Args:
        target: A name, or the end of a path: ``Plan``, ``Work/Plan.md``.
        lookup: Returns all files whose name has the given `knapper.vault.paths.lookup_key`.
    """
    folded_target = paths.fold_target(target.replace("\\", "/")).strip()
    return _files_ending_with(folded_target, _candidates(folded_target, lookup)) if folded_target else []


def is_external(target: str) -> bool:
    """Return whether a Markdown link's target is an address: any scheme, or ``//host``."""
    return _SCHEME.match(target) is not None


def resolve(target: str, source: NotePath, lookup: Callable[[str], Sequence[NotePath]]) -> Resolution:
    """Find the file that a link refers to, as Obsidian does.

    In order: the note itself for an empty target; a path from the vault's root; for ``./`` and ``../`` a path from the
    note's folder and nothing else; else the files whose path ends with the target: first the one in the note's own
    folder, then the one with the shortest path, then the first by name. ``.md`` may be left out, other suffixes not.
    Of files whose paths differ only in case, the one spelled like the target is chosen.

    Args:
        target: A link's target, decoded and without fragment.
        source: The note that holds the link.
        lookup: Returns all files whose name has the given `knapper.vault.paths.lookup_key`.
    """
    return PreparedTarget(target, lookup).resolve(source)


class PreparedTarget:
    """A link's target with the files that it may refer to, worked out once for all notes; see `resolve`."""

    def __init__(self, target: str, lookup: Callable[[str], Sequence[NotePath]]) -> None:
        """Look the target's name up."""
        self._target = target
        self._lookup = lookup
        self._folded = paths.fold_target(target.replace("\\", "/")).strip()
        self._in_folders: dict[str, list[NotePath]] = {}
        self._ambiguous: tuple[NotePath, ...] = ()
        self._is_relative = self._folded.startswith(("./", "../"))
        self._default = Resolution(path=None) if self._is_relative or not self._folded else self._find_default()

    @property
    def is_own_note(self) -> bool:
        """Whether the target has no text, and so refers to the note that holds the link."""
        return not self._folded

    @property
    def everywhere(self) -> Resolution | None:
        """What the target refers to in every note; None where that depends on the note."""
        return None if self._in_folders or self._is_relative or not self._folded else self._default

    def resolve(self, source: NotePath) -> Resolution:
        """Return the file that the target refers to in a note."""
        if not self._folded:
            return Resolution(path=source)
        return self.everywhere or self.resolve_from(paths.fold_target(source).rpartition("/")[0])

    def resolve_from(self, folder: str) -> Resolution:
        """Return the file that a target refers to in the notes of a folder, which is folded and may be the root, empty.

        A target without text refers to the note itself, which `resolve` knows.
        """
        if self._is_relative:
            return _resolve_exact(join_relative(folder, self._folded), self._target, self._lookup)
        beside = _pick_at(f"{folder}/{self._folded}", self._target, self._in_folders) if folder else None
        return self._default if beside is None else Resolution(path=beside, ambiguous=self._ambiguous)

    def _find_default(self) -> Resolution:
        """Return the file that the target refers to in notes without such a file in their own folder."""
        if self._folded.startswith("/"):
            return _resolve_exact(self._folded.strip("/"), self._target, self._lookup)
        candidates = _candidates(self._folded, self._lookup)
        exact = _file_at(self._folded, self._target, candidates)
        matches = _files_ending_with(self._folded, candidates) if exact is None else []
        if len(matches) < 2:
            return Resolution(path=matches[0] if matches else exact)
        self._in_folders = _group_by_folded_path(matches)
        self._ambiguous = tuple(sorted(matches, key=lambda path: (len(path), path)))
        return Resolution(path=self._ambiguous[0], ambiguous=self._ambiguous)


def heading_matches(heading: str, title: str) -> bool:
    """Compare a link's heading with a section's title, as Obsidian does: punctuation, spaces and case don't count."""
    return heading_key(heading) == heading_key(title)


def heading_key(text: str) -> str:
    """Fold a heading: ``"What's *new*, v1.2?"`` is ``"what's new v1 2"``."""
    return paths.fold_target(_HEADING_NOISE.sub(" ", text).strip())


def join_relative(folder: str, relative: str) -> str:
    """Return the path that a relative one resolves to from a folder; empty where it leaves the vault.

    ``../img/a.png`` resolves from ``Notes/Work`` to ``Notes/img/a.png``.
    """
    parts = folder.split("/") if folder else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return ""
            _ = parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)


def _spellings(folded_path: str) -> tuple[str, str]:
    """Return the paths that a target may mean: as written, and as a note without its suffix."""
    return folded_path, folded_path + paths.NOTE_SUFFIX


def _candidates(folded_path: str, lookup: Callable[[str], Sequence[NotePath]]) -> list[NotePath]:
    name = folded_path.rpartition("/")[2]
    keys = dict.fromkeys(paths.lookup_key(spelling) for spelling in _spellings(name))
    return [path for name_key in keys for path in lookup(name_key)]


def _resolve_exact(folded_path: str, target: str, lookup: Callable[[str], Sequence[NotePath]]) -> Resolution:
    return Resolution(path=_file_at(folded_path, target, _candidates(folded_path, lookup)))


def _file_at(folded_path: str, target: str, candidates: Sequence[NotePath]) -> NotePath | None:
    """Find the file at a path; a note ``v1.md`` before a file ``v1``, as a link without suffix means a note."""
    return _pick_at(folded_path, target, _group_by_folded_path(candidates))


def _group_by_folded_path(candidates: Sequence[NotePath]) -> dict[str, list[NotePath]]:
    files_by_path: dict[str, list[NotePath]] = {}
    for path in candidates:
        files_by_path.setdefault(paths.fold_target(path), []).append(path)
    return files_by_path


def _pick_at(folded_path: str, target: str, files_by_path: Mapping[str, Sequence[NotePath]]) -> NotePath | None:
    matches = next(
        (files_by_path[spelling] for spelling in reversed(_spellings(folded_path)) if spelling in files_by_path), ()
    )
    if len(matches) <= 1:
        return next(iter(matches), None)
    # Their paths differ only in case: the one spelled like the target, else the last.
    name = _normalize_spelling(target.replace("\\", "/")).strip().lstrip("./")
    same_spelling = (path for path in matches if _normalize_spelling(path).endswith(_spellings(name)))
    return next(same_spelling, matches[-1])


def _normalize_spelling(path: str) -> str:
    return unicodedata.normalize("NFC", path.replace("\xa0", " "))


def _files_ending_with(folded_path: str, candidates: Sequence[NotePath]) -> list[NotePath]:
    """List the files whose path ends with the target, beginning at a folder boundary."""
    endings = tuple("/" + spelling for spelling in _spellings(folded_path))
    return list(dict.fromkeys(p for p in candidates if ("/" + paths.fold_target(p)).endswith(endings)))
