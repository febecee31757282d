"""Open files and folders by paths without links, so that no link that is put on the way meanwhile is followed.

A path is resolved first: links in it are followed, and where they lead is checked. Only then is it opened here, and
what has become a link since is an error. This is the one place where systems differ in how that is held:

- Linux has a call that refuses links anywhere in a path, which Python reaches through ctypes.
- Other systems with ``openat``, and a Linux that refuses that call, open one folder after the other, none of which may
  be a link.
- macOS has a flag by which ``open`` refuses links anywhere in a path.
- Windows opens the path, then tells which path it has really opened.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import struct
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

FinalPath: TypeAlias = Callable[[int], str]
"""Tells the path of what a descriptor has open; empty where the system can't."""
DirectOpen: TypeAlias = Callable[[str], int]
"""Opens a path without links, and returns its descriptor; negative where it can't be opened, or a link is in it."""

_WINDOWS_NO_FILE: Final = frozenset({1, 6, 87, 123})
"""What Windows says of a device's name in a folder, such as ``con.md`` (1, 6, 87), and of a name that none can have."""
_WINDOWS_OPEN_ELSEWHERE: Final = frozenset({32, 33, 1175, 1176})
"""What Windows says of a file that another program has open, the last two when one file is to replace another."""
_OPEN_ELSEWHERE_S: Final = 1.0
_PAUSE_S: Final = 0.02
_LINK_ON_THE_WAY: Final = "a link lies on the way"
_FILE_FLAGS: Final = (
    os.O_RDONLY
    # Without it, opening a named pipe would block until somebody writes to it.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_PASSED_FLAGS: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
"""For a folder on the way, which needn't be readable where the system has descriptors without that."""
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_NAME_FLAGS: Final = getattr(os, "O_PATH", 0) | _NO_FOLLOW | getattr(os, "O_CLOEXEC", 0)
"""For what has a name, be it a link, without opening it."""
_OPENAT2: Final = 437
_OPENAT2_MACHINES: Final = frozenset({"x86_64", "aarch64", "riscv64", "ppc64le", "s390x", "armv7l", "i686"})
"""Where the call has its usual number."""
_CURRENT_FOLDER: Final = -100
_NO_SYMLINKS: Final = 0x04


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """What a system has for opening without links; the first that it has is used."""

    no_links_flag: int = 0
    """Flag of ``open`` that refuses links anywhere in a path; 0 for none."""
    has_openat: bool = False
    """Whether files can be opened relative to a folder's descriptor."""
    direct_open: Callable[[int], DirectOpen | None] = lambda _: None
    """Returns, for some flags, what opens a path in one call that refuses links anywhere in it; None for nothing."""
    final_path: FinalPath = lambda _: ""
    """Tells what was opened, where neither is there."""
    is_windows: bool = False
    """Whether each folder seems to have the devices, such as ``nul.md``, and some names are refused, as ``a?``."""


def find_system(name: str = sys.platform) -> System:
    """Return what this system has."""
    if name == "win32":
        import ctypes  # noqa: PLC0415 - elsewhere nothing needs it
        import msvcrt  # noqa: PLC0415 - only Windows has it

        final_path = windows_final_path(ctypes.WinDLL("kernel32"), msvcrt.get_osfhandle)
        return System(final_path=final_path, is_windows=True)
    return System(
        no_links_flag=getattr(os, "O_NOFOLLOW_ANY", 0),
        has_openat=os.open in os.supports_dir_fd,
        direct_open=_linux_open if name == "linux" else lambda _: None,
    )


def _linux_open(flags: int) -> DirectOpen | None:
    # Loading it takes 2 ms, as long as opening 400 files one folder after the other: it is used where others loaded it.
    return linux_open(flags) if "ctypes" in sys.modules else None


@functools.cache
def linux_open(flags: int) -> DirectOpen | None:
    """Open with ``openat2``, which refuses links anywhere in a path; None where the system refuses it or hasn't got it.

    Source: openat2(2), ``RESOLVE_NO_SYMLINKS``; Linux 5.6. Containers may refuse it.
    """
    import ctypes  # noqa: PLC0415 - see above

    if os.uname().machine not in _OPENAT2_MACHINES:
        return None
    call: Callable[..., int] = ctypes.CDLL(None).syscall
    start = ctypes.c_long(_OPENAT2), ctypes.c_long(_CURRENT_FOLDER)
    end = (how := struct.pack("=QQQ", flags, 0, _NO_SYMLINKS)), ctypes.c_size_t(len(how))

    def open_path(path: str) -> int:
        encoded = os.fsencode(path)
        # C would read the path up to such a byte.
        return call(*start, encoded, *end) if encoded[:1] == b"/" and b"\0" not in encoded else -1

    # Which can be opened with any of the flags.
    if (root := open_path("/")) < 0:
        return None
    os.close(root)
    return open_path


def windows_final_path(kernel32: Any, handle_of: Callable[[int], int]) -> FinalPath:  # noqa: ANN401 - a loaded library has no type
    """Ask with ``GetFinalPathNameByHandleW``; run under Wine, never on Windows itself."""

    def ask(descriptor: int) -> str:
        import ctypes  # noqa: PLC0415 - elsewhere nothing needs it

        buffer = ctypes.create_unicode_buffer(_MAX_WINDOWS_PATH)
        handle = ctypes.c_void_p(handle_of(descriptor))
        length = kernel32.GetFinalPathNameByHandleW(handle, buffer, _MAX_WINDOWS_PATH, 0)
        return without_prefix(buffer.value) if 0 < length < _MAX_WINDOWS_PATH else ""

    return ask


_MAX_WINDOWS_PATH: Final = 32_768


def without_prefix(path: str) -> str:
    r"""Return a path of Windows as people write it: ``\\?\C:\a`` gives ``C:\a``, ``\\?\UNC\s\a`` gives ``\\s\a``."""
    if path.startswith("\\\\?\\UNC\\"):
        return "\\" + path[len("\\\\?\\UNC") :]
    return path.removeprefix("\\\\?\\")


SYSTEM: Final = find_system()


def open_file(path: str | Path, *, system: System = SYSTEM) -> int:
    """Open a file to read; the caller checks what it is, and closes it.

    Args:
        path: Absolute, without links.
        system: What the system has.

    Raises:
        OSError: It isn't there, can't be read, or a link lies on the way (``ELOOP`` or ``ENOTDIR``).
    """
    return _open(os.fspath(path), _FILE_FLAGS, system)


def open_stream(path: str | Path, *, system: System = SYSTEM) -> BufferedReader:
    """Open a file to read; arguments are those of `open_file`.

    Raises:
        IsADirectoryError: It is a folder.
        OSError: As for `open_file`.
    """
    descriptor = open_file(path, system=system)
    try:
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


@contextlib.contextmanager
def list_folder(path: str | Path, *, system: System = SYSTEM) -> Generator[list[os.DirEntry[str]]]:
    """Yield the entries of a folder, whose status can be asked for inside the block.

    Args:
        path: Absolute, without links.
        system: What the system has.

    Raises:
        OSError: As for `open_file`.
    """
    text = os.fspath(path)
    if not (system.no_links_flag or system.has_openat):
        # Windows opens no folders. Checked again after reading, and before the names are used.
        _refuse_links(text)
        with os.scandir(text) as entries:
            listed = list(entries)
        _refuse_links(text)
        yield listed
        return
    descriptor = _open(text, _FOLDER_FLAGS, system)
    try:
        with os.scandir(descriptor) as entries:
            yield list(entries)
    finally:
        os.close(descriptor)


class FolderChain:
    """Opens folders of one tree, each by its name in the one above, which stays open for the next.

    A walk through thousands of folders doesn't open the way to each from the system's root, and follows no link either.
    """

    def __init__(self, root: str, *, system: System = SYSTEM) -> None:
        """Open folders below *root*, an absolute path without links."""
        self.root = root
        self._system = system
        self._names: list[str] = []
        self._descriptors: list[int] = []

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """Return the entries of a folder, whose status can be asked for until the next call.

        Args:
            folder: Its path below the root, with or without a slash at the end; empty for the root.

        Raises:
            OSError: As for `open_file`.
        """
        if not self._system.has_openat:
            # Windows: the entries know their status, or ask by the path.
            with list_folder(f"{self.root}/{folder}".rstrip("/") or "/", system=self._system) as listed:
                return listed
        with os.scandir(self._open(folder)) as scanned:
            return list(scanned)

    def lstat(self, folder: str, name: str) -> os.stat_result:
        """Return the status of a file, folder or link in a folder; arguments and errors are those of `entries`."""
        if not self._system.has_openat:
            return lstat("/".join(filter(None, (self.root, folder.rstrip("/"), name))), system=self._system)
        return os.stat(name, dir_fd=self._open(folder), follow_symlinks=False)

    def _open(self, folder: str) -> int:
        """Return the descriptor of a folder, which is open until the next call."""
        names = folder.rstrip("/").split("/") if folder else []
        shared = 0
        while shared < min(len(names), len(self._names)) and names[shared] == self._names[shared]:
            shared += 1
        if not self._descriptors:
            self._descriptors.append(open_folder(self.root, system=self._system))
        self._close_below(shared)
        for name in names[shared:]:
            below = os.open(name, _FOLDER_FLAGS | _NO_FOLLOW, dir_fd=self._descriptors[-1])
            self._names.append(name)
            self._descriptors.append(below)
        return self._descriptors[-1]

    def _close_below(self, depth: int) -> None:
        while len(self._names) > depth:
            self._names.pop()
            os.close(self._descriptors.pop())

    def close(self) -> None:
        """Close all folders; the next one is reached from the system's root again."""
        self._close_below(0)
        while self._descriptors:
            os.close(self._descriptors.pop())


def open_folder(path: str | Path, *, system: System = SYSTEM) -> int:
    """Open a folder, which Windows can't; arguments and errors are those of `open_file`."""
    return _open(os.fspath(path), _FOLDER_FLAGS, system)


def rename(source: str | Path, target: str | Path, *, system: System = SYSTEM) -> None:
    """Rename a file, folder or link, also over a file; arguments and errors are those of `open_file`."""
    with parent(source, system=system) as (from_folder, name), parent(target, system=system) as (to_folder, new_name):
        patiently(lambda: os.replace(name, new_name, src_dir_fd=from_folder, dst_dir_fd=to_folder))


def unlink(path: str | Path, *, system: System = SYSTEM) -> None:
    """Remove a file or link; arguments and errors are those of `open_file`."""
    with parent(path, system=system) as (folder, name):
        patiently(lambda: os.unlink(name, dir_fd=folder))


def patiently(change: Callable[[], None]) -> None:
    """Rename or remove a file, trying again for a second while another program has it open.

    Windows refuses that unless the program allows it, which many don't that read for a moment: scanners for viruses,
    services that synchronise, and Python.

    Raises:
        OSError: As the last try raises it.
    """
    deadline = time.monotonic() + _OPEN_ELSEWHERE_S
    while True:
        try:
            return change()
        except OSError as error:
            if getattr(error, "winerror", None) not in _WINDOWS_OPEN_ELSEWHERE or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def lstat(path: str | Path, *, system: System = SYSTEM) -> os.stat_result:
    """Return the status of a file, folder or link itself; arguments and errors are those of `open_file`."""
    if (direct := system.direct_open(_NAME_FLAGS)) and (descriptor := direct(os.fspath(path))) >= 0:
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)
    with parent(path, system=system) as (folder, name):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def exists(path: str | Path, *, system: System = SYSTEM) -> bool:
    """Return whether a name is there, be it of a link to nothing; False where a link lies on the way.

    Raises:
        OSError: It can't be told, for lack of permission.
    """
    return _mode(path, system) is not None


def is_folder(path: str | Path, *, system: System = SYSTEM) -> bool:
    """Return whether a path is a folder, and no link to one; errors are those of `exists`."""
    mode = _mode(path, system)
    return mode is not None and stat.S_ISDIR(mode)


def is_file(path: str | Path, *, system: System = SYSTEM) -> bool:
    """Return whether a path is a regular file, and no link to one; errors are those of `exists`."""
    mode = _mode(path, system)
    return mode is not None and stat.S_ISREG(mode)


def _mode(path: str | Path, system: System) -> int | None:
    try:
        mode = lstat(path, system=system).st_mode
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}:
            return None
        if system.is_windows and getattr(error, "winerror", None) in _WINDOWS_NO_FILE:
            return None
        raise
    return None if system.is_windows and stat.S_ISCHR(mode) else mode


@contextlib.contextmanager
def parent(path: str | Path, *, system: System = SYSTEM) -> Generator[tuple[int | None, str]]:
    """Yield what functions of `os` take as ``dir_fd`` and path, to reach a name in a folder that was opened.

    Args:
        path: Absolute, without links but in its last part.
        system: What the system has.

    Raises:
        OSError: As for `open_file`, for the folder.
    """
    text = os.fspath(path)
    folder, name = os.path.split(text)
    if not (system.no_links_flag or system.has_openat):
        _refuse_links(folder)
        yield None, text
        return
    descriptor = _open(folder, _FOLDER_FLAGS if system.no_links_flag else _PASSED_FLAGS, system)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def _open(path: str, flags: int, system: System) -> int:
    if system.no_links_flag:
        return os.open(path, flags | system.no_links_flag)
    # What the call refuses, the slower way tells the reason of.
    if (direct := system.direct_open(flags)) and (descriptor := direct(path)) >= 0:
        return descriptor
    if system.has_openat:
        *folders, name = path.rstrip("/").split("/")
        # O_NOFOLLOW applies to the last part of a path only, so that each part is opened by itself.
        descriptor = os.open("/", flags if not name else _PASSED_FLAGS)
        if not name:
            return descriptor
        try:
            for folder in folders[1:]:
                below = os.open(folder, _PASSED_FLAGS | _NO_FOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            return os.open(name, flags | _NO_FOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
    descriptor = os.open(path, flags)
    try:
        if opened := system.final_path(descriptor):
            is_right = _is_same(opened, path)
        else:
            # The disk's driver doesn't tell: what the path leads to now has to be what was opened, without a link.
            is_right = _is_same(os.path.realpath(path), path) and os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except BaseException:
        os.close(descriptor)
        raise
    if not is_right:
        os.close(descriptor)
        raise OSError(errno.ELOOP, _LINK_ON_THE_WAY, path)
    return descriptor


def _refuse_links(path: str) -> None:
    if not _is_same(os.path.realpath(path), path):
        raise OSError(errno.ELOOP, _LINK_ON_THE_WAY, path)


def _is_same(found: str, path: str) -> bool:
    return os.path.normcase(found) == os.path.normcase(without_prefix(path))


def is_regular(descriptor: int) -> bool:
    """Return whether a descriptor has a file open, and no folder, pipe or device."""
    return stat.S_ISREG(os.fstat(descriptor).st_mode)
