"""File operations of a change: staged files, exchanged names, and waiting for other writers.

Every file and folder of the vault is reached by descriptors, so that no link that is put on the way meanwhile is
followed, where the system has them. By path go only:

- what the system has by path alone: Windows' and macOS' own exchange of names, and Windows' modes;
- the system's trash, whose library takes a path;
- the state's own files, which lie in a folder of the user alone.
"""

import contextlib
import ctypes
import errno
import hashlib
import os
import platform
import secrets
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from knapper.errors import StorageError
from knapper.system import opening, private

TEMP_PREFIX = ".knap-tmp-"
"""Start of every temp file's name; the change's id and the step's number follow."""

_STAGE_FLAGS = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_MACOS_ACL_AND_XATTR = 1 << 0 | 1 << 2


def temp_name(change_id: str, number: int) -> str:
    """Return the name of a temp file: ``.knap-tmp-0m3k9x2a1b-7h2mq9xw-0``."""
    return f"{TEMP_PREFIX}{change_id}-{number}"


def stage_file(temp: Path, content: bytes, *, like: Path | None = None, mode: int | None = None) -> None:
    """Write *content* to a new file *temp*, not yet synced.

    Args:
        temp: Must not exist.
        content: All of it.
        like: The file whose mode, owner, attributes and (on macOS) birth time it gets, as far as the system permits.
        mode: Permission bits where there is no such file; None for the system's default.

    Raises:
        OSError: A part may have been written.
    """
    # Relative to its folder, opened without links: nothing is written where a link leads that was put there meanwhile.
    with opening.parent(temp) as (folder, name):
        handle = os.open(name, _STAGE_FLAGS, 0o666, dir_fd=folder)
    try:
        # One call may write only a part.
        remaining = memoryview(content)
        while remaining:
            remaining = remaining[os.write(handle, remaining) :]
        if like is not None:
            _liken(handle, temp, like)
        elif mode is not None:
            _change_mode(handle, temp, mode)
    finally:
        os.close(handle)


def _liken(handle: int, temp: Path, like: Path) -> None:
    """Give a new file another one's owner, attributes, mode and (on macOS) birth time, as far as the system permits."""
    source_handle = opening.open_file(like)
    try:
        status, target_status = os.fstat(source_handle), os.fstat(handle)
        owner = (status.st_uid, status.st_gid)
        is_other_owner = owner != (target_status.st_uid, target_status.st_gid)
        if is_other_owner and hasattr(os, "fchown"):
            with contextlib.suppress(PermissionError):
                os.fchown(handle, *owner)
        may_differ = _copy_attributes(source_handle, handle) or is_other_owner
    finally:
        os.close(source_handle)
    # A new owner may cost bits, and an access list among the attributes changes them.
    if may_differ or status.st_mode != target_status.st_mode:
        _change_mode(handle, temp, stat.S_IMODE(status.st_mode))
    # On macOS, setting an earlier modification time moves the birth time with it.
    if sys.platform == "darwin":
        os.utime(handle, (status.st_birthtime, status.st_birthtime))
        os.utime(handle, (target_status.st_atime, target_status.st_mtime))


def _change_mode(handle: int, path: Path, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)
    else:  # Windows, before Python 3.13
        path.chmod(mode)


def sync_file(path: Path) -> None:
    """Force the content of a file of the state to the disk."""
    # Windows flushes only files that are open for writing; elsewhere, a read-only file can be synced, too.
    _sync_and_close(os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0) if os.name == "nt" else os.O_RDONLY))


def sync_folder(path: Path) -> None:
    """Force the names in a folder to the disk, where the system can; no link on the way is followed."""
    if os.name == "nt":
        # NTFS journals names, and a folder can't be opened to sync it.
        return
    _sync_and_close(opening.open_folder(path))


def _sync_and_close(handle: int) -> None:
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def begin_writing(paths: Iterable[Path]) -> None:
    """Have Linux begin to write many files, so that one commit of the file system's journal has them all.

    Syncing them then takes half of the processor time, and a third of the waiting; for one file it takes more.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for path in paths:
        with contextlib.suppress(OSError):  # a hint, which not every file system takes; syncing tells what is wrong
            handle = opening.open_file(path)
            try:
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)


def _copy_attributes(source: int, target: int) -> bool:
    """Copy what a file has beside its content; return whether there may be anything."""
    if sys.platform == "darwin":
        ctypes.CDLL(None).fcopyfile(source, target, None, _MACOS_ACL_AND_XATTR)
        return True
    if not hasattr(os, "listxattr"):
        return True
    # The file system may have no attributes, and some, such as a security label, only the system may set.
    try:
        attributes = os.listxattr(source)
    except OSError:
        return True
    for attribute in attributes:
        with contextlib.suppress(OSError):
            os.setxattr(target, attribute, os.getxattr(source, attribute))
    return bool(attributes)


RenameMode = Literal["swap", "noreplace"]
NativeRename: TypeAlias = Callable[[Path, Path, RenameMode], None]
"""Renames in a mode, or raises OSError: with a number of ``UNSUPPORTED`` where the file system can't do it."""

UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP})
OLD_SUFFIX = "-old"
"""Suffix of a temp file's name under which a replaced file is kept during an exchange."""

_LINUX_FLAGS = {"noreplace": 1, "swap": 2}
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "ppc64le": 357, "s390x": 347}
_MACOS_FLAGS = {"swap": 2, "noreplace": 4}
_WINDOWS_IGNORE_MERGE_ERRORS = 2
_WINDOWS_ERRORS = {1: errno.ENOTSUP, 2: errno.ENOENT, 3: errno.ENOENT, 50: errno.ENOTSUP}
"""What `ReplaceFileW` reports; all else is refused access."""
_WINDOWS_HALF_DONE = 1177


def native_rename(system: str = sys.platform) -> NativeRename | None:
    """Return the system's call for renaming; None where it has none."""
    if system == "linux":
        return linux_rename(ctypes.CDLL(None, use_errno=True), machine=platform.machine())
    if system == "darwin":
        return macos_rename(ctypes.CDLL(None, use_errno=True))
    if system == "win32":
        return windows_rename(ctypes.WinDLL("kernel32", use_last_error=True), last_error=ctypes.get_last_error)
    return None


def linux_rename(libc: Any, *, machine: str) -> NativeRename | None:  # noqa: ANN401 (a loaded library has no type)
    """Rename with ``renameat2``, by number where the C library has no such function."""
    if hasattr(libc, "renameat2"):
        call = libc.renameat2
    elif machine in _RENAMEAT2:

        def call(*arguments: object) -> int:
            return libc.syscall(_RENAMEAT2[machine], *arguments)

    else:
        return None

    def rename(source: Path, target: Path, manner: RenameMode) -> None:
        with opening.parent(source) as (from_folder, name), opening.parent(target) as (to_folder, new_name):
            places = (from_folder, os.fsencode(name), to_folder, os.fsencode(new_name))
            if call(*places, _LINUX_FLAGS[manner]):
                raise _last_error(source, target)

    return rename


def macos_rename(libc: Any) -> NativeRename | None:  # noqa: ANN401 (a loaded library has no type)
    """Rename with ``renamex_np``; never run on macOS itself."""
    if not hasattr(libc, "renamex_np"):
        return None

    def rename(source: Path, target: Path, manner: RenameMode) -> None:
        if libc.renamex_np(os.fsencode(source), os.fsencode(target), _MACOS_FLAGS[manner]):
            raise _last_error(source, target)

    return rename


def windows_rename(kernel32: Any, *, last_error: Callable[[], int]) -> NativeRename:  # noqa: ANN401 (a loaded library has no type)
    """Rename with ``ReplaceFileW``, which keeps rights and dates; run under Wine, never on Windows itself."""

    def rename(source: Path, target: Path, manner: RenameMode) -> None:
        if manner == "noreplace":
            opening.patiently(lambda: os.rename(source, target))  # noqa: PTH104 - refuses an existing one
            return
        old = _old_name(source)

        def replace() -> None:
            names = (str(target), str(source), str(old))
            if kernel32.ReplaceFileW(*names, _WINDOWS_IGNORE_MERGE_ERRORS, None, None):
                return
            code = last_error()
            # After this error, the target has been renamed to the old name already.
            if code == _WINDOWS_HALF_DONE:
                _ = old.rename(target)
            error = OSError(_WINDOWS_ERRORS.get(code, errno.EACCES), f"ReplaceFile failed with {code}", names[1])
            error.winerror = code
            raise error

        opening.patiently(replace)
        opening.patiently(lambda: os.rename(old, source))  # noqa: PTH104 - which returns nothing

    return rename


def swap_files(temp: Path, target: Path, how: NativeRename | None) -> None:
    """Exchange *temp* and *target*: afterwards *temp* is the displaced file.

    Without a call of the system for it, a save that renames over *target* would be lost if it came in the microseconds
    between the last check and the replacement. A save into the file isn't lost, since the displaced file is kept.

    Raises:
        OSError: Nothing happened.
    """
    if how and _try_native(how, temp, target, "swap"):
        return
    old = _old_name(temp)
    try:
        # A second name keeps the displaced file. Linked again if the target was saved before its identity was read.
        while _keep_second_name(target, old) != _file_identity(target):
            opening.unlink(old)
        opening.rename(temp, target)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            opening.unlink(old)
        raise
    opening.rename(old, temp)


def place_file(source: Path, target: Path, how: NativeRename | None) -> None:
    """Rename *source* to *target*, which must not exist.

    Raises:
        FileExistsError: It exists.
        OSError: Nothing happened.
    """
    if how and _try_native(how, source, target, "noreplace"):
        return
    if stat.S_ISDIR(opening.lstat(source).st_mode):
        # Making the folder reserves the name; a folder may be renamed over an empty one.
        with opening.parent(target) as (folder, name):
            os.mkdir(name, dir_fd=folder)
            try:
                opening.rename(source, target)
            except OSError:
                os.rmdir(name, dir_fd=folder)
                raise
        return
    # Unlike a rename, a link never replaces an existing file.
    try:
        _link(source, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in UNSUPPORTED | {errno.EMLINK}:
            raise
        # Without links, an empty file reserves the name: the replacement alone would overwrite an existing file.
        with opening.parent(target) as (folder, name):
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=folder))
            try:
                opening.rename(source, target)
            except OSError:
                os.unlink(name, dir_fd=folder)
                raise
        return
    opening.unlink(source)


def finish_swap(temp: Path) -> None:
    """Finish an exchange that a kill interrupted: the displaced file becomes *temp*."""
    old = _old_name(temp)
    try:
        _ = opening.lstat(old)  # a link on the way is an error
    except FileNotFoundError:
        return
    if opening.exists(temp):
        # The target was not yet replaced, and is the same file.
        opening.unlink(old)
    else:
        opening.rename(old, temp)


def _try_native(how: NativeRename, source: Path, target: Path, manner: RenameMode) -> bool:
    try:
        how(source, target, manner)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        raise
    return True


def _keep_second_name(target: Path, old: Path) -> tuple[int, int, int]:
    try:
        _link(target, old)
    except OSError as error:
        if error.errno not in UNSUPPORTED | {errno.EMLINK}:
            raise
        identity = _file_identity(target)
        with opening.open_stream(target) as opened:
            status = os.fstat(opened.fileno())
            stage_file(old, opened.read(), like=target)
        with opening.open_stream(old) as copy:
            if os.utime in os.supports_fd:
                os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
            else:
                os.utime(old, ns=(status.st_atime_ns, status.st_mtime_ns))
        return identity
    return _file_identity(old)


def _file_identity(path: Path) -> tuple[int, int, int]:
    status = opening.lstat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _link(source: Path, target: Path) -> None:
    """Give a file, or a link itself, a second name."""
    with opening.parent(source) as (from_folder, name), opening.parent(target) as (to_folder, new_name):
        os.link(name, new_name, src_dir_fd=from_folder, dst_dir_fd=to_folder, follow_symlinks=False)


def _old_name(temp: Path) -> Path:
    return temp.with_name(temp.name + OLD_SUFFIX)


def _last_error(source: Path, target: Path) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), str(source), None, str(target))


PAUSE_S = 0.001


def wait_for_writers(path: Path, *, timeout_s: float) -> bool:
    """Wait until no program has *path* open for writing.

    Returns:
        False if one still has it open; True if none has, or if the system can't tell.
    """
    # Only Linux has read leases, which are refused while a program has the file open for writing.
    if sys.platform != "linux":
        return True
    handle = opening.open_file(path)
    try:
        return _wait_for_lease(handle, path.parent, timeout_s=timeout_s)
    finally:
        os.close(handle)


def _wait_for_lease(handle: int, folder: Path, *, timeout_s: float) -> bool:
    until = time.monotonic() + timeout_s
    while not _lease_granted(handle):
        if time.monotonic() > until:
            return not _leases_work(folder)
        time.sleep(PAUSE_S)
    return True


class HeldFile:
    """Open file that can still be read when its name is another's."""

    def __init__(self, path: Path) -> None:
        """Open a file."""
        self._folder = path.parent
        self._file = opening.open_stream(path)

    def read(self, *, timeout_s: float) -> bytes:
        """Return the content once no program writes it any more, or after the time-out; then close the file."""
        with self._file:
            if sys.platform == "linux":
                _wait_for_lease(self._file.fileno(), self._folder, timeout_s=timeout_s)
            return self._file.read()


def _leases_work(folder: Path) -> bool:
    """Return whether this file system grants leases at all, tried with a new file that no other program has open."""
    probe = folder / f"{TEMP_PREFIX}probe-{secrets.token_hex(8)}"
    stage_file(probe, b"", mode=0o600)
    try:
        handle = opening.open_file(probe)
    finally:
        opening.unlink(probe)
    try:
        return _lease_granted(handle)
    finally:
        os.close(handle)


def _lease_granted(handle: int) -> bool:
    import fcntl  # noqa: PLC0415 (Windows has no such module)

    try:
        # The default signal of a broken lease would end the process; SIGURG is ignored by default.
        fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno != errno.EAGAIN
    with contextlib.suppress(OSError):
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True


FileKind = Literal["file", "folder", "link", "other"]
HASH_OPEN = "open"
"""In place of the hash of a file that a program is still writing."""
HASH_FOLDER = "folder"
"""In place of the hash of a folder that has taken a file's name."""
HASH_SPECIAL = "special"
"""In place of the hash of a pipe, socket or device that has taken a file's name."""
LINK_PREFIX = "link:"
"""Start of the hash of a symbolic link's own target path, used where the link itself is moved or has a file's name."""

_HASHED_BYTES = 64 * 1024 * 1024
_READ_BYTES = 256 * 1024
_WAIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Status of one name in the file system; symbolic links aren't followed."""

    kind: FileKind
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int

    def same_content(self, other: "Stamp") -> bool:
        """Return whether nothing but the name changed between two stamps."""
        return (self.inode, self.size, self.mtime_ns) == (other.inode, other.size, other.mtime_ns)


def hash_content(content: bytes) -> str:
    """Return the hash of content: ``sha256:`` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def storage_error(error: OSError, path: str) -> StorageError:
    """Build the error for a file that the system refused to write."""
    cause = error.strerror or str(error)
    hints = {
        errno.ENOSPC: "free some space on the disk, then try again",
        errno.EDQUOT: "free some space in the quota, then try again",
        errno.EACCES: "check the permissions of the file and of its folder",
        errno.EPERM: "check the permissions of the file and of its folder",
        errno.EROFS: "the file system is mounted read-only",
        errno.ENAMETOOLONG: "give it a shorter name first; the trash adds some letters to it",
        errno.EXDEV: "the folders lie on different file systems; copy the file there by hand",
    }
    return StorageError(
        f"'{path}' can't be written: {cause}; nothing was changed",
        hint=hints.get(error.errno or 0, ""),
        details={"path": path, "errno": errno.errorcode.get(error.errno or 0, "")},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """File operations of the real system; a failed one raises OSError and leaves things as they were."""

    native: NativeRename | None = field(default_factory=native_rename)
    """The system's call for exchanging names; None for none."""
    wait_s: float = _WAIT_S
    """How long to wait for a file that another program is writing."""

    def stamp(self, path: Path) -> Stamp | None:
        """Return the stamp of a name; None if nothing has it."""
        try:
            status = opening.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _stamp_of(status)

    def read(self, path: Path) -> bytes:
        """Read a whole file."""
        with opening.open_stream(path) as file:
            return file.read()

    def link_hash(self, path: Path) -> str:
        """Return the hash of a symbolic link's own target path: ``link:`` and 64 hex digits."""
        return _hash_link(path)

    def names(self, path: Path) -> list[str]:
        """Return the names in a folder."""
        with opening.list_folder(path) as entries:
            return [entry.name for entry in entries]

    def fingerprint(self, path: Path) -> str:
        """Identify a file's content without loading it: by its hash, or by size and time if it is very large."""
        with opening.open_stream(path) as file:
            status = os.fstat(file.fileno())
            if status.st_size > _HASHED_BYTES:
                return f"stat:{status.st_size}-{status.st_mtime_ns}"
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()

    def settled_hash(self, path: Path) -> str | None:
        """Hash a file once no program writes it any more.

        Returns:
            ``HASH_OPEN`` if a program writes it for too long, ``HASH_FOLDER`` for a folder, ``HASH_SPECIAL`` for a
            pipe, socket or device, what `link_hash` returns for a symbolic link, None for nothing.
        """
        return _inspect(path, timeout_s=self.wait_s)[1]

    def hash_now(self, path: Path) -> str | None:
        """Hash a file as `settled_hash` does, but without waiting for a program that writes it."""
        return self.inspect(path)[1]

    def inspect(self, path: Path) -> tuple[Stamp | None, str | None]:
        """Return a file's stamp, and the hash that `hash_now` returns; the hash covers no write before the stamp."""
        return _inspect(path, timeout_s=0)

    def is_settled(self, path: Path) -> bool:
        """Return whether no program has a file open for writing right now, as far as the system can tell."""
        return wait_for_writers(path, timeout_s=0)

    def hold(self, path: Path) -> HeldFile:
        """Open a file that is about to lose its name."""
        return HeldFile(path)

    def stage(self, temp: Path, content: bytes, *, like: Path | None, mode: int | None) -> None:
        """Write a temp file; see `stage_file`."""
        stage_file(temp, content, like=like, mode=mode)

    def sync(self, path: Path) -> None:
        """Force a file's content to the disk."""
        # Windows flushes only files that are open for writing, and refuses links by opening them to read.
        if os.name == "nt":
            sync_file(path)
        else:
            _sync_and_close(opening.open_file(path))

    def sync_folder(self, path: Path) -> None:
        """Force a folder's names to the disk."""
        sync_folder(path)

    def swap(self, temp: Path, target: Path) -> None:
        """Exchange two files' names; see `swap_files`."""
        swap_files(temp, target, self.native)

    def place(self, source: Path, target: Path) -> None:
        """Rename to a name that nothing has; see `place_file`."""
        place_file(source, target, self.native)

    def respell(self, source: Path, target: Path) -> None:
        """Change the case of a name on a file system that ignores case."""
        opening.rename(source, target)

    def mend(self, temp: Path) -> None:
        """Finish an exchange that a kill interrupted; see `finish_swap`."""
        finish_swap(temp)

    def unlink(self, path: Path) -> None:
        """Delete a file; nothing happens if there is none."""
        with contextlib.suppress(FileNotFoundError):
            opening.unlink(path)

    def mkdir(self, path: Path, *, mode: int | None) -> None:
        """Make a folder; nothing happens if it exists."""
        with contextlib.suppress(FileExistsError), opening.parent(path) as (folder, name):
            os.mkdir(name, dir_fd=folder)
        if mode is not None and os.name == "nt":
            path.chmod(mode)
        elif mode is not None:
            handle = opening.open_folder(path)
            try:
                os.fchmod(handle, mode)
            finally:
                os.close(handle)

    def rmdir(self, path: Path) -> None:
        """Remove an empty folder."""
        with opening.parent(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file to the state, with its dates, and make the folders above it."""
        private.make_folder(target.parent)
        with opening.open_stream(source) as opened:
            private.copy_file(opened.fileno(), target)

    def keep(self, content: bytes, target: Path) -> None:
        """Write content to a new file outside the vault, and make the folders above it."""
        private.make_folder(target.parent)
        private.write_bytes(target, content)

    def trash(self, path: Path) -> None:
        """Move a file to the system's trash."""
        from send2trash import send2trash  # noqa: PLC0415 (looks for a desktop's libraries when imported)

        send2trash(str(path))


def _hash_link(path: Path) -> str:
    with opening.parent(path) as (folder, name):
        target = os.readlink(name, dir_fd=folder)
    return LINK_PREFIX + hashlib.sha256(os.fsencode(target)).hexdigest()


def _stamp_of(status: os.stat_result) -> Stamp:
    kind: FileKind = "other"
    if stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "folder"
    elif stat.S_ISLNK(status.st_mode):
        kind = "link"
    return Stamp(
        kind=kind,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        inode=status.st_ino,
        mode=stat.S_IMODE(status.st_mode),
    )


def _hash_other(status: os.stat_result) -> str:
    return HASH_FOLDER if stat.S_ISDIR(status.st_mode) else HASH_SPECIAL


def _inspect(path: Path, *, timeout_s: float) -> tuple[Stamp | None, str | None]:
    """Return a file's stamp and its hash, as `Files.settled_hash` describes it, once no program writes it any more."""
    try:
        if (looked := _inspect_free(path)) is not None:
            return looked
        # Another file may have the name after the wait, so that it is opened anew.
        if not wait_for_writers(path, timeout_s=timeout_s):
            return _stamp_of(opening.lstat(path)), HASH_OPEN
        return _inspect_free(path, waits=False) or (None, None)
    except FileNotFoundError:
        return None, None


def _inspect_free(path: Path, *, waits: bool = True) -> tuple[Stamp, str] | None:
    """Inspect a file by one opening of it; return None if a program writes it, unless that was waited for."""
    try:
        handle = opening.open_file(path)
    except OSError:
        # A link isn't followed, a socket can't be opened, Windows opens no folders, and other systems only those that
        # may be read.
        if stat.S_ISREG((status := opening.lstat(path)).st_mode):
            raise
        return _stamp_of(status), _hash_link(path) if stat.S_ISLNK(status.st_mode) else _hash_other(status)
    try:
        # The stamp comes first: a write during or after hashing then differs from it.
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            return _stamp_of(status), _hash_other(status)
        if waits and sys.platform == "linux" and not _lease_granted(handle):
            return None
        digest = hashlib.sha256()
        while piece := os.read(handle, _READ_BYTES):
            digest.update(piece)
        return _stamp_of(status), f"sha256:{digest.hexdigest()}"
    finally:
        os.close(handle)
