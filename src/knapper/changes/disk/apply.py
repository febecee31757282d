"""Planning and application of effects to a vault as one change, and recovery after a kill."""

import contextlib
import errno
import os
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from knapper.changes.disk import files, journal, plan, storage, transaction
from knapper.changes.disk.files import Files
from knapper.changes.disk.journal import Change
from knapper.changes.disk.plan import (
    ChangeMeta,
    ChangePlan,
    Conflict,
    Effect,
    FileResult,
    Overlay,
    OverlayEntry,
    Step,
    StepKind,
)
from knapper.changes.disk.transaction import LOCK_TIMEOUT_S, TRASH_LIMIT_BYTES, State
from knapper.errors import BadInput, ConflictError, StorageError
from knapper.system import opening, private
from knapper.vault import paths
from knapper.vault.paths import NotePath


def is_renamed_only(effect: plan.Rename, entry: OverlayEntry, other: OverlayEntry) -> bool:
    """Return whether only the case or Unicode form of a name changes, on a file system that ignores it."""
    if paths.name_key(effect.source) != paths.name_key(effect.target) or entry.stamp is None or other.stamp is None:
        return False
    return entry.stamp.inode == other.stamp.inode


def refuse_read_only(path: str, entry: OverlayEntry) -> None:
    """Check that a file may be replaced.

    Raises:
        StorageError: It is read-only.
        FileNotFoundError: Another program has moved it away since it was looked at, as some do when they save.
    """
    if entry.stamp is None or entry.disk is None:
        return
    # An exchange of names would replace even a read-only file: only the folder's permissions count for it.
    is_refused = not os.access(entry.disk, os.W_OK)
    if is_refused and opening.lstat(entry.disk).st_ino != entry.stamp.inode:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if is_refused or not entry.stamp.mode & 0o222:
        raise StorageError(
            f"'{path}' is read-only; nothing was changed",
            code="read_only",
            hint="make the file writable, or edit another one",
            details={"path": path},
        )


def refuse_relative_link(link: Path, source: str, target: str) -> None:
    """Check that a symbolic link leads to the same place after a move.

    Raises:
        BadInput: It is relative, and the folder changes.
    """
    if paths.parent_folder(source) != paths.parent_folder(target) and not link.readlink().is_absolute():
        msg = f"'{source}' is a symbolic link that leads elsewhere from '{paths.parent_folder(target) or 'the top'}'"
        raise BadInput(msg, hint="move the file that it leads to, or create the link by hand")


class PlanBuilder:
    """Builder of a plan, which collects its steps."""

    def __init__(self, root: Path, change_id: str) -> None:
        """Start a plan.

        Args:
            root: The vault's real folder, symbolic links followed.
            change_id: Goes into the names of temp files.
        """
        self.plan = ChangePlan()
        self.effect = 0
        """Number of the effect that is planned right now."""
        self._root = root
        self._change_id = change_id
        self._unstable: set[str] = set()

    def announce(self, requested: Iterable[Effect]) -> None:
        """Register all effects before the first is planned, so that temp files are put where no folder moves."""
        self._unstable = set()
        for effect in requested:
            match effect:
                case plan.Rename():
                    self._unstable |= {effect.source, effect.target}
                case plan.MoveToTrash() | plan.RemoveFolder():
                    self._unstable.add(effect.path)
                case _:
                    pass

    def add(self, step: Step) -> int:
        """Add a step, with a name for the temp file that it needs, and return its number."""
        number = len(self.plan.steps)
        if step.kind in {"replace", "create", "remove", "discard"}:
            # beside the target, or further up if that folder is made, moved or removed
            folder = paths.parent_folder(step.target_at or step.source_at)
            while folder and not (
                self._unstable.isdisjoint((folder, *paths.parent_folders(folder)))
                and opening.is_folder(self._root / folder)
            ):
                folder = paths.parent_folder(folder)
            name = files.temp_name(self._change_id, number)
            step = replace(step, temp=f"{folder}/{name}" if folder else name)
        self.plan.steps.append(step)
        return number

    def add_content(self, content: bytes) -> str:
        """Store the old or new content of a file, for the disk and the journal, and return its hash."""
        name = files.hash_content(content)
        self.plan.contents.setdefault(name, content)
        return name

    def conflict(self, path: str, problem: str, *, expected: str | None, current: str | None) -> None:
        """Record that the current effect doesn't fit the disk."""
        self.plan.conflicts.append(
            Conflict(effect=self.effect, path=path, problem=problem, expected=expected, current=current)
        )

    def finished(self) -> ChangePlan:
        """Return the plan, without replacements that end with the old content."""
        plan = self.plan
        numbers = [
            number for number, step in enumerate(plan.steps) if step.kind != "replace" or step.before != step.after
        ]
        plan.stamps = {new: plan.stamps[old] for new, old in enumerate(numbers) if old in plan.stamps}
        plan.steps = [plan.steps[number] for number in numbers]
        return plan


TRASH_FOLDER = ".trash"


class Planner:
    """Planner of effects in order, each against the result of those before it."""

    def __init__(self, root: Path, disk: Files, *, change_id: str, trash_limit: int) -> None:
        """Start a plan.

        Args:
            root: The vault's real folder, symbolic links followed.
            disk: The file operations.
            change_id: Goes into the names of temp files.
            trash_limit: Bytes above which a file goes to the vault's trash even if the system's is asked for.
        """
        self._steps = PlanBuilder(root, change_id)
        self._disk = disk
        self._trash_limit = trash_limit
        self._overlay = Overlay(root, disk)
        self._written: dict[str, str] = {}

    def read(self, requested: Sequence[Effect]) -> ChangePlan:
        """Plan all effects; a conflict is listed, and the effects after it are still checked.

        Raises:
            BadInput: An effect makes no sense, whatever the disk holds.
            RefusedError: A symbolic link leads out of the vault.
            StorageError: A file can't be read, or is read-only.
        """
        self._steps.announce(requested)
        for number, effect in enumerate(requested):
            self._steps.effect = number
            try:
                self._plan(effect)
            except OSError as error:
                path = effect.source if isinstance(effect, plan.Rename) else effect.path
                if not isinstance(error, FileNotFoundError):
                    raise files.storage_error(error, path) from error
                # Another program has just moved it away, perhaps to save it anew.
                base = None if isinstance(effect, plan.MakeFolder | plan.RemoveFolder) else effect.base
                self._steps.conflict(path, "is gone", expected=base, current=None)
        return self._steps.finished()

    def _plan(self, effect: Effect) -> None:
        match effect:
            case plan.Write(base=None):
                self._create(effect)
            case plan.Write():
                self._replace(effect)
            case plan.Rename():
                self._rename(effect)
            case plan.MoveToTrash():
                self._trash(effect)
            case plan.Remove():
                self._remove(effect)
            case plan.MakeFolder():
                self._make_folder(effect.path, mode=effect.mode)
            case plan.RemoveFolder():
                self._remove_folder(effect)

    def _create(self, effect: plan.Write) -> None:
        entry = self._overlay.entry(effect.path)
        if entry is not None:
            self._steps.conflict(effect.path, "already exists", expected=None, current=self._current(entry))
            return
        if not self._make_parents(effect.path):
            return
        at = self._overlay.place(effect.path)
        after = self._steps.add_content(effect.content)
        number = self._steps.add(Step(kind="create", target=effect.path, target_at=at, after=after, mode=effect.mode))
        planned = OverlayEntry(kind="file", at=at, disk=None, hash=after, step=number, new_mode=effect.mode)
        self._overlay.put(effect.path, planned)

    def _replace(self, effect: plan.Write) -> None:
        entry = self._expect(effect.path, effect.base)
        if entry is None:
            return
        before = entry.hash or ""
        after = files.hash_content(effect.content)
        if before == after:
            return
        refuse_read_only(effect.path, entry)
        if self._written.setdefault(entry.at, effect.path) != effect.path:
            msg = f"'{effect.path}' and '{self._written[entry.at]}' are the same file"
            raise BadInput(msg, hint="change it under one of its names")
        self._steps.add_content(effect.content)
        if entry.step is not None and self._steps.plan.steps[entry.step].target_at == entry.at:
            self._steps.plan.steps[entry.step] = replace(self._steps.plan.steps[entry.step], after=after)
            number = entry.step
        else:
            number = self._steps.add(
                Step(
                    kind="replace",
                    source=effect.path,
                    target=effect.path,
                    source_at=entry.at,
                    target_at=entry.at,
                    before=before,
                    after=after,
                    mode=entry.mode,
                )
            )
        self._overlay.write(effect.path, replace(entry, hash=after, step=number))

    def _rename(self, effect: plan.Rename) -> None:
        entry = self._expect(effect.source, effect.base, load=False)
        if entry is None:
            return
        if effect.target.startswith(effect.source + "/"):
            raise BadInput(f"'{effect.source}' can't be moved into itself", hint="name a folder outside of it")
        other = self._overlay.entry(effect.target)
        if other is not None and not is_renamed_only(effect, entry, other):
            self._steps.conflict(effect.target, "already exists", expected=None, current=self._current(other))
            return
        if effect.source != effect.target:
            # Only an undo has the hash of a symbolic link, and it moves the link back to where it was right.
            is_undo = (effect.base or "").startswith(files.LINK_PREFIX)
            self._move(entry, effect.source, effect.target, loose_links=is_undo)

    def _trash(self, effect: plan.MoveToTrash) -> None:
        entry = self._expect(effect.path, effect.base, load=False)
        if entry is None:
            return
        if effect.path == TRASH_FOLDER or effect.path.startswith(TRASH_FOLDER + "/"):
            raise BadInput(f"'{effect.path}' is in the trash already", hint="empty the trash by hand")
        if effect.where == "system" and self._fits_system_trash(effect.path, entry):
            self._take_away("discard", effect.path, entry)
            return
        wanted = f"{TRASH_FOLDER}/{effect.path}"
        folder, stem, suffix = paths.parent_folder(wanted), paths.stem(wanted), paths.suffix(wanted)
        number, name = 1, wanted
        while self._overlay.entry(name) is not None:
            number += 1
            name = f"{folder}/{paths.fit_name(stem, f' {number}{suffix}')}"
        self._move(entry, effect.path, NotePath(name), loose_links=True)

    def _remove(self, effect: plan.Remove) -> None:
        entry = self._expect(effect.path, effect.base)
        if entry is not None:
            self._take_away("remove", effect.path, entry)

    def _remove_folder(self, effect: plan.RemoveFolder) -> None:
        entry = self._overlay.entry(effect.path)
        if entry is None or entry.kind != "folder":
            if not effect.keep_filled:
                self._steps.conflict(effect.path, "isn't a folder", expected=None, current=None)
            return
        if self._overlay.is_filled(effect.path, entry):
            if not effect.keep_filled:
                self._steps.conflict(effect.path, "isn't empty", expected=None, current=None)
            return
        self._steps.add(Step(kind="rmdir", source=effect.path, source_at=entry.at, mode=entry.mode))
        self._overlay.drop(effect.path)

    def _expect(self, path: str, base: str | None, *, load: bool = True) -> OverlayEntry | None:
        """Return a path's entry with its hash, if it is what the effect was made against; else record a conflict."""
        entry = self._overlay.entry(path)
        if entry is None:
            self._steps.conflict(path, "is gone", expected=base, current=None)
            return None
        if base is not None and base.startswith(files.LINK_PREFIX):
            return self._expect_link(path, entry, base)
        real = self._overlay.target(entry)
        if real.kind == "folder" and base is None:
            return entry
        if real.kind != "file":
            self._steps.conflict(path, "isn't a file", expected=base, current=None)
            return None
        current = self._loaded(real) if load else self._current(entry)
        if base is not None and base != current:
            self._steps.conflict(path, "has changed", expected=base, current=current)
            return None
        resolved = replace(real, hash=current)
        return resolved if entry.kind != "link" or load else replace(entry, hash=current)

    def _expect_link(self, path: str, entry: OverlayEntry, base: str) -> OverlayEntry | None:
        """Check that a symbolic link has its old target, which needn't exist, as for a link in the trash."""
        current = self._disk.link_hash(entry.disk) if entry.kind == "link" and entry.disk else self._current(entry)
        if current != base:
            self._steps.conflict(path, "has changed", expected=base, current=current)
            return None
        return entry

    def _loaded(self, entry: OverlayEntry) -> str:
        """Return the hash of a file, and store its content for the journal."""
        if entry.disk is None or entry.hash in self._steps.plan.contents:
            return entry.hash or ""
        return self._steps.add_content(self._disk.read(entry.disk))

    def _current(self, entry: OverlayEntry) -> str | None:
        real = self._overlay.target(entry)
        if real.hash is not None or real.kind != "file" or real.disk is None:
            return real.hash
        return self._disk.fingerprint(real.disk)

    def _move(self, entry: OverlayEntry, source: NotePath, target: NotePath, *, loose_links: bool = False) -> None:
        if entry.kind == "link" and entry.disk and not loose_links:
            refuse_relative_link(entry.disk, source, target)
        if not self._make_parents(target):
            return
        at = self._overlay.place(target)
        mark = self._disk.link_hash(entry.disk) if entry.kind == "link" and entry.disk else entry.hash
        number = self._steps.add(
            Step(
                kind="move",
                source=source,
                target=target,
                source_at=entry.at,
                target_at=at,
                before=mark,
                after=mark,
                inode=str(entry.stamp.inode) if entry.stamp and entry.step is None else "",
                is_folder=entry.kind == "folder",
            )
        )
        if entry.stamp and entry.step is None and entry.kind == "file":
            self._steps.plan.stamps[number] = entry.stamp
        self._overlay.move(source, target, entry, at=at)

    def _take_away(self, kind: StepKind, path: NotePath, entry: OverlayEntry) -> None:
        before = self._loaded(entry)
        self._steps.add(Step(kind=kind, source=path, source_at=entry.at, before=before, mode=entry.mode))
        self._overlay.drop(path)

    def _fits_system_trash(self, path: str, entry: OverlayEntry) -> bool:
        size = entry.stamp.size if entry.stamp else 0
        if entry.kind == "file" and entry.disk and size <= self._trash_limit:
            return True
        reason = f"is larger than {self._trash_limit:,} bytes" if entry.kind == "file" else "isn't a plain file"
        self._steps.plan.notices.append(
            f"'{path}' {reason}, so it went to '{TRASH_FOLDER}/' in the vault, not to the system's trash"
        )
        return False

    def _make_parents(self, path: str) -> bool:
        above = paths.parent_folder(path)
        return not above or self._make_folder(above)

    def _make_folder(self, path: str, *, mode: int | None = None) -> bool:
        for one in (*paths.parent_folders(path), NotePath(path)):
            entry = self._overlay.entry(one)
            if entry is None:
                at = self._overlay.place(one)
                own_mode = mode if one == path else None
                self._steps.add(Step(kind="mkdir", target=one, target_at=at, mode=own_mode))
                self._overlay.put(one, OverlayEntry(kind="folder", at=at, disk=None, new_mode=own_mode))
            elif not self._overlay.is_folder(entry):
                self._steps.conflict(one, "is a file, not a folder", expected=None, current=self._current(entry))
                return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """Outcome of recovering a change that a kill or a failure had interrupted."""

    change_id: str
    outcome: Literal["finished", "taken back"]
    paths: tuple[str, ...]
    notices: tuple[str, ...]
    """What an editor saved meanwhile, and where it is kept."""

    @property
    def summary(self) -> str:
        """Return the outcome in one sentence."""
        return f"change {self.change_id}, which was cut short, is {self.outcome}: {', '.join(self.paths)}"


def open_state(
    root: Path,
    folder: Path,
    *,
    files: Files | None = None,
    lock_timeout_s: float = LOCK_TIMEOUT_S,
    trash_limit: int = TRASH_LIMIT_BYTES,
) -> tuple[State, list[Recovered]]:
    """Open the state that writing to a vault needs, and recover unless another process is writing right now.

    Args:
        root: The vault's folder.
        folder: Its state folder, outside the vault; made if missing.
        files: The file operations; None for the real ones.
        lock_timeout_s: Seconds that a write waits for another one.
        trash_limit: Bytes above which a file goes to the vault's trash even if the system's is asked for.

    Raises:
        StorageError: The state can't be opened, or an unfinished change can't be taken back.
    """
    try:
        private.make_folder(folder)
    except OSError as error:
        message = f"the state folder {folder}, where changes are recorded, can't be made: {error.strerror}"
        raise StorageError(message, hint="check its permissions, or set KNAP_STATE_DIR to another folder") from error
    try:
        real = root.resolve(strict=True)
    except OSError as error:
        raise StorageError(f"'{error.filename}' can't be opened: {error.strerror}", hint="check the path") from error
    state = State(
        root=real,
        folder=folder,
        journal=journal.open_journal(folder),
        files=files or Files(),
        lock_timeout_s=lock_timeout_s,
        trash_limit=trash_limit,
    )
    try:
        return state, recover_if_free(state)
    except BaseException:
        state.journal.shut()
        raise


def recover_unfinished(state: State) -> list[Recovered]:
    """Finish or take back interrupted changes; the caller holds the lock, so their writers are dead or gave up.

    Raises:
        StorageError: The disk refuses; nothing else may be written until this succeeds.
    """
    recovered = [_recover(state, change) for change in state.journal.unfinished()]
    try:
        if private.is_marked(state.folder):
            private.remove_marker(state.folder)
    except OSError as error:
        raise files.storage_error(error, private.MARKER_FILE) from error
    return recovered


def find_stray_temp_files(state: State) -> list[Path]:
    """Return temp files that no change of this journal explains: another machine's, or left by a power cut.

    Only a person can tell which, so they are only listed.
    """
    known = {Path(step.temp).name for change in state.journal.unfinished() for step in change.steps}
    return sorted(path for path in state.root.rglob(f"{files.TEMP_PREFIX}*") if path.name not in known)


def recover_if_free(state: State) -> list[Recovered]:
    """Finish or take back interrupted changes, unless another process or thread is writing right now.

    Raises:
        StorageError: The disk refuses.
    """
    # What can't be recorded can't be settled either; readers are told so by the marker.
    if state.journal.is_read_only or not (private.is_marked(state.folder) or state.journal.unfinished()):
        return []
    try:
        with storage.hold_write_lock(state.folder, timeout_s=0):
            return recover_unfinished(state)
    except ConflictError:
        # The lock is held, so the writer of the unfinished change is alive.
        return []


def _recover(state: State, change: Change) -> Recovered:
    context = transaction.make_context(state)
    outcome: Literal["finished", "taken back"] = "finished"
    try:
        # Interrupted exchanges are completed first: `is_step_done` expects each file under its own or its temp name.
        linked = [step for step in change.steps if context.symlinked_folder(step)]
        for step in change.steps:
            if step.temp and step not in linked:
                context.files.mend(context.at(step.temp))
        if (
            change.phase == "ready"
            and not linked
            and all(transaction.is_step_done(context, step) for step in change.steps)
        ):
            transaction.sync_folders(context, change.steps)
            state.journal.applied(change.id)
        elif change.phase != "applied":
            outcome = "taken back"
            transaction.roll_back(context, change.steps, tried=len(change.steps) if change.phase == "ready" else 0)
            state.journal.forget(change.id)
        if outcome == "finished":
            for step in change.steps:
                transaction.finish_step(context, step)
            state.journal.close(change.id)
    except OSError as error:
        raise StorageError(
            f"change {change.id} was cut short and can't be taken back: {error}",
            code="unfinished",
            hint="mend the cause, then start again",
        ) from error
    paths = tuple(dict.fromkeys(step.path for step in change.steps))
    return Recovered(change_id=change.id, outcome=outcome, paths=paths, notices=tuple(context.notices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Result of an applied change."""

    change_id: str
    """Empty if the files were as wanted already, so that nothing was written."""
    files: tuple[FileResult, ...]
    notices: tuple[str, ...]
    """What a person should know: a file that went to another trash, what an editor saved meanwhile, the outcome of a
    change that an earlier process left unfinished."""


def apply_effects(state: State, effects: Sequence[Effect], meta: ChangeMeta) -> Applied:
    """Apply effects in order, as one change.

    Args:
        state: The vault's.
        effects: Each is planned against the result of those before it.
        meta: Who and why.

    Raises:
        BadInput: An effect makes no sense.
        ConflictError: A file isn't what an effect was made against (``details["conflicts"]`` has each with its current
            hash), an editor saved meanwhile, or another process writes.
        RefusedError: A symbolic link leads out of the vault.
        StorageError: The disk refused, or a file is read-only. Nothing was changed.
    """
    with hold_lock(state) if not state.is_locked else contextlib.nullcontext():
        # An interrupted change comes first: the plan has to see its final files.
        earlier = [notice for one in recover_unfinished(state) for notice in (one.summary, *one.notices)]
        change_id = plan.make_id()
        planned = plan_effects(state, effects, change_id=change_id)
        plan.check_conflicts(planned)
        if not planned.steps:
            return Applied(change_id="", files=(), notices=(*earlier, *planned.notices))
        notices = transaction.commit(state, planned, meta, change_id=change_id)
    return Applied(change_id=change_id, files=plan.file_results(planned.steps), notices=(*earlier, *notices))


@contextlib.contextmanager
def hold_lock(state: State) -> Generator[State]:
    """Acquire the vault's write lock until the block ends, so that what it reads is current when it writes.

    Yields:
        The state to write with inside the block.

    Raises:
        ConflictError: Another writer held the vault's lock until the time-out.
        StorageError: The lock's file can't be made.
    """
    with storage.hold_write_lock(state.folder, timeout_s=state.lock_timeout_s):
        yield replace(state, is_locked=True)


def plan_effects(state: State, effects: Sequence[Effect], *, change_id: str = "") -> ChangePlan:
    """Return the plan for effects, without writing anything; conflicts are listed in the plan.

    Raises:
        BadInput: An effect makes no sense.
        RefusedError: A symbolic link leads out of the vault.
        StorageError: A file can't be read, or is read-only.
    """
    planner = Planner(state.root, state.files, change_id=change_id, trash_limit=state.trash_limit)
    return planner.read(effects)
