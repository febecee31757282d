"""Hold what every write to one vault needs."""

from dataclasses import dataclass, field
from pathlib import Path

from knapper.changes.disk.files import Files
from knapper.changes.disk.journal import Journal

LOCK_TIMEOUT_S = 10.0
TRASH_LIMIT_BYTES = 50_000_000
SHELF = "conflicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Hold a vault's folder, its state folder and its open journal; `recover.open_state` makes one."""

    root: Path
    """The vault's real folder, symbolic links followed."""
    folder: Path
    """The vault's state folder, outside the vault."""
    journal: Journal
    files: Files = field(default_factory=Files)
    lock_timeout_s: float = LOCK_TIMEOUT_S
    is_held: bool = False
    """Whether who has this holds the vault's lock already."""
    trash_limit: int = TRASH_LIMIT_BYTES
    """Bytes above which a file goes to the vault's trash even if the system's is asked for."""

    @property
    def shelf(self) -> Path:
        """The folder for an editor's save that another save displaced during a change."""
        return self.folder / SHELF
