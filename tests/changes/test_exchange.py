"""The system's own calls where this system has them, and stand-ins for the others' libraries."""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knapper.changes.disk import files
from knapper.changes.disk.files import NativeRename

NAMES = ("one", "two")


@pytest.fixture
def one(tmp_path: Path) -> Path:
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "two").write_bytes(b"2")
    return tmp_path / "one"


@pytest.fixture
def two(one: Path) -> Path:
    return one.with_name("two")


def texts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rename_as(flags: int, source: str, target: str, *, swap: int, noreplace: int) -> int:
    """What a system's call does, with the flags that its documentation names."""
    if flags == swap:
        spare = target + ".spare"
        Path(target).rename(spare)
        Path(source).rename(target)
        Path(spare).rename(source)
    elif flags != noreplace:
        ctypes.set_errno(errno.EINVAL)
        return -1
    elif Path(target).exists():
        ctypes.set_errno(errno.EEXIST)
        return -1
    else:
        Path(source).rename(target)
    return 0


class MacLibrary:
    def renamex_np(self, source: bytes, target: bytes, flags: int) -> int:
        return rename_as(flags, os.fsdecode(source), os.fsdecode(target), swap=2, noreplace=4)


class LinuxLibrary:
    def renameat2(self, at: int, source: bytes, to: int, target: bytes, flags: int) -> int:
        places = [f"/proc/self/fd/{at}/{os.fsdecode(source)}", f"/proc/self/fd/{to}/{os.fsdecode(target)}"]
        return rename_as(flags, *places, swap=2, noreplace=1)


class OldLinuxLibrary:
    """A C library without the function; the kernel has it by number."""

    def syscall(self, number: int, *arguments: object) -> int:
        assert number == 316
        return LinuxLibrary().renameat2(*arguments)  # pyright: ignore[reportArgumentType]


class Kernel32:
    def __init__(self, code: int = 0) -> None:
        self.code = code

    def ReplaceFileW(  # noqa: N802 (the system's name)
        self, target: str, source: str, old: str, flags: int, *reserved: None
    ) -> int:
        assert (flags, reserved) == (2, (None, None))
        if self.code == 1177:  # the target was renamed, and its successor couldn't be
            Path(target).rename(old)
        if self.code:
            return 0
        Path(target).rename(old)
        Path(source).rename(target)
        return 1

    def last_error(self) -> int:
        return self.code


def windows(code: int = 0) -> NativeRename:
    kernel32 = Kernel32(code)
    return files.windows_rename(kernel32, last_error=kernel32.last_error)


WAYS: dict[str, Callable[[], NativeRename | None]] = {
    "this system": files.native_rename,
    "linux": lambda: files.linux_rename(LinuxLibrary(), machine="x86_64"),
    "linux by number": lambda: files.linux_rename(OldLinuxLibrary(), machine="x86_64"),
    "macos": lambda: files.macos_rename(MacLibrary()),
    "windows": windows,
    "none": lambda: None,
}
POSIX_WAYS = [way for way in WAYS if way != "windows"]


@pytest.mark.parametrize("way", WAYS)
def test_two_files_change_names(way: str, one: Path, two: Path) -> None:
    files.swap_files(one, two, WAYS[way]())

    assert texts(one.parent) == {"one": b"2", "two": b"1"}


def test_windows_is_asked_again_while_another_program_reads_the_note(
    one: Path, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel32, codes = Kernel32(), iter([32, 1175, 0])
    how = files.windows_rename(kernel32, last_error=kernel32.last_error)
    asked = Kernel32.ReplaceFileW

    def ask(self: Kernel32, *names: Any) -> int:  # noqa: ANN401 - as the function has them
        self.code = next(codes)
        return asked(self, *names)

    monkeypatch.setattr(Kernel32, "ReplaceFileW", ask)

    files.swap_files(one, two, how)

    assert texts(one.parent) == {"one": b"2", "two": b"1"}


@pytest.mark.parametrize(("code", "error"), [(2, FileNotFoundError), (3, FileNotFoundError), (5, PermissionError)])
def test_what_windows_refuses_is_told_as_what_it_is(one: Path, two: Path, code: int, error: type[OSError]) -> None:
    with pytest.raises(error):
        files.swap_files(one, two, windows(code))


@pytest.mark.parametrize("way", POSIX_WAYS if os.name != "nt" else ["windows", "none"])
def test_a_name_is_given_only_if_nothing_has_it(way: str, one: Path, two: Path) -> None:
    how = WAYS[way]()

    with pytest.raises(FileExistsError):
        files.place_file(one, two, how)
    files.place_file(one, one.with_name("three"), how)

    assert texts(one.parent) == {"two": b"2", "three": b"1"}


@pytest.mark.parametrize("way", POSIX_WAYS)
def test_a_folder_gets_a_free_name_with_all_it_holds(way: str, tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/n.md").write_bytes(b"n")
    (tmp_path / "taken").mkdir()
    how = WAYS[way]()

    with pytest.raises(FileExistsError):
        files.place_file(tmp_path / "dir", tmp_path / "taken", how)
    files.place_file(tmp_path / "dir", tmp_path / "free", how)

    assert (tmp_path / "free/n.md").read_bytes() == b"n"
    assert not (tmp_path / "dir").exists()


def refusing(code: int) -> NativeRename:
    def refuse(source: Path, target: Path, manner: files.RenameMode) -> None:
        raise OSError(code, f"{manner} {source} {target}")

    return refuse


@pytest.mark.parametrize("code", sorted(files.UNSUPPORTED))
def test_where_a_file_system_cant_the_fallback_can(code: int, one: Path, two: Path) -> None:
    files.swap_files(one, two, refusing(code))
    files.place_file(two, two.with_name("three"), refusing(code))

    assert texts(one.parent) == {"one": b"2", "three": b"1"}


def test_another_failure_is_no_reason_for_the_fallback(one: Path, two: Path) -> None:
    with pytest.raises(OSError, match="swap"):
        files.swap_files(one, two, refusing(errno.EIO))
    with pytest.raises(OSError, match="noreplace"):
        files.place_file(one, one.with_name("three"), refusing(errno.EIO))

    assert texts(one.parent) == {"one": b"1", "two": b"2"}


def test_without_hard_links_the_fallback_copies(one: Path, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)

    files.swap_files(one, two, None)
    files.place_file(two, two.with_name("three"), None)
    with pytest.raises(FileExistsError):
        files.place_file(one, one.with_name("three"), None)

    assert texts(one.parent) == {"one": b"2", "three": b"1"}


def test_a_fallback_that_fails_leaves_nothing(one: Path, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: str, target: str, **_: object) -> None:
        raise OSError(errno.EIO, f"{source} {target}")

    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(OSError, match="one"):
        files.swap_files(one, two, None)

    assert texts(one.parent) == {"one": b"1", "two": b"2"}


def test_a_save_over_the_file_just_before_the_fallback_replaces_it_is_kept(
    one: Path, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, saves = os.link, [b"by hand"]

    def link_then_save(source: str, target: str, **options: Any) -> None:  # noqa: ANN401 - as the function has them
        link(source, target, **options)
        if saves:
            two.with_name("editor").write_bytes(saves.pop())
            two.with_name("editor").replace(two)

    monkeypatch.setattr(os, "link", link_then_save)

    files.swap_files(one, two, None)

    assert texts(one.parent) == {"one": b"by hand", "two": b"1"}


@pytest.mark.parametrize("code", [5, 32, 1175, 1176, 1177])
def test_what_windows_half_did_is_put_right(code: int, one: Path, two: Path) -> None:
    with pytest.raises(PermissionError, match=str(code)):
        files.swap_files(one, two, windows(code))

    assert texts(one.parent) == {"one": b"1", "two": b"2"}


def test_where_windows_cant_the_fallback_can(one: Path, two: Path) -> None:
    files.swap_files(one, two, windows(50))

    assert texts(one.parent) == {"one": b"2", "two": b"1"}


def test_a_system_without_such_a_call_has_none() -> None:
    assert files.linux_rename(object(), machine="vax") is None
    assert files.macos_rename(object()) is None
    assert files.native_rename("plan9") is None


@pytest.mark.skipif(sys.platform not in {"linux", "darwin"}, reason="another system's")
def test_a_missing_file_is_no_exchange(one: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.swap_files(one, one.with_name("missing"), files.native_rename())


def test_a_cut_replacement_is_mended(one: Path, two: Path) -> None:
    os.link(two, one.with_name("one-old"))

    files.finish_swap(one)
    assert texts(one.parent) == {"one": b"1", "two": b"2"}
    os.link(two, one.with_name("one-old"))
    one.replace(two)
    files.finish_swap(one)

    assert texts(one.parent) == {"one": b"2", "two": b"1"}
