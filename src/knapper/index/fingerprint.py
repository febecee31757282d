"""Notice that something other than this program has changed the files of an index."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from knapper.system import private

_RECORD_FILE: Final = "written.json"
_State = list[int]
"""Size, time of the last save, time of the last change of any kind, and inode."""


class Fingerprint:
    """What the system told of an index's files when this program last wrote them.

    A log beside the database isn't among them: it has checksums of its own, and what they refuse is found to be stale.
    """

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        """Look at the files in the index's *folder* whose names begin with one of *names*."""
        self._folder = folder
        self._names = names
        self._recorded: dict[str, _State] = {}

    def fits(self) -> bool:
        """Return whether the files are as they were recorded; so are those of which nothing was ever recorded."""
        try:
            recorded = cast("object", json.loads((self._folder / _RECORD_FILE).read_bytes()))
        except FileNotFoundError:
            return True
        except (OSError, ValueError):
            return False
        if not isinstance(recorded, dict):
            return False
        states = cast("dict[str, object]", recorded)
        return all(states.get(name) == state for name, state in self._look().items())

    def record(self) -> None:
        """Record the files as they are now; where the disk refuses, the index is checked when it is opened again."""
        files = self._look()
        if files and files != self._recorded:
            with suppress(OSError):
                private.write_text(self._folder / _RECORD_FILE, json.dumps(files))
                self._recorded = files

    def _look(self) -> dict[str, _State]:
        files: dict[str, _State] = {}
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name.startswith(self._names) and not path.name.endswith(("-wal", "-shm", ".part")):
                    status = path.stat()
                    files[path.name] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        return files
