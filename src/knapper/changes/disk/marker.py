"""The file that exists while a change is under way: whoever opens the vault sees by it whether one was cut short.

Every command that only reads looks for it, so this module imports nothing that takes time.
"""

from pathlib import Path
from typing import Final

MARKER_FILE: Final = "change.begun"


def place(folder: Path, change_id: str) -> None:
    """Write the file before a change begins; the caller holds the write lock.

    Raises:
        OSError: The state folder can't be written.
    """
    from knapper.system import private  # noqa: PLC0415 - readers needn't wait for it

    private.write_text(folder / MARKER_FILE, change_id)


def is_set(folder: Path) -> bool:
    """Return whether a change is under way, or was cut short."""
    return (folder / MARKER_FILE).exists()


def remove(folder: Path) -> None:
    """Remove the file after a change was finished or taken back; the caller holds the write lock.

    Raises:
        OSError: The state folder can't be written.
    """
    (folder / MARKER_FILE).unlink(missing_ok=True)
