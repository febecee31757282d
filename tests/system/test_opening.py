import contextlib
import ctypes
import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from knapper.system import opening
from knapper.system.opening import System

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fakes other systems on one that has descriptors of folders")

REFUSED = f"{os.strerror(errno.ELOOP)}|{os.strerror(errno.ENOTDIR)}|a link lies on the way"


def told_by_proc(descriptor: int) -> str:
    """Tell what is open, as Windows does."""
    return os.path.realpath(f"/proc/self/fd/{descriptor}")


SYSTEMS = {
    "openat": System(has_openat=True),
    "final path": System(final_path=told_by_proc),
    "nothing told": System(),
    "this one": opening.SYSTEM,
}
if sys.platform == "linux" and opening.linux_open(os.O_RDONLY):
    SYSTEMS["one call"] = System(has_openat=True, direct_open=opening.linux_open)


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> System:
    if request.param == "final path" and not Path("/proc/self/fd").exists():
        pytest.skip("no /proc here")
    return SYSTEMS[request.param]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a folder, and one outside it with the same names."""
    for name, text in {"root": "mine", "outside": "theirs"}.items():
        (tmp_path / name / "a" / "b").mkdir(parents=True)
        (tmp_path / name / "a" / "b" / "c.md").write_text(text, encoding="utf-8")
    return (tmp_path / "root").resolve()


def read(path: Path, system: System) -> str:
    with opening.open_stream(path, system=system) as file:
        return file.read().decode()


def test_a_file_is_read(root: Path, system: System) -> None:
    assert read(root / "a/b/c.md", system) == "mine"


@pytest.mark.parametrize("swapped", ["a", "a/b", "a/b/c.md"])
def test_no_link_is_followed_wherever_it_lies(root: Path, system: System, swapped: str) -> None:
    (root / swapped).rename(root.parent / "away")
    (root / swapped).symlink_to(root.parent / "outside" / swapped)

    with pytest.raises(OSError, match=REFUSED):
        read(root / "a/b/c.md", system)


@pytest.mark.parametrize("swapped", ["a", "a/b"])
def test_no_folder_behind_a_link_is_listed(root: Path, system: System, swapped: str) -> None:
    (root / swapped).rename(root.parent / "away")
    (root / swapped).symlink_to(root.parent / "outside" / swapped)

    with pytest.raises(OSError, match=REFUSED), opening.list_folder(root / "a/b", system=system):
        pass


def test_a_folder_is_listed_and_its_entries_have_a_status(root: Path, system: System) -> None:
    with opening.list_folder(root / "a/b", system=system) as entries:
        listed = [(entry.name, entry.stat(follow_symlinks=False).st_size) for entry in entries]

    assert listed == [("c.md", 4)]


def sizes(chain: opening.FolderChain, folder: str) -> list[tuple[str, int]]:
    return [(entry.name, entry.stat(follow_symlinks=False).st_size) for entry in chain.entries(folder)]


def test_a_chain_lists_the_folders_of_a_tree_in_any_order(root: Path, system: System) -> None:
    (root / "a/b2").mkdir()
    with contextlib.closing(opening.FolderChain(str(root), system=system)) as chain:
        names = [sorted(entry.name for entry in chain.entries(folder)) for folder in ("", "a/", "a/b", "a/b2", "a")]
        chain.close()
        again = sizes(chain, "a/b/")

        with pytest.raises(FileNotFoundError):
            chain.entries("a/gone")

    assert names == [["a"], ["b", "b2"], ["c.md"], [], ["b", "b2"]]
    assert again == [("c.md", 4)]


def test_a_chain_follows_no_link_that_is_put_on_the_way(root: Path, system: System) -> None:
    with contextlib.closing(opening.FolderChain(str(root), system=system)) as chain:
        chain.entries("a")
        (root / "a/b").rename(root.parent / "away")
        (root / "a/b").symlink_to(root.parent / "outside/a/b")

        with pytest.raises(OSError, match=REFUSED):
            chain.entries("a/b")

        chain.close()
        (root / "a").rename(root.parent / "old")
        (root / "a").symlink_to(root.parent / "outside/a")
        with pytest.raises(OSError, match=REFUSED):
            chain.entries("a/b")


def test_the_status_of_a_link_is_its_own(root: Path, system: System) -> None:
    (root / "link").symlink_to(root / "a")

    assert opening.lstat(root / "link", system=system).st_ino == (root / "link").lstat().st_ino
    assert opening.lstat(root / "a/b/c.md", system=system).st_size == 4


def test_no_status_is_told_of_what_lies_behind_a_link(root: Path, system: System) -> None:
    (root / "link").symlink_to(root.parent / "outside" / "a")

    with pytest.raises(OSError, match=REFUSED):
        opening.lstat(root / "link/b/c.md", system=system)


def test_a_name_in_a_folder_is_reached_by_the_functions_of_the_system(root: Path, system: System) -> None:
    with opening.parent(root / "a/new", system=system) as (folder, name):
        os.mkdir(name, dir_fd=folder)

    assert (root / "a/new").is_dir()


@pytest.mark.skipif("one call" not in SYSTEMS, reason="this system has no such call, or refuses it")
def test_one_call_opens_what_has_no_link_on_its_way(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = SYSTEMS["one call"]

    def refused(*_: object, **__: object) -> int:
        raise AssertionError

    (root / "link").symlink_to("a/b/c.md")
    monkeypatch.setattr(os, "open", refused)

    assert read(root / "a/b/c.md", system) == "mine"
    assert opening.lstat(root / "a/b/c.md", system=system).st_size == 4
    assert opening.is_folder(root / "a/b", system=system)
    assert not opening.is_file(root / "link", system=system)
    with opening.parent(root / "a/b/c.md", system=system) as (folder, name):
        assert os.stat(name, dir_fd=folder).st_size == 4


def test_a_path_isnt_cut_at_a_zero(root: Path, system: System) -> None:
    with pytest.raises(ValueError, match="null"):
        read(root / "a/b/c.md\0d", system)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_that_nobody_writes_is_not_waited_for(root: Path, system: System) -> None:
    os.mkfifo(root / "pipe")
    descriptor = opening.open_file(root / "pipe", system=system)
    try:
        assert not opening.is_regular(descriptor)
    finally:
        os.close(descriptor)


def test_where_the_one_call_is_refused_folders_are_opened_one_by_one(root: Path) -> None:
    def refuses(_: str) -> int:
        return -1

    assert read(root / "a/b/c.md", System(has_openat=True, direct_open=lambda _: refuses)) == "mine"
    assert read(root / "a/b/c.md", System(has_openat=True, direct_open=lambda _: None)) == "mine"


def test_a_folder_that_may_only_be_passed_is_passed(root: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every folder")
    (root / "a").chmod(0o111)
    try:
        assert read(root / "a/b/c.md", opening.SYSTEM) == "mine"
    finally:
        (root / "a").chmod(0o755)


def test_a_folder_isnt_read_as_a_file_and_leaves_nothing_open(root: Path, system: System) -> None:
    open_before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0  # noqa: PTH208 - a number
    with pytest.raises(IsADirectoryError):
        read(root / "a", system)
    with pytest.raises(FileNotFoundError):
        read(root / "a/none/c.md", system)
    with pytest.raises(NotADirectoryError):
        read(root / "a/b/c.md/d", system)
    open_after = len(os.listdir("/proc/self/fd")) if open_before else 0  # noqa: PTH208 - a number

    assert open_after == open_before


def test_what_was_opened_counts_and_not_what_lies_there_now(root: Path) -> None:
    """The link is taken away again before anybody can look at it."""
    (root / "a").rename(root.parent / "away")
    (root / "a").symlink_to(root.parent / "outside" / "a")

    def put_back(descriptor: int) -> str:
        (root / "a").unlink()
        (root.parent / "away").rename(root / "a")
        return told_by_proc(descriptor) if Path("/proc/self/fd").exists() else ""

    with pytest.raises(OSError, match="a link lies on the way"):
        read(root / "a/b/c.md", System(final_path=put_back))


def test_a_flag_of_the_system_is_enough(root: Path) -> None:
    (root / "link").symlink_to(root / "a/b/c.md")

    # O_NOFOLLOW stands for macOS's flag: it refuses a link in the last part.
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        read(root / "link", System(no_links_flag=os.O_NOFOLLOW))
    assert read(root / "a/b/c.md", System(no_links_flag=os.O_NOFOLLOW)) == "mine"
    with opening.parent(root / "a/b/c.md", system=System(no_links_flag=os.O_NOFOLLOW)) as (folder, name):
        assert os.stat(name, dir_fd=folder).st_size == 4


class FakeKernel:
    """Answer as kernel32 does."""

    def __init__(self, path: str, length: int | None = None) -> None:
        self.path = path
        self.length = len(path) if length is None else length
        self.handles: list[int | None] = []

    def GetFinalPathNameByHandleW(  # noqa: N802 - Windows' name
        self, handle: ctypes.c_void_p, buffer: "ctypes.Array[ctypes.c_wchar]", size: int, flags: int
    ) -> int:
        assert size > self.length
        assert flags == 0
        self.handles.append(handle.value)
        buffer.value = self.path
        return self.length


@pytest.mark.parametrize(
    ("told", "path"),
    [
        (r"\\?\C:\Notes\a.md", r"C:\Notes\a.md"),
        (r"\\?\UNC\server\share\a.md", r"\\server\share\a.md"),
        (r"C:\Notes\a.md", r"C:\Notes\a.md"),
    ],
)
def test_windows_tells_paths_with_a_prefix(told: str, path: str) -> None:
    kernel = FakeKernel(told)

    assert opening.windows_final_path(kernel, lambda descriptor: descriptor + 100)(7) == path
    assert kernel.handles == [107]


def test_a_disk_that_tells_no_path_is_known() -> None:
    assert opening.windows_final_path(FakeKernel("", 0), int)(7) == ""


def test_what_windows_can_hold_no_file_of_is_not_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(OSError):
        winerror = 123

    def refused(*_: object, **__: object) -> os.stat_result:
        raise Refused(errno.EINVAL, "Invalid name")

    windows = System(is_windows=True)
    assert not opening.exists(os.devnull, system=windows)  # which seems to be in each folder there
    assert opening.exists(os.devnull, system=System())
    assert opening.exists(root / "a/b/c.md", system=windows)
    monkeypatch.setattr(os, "stat", refused)
    assert not opening.exists(root / "What?", system=windows)
    with pytest.raises(OSError, match="Invalid name"):
        opening.exists(root / "What?", system=System())


class OpenElsewhere(PermissionError):
    """What Windows raises where another program has a file open."""

    winerror = 32


def test_a_file_that_another_program_has_open_for_a_moment_is_renamed_after_that(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, tries = os.replace, 0

    def refused_twice(*names: Any, **folders: Any) -> None:  # noqa: ANN401 - as the function has them
        nonlocal tries
        tries += 1
        if tries < 3:
            raise OpenElsewhere
        replace(*names, **folders)

    monkeypatch.setattr(os, "replace", refused_twice)

    opening.rename(root / "a/b/c.md", root / "a/b/d.md")

    assert (tries, (root / "a/b/d.md").exists()) == (3, True)


def test_what_stays_open_elsewhere_or_is_refused_for_good_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_OPEN_ELSEWHERE_S", 0.1)
    tries: list[type[OSError]] = []

    def refused(error: type[OSError]) -> None:
        tries.append(error)
        raise error

    with pytest.raises(OpenElsewhere):
        opening.patiently(lambda: refused(OpenElsewhere))
    with pytest.raises(PermissionError):
        opening.patiently(lambda: refused(PermissionError))

    assert tries.count(OpenElsewhere) > 2
    assert tries.count(PermissionError) == 1
