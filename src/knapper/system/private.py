"""Make the files and folders of the program's state, for this user alone; no other module makes any.

On Windows a new file inherits the access list of its folder, and the user's profile gives others none; the bits that
are set here mean nothing there.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from knapper.errors import ConflictError, StorageError

if TYPE_CHECKING:
    import sqlite3

    from filelock import BaseFileLock


FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
OTHERS_MODE: Final = 0o077
"""Bits that give anything to the group or to others."""
SANDBOX_NAME: Final = "sandbox"
"""Folder of machine code, in the state folder."""
TOLD_VARIABLES_NAME: Final = "told-variables"
"""File of the variables that were named as unused, in the state folder."""
ASIDE_NAME: Final = "set-aside"
"""Folder of the damaged files that a repair replaced, beside each."""
STATE_NAMES: Final = frozenset(
    {
        *("vaults", "models", "server", SANDBOX_NAME, "eval", TOLD_VARIABLES_NAME, ASIDE_NAME),
        *("taint", "taint.db", "taint.db-wal", "taint.db-shm", "write.lock", "write.lock.pid", "write.next.lock"),
    }
)
"""What lies in the state folder itself."""
WATCH_PREFIX: Final = "watch-"
"""Start of the name of the folder in which `knap doctor` tries whether saves are noticed."""
_NEW_PREFIX: Final = ".new-"
_STATE_PREFIXES: Final = (WATCH_PREFIX, _NEW_PREFIX, "taint.db.repaired")
"""How names begin that lie there for a moment, and stay after a kill."""
_COPIED_BYTES: Final = 1 << 20
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing; existing ones stay as they are.

    Raises:
        OSError: It can't be made, or a file has its name.
    """
    missing: list[Path] = []
    for each in (folder, *folder.parents):
        if each.is_dir():
            break
        missing.append(each)
    for each in reversed(missing):
        each.mkdir(mode=FOLDER_MODE, exist_ok=True)


def create_file(file: Path) -> None:
    """Make an empty file unless there is one.

    Raises:
        OSError: It can't be made.
    """
    with contextlib.suppress(FileExistsError):
        if sys.platform == "linux":
            # Makes it without a descriptor: closing one would take SQLite's locks from another thread's connection.
            os.mknod(file, FILE_MODE | stat.S_IFREG)
        else:
            os.close(open_new(file))


def open_new(file: Path) -> int:
    """Make a file and return its descriptor, to write.

    Raises:
        FileExistsError: There is one.
        OSError: It can't be made.
    """
    return os.open(file, _CREATE_FLAGS, FILE_MODE)


def touch(file: Path) -> None:
    """Set a file's time to now, and make the file where there is none.

    Raises:
        OSError: It can't be made.
    """
    create_file(file)
    os.utime(file)


def remove_once(file: Path) -> bool:
    """Remove a file, and return whether this call did; of several at once, one does.

    Windows may let several remove a file at once, so a file beside it decides, which one alone can create.
    """
    from knapper.system import opening  # noqa: PLC0415 - what only reads needn't load it

    if not file.exists():
        return False
    mark = file.with_name(f".{file.name}.removing")
    try:
        os.close(open_new(mark))
    except OSError:
        return False
    try:
        opening.patiently(file.unlink)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            opening.patiently(mark.unlink)
    return True


def write_text(file: Path, text: str) -> None:
    """Write a file in one step: other processes see the old text or the new one.

    Raises:
        OSError: It can't be written; the old text stays.
    """
    write_bytes(file, text.encode())


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file as `write_text` does.

    Raises:
        OSError: It can't be written; the old content stays.
    """
    with _replacing(file) as descriptor, os.fdopen(descriptor, "wb") as stream:
        _ = stream.write(content)


def copy_file(source: int, file: Path) -> None:
    """Copy all that can be read from a descriptor, with the times of the original, in one step.

    Raises:
        OSError: It can't be copied.
    """
    status = os.fstat(source)
    with _replacing(file) as descriptor, os.fdopen(descriptor, "wb") as stream:
        while piece := os.read(source, _COPIED_BYTES):
            _ = stream.write(piece)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@contextlib.contextmanager
def _replacing(file: Path) -> Generator[int]:
    """Yield the descriptor of a new file, which the block closes; the file then takes its name."""
    from knapper.system import opening  # noqa: PLC0415 - what only reads needn't load it

    fresh = new_name(file)
    try:
        yield open_new(fresh)
        opening.patiently(lambda: os.replace(fresh, file))  # noqa: PTH105 - which returns nothing
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def new_name(file: Path) -> Path:
    """Return an unused name beside a file, however long its own is: ``.new-1f2e3d4c5b6a7988``."""
    return file.with_name(f"{_NEW_PREFIX}{secrets.token_hex(8)}")


def connect(
    path: Path,
    *,
    timeout_s: float,
    statements: int = 128,
    factory: type[sqlite3.Connection] | None = None,
    is_immutable: bool = False,
) -> sqlite3.Connection:
    """Open an SQLite file that threads may share, and create it where there is none.

    SQLite gives the files beside it, such as the write-ahead log, the mode of the file itself.

    Args:
        path: Of the file; its folder exists.
        timeout_s: How long a statement waits for another connection's lock.
        statements: How many prepared statements are kept.
        factory: The class of the connection; None for SQLite's own.
        is_immutable: Read the file as it is, without a log or shared memory beside it, and create nothing.

    Raises:
        sqlite3.Error: It can't be opened.
    """
    import sqlite3  # noqa: PLC0415 - not every command opens state

    if not is_immutable:
        with contextlib.suppress(OSError):  # SQLite then says what is wrong
            create_file(path)
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{'immutable=1' if is_immutable else 'mode=rwc'}",
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=statements,
        factory=factory or sqlite3.Connection,
    )


def file_lock(file: Path, *, timeout_s: float = -1, poll_s: float = 0.05) -> BaseFileLock:
    """Return a lock that processes share and that any thread may release; it isn't acquired yet.

    Args:
        file: Made when the lock is acquired; its folder exists.
        timeout_s: How long acquiring waits; without end if negative.
        poll_s: Pause between two tries.
    """
    from filelock import FileLock  # noqa: PLC0415 - 15 ms that only a write should cost

    return FileLock(file, timeout=timeout_s, mode=FILE_MODE, thread_local=False, poll_interval=poll_s)


class FolderLock:
    """A lock of an index, among the threads of this process and among processes."""

    def __init__(self, folder: Path, name: str) -> None:
        """Use the file *name* in an index's *folder*."""
        self._folder = folder
        self._name = name
        self._thread_lock = threading.Lock()
        self._owner = 0  # the thread that holds it

    @contextlib.contextmanager
    def acquire(self, *, wait_s: float) -> Generator[bool]:
        """Hold the lock for the block; within it, the same thread gets it again at once.

        Args:
            wait_s: How long to wait for another thread or process, in seconds; negative waits without limit.

        Yields:
            Whether the lock was acquired.

        Raises:
            StorageError: The folder can't be written.
        """
        if self._owner == threading.get_ident():
            yield True
            return
        deadline = time.monotonic() + wait_s
        # Threads first, then processes: only one thread of this process competes for the file lock.
        if not self._thread_lock.acquire(timeout=wait_s if wait_s >= 0 else -1):
            yield False
            return
        try:
            # Both waits share one deadline.
            with acquire_process_lock(
                self._folder, self._name, wait_s=max(deadline - time.monotonic(), 0) if wait_s >= 0 else -1
            ) as is_acquired:
                self._owner = threading.get_ident() if is_acquired else 0
                yield is_acquired
        finally:
            self._owner = 0
            self._thread_lock.release()

    @contextlib.contextmanager
    def hold(self, *, wait_s: float) -> Generator[None]:
        """Hold the lock for the block, as `acquire` does.

        Raises:
            ConflictError: Others held it for all of this time.
            StorageError: The folder can't be written.
        """
        with self.acquire(wait_s=wait_s) as is_acquired:
            if not is_acquired:
                raise ConflictError(
                    f"another process is writing the index {self._folder}",
                    hint="wait for it to end; `knap status` shows how far it is",
                )
            yield

    @property
    def is_held(self) -> bool:
        """Return whether the lock is held right now; false where the folder can't be locked."""
        if self._owner:
            return True
        try:
            with self.acquire(wait_s=0) as is_acquired:
                return not is_acquired
        except StorageError:
            return False


@contextlib.contextmanager
def acquire_process_lock(folder: Path, name: str, *, wait_s: float) -> Generator[bool]:
    """Hold the lock among processes for the block, as `FolderLock.acquire` does.

    Raises:
        StorageError: The folder can't be written.
    """
    from filelock import Timeout  # noqa: PLC0415 - 15 ms that only a write should cost

    lock = file_lock(folder / name)
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        yield False
        return
    except OSError as error:
        raise StorageError(
            f"the index {folder} can't be locked: {error.strerror}",
            hint="check the folder's permissions and free space",
        ) from error
    try:
        yield True
    finally:
        lock.release()


def make_signal(file: Path) -> bool:
    """Make a signal file; return whether that was possible: the disk may be full, or the folder gone."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def remove_signal(file: Path) -> None:
    """Remove a signal file, where that is possible; an old one does no harm."""
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)


def has_modes(system: str = os.name) -> bool:
    """Return whether permission bits decide who may read a file; on Windows, access lists do."""
    return system == "posix"


def is_open(status: os.stat_result) -> bool:
    """Return whether the group or others may do anything with a file or folder."""
    return bool(status.st_mode & OTHERS_MODE)


def find_open(state_dir: Path) -> list[Path]:
    """Return what in the state folder is open to others, itself first; links aren't followed.

    A folder that holds other things, too, isn't ours alone: it and they are left out.
    """
    if not has_modes():
        return []
    return [path for top in _own_paths(state_dir) for path, status in _walk(top) if is_open(status)]


def tighten(state_dir: Path, *, thorough: bool = False) -> None:
    """Take from others what an earlier version, or somebody, left open to them in the state folder.

    What can't be changed, such as another user's file, stays; `find_open` tells. The sandbox's code stays as it is,
    too: what others could have written isn't run, and closing it would hide that.

    Args:
        state_dir: The state folder; it may be missing.
        thorough: Look into folders that are closed already, too: nobody reaches what is in them.
    """
    if not has_modes():
        return
    for top in _own_paths(state_dir):
        _tighten(top, thorough=thorough)


def close_to_others(path: Path) -> None:
    """Take from others what they may do with a file or folder.

    Raises:
        OSError: It is another user's, or it isn't there.
    """
    status = path.lstat()
    if has_modes() and is_open(status) and not stat.S_ISLNK(status.st_mode):
        # By its path: a descriptor that is closed would take SQLite's locks along. The folder above is closed first, so
        # that nobody else can exchange what is in it.
        path.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS_MODE)


def _tighten(path: Path, *, thorough: bool) -> None:
    status = _status(path)
    if status is None or path.name == SANDBOX_NAME:
        return
    if is_open(status):
        with contextlib.suppress(PermissionError, FileNotFoundError):
            close_to_others(path)
    elif not thorough:
        return
    if stat.S_ISDIR(status.st_mode):
        for name in _list_names(path):
            _tighten(path / name, thorough=thorough)


def _own_paths(state_dir: Path) -> list[Path]:
    """Return the state folder if all in it is ours; otherwise what in it is ours."""
    folder = Path(os.path.realpath(state_dir))
    names = _list_names(folder)
    own = [name for name in names if name in STATE_NAMES or name.startswith(_STATE_PREFIXES)]
    if own and len(own) == len(names):
        return [folder]
    return [folder / name for name in own]


def _walk(path: Path) -> Generator[tuple[Path, os.stat_result]]:
    status = _status(path)
    if status is None:
        return
    yield path, status
    if stat.S_ISDIR(status.st_mode):
        for name in _list_names(path):
            yield from _walk(path / name)


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file or folder; None for a link, and for what is gone or can't be reached."""
    try:
        status = path.lstat()
    except (FileNotFoundError, PermissionError):
        return None
    return None if stat.S_ISLNK(status.st_mode) else status


def _list_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names alone
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


MARKER_FILE: Final = "change.begun"
"""Exists while a change is under way: whoever opens the vault sees by it whether one was cut short."""


def place_marker(folder: Path) -> None:
    """Make the file before a change begins; the caller holds the write lock.

    Raises:
        OSError: The state folder can't be written.
    """
    create_file(folder / MARKER_FILE)


def is_marked(folder: Path) -> bool:
    """Return whether a change is under way, or was cut short."""
    return (folder / MARKER_FILE).exists()


def remove_marker(folder: Path) -> None:
    """Remove the file after a change was finished or taken back; the caller holds the write lock.

    Raises:
        OSError: The state folder can't be written.
    """
    (folder / MARKER_FILE).unlink(missing_ok=True)


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
            states = dict[str, object](json.loads((self._folder / _RECORD_FILE).read_bytes()))
        except FileNotFoundError:
            return True
        except (OSError, ValueError, TypeError):
            return False
        return all(states.get(name) == state for name, state in self._look().items())

    def record(self) -> None:
        """Record the files as they are now; where the disk refuses, the index is checked when it is opened again."""
        files = self._look()
        if files and files != self._recorded:
            with contextlib.suppress(OSError):
                write_text(self._folder / _RECORD_FILE, json.dumps(files))
                self._recorded = files

    def _look(self) -> dict[str, _State]:
        files: dict[str, _State] = {}
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if path.name.startswith(self._names) and not path.name.endswith(("-wal", "-shm", ".part")):
                    status = path.stat()
                    files[path.name] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        return files
