"""Find the vaults that Obsidian knows on this machine."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

System = Literal["linux", "macos", "windows"]
REGISTRY_NAME: Final = "obsidian.json"
_MAX_BYTES: Final = 10_000_000
_PACKAGED: Final = (
    ".var/app/md.obsidian.Obsidian/config/obsidian",  # Flatpak
    "snap/obsidian/current/.config/obsidian",
)
"""Folders of settings below the home folder, where Linux packages with a sandbox of their own keep them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownVault:
    """A vault in Obsidian's list."""

    path: Path
    is_open: bool
    """Whether it is open in Obsidian, or was when Obsidian ended."""
    opened_ms: int
    """When it was last opened, in milliseconds since 1970; 0 if that isn't known."""


def registry_files(system: System, *, home: Path, config: Path) -> list[Path]:
    """Return where Obsidian's list may be.

    Args:
        system: The operating system.
        home: The person's home folder.
        config: Where programs keep settings: ``~/.config``, ``~/Library/Application Support``, ``%APPDATA%``.
    """
    folders = [config / "obsidian"]
    if system == "linux":
        folders += [home / place for place in _PACKAGED]
    return [folder / REGISTRY_NAME for folder in folders]


def find_vaults(registries: Sequence[Path]) -> list[KnownVault]:
    """Return the vaults of Obsidian's lists that exist, open ones and those last opened first, each once.

    A list that is missing or can't be read has none.
    """
    vaults = {vault.path: vault for file in registries for vault in _read_registry(file)}
    return sorted(vaults.values(), key=lambda vault: (not vault.is_open, -vault.opened_ms, str(vault.path)))


def _read_registry(file: Path) -> list[KnownVault]:
    try:
        if file.stat().st_size > _MAX_BYTES:
            return []
        decoded: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    rows = cast("dict[str, object]", decoded).get("vaults") if isinstance(decoded, dict) else None
    entries = cast("dict[str, object]", rows).values() if isinstance(rows, dict) else ()
    return [vault for entry in entries if (vault := _read_entry(entry)) is not None]


def _read_entry(entry: object) -> KnownVault | None:
    """Return a vault of the list; None if it isn't an existing folder with an absolute path."""
    if not isinstance(entry, dict):
        return None
    values = cast("dict[str, object]", entry)
    path_text, opened = values.get("path"), values.get("ts")
    if not isinstance(path_text, str) or "\0" in path_text:
        return None
    path = Path(path_text)
    try:
        if not path.is_absolute() or not path.is_dir():
            return None
    except OSError:
        return None
    opened_ms = int(opened) if isinstance(opened, int | float) and 0 <= opened < 2**60 else 0
    return KnownVault(path=path, is_open=values.get("open") is True, opened_ms=opened_ms)
