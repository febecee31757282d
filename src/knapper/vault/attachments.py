"""Find attachments where Obsidian would."""

import posixpath
from collections.abc import Callable, Sequence
from typing import Final

from knapper.vault import links, paths
from knapper.vault.paths import NotePath
from knapper.vault.settings import ObsidianSettings

AUDIO: Final = frozenset({".m4a", ".webm", ".mp3", ".wav", ".ogg", ".oga", ".opus", ".flac", ".mp4", ".3gp", ".aac"})
"""Endings of files that may hold speech."""


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


def places(
    target: str, *, source: NotePath, settings: ObsidianSettings, lookup: Callable[[str], Sequence[NotePath]]
) -> tuple[NotePath, ...]:
    """Say where the file that a link in a note means may be, the likeliest place first.

    First the file that the link resolves to among those that are known. Then, for a file that came a moment ago: the
    folder for attachments, the note's own folder, the vault's. A target that begins with ``/`` counts from the vault's
    folder alone, one with ``./`` or ``../`` from the note's.

    Args:
        target: The link's target, decoded, such as ``recording.m4a`` or ``../Audio/recording.m4a``.
        source: The note that holds the link.
        settings: For the folder where attachments are put.
        lookup: As `knapper.vault.links.resolve` takes it; gives only files that may be found.

    Returns:
        Paths in the vault; whether something is there is to be seen.
    """
    here = paths.folder(source)
    starts: Sequence[str] = (folder_for(source, settings), here, "")
    if target.startswith("/"):
        starts = ("",)
    elif target.startswith(("./", "../")):
        starts = (here,)
    resolved = links.resolve(target, source, lookup).path if target.strip("/") else None
    guessed = (_normal(f"{start}/{target}") for start in starts)
    return tuple(dict.fromkeys(path for path in (resolved, *guessed) if path))


def _normal(path: str) -> NotePath | None:
    """Take ``.`` and ``..`` out of a path; None where it leaves the vault or names nothing."""
    clean = posixpath.normpath(path.lstrip("/") or ".")
    return None if clean == "." or clean.split("/")[0] == ".." else NotePath(clean)
