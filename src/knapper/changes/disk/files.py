"""Do the file operations of a change: the one seam at which tests make disks fail and editors interfere."""

import errno
import hashlib
import os
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from knapper.changes.disk import atomic, exchange, writers
from knapper.errors import StorageError

FileKind = Literal["file", "folder", "link", "other"]
OPEN = "open"
"""Stands for the hash of a file that somebody is still writing."""
FOLDER = "folder"
"""Stands for the hash of a folder that has taken a file's name."""
LINK = "link:"
"""Begins what stands for the hash of a symbolic link that is moved itself."""

_HASHED_BYTES = 64 * 1024 * 1024
_WAIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Hold what the file system says about one name; symbolic links aren't followed."""

    kind: FileKind
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int

    def same_content(self, other: "Stamp") -> bool:
        """Tell whether nothing but the name changed between two looks."""
        return (self.inode, self.size, self.mtime_ns) == (other.inode, other.size, other.mtime_ns)


def hash_of(content: bytes) -> str:
    """Name content: ``sha256:`` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def storage_error(error: OSError, path: str) -> StorageError:
    """Say which file the system refused, and why."""
    cause = error.strerror or str(error)
    hints = {
        errno.ENOSPC: "free some space on the disk, then try again",
        errno.EDQUOT: "free some space in the quota, then try again",
        errno.EACCES: "check the permissions of the file and of its folder",
        errno.EPERM: "check the permissions of the file and of its folder",
        errno.EROFS: "the file system is mounted read-only",
        errno.EXDEV: "the folders lie on different file systems; copy the file there by hand",
    }
    return StorageError(
        f"'{path}' can't be written: {cause}; nothing was changed",
        hint=hints.get(error.errno or 0, ""),
        details={"path": path, "errno": errno.errorcode.get(error.errno or 0, "")},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Do each operation with the real system; every one raises OSError and leaves things as they were."""

    native: exchange.Native | None = field(default_factory=exchange.native)
    """The system's call for exchanging names; None for none."""
    wait_s: float = _WAIT_S
    """How long a file that another program is writing is waited for."""

    def stamp(self, path: Path) -> Stamp | None:
        """Look at a name; None if nothing has it."""
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stamp(
            kind=_kind(status.st_mode),
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
            inode=status.st_ino,
            mode=stat.S_IMODE(status.st_mode),
        )

    def read(self, path: Path) -> bytes:
        """Read a whole file."""
        return path.read_bytes()

    def link(self, path: Path) -> str:
        """Name what a symbolic link itself says, whatever lies where it leads: ``link:`` and 64 hex digits."""
        return LINK + hashlib.sha256(os.fsencode(path.readlink())).hexdigest()

    def names(self, path: Path) -> list[str]:
        """List a folder."""
        return [entry.name for entry in path.iterdir()]

    def fingerprint(self, path: Path) -> str:
        """Name a file's content without loading it: its hash, or size and time where it is very large."""
        status = path.stat()
        if status.st_size > _HASHED_BYTES:
            return f"stat:{status.st_size}-{status.st_mtime_ns}"
        with path.open("rb") as file:
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()

    def settled(self, path: Path) -> str | None:
        """Hash a file once nobody writes it any more.

        Returns:
            ``OPEN`` if somebody writes it for too long, ``FOLDER`` for a folder, None for nothing.
        """
        if path.is_dir():
            return FOLDER
        try:
            if not writers.gone(path, timeout_s=self.wait_s):
                return OPEN
            return hash_of(path.read_bytes())
        except FileNotFoundError:
            return None

    def stage(self, temp: Path, content: bytes, *, like: Path | None, mode: int | None) -> None:
        """Write a temp file; see `atomic.stage`."""
        atomic.stage(temp, content, like=like, mode=mode)

    def sync(self, path: Path) -> None:
        """Force a file's content to the disk."""
        atomic.sync(path)

    def sync_folder(self, path: Path) -> None:
        """Force a folder's names to the disk."""
        atomic.sync_folder(path)

    def swap(self, temp: Path, target: Path) -> None:
        """Exchange two files' names; see `exchange.swap`."""
        exchange.swap(temp, target, self.native)

    def place(self, source: Path, target: Path) -> None:
        """Rename to a name that nothing has; see `exchange.place`."""
        exchange.place(source, target, self.native)

    def respell(self, source: Path, target: Path) -> None:
        """Change the case of a name on a system that doesn't tell the two apart."""
        source.rename(target)

    def mend(self, temp: Path) -> None:
        """Finish an exchange that a kill cut in two; see `exchange.mend`."""
        exchange.mend(temp)

    def unlink(self, path: Path) -> None:
        """Take a file's name away; nothing happens where there is none."""
        path.unlink(missing_ok=True)

    def mkdir(self, path: Path, *, mode: int | None) -> None:
        """Make a folder; nothing happens where it exists."""
        path.mkdir(exist_ok=True)
        if mode is not None:
            path.chmod(mode)

    def rmdir(self, path: Path) -> None:
        """Remove an empty folder."""
        path.rmdir()

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file to another place, with its dates, and make the folders above it."""
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)

    def trash(self, path: Path) -> None:
        """Move a file to the system's trash."""
        from send2trash import send2trash  # noqa: PLC0415 (looks for a desktop's libraries when imported)

        send2trash(str(path))


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"
