"""Planner that turns effects into steps, each checked against the disk as the earlier steps leave it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from knapper.changes.disk import files, plan
from knapper.changes.disk.files import FileKind, Files, Stamp
from knapper.changes.disk.plan import ChangePlan, Conflict, Effect, Step, StepKind
from knapper.errors import BadInput, RefusedError, StorageError
from knapper.system import opening
from knapper.vault import paths
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayEntry:
    """What a path will refer to after the planned steps."""

    kind: FileKind
    at: str
    """Where it will lie below the vault's real folder."""
    disk: Path | None
    """Where it lies now; None if a planned step makes it."""
    stamp: Stamp | None = None
    hash: str | None = None
    """Of planned content; None where it has to be read from the disk."""
    step: int | None = None
    """The planned step that writes it."""
    new_mode: int | None = None
    """Permission bits that a planned step gives it; None for the system's default."""

    @property
    def mode(self) -> int | None:
        """The permission bits that it will have, as far as they are known."""
        return self.stamp.mode if self.stamp else self.new_mode


class Overlay:
    """View of the vault's paths as if the planned steps had been carried out."""

    def __init__(self, root: Path, files: Files) -> None:
        """Start with the vault as it is on disk.

        Args:
            root: The vault's real folder, symbolic links followed.
            files: The disk.
        """
        self._root = root
        self._files = files
        self._known: dict[str, OverlayEntry | None] = {}
        self._parents: dict[str, str] = {"": ""}

    def entry(self, path: str) -> OverlayEntry | None:
        """Return what a path will refer to; None for nothing.

        Raises:
            RefusedError: A symbolic link leads out of the vault.
        """
        if path in self._known:
            return self._known[path]
        origin = self._origin(path)
        if origin is None:
            at = self._at(path)
            return self._seen(at, self._root / at)
        holder = self._known[origin]
        if holder is None or holder.disk is None:
            return None
        relative = path[len(origin) + 1 :]
        disk = holder.disk / relative
        if os.path.realpath(disk.parent) != str(disk.parent):
            msg = f"'{path}' lies behind a symbolic link in a folder that this change moves"
            raise BadInput(msg, hint="edit the link's target first, then move the folder")
        return self._seen(f"{holder.at}/{relative}", disk)

    def place(self, path: str) -> str:
        """Return where a path that names nothing yet will lie below the vault's real folder.

        Raises:
            RefusedError: A symbolic link leads out of the vault.
        """
        origin = self._origin(path)
        holder = self._known[origin] if origin else None
        if origin is None or holder is None:
            return self._at(path)
        return f"{holder.at}/{path[len(origin) + 1 :]}"

    def target(self, entry: OverlayEntry) -> OverlayEntry:
        """Return the entry of the file that a symbolic link leads to; any other entry as it is.

        Raises:
            RefusedError: It leads out of the vault.
        """
        if entry.kind != "link" or entry.disk is None:
            return entry
        real = Path(os.path.realpath(entry.disk))
        if not real.is_relative_to(self._root):
            raise _outside_vault(entry.at)
        stamp = self._files.stamp(real)
        at = real.relative_to(self._root).as_posix()
        planned = self._known.get(at)
        return planned or OverlayEntry(kind=stamp.kind if stamp else "other", at=at, disk=real, stamp=stamp)

    def put(self, path: str, entry: OverlayEntry) -> None:
        """Record that a path will refer to *entry*."""
        self._known[path] = entry

    def write(self, path: str, entry: OverlayEntry) -> None:
        """Record new content for a path, or for the link's target if it is a symbolic link."""
        entry_before = self.entry(path)
        self._known[entry.at if entry_before is not None and entry_before.kind == "link" else path] = entry

    def drop(self, path: str) -> None:
        """Record that a path and all paths below it will refer to nothing."""
        for below in self._below(path):
            del self._known[below]
        self._known[path] = None

    def move(self, source: str, target: str, entry: OverlayEntry, *, at: str) -> None:
        """Record that *source*, with all below it, will be at *target*."""
        for path in self._below(source):
            inner = self._known.pop(path)
            if inner is not None and inner.at.startswith(entry.at + "/"):
                inner = replace(inner, at=at + inner.at[len(entry.at) :])
            self._known[target + path[len(source) :]] = inner
        self._known[source] = None
        self._known[target] = replace(entry, at=at)

    def is_folder(self, entry: OverlayEntry) -> bool:
        """Return whether files can lie below an entry."""
        return entry.kind == "folder" or (entry.kind == "link" and entry.disk is not None and entry.disk.is_dir())

    def is_filled(self, path: str, entry: OverlayEntry) -> bool:
        """Return whether a folder will hold anything."""
        names = self._files.names(entry.disk) if entry.disk else []
        planned = [known for known in self._known if known.rpartition("/")[0] == path]
        return any(self.entry(below) for below in {*planned, *(f"{path}/{name}" for name in names)})

    def _below(self, path: str) -> list[str]:
        return [known for known in self._known if known.startswith(path + "/")]

    def _origin(self, path: str) -> str | None:
        return next((above for above in _parents(path) if above in self._known), None)

    def _seen(self, at: str, disk: Path) -> OverlayEntry | None:
        stamp = self._files.stamp(disk)
        return OverlayEntry(kind=stamp.kind, at=at, disk=disk, stamp=stamp) if stamp else None

    def _at(self, path: str) -> str:
        above = self._parent_at(paths.parent_folder(path))
        return f"{above}/{paths.base_name(path)}" if above else paths.base_name(path)

    def _parent_at(self, folder: str) -> str:
        if folder not in self._parents:
            real = Path(os.path.realpath(self._root / folder))
            if not real.is_relative_to(self._root):
                raise _outside_vault(folder)
            at = real.relative_to(self._root).as_posix()
            self._parents[folder] = "" if at == "." else at
        return self._parents[folder]


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _outside_vault(link: str) -> RefusedError:
    msg = f"the symbolic link '{link}' leads out of the vault"
    return RefusedError(msg, code="outside_vault", hint="copy the file into the vault to use it there")


def is_renamed_only(effect: plan.Rename, entry: OverlayEntry, other: OverlayEntry) -> bool:
    """Return whether only the case or Unicode form of a name changes, on a file system that ignores it."""
    if paths.name_key(effect.source) != paths.name_key(effect.target) or entry.stamp is None or other.stamp is None:
        return False
    return entry.stamp.inode == other.stamp.inode


def refuse_read_only(path: str, entry: OverlayEntry) -> None:
    """Check that a file may be replaced.

    Raises:
        StorageError: It is read-only.
    """
    if entry.stamp is None or entry.disk is None:
        return
    # An exchange of names would replace even a read-only file: only the folder's permissions count for it.
    if not entry.stamp.mode & 0o222 or not os.access(entry.disk, os.W_OK):
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
        self._unstable = {path for effect in requested for path in _moving_paths(effect)}

    def add(self, step: Step) -> int:
        """Add a step, with a name for the temp file that it needs, and return its number."""
        number = len(self.plan.steps)
        if step.kind in {"replace", "create", "remove", "discard"}:
            step = replace(step, temp=self._temp(step, number))
        self.plan.steps.append(step)
        return number

    def _temp(self, step: Step, number: int) -> str:
        """Return a path for a temp file: beside the target, or further up if that folder is made, moved or removed."""
        at = step.target_at or step.source_at
        folder = paths.parent_folder(at)
        while folder and (self._is_unstable(folder) or not opening.is_folder(self._root / folder)):
            folder = paths.parent_folder(folder)
        name = files.temp_name(self._change_id, number)
        return f"{folder}/{name}" if folder else name

    def _is_unstable(self, folder: str) -> bool:
        return any(one in self._unstable for one in (folder, *paths.parent_folders(folder)))

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


def _moving_paths(effect: Effect) -> tuple[str, ...]:
    match effect:
        case plan.Rename():
            return (effect.source, effect.target)
        case plan.MoveToTrash() | plan.RemoveFolder():
            return (effect.path,)
        case _:
            return ()


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
                self._plan_one(effect)
            except OSError as error:
                raise files.storage_error(error, _effect_path(effect)) from error
        return self._steps.finished()

    def _plan_one(self, effect: Effect) -> None:
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
        self._move(entry, effect.path, self._free_name(f"{TRASH_FOLDER}/{effect.path}"), loose_links=True)

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

    def _free_name(self, wanted: str) -> NotePath:
        folder, stem, suffix = paths.parent_folder(wanted), paths.stem(wanted), paths.suffix(wanted)
        number, name = 1, wanted
        while self._overlay.entry(name) is not None:
            number += 1
            name = f"{folder}/{paths.fit_name(stem, f' {number}{suffix}')}"
        return NotePath(name)

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


def _effect_path(effect: Effect) -> str:
    return effect.source if isinstance(effect, plan.Rename) else effect.path
