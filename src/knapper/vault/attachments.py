"""Find attachments where Obsidian would."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from knapper.vault import paths
from knapper.vault.paths import NotePath, key
from knapper.vault.settings import ObsidianSettings

AUDIO: Final = frozenset({".m4a", ".webm", ".mp3", ".wav", ".ogg", ".flac", ".mp4", ".3gp"})
"""Endings of files that may hold speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Hold the files of a vault by what links call them."""

    by_path: Mapping[str, NotePath]
    """By the `key` of the whole path."""
    by_name: Mapping[str, tuple[NotePath, ...]]
    """By the `key` of the name; the shortest path first."""

    @classmethod
    def of(cls, files: Iterable[NotePath]) -> "Names":
        """Sort the files that may be found: those that a view shows."""
        ordered = sorted(files, key=lambda path: (path.count("/"), len(path), path))
        by_path: dict[str, NotePath] = {}
        by_name: dict[str, list[NotePath]] = {}
        for path in ordered:
            by_path.setdefault(key(path), path)
            by_name.setdefault(key(paths.name(path)), []).append(path)
        return cls(by_path=by_path, by_name={name: tuple(several) for name, several in by_name.items()})


def is_audio(path: str) -> bool:
    """Tell by a path's ending whether it may hold speech."""
    return paths.suffix(path).lower() in AUDIO


def folder_for(source: NotePath, settings: ObsidianSettings) -> NotePath:
    """Return the folder where Obsidian puts a note's attachments; empty for the vault itself.

    ``./files`` gives ``Work/files`` for the note ``Work/a.md``.
    """
    setting = settings.attachment_folder_path
    if setting == "." or setting.startswith("./"):
        return _normal(f"{paths.folder(source)}/{setting}") or NotePath("")
    return _normal(setting) or NotePath("")


def find(names: Names, target: str, *, source: NotePath, settings: ObsidianSettings) -> NotePath | None:
    """Find the file that a link in a note means, whatever its letters' case.

    Tried in this order: the path from the vault's folder, from the note's folder, from the folder for attachments,
    then any file whose path ends so, the shortest path first. A target that begins with ``/`` counts from the vault's
    folder alone, one with ``./`` or ``../`` from the note's.

    Args:
        names: The files that may be found.
        target: The link's target, decoded, such as ``recording.m4a`` or ``../Audio/recording.m4a``.
        source: The note that holds the link.
        settings: For the folder where attachments are put.

    Returns:
        The file, or None where there is none or the target leaves the vault.
    """
    here = paths.folder(source)
    if target.startswith(("/", "./", "../")):
        path = _normal(target if target.startswith("/") else f"{here}/{target}")
        return names.by_path.get(key(path)) if path else None
    for start in ("", here, folder_for(source, settings)):
        path = _normal(f"{start}/{target}")
        if path and key(path) in names.by_path:
            return names.by_path[key(path)]
    wanted = _normal(target)
    if not wanted:
        return None
    ending = f"/{key(wanted)}"
    same = names.by_name.get(key(paths.name(wanted)), ())
    return next((path for path in same if f"/{key(path)}".endswith(ending)), None)


def _normal(path: str) -> NotePath | None:
    """Take ``.`` and ``..`` out of a path; None where it leaves the vault or names nothing."""
    clean = posixpath.normpath(path.lstrip("/") or ".")
    return None if clean == "." or clean.split("/")[0] == ".." else NotePath(clean)
