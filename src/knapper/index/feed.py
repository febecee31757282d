"""Take in what the system reports about changed files, and tell readers when nothing is left unread.

A reader can't see which reports still wait in the system's queue. So it makes a file in a folder of the index that is
watched together with the vault: once that file is reported, everything before it has been read. (The idea is that of
Watchman's cookies.) A reader in another process makes such a file too, and the watcher removes it as its answer.
"""

import contextlib
import itertools
import os
import shutil
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from watchfiles._rust_notify import RustNotify  # documented for direct use: `watch` can only wait, and not look
from watchfiles.main import _default_force_polling  # pyright: ignore[reportPrivateUsage]

from knapper.index.refresh import ASK_PREFIX, RULE_FILES, SIGNAL_FOLDER, SYNC_PREFIX
from knapper.system import private

NEW_FOLDER_RECHECK_S: Final = 0.5
"""When a new folder is listed again: files put into it before the system watches it aren't reported."""
_SYNC_WAIT_S: Final = 0.25
"""How long a reader waits for its own file to be reported."""
_FIRST_LOOK_S: Final = 0.000_05
_LOOK_FACTOR: Final = 1.3
_MAX_LOOK_S: Final = 0.002
"""Pauses between looks at whether it was reported, which takes a tenth of a millisecond on an idle machine."""
_MUTE_S: Final = 1.0
"""How long nobody waits again after a report didn't come in time."""
_POLL_DELAY_MS: Final = 300
"""Interval of looking at all files, where the system reports nothing."""
_MANY_CHANGES: Final = 4_000
"""So many reports at once may have overrun the system's queue, which holds 16,384 on Linux."""
_OLD_SIGNAL_S: Final = 60.0
"""Older signal files were left by a process that was killed."""


class _NothingReported(Exception):
    """There are no reports."""


class _LookTwice:
    """An event that ends `RustNotify.watch` after two looks, as many as it takes to return reports.

    It raises, and is never set: at the end of a wait, and when its event is set, `watch` forgets what came in between.
    """

    def __init__(self) -> None:
        self._looks = 0

    def is_set(self) -> bool:
        self._looks += 1
        if self._looks > 2:
            raise _NothingReported
        return False


class ChangeFeed:
    """The reported changes of a vault that the index may lack; shared by a watcher and by the readers of its process.

    A path stays in it until it is settled: what is only being indexed isn't in the index yet. Thread-safe.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        """Begin to collect the reports on *root*.

        Args:
            root: The vault's folder.
            folder: The index's own folder.

        Raises:
            OSError: The system can't report changes, such as on too many folders.
            RuntimeError: The same, told otherwise.
        """
        self._root = root
        self._signals = folder / SIGNAL_FOLDER
        private.make_folder(self._signals)
        for file in self._signals.iterdir():
            # Another process may remove it first.
            with contextlib.suppress(OSError):
                if time.time() - file.stat().st_mtime > _OLD_SIGNAL_S:
                    file.unlink()
        # As it is spelled, and as macOS reports it.
        self._signal_folders = (self._signals, self._signals.resolve())
        polls = _default_force_polling(None)
        if polls:
            # Files are looked at one after another, so that a signal file says nothing about the others.
            shutil.rmtree(self._signals, ignore_errors=True)
        # One watcher for both folders: their reports come in one queue, in order.
        self._notify = RustNotify(
            [str(root)] if polls else [str(root), str(self._signals)],
            debug=False,
            force_polling=polls,
            poll_delay_ms=_POLL_DELAY_MS,
            recursive=True,
            ignore_permission_denied=True,
        )
        # Where the system can't report, `RustNotify` looks at the files by itself.
        self._is_prompt = not repr(self._notify).startswith("RustNotify(Poll")
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[Path, int] = {}
        self._new_folders: dict[Path, float] = {}
        self._asks: set[Path] = set()
        self._muted_until = 0.0
        self._doubts = 0
        self._dispelled = 0

    def collect(self) -> int:
        """Read all reports that have come, without waiting; return how many concern the vault.

        Raises:
            RuntimeError: The system's reports have failed, such as at a name that isn't valid Unicode.
        """
        with self._lock:
            return self._collect(None)[0]

    def sync(self, wait_s: float = _SYNC_WAIT_S) -> bool:
        """Read all reports on what happened before this call.

        Args:
            wait_s: How long to wait for them, in seconds.

        Returns:
            Whether that is certain; otherwise only a look at all files tells what has changed.
        """
        with self._lock:
            if not self._is_prompt or self.is_doubtful or time.monotonic() < self._muted_until:
                return False
            signal = self._signals / f"{SYNC_PREFIX}{os.getpid()}-{next(self._numbers)}"
            if not private.make_signal(signal):
                return False
            try:
                pause, deadline = _FIRST_LOOK_S, time.monotonic() + wait_s
                is_heard = self._collect(signal.name)[1]
                while not is_heard and time.monotonic() <= deadline:
                    # Longer each time: on a busy machine the report takes its time, and looking for it takes that of
                    # others.
                    time.sleep(pause)
                    pause = min(_LOOK_FACTOR * pause, _MAX_LOOK_S)
                    is_heard = self._collect(signal.name)[1]
            except (OSError, RuntimeError):
                # The system's reports have failed; the watcher meets the same error, and starts over.
                return False
            finally:
                private.remove_signal(signal)
            if not is_heard:
                # Reports were lost, or come late: the watcher compares all files once.
                self._muted_until = time.monotonic() + _MUTE_S
                self._doubts += 1
            return is_heard

    def _collect(self, wanted: str | None) -> tuple[int, bool]:
        """Read the reports that have come; also return whether a signal file's is among them."""
        try:
            reports = self._notify.watch(0, 0, 0, _LookTwice())
        except _NothingReported:
            return 0, False
        if isinstance(reports, str):
            # A signal whose handler raised; the others are never returned without a time-out or a set event.
            raise KeyboardInterrupt
        is_heard, count = False, 0
        for _, reported in reports:
            path = Path(reported)
            if path.parent in self._signal_folders:
                is_heard = is_heard or path.name == wanted
                if self._is_prompt and path.name.startswith(ASK_PREFIX):
                    self._asks.add(self._signals / path.name)
            elif path not in self._signal_folders and self._is_relevant(path):
                count += 1
                self._add(path)
                if path.is_dir():
                    self._new_folders[path] = time.monotonic()
        self._doubts += len(reports) >= _MANY_CHANGES
        return count, is_heard

    def _is_relevant(self, path: Path) -> bool:
        """Return whether a path may be one of the vault: what begins with a dot isn't, except for the rules."""
        if not path.is_relative_to(self._root):
            # Spelled with another prefix, as macOS does; the comparison sorts it out.
            return True
        inside = path.relative_to(self._root)
        return not any(part.startswith(".") for part in inside.parts) or inside.as_posix() in RULE_FILES

    def _add(self, path: Path) -> None:
        self._waiting[path] = next(self._numbers)

    def add(self, paths: Iterable[Path]) -> None:
        """Add files and folders as if they were reported."""
        with self._lock:
            for path in paths:
                self._add(path)

    def add_due_folders(self) -> None:
        """Add the new folders again whose time of a second look has come."""
        with self._lock:
            due_before = time.monotonic() - NEW_FOLDER_RECHECK_S
            for path in [path for path, seen in self._new_folders.items() if seen <= due_before]:
                del self._new_folders[path]
                self._add(path)

    def waiting(self) -> dict[Path, int]:
        """Return what the index may lack, with a number each: files, and folders that were made a moment ago."""
        with self._lock:
            return dict.fromkeys(self._new_folders, 0) | self._waiting

    @property
    def is_idle(self) -> bool:
        """Return whether nothing that was read waits: no change, no reader's question, no folder's second look."""
        with self._lock:
            return not (self._waiting or self._asks or self._new_folders)

    def settle(self, taken: Mapping[Path, int]) -> None:
        """Forget what `waiting` returned, after it was indexed; what was reported again since stays."""
        with self._lock:
            for path, number in taken.items():
                if self._waiting.get(path) == number:
                    del self._waiting[path]

    @property
    def is_doubtful(self) -> bool:
        """Return whether reports may be lost, so that all files should be compared."""
        return self._doubts > self._dispelled

    @property
    def doubts(self) -> int:
        """Return how many reasons there were to doubt the reports."""
        return self._doubts

    def trust(self, doubts: int) -> None:
        """Rely on the reports again, after all files were compared.

        Args:
            doubts: The number of `doubts` before that.
        """
        self._dispelled = max(self._dispelled, doubts)

    @property
    def is_intact(self) -> bool:
        """Return whether readers can make signal files; not after the index's folder was deleted."""
        return not self._is_prompt or self._signals.is_dir()

    def asks(self) -> set[Path]:
        """Return the questions of readers in other processes that were read."""
        with self._lock:
            return set(self._asks)

    def answer(self, asks: Collection[Path]) -> None:
        """Tell readers in other processes that everything reported before their questions is in the index."""
        with self._lock:
            self._asks.difference_update(asks)
        for ask in asks:
            private.remove_signal(ask)

    def close(self) -> None:
        """End the reports."""
        with self._lock:
            self._notify.close()
            self._is_prompt = False

    def __enter__(self) -> Self:
        """Use the feed in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
