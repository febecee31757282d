"""Disks that fail, die or are meddled with at a chosen moment, and pictures of a vault to compare."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from knapper.changes.disk import apply, files
from knapper.changes.disk.files import Files
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.disk.transaction import State

Hook = Callable[[Literal["before", "after"], str, Path], None]
"""Is told of each operation that changes the disk: when, which, and on what."""

META = ChangeMeta(client="test")


class Death(BaseException):
    """Stands for the end of the process."""


@dataclass(frozen=True, kw_only=True)
class HookedDisk(Files):
    """A real disk whose operations tell a hook, which may raise or write."""

    hook: Hook
    trashed: Path | None = None

    @contextmanager
    def _told(self, operation: str, path: Path) -> Generator[None]:
        self.hook("before", operation, path)
        yield
        self.hook("after", operation, path)

    def stage(self, temp: Path, content: bytes, *, like: Path | None, mode: int | None) -> None:
        with self._told("stage", temp):
            super().stage(temp, content, like=like, mode=mode)

    def sync(self, path: Path) -> None:
        with self._told("sync", path):
            super().sync(path)

    def sync_folder(self, path: Path) -> None:
        with self._told("sync_folder", path):
            super().sync_folder(path)

    def swap(self, temp: Path, target: Path) -> None:
        with self._told("swap", target):
            super().swap(temp, target)

    def place(self, source: Path, target: Path) -> None:
        with self._told("place", target):
            super().place(source, target)

    def unlink(self, path: Path) -> None:
        with self._told("unlink", path):
            super().unlink(path)

    def mkdir(self, path: Path, *, mode: int | None) -> None:
        with self._told("mkdir", path):
            super().mkdir(path, mode=mode)

    def rmdir(self, path: Path) -> None:
        with self._told("rmdir", path):
            super().rmdir(path)

    def trash(self, path: Path) -> None:
        with self._told("trash", path):
            assert self.trashed is not None
            path.rename(self.trashed / path.name)


@dataclass(kw_only=True)
class Nth:
    """A hook that acts at one operation only."""

    number: int
    act: Callable[[], None]
    when: Literal["before", "after"] = "before"
    operations: tuple[str, ...] = ()
    seen: int = field(default=0, init=False)

    def __call__(self, when: str, operation: str, path: Path) -> None:
        del path
        if when != self.when or (self.operations and operation not in self.operations):
            return
        self.seen += 1
        if self.seen == self.number:
            self.act()


@dataclass(kw_only=True)
class Fate:
    """A hook that ends the process at one operation: from then on nothing can be done any more."""

    number: int
    when: Literal["before", "after"] = "before"
    seen: int = field(default=0, init=False)

    def __call__(self, when: str, operation: str, path: Path) -> None:
        if when == self.when:
            self.seen += 1
        if self.seen >= self.number:
            raise Death(f"{operation} {path}")


def nothing(when: str, operation: str, path: Path) -> None:
    """A hook that does nothing."""
    del when, operation, path


def opened(root: Path, disk: Files | None = None) -> State:
    """Open the state of a vault, made if missing; the state lies beside it."""
    root.mkdir(parents=True, exist_ok=True)
    state, _ = apply.open_state(root, root.parent / "state", files=disk, lock_timeout_s=0.2)
    return state


def picture(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Take down all that lies in a folder: kind, mode and content by path."""
    shown: dict[str, tuple[str, int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        name, mode = path.relative_to(root).as_posix(), path.lstat().st_mode & 0o7777
        if path.is_symlink():
            shown[name] = ("link", 0, str(path.readlink()).encode())
        elif path.is_dir():
            shown[name] = ("folder", mode, b"")
        else:
            shown[name] = ("file", mode, path.read_bytes())
    return shown


def write(root: Path, path: str, content: bytes) -> str:
    """Write a file as a person would, and give its hash."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)
    return files.hash_content(content)


def save_over(path: Path, content: bytes) -> None:
    """Save as an editor that renames its own temp file over the note."""
    temp = path.with_name(".editor~")
    temp.write_bytes(content)
    temp.replace(path)
