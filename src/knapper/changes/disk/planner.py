"""Turn effects into steps, each checked against the disk as the steps before it leave it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from knapper.changes.disk import effects, files, plan_checks
from knapper.changes.disk.effects import Effect
from knapper.changes.disk.files import Files
from knapper.changes.disk.overlay import Entry, Overlay
from knapper.changes.disk.plan import Plan
from knapper.changes.disk.step_list import StepList
from knapper.changes.disk.steps import Step, StepKind
from knapper.errors import BadInput
from knapper.vault import paths
from knapper.vault.paths import NotePath

TRASH = ".trash"


class Planner:
    """Read effects in order, each against what those before it leave."""

    def __init__(self, root: Path, disk: Files, *, change_id: str, trash_limit: int) -> None:
        """Begin a plan.

        Args:
            root: The vault's real folder, symbolic links followed.
            disk: The file operations.
            change_id: Goes into the names of temp files.
            trash_limit: Bytes above which a file goes to the vault's trash even if the system's is asked for.
        """
        self._steps = StepList(root, change_id)
        self._disk = disk
        self._trash_limit = trash_limit
        self._overlay = Overlay(root, disk)
        self._written: dict[str, str] = {}

    def read(self, asked: Sequence[Effect]) -> Plan:
        """Plan all effects; a conflict is listed, and the effects after it are still checked.

        Raises:
            BadInput: An effect makes no sense, whatever the disk holds.
            RefusedError: A symbolic link leads out of the vault.
            StorageError: A file can't be read, or is read-only.
        """
        self._steps.expect(asked)
        for number, effect in enumerate(asked):
            self._steps.effect = number
            try:
                self._plan_one(effect)
            except OSError as error:
                raise files.storage_error(error, _path(effect)) from error
        return self._steps.finished()

    def _plan_one(self, effect: Effect) -> None:
        match effect:
            case effects.Write(base=None):
                self._create(effect)
            case effects.Write():
                self._replace(effect)
            case effects.Rename():
                self._rename(effect)
            case effects.Trash():
                self._trash(effect)
            case effects.Remove():
                self._remove(effect)
            case effects.MakeFolder():
                self._make_folder(effect.path, mode=effect.mode)
            case effects.RemoveFolder():
                self._remove_folder(effect)

    def _create(self, effect: effects.Write) -> None:
        entry = self._overlay.look(effect.path)
        if entry is not None:
            self._steps.conflict(effect.path, "already exists", expected=None, current=self._current(entry))
            return
        if not self._make_parents(effect.path):
            return
        at = self._overlay.place(effect.path)
        after = self._steps.keep(effect.content)
        number = self._steps.add(Step(kind="create", target=effect.path, target_at=at, after=after, mode=effect.mode))
        planned = Entry(kind="file", at=at, disk=None, hash=after, step=number, new_mode=effect.mode)
        self._overlay.put(effect.path, planned)

    def _replace(self, effect: effects.Write) -> None:
        entry = self._expect(effect.path, effect.base)
        if entry is None:
            return
        before = entry.hash or ""
        after = files.hash_of(effect.content)
        if before == after:
            return
        plan_checks.refuse_read_only(effect.path, entry)
        if self._written.setdefault(entry.at, effect.path) != effect.path:
            msg = f"'{effect.path}' and '{self._written[entry.at]}' are the same file"
            raise BadInput(msg, hint="change it under one of its names")
        self._steps.keep(effect.content)
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

    def _rename(self, effect: effects.Rename) -> None:
        entry = self._expect(effect.source, effect.base, load=False)
        if entry is None:
            return
        if effect.target.startswith(effect.source + "/"):
            raise BadInput(f"'{effect.source}' can't be moved into itself", hint="name a folder outside of it")
        other = self._overlay.look(effect.target)
        if other is not None and not plan_checks.is_renamed_only(effect, entry, other):
            self._steps.conflict(effect.target, "already exists", expected=None, current=self._current(other))
            return
        if effect.source != effect.target:
            returns = (effect.base or "").startswith(files.LINK)  # only an undo knows what a link said
            self._move(entry, effect.source, effect.target, loose_links=returns)

    def _trash(self, effect: effects.Trash) -> None:
        entry = self._expect(effect.path, effect.base, load=False)
        if entry is None:
            return
        if effect.path == TRASH or effect.path.startswith(TRASH + "/"):
            raise BadInput(f"'{effect.path}' is in the trash already", hint="empty the trash by hand")
        if effect.where == "system" and self._fits_system_trash(effect.path, entry):
            self._take_away("discard", effect.path, entry)
            return
        self._move(entry, effect.path, self._free_name(f"{TRASH}/{effect.path}"), loose_links=True)

    def _remove(self, effect: effects.Remove) -> None:
        entry = self._expect(effect.path, effect.base)
        if entry is not None:
            self._take_away("remove", effect.path, entry)

    def _remove_folder(self, effect: effects.RemoveFolder) -> None:
        entry = self._overlay.look(effect.path)
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

    def _expect(self, path: str, base: str | None, *, load: bool = True) -> Entry | None:
        """Return what a path names, its hash told, if it is what the effect was made against."""
        entry = self._overlay.look(path)
        if entry is None:
            self._steps.conflict(path, "is gone", expected=base, current=None)
            return None
        if base is not None and base.startswith(files.LINK):
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
        known = replace(real, hash=current)
        return known if entry.kind != "link" or load else replace(entry, hash=current)

    def _expect_link(self, path: str, entry: Entry, base: str) -> Entry | None:
        """Compare a symbolic link with what it said; where it leads need not be there, as for one in the trash."""
        current = self._disk.link(entry.disk) if entry.kind == "link" and entry.disk else self._current(entry)
        if current != base:
            self._steps.conflict(path, "has changed", expected=base, current=current)
            return None
        return entry

    def _loaded(self, entry: Entry) -> str:
        """Hash a file, and keep what it holds for the journal."""
        if entry.disk is None or entry.hash in self._steps.plan.contents:
            return entry.hash or ""
        return self._steps.keep(self._disk.read(entry.disk))

    def _current(self, entry: Entry) -> str | None:
        real = self._overlay.target(entry)
        if real.hash is not None or real.kind != "file" or real.disk is None:
            return real.hash
        return self._disk.fingerprint(real.disk)

    def _move(self, entry: Entry, source: NotePath, target: NotePath, *, loose_links: bool = False) -> None:
        if entry.kind == "link" and entry.disk and not loose_links:
            plan_checks.refuse_relative_link(entry.disk, source, target)
        if not self._make_parents(target):
            return
        at = self._overlay.place(target)
        mark = self._disk.link(entry.disk) if entry.kind == "link" and entry.disk else entry.hash
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

    def _take_away(self, kind: StepKind, path: NotePath, entry: Entry) -> None:
        before = self._loaded(entry)
        self._steps.add(Step(kind=kind, source=path, source_at=entry.at, before=before, mode=entry.mode))
        self._overlay.drop(path)

    def _fits_system_trash(self, path: str, entry: Entry) -> bool:
        size = entry.stamp.size if entry.stamp else 0
        if entry.kind == "file" and entry.disk and size <= self._trash_limit:
            return True
        reason = f"is larger than {self._trash_limit:,} bytes" if entry.kind == "file" else "isn't a plain file"
        self._steps.plan.notices.append(
            f"'{path}' {reason}, so it went to '{TRASH}/' in the vault, not to the system's trash"
        )
        return False

    def _free_name(self, wanted: str) -> NotePath:
        folder, stem, suffix = paths.parent_folder(wanted), paths.stem(wanted), paths.suffix(wanted)
        number, name = 1, wanted
        while self._overlay.look(name) is not None:
            number += 1
            name = f"{folder}/{paths.fit_name(stem, f' {number}{suffix}')}"
        return NotePath(name)

    def _make_parents(self, path: str) -> bool:
        above = paths.parent_folder(path)
        return not above or self._make_folder(above)

    def _make_folder(self, path: str, *, mode: int | None = None) -> bool:
        for one in (*paths.parent_folders(path), NotePath(path)):
            entry = self._overlay.look(one)
            if entry is None:
                at = self._overlay.place(one)
                wanted = mode if one == path else None
                self._steps.add(Step(kind="mkdir", target=one, target_at=at, mode=wanted))
                self._overlay.put(one, Entry(kind="folder", at=at, disk=None, new_mode=wanted))
            elif not self._overlay.is_folder(entry):
                self._steps.conflict(one, "is a file, not a folder", expected=None, current=self._current(entry))
                return False
        return True


def _path(effect: Effect) -> str:
    return effect.source if isinstance(effect, effects.Rename) else effect.path
