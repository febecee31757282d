"""Execution of a plan, step by step: all of it is done, or nothing."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from knapper.changes.disk import displaced, files
from knapper.changes.disk.displaced import DisplacedSaves
from knapper.changes.disk.files import HASH_OPEN, Files, Stamp
from knapper.changes.disk.journal import Journal
from knapper.changes.disk.plan import (
    ChangeMeta,
    ChangePlan,
    Step,
    StepKind,
    appeared_error,
    changed_error,
    symlink_error,
)
from knapper.errors import ConflictError, KnapError, StorageError
from knapper.system import opening, private
from knapper.vault import paths

LOCK_TIMEOUT_S = 10.0
TRASH_LIMIT_BYTES = 50_000_000
CONFLICTS_FOLDER = "conflicts"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A vault's folder, its state folder and its open journal; `apply.open_state` makes one."""

    root: Path
    """The vault's real folder, symbolic links followed."""
    folder: Path
    """The vault's state folder, outside the vault."""
    journal: Journal
    files: Files = field(default_factory=Files)
    lock_timeout_s: float = LOCK_TIMEOUT_S
    is_locked: bool = False
    """Whether the owner of this state holds the vault's lock already."""
    trash_limit: int = TRASH_LIMIT_BYTES
    """Bytes above which a file goes to the vault's trash even if the system's is asked for."""

    @property
    def conflicts_folder(self) -> Path:
        """The folder for an editor's save that another save displaced during a change."""
        return self.folder / CONFLICTS_FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionContext:
    """What the steps of one change need: the vault, the file operations, and the journal's contents."""

    root: Path
    """The vault's real folder."""
    files: Files
    conflicts_folder: Path
    """Folder for an editor's save that another save displaced."""
    content: Callable[[str], bytes]
    """Returns the journal's content for a hash."""
    notices: list[str] = field(default_factory=list[str])
    expected_stamps: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    """Stamp of each displaced file when its content was checked, by temp path."""
    saves: DisplacedSaves = field(init=False)
    """What other programs saved in the moment of an exchange."""
    _places: dict[str, Path] = field(default_factory=dict[str, Path], init=False)
    """Paths on disk that were asked for; each is several times, and takes longer to join than a file to look at."""

    def __post_init__(self) -> None:
        """Begin without displaced saves."""
        object.__setattr__(self, "saves", DisplacedSaves(files=self.files, folder=self.conflicts_folder))

    def at(self, relative: str) -> Path:
        """Return the path on disk of a step's place."""
        if (path := self._places.get(relative)) is None:
            path = self._places[relative] = self.root / relative
        return path

    def clear(self, relative: str) -> None:
        """Delete a temp file if it is there."""
        # A read-only file system refuses to delete even a file that doesn't exist.
        if self.files.stamp(self.at(relative)) is not None:
            self.files.unlink(self.at(relative))

    def symlinked_folder(self, step: Step) -> str:
        """Return a folder above a step's places that is a symbolic link now; empty if there is none.

        All links were followed when the step was planned: one that was made since may lead out of the vault.
        """
        folders = {folder for at in (step.source_at, step.target_at, step.temp) for folder in paths.parent_folders(at)}
        return min((folder for folder in folders if self.at(folder).is_symlink()), default="")


def keep_conflict_copy(context: ExecutionContext, temp: Path, step: Step) -> None:
    """Move a file that has lost its name to the conflicts folder, with a notice."""
    context.files.settled_hash(temp)
    names = displaced.copy_paths(context.conflicts_folder, temp, step)
    copy = next(name for name in names if context.files.stamp(name) is None)
    context.files.copy(temp, copy)
    context.files.unlink(temp)
    context.notices.append(f"'{step.path}': an earlier save by another program is kept in '{copy}'")


MAX_RESTORE_ROUNDS = 50
"""Attempts to restore a file that an editor keeps saving, before the last save is kept as a copy."""


def check_sources(context: ExecutionContext, steps: Sequence[Step]) -> None:
    """Check, before the first exchange, that what will be displaced is as planned and that no program writes it.

    A text that is refused is then seen by nobody, except where a program saves in the moment of the exchange.

    Raises:
        ConflictError: A program saved one of the files, or has it open for writing for too long.
    """
    first_steps: dict[Path, Step] = {}
    earlier: list[Step] = []
    for step in steps:
        if step.kind in {"replace", "remove", "discard"}:
            place = metadata_source(context, earlier, step.source_at)
            if place is not None:
                first_steps.setdefault(place, step)
        elif step.kind in _BRINGING:
            earlier.append(step)
    _for_each(partial(_check_source, context), list(first_steps.items()))


def _check_source(context: ExecutionContext, item: tuple[Path, Step]) -> None:
    place, step = item
    current = context.files.settled_hash(place)
    if current != step.before:
        raise changed_error(step, current)


def replace_file(context: ExecutionContext, step: Step) -> None:
    """Exchange a file with its staged successor, and at once back if it isn't the version that was checked."""
    temp, target = context.at(step.temp), context.at(step.target_at)
    try:
        context.files.swap(temp, target)
    except FileNotFoundError as error:
        raise changed_error(step, None) from error
    # Checked after the exchange, too: the check before it misses a save in between. From here until a refused text is
    # withdrawn nothing is waited for, since it stands in the vault for everybody to read.
    current = _hash_displaced(context, step)
    if current != step.before:
        context.expected_stamps.pop(step.temp, None)
        context.saves.add(temp, step)
        withdraw_text(context, step)
        raise changed_error(step, current)


def _hash_displaced(context: ExecutionContext, step: Step) -> str | None:
    """Return the hash of a displaced file, and remember its stamp."""
    # A write during or after hashing differs from the stamp in `check_displaced`.
    stamp, current = context.files.inspect(context.at(step.temp))
    if stamp is not None:
        context.expected_stamps[step.temp] = stamp
    return current


def withdraw_text(context: ExecutionContext, step: Step) -> None:
    """Exchange the names back if our text stands; what needs waiting, or a copy, is left to `restore_file`."""
    temp, target = context.at(step.temp), context.at(step.target_at)
    is_exchanged = context.files.stamp(temp) is not None and context.files.hash_now(temp) != step.after
    if is_exchanged and context.files.hash_now(target) == step.after:
        _exchange_back(context, step)


def restore_file(context: ExecutionContext, step: Step) -> None:
    """Put the temp file's content back under its name, unless an editor has saved over it since."""
    temp, target = context.at(step.temp), context.at(step.target_at)
    if context.files.stamp(temp) is None:
        return
    current = context.files.hash_now(target)
    # A program that has opened our text for writing is about to save over it, or only looks at it.
    if current == HASH_OPEN:
        current = context.files.settled_hash(target)
    if current != step.after:
        context.notices.append(f"'{step.path}' was saved by another program meanwhile; its text stands")
    else:
        _exchange_back(context, step)
    if context.files.hash_now(temp) != step.after:
        keep_conflict_copy(context, temp, step)
    context.files.unlink(temp)


def _exchange_back(context: ExecutionContext, step: Step) -> None:
    """Exchange the names until the newest save has the file's name and an older text, mostly our own, the temp name."""
    temp, target = context.at(step.temp), context.at(step.target_at)
    last_put: tuple[int, str | None] | None = None
    for _ in range(MAX_RESTORE_ROUNDS):
        putting = _identity(context, temp)
        try:
            context.files.swap(temp, target)
        except FileNotFoundError:
            # An editor has deleted the file meanwhile.
            return
        # An editor may save between check and exchange. What comes out then is newer than what was put in, and goes
        # back in, until what was put in last comes out as it was.
        got = _identity(context, temp)
        if got == last_put or got[1] == step.after:
            return
        context.saves.add(temp, step)
        last_put = putting


def _identity(context: ExecutionContext, temp: Path) -> tuple[int, str | None]:
    stamp = context.files.stamp(temp)
    return stamp.inode if stamp else 0, context.files.hash_now(temp)


def create_file(context: ExecutionContext, step: Step) -> None:
    """Rename a staged file to its name, which nothing may have."""
    try:
        context.files.place(context.at(step.temp), context.at(step.target_at))
    except FileExistsError as error:
        # Not waited for: the texts of earlier steps, which are taken back now, stand in the vault.
        raise appeared_error(step, context.files.hash_now(context.at(step.target_at))) from error


def remove_created(context: ExecutionContext, step: Step) -> None:
    """Delete a new file, unless an editor has saved it since."""
    temp, target = context.at(step.temp), context.at(step.target_at)
    if context.files.settled_hash(target) == step.after and _take_name(context, target, temp):
        if context.files.settled_hash(temp) == step.after:
            context.files.unlink(temp)
            return
        give_back(context, step, target)
    context.notices.append(f"'{step.path}' was saved by another program meanwhile; it stays")


def _take_name(context: ExecutionContext, target: Path, temp: Path) -> bool:
    try:
        context.files.place(target, temp)
    except FileNotFoundError:
        return False
    return True


def set_file_aside(context: ExecutionContext, step: Step) -> None:
    """Rename a file to its temp name."""
    source = context.at(step.source_at)
    try:
        context.files.place(source, context.at(step.temp))
    except FileNotFoundError as error:
        raise changed_error(step, None) from error
    aside = _hash_displaced(context, step)
    if aside != step.before:
        give_back(context, step, source)
        raise changed_error(step, aside)


def give_back(context: ExecutionContext, step: Step, home: Path) -> None:
    """Move the temp file to where it came from, or keep it as a copy if something newer is there."""
    temp = context.at(step.temp)
    context.expected_stamps.pop(step.temp, None)
    try:
        context.files.place(temp, home)
    except FileExistsError:
        context.notices.append(f"'{step.path}' was saved by another program meanwhile; its text stands")
        keep_conflict_copy(context, temp, step)


def put_back(context: ExecutionContext, step: Step) -> None:
    """Rename a file that was set aside back to its name."""
    if context.files.stamp(context.at(step.temp)) is not None:
        give_back(context, step, context.at(step.source_at))


def drop_extra_name(context: ExecutionContext, kept: Path, extra: Path) -> None:
    """Delete one of two names of a file.

    A kill leaves both where a rename is made by linking and unlinking.
    """
    one, other = context.files.stamp(kept), context.files.stamp(extra)
    if one is not None and other is not None and one.inode == other.inode:
        context.files.unlink(extra)


def is_replaced(context: ExecutionContext, step: Step) -> bool:
    """Return whether the exchange was made."""
    temp = context.at(step.temp)
    # Without a temp file, the step was finished and its record lost, or it was taken back already.
    if context.files.stamp(temp) is None:
        return context.files.hash_now(context.at(step.target_at)) == step.after
    return context.files.hash_now(temp) != step.after


def is_created(context: ExecutionContext, step: Step) -> bool:
    """Return whether the staged file has its name."""
    temp, target = context.at(step.temp), context.at(step.target_at)
    drop_extra_name(context, target, temp)
    return context.files.stamp(temp) is None and context.files.stamp(target) is not None


def is_set_aside(context: ExecutionContext, step: Step) -> bool:
    """Return whether the file has its temp name, or is gone."""
    temp, source = context.at(step.temp), context.at(step.source_at)
    drop_extra_name(context, source, temp)
    return context.files.stamp(temp) is not None or context.files.stamp(source) is None


def move_file(context: ExecutionContext, step: Step) -> None:
    """Rename a file or folder to a name that nothing may have."""
    source, target = context.at(step.source_at), context.at(step.target_at)
    try:
        if _is_case_change(context, step):
            context.files.respell(source, target)
            return
        context.files.place(source, target)
    except FileExistsError as error:
        # Not waited for: the texts of earlier steps, which are taken back now, stand in the vault.
        raise appeared_error(step, context.files.hash_now(context.at(step.target_at))) from error
    except FileNotFoundError as error:
        raise changed_error(step, None) from error


def check_moved(context: ExecutionContext, step: Step, planned: Stamp) -> None:
    """Move a file back if it isn't the one that was planned for.

    Raises:
        ConflictError: It isn't.
    """
    stamp = context.files.stamp(context.at(step.target_at))
    if stamp is None or not stamp.same_content(planned):
        move_file_back(context, step)
        raise changed_error(step, context.files.hash_now(context.at(step.source_at)))


def move_file_back(context: ExecutionContext, step: Step) -> None:
    """Rename a file or folder back, unless something new has the old name."""
    source, target = context.at(step.source_at), context.at(step.target_at)
    try:
        if _is_case_change(context, step):
            context.files.respell(target, source)
        else:
            context.files.place(target, source)
    except (FileExistsError, FileNotFoundError) as error:
        context.notices.append(
            f"'{step.target}' can't go back to '{step.source}' ({error.strerror}); it stays as it is"
        )


def _is_case_change(context: ExecutionContext, step: Step) -> bool:
    if paths.name_key(step.source_at) != paths.name_key(step.target_at):
        return False
    source, target = context.files.stamp(context.at(step.source_at)), context.files.stamp(context.at(step.target_at))
    return source is not None and target is not None and source.inode == target.inode


def is_moved(context: ExecutionContext, step: Step) -> bool:
    """Return whether the move was made."""
    source, target = context.at(step.source_at), context.at(step.target_at)
    target_stamp = context.files.stamp(target)
    if target_stamp is None:
        return False
    if _is_case_change(context, step):
        return target.name in context.files.names(target.parent)
    source_stamp = context.files.stamp(source)
    if source_stamp is None:
        return True
    # The file was linked, and a kill came before the old name was deleted.
    if source_stamp.inode == target_stamp.inode and not step.is_folder:
        context.files.unlink(source)
        return True
    return str(target_stamp.inode) == step.inode


def discard_file(context: ExecutionContext, step: Step) -> None:
    """Move a file to the system's trash."""
    source = context.at(step.source_at)
    current = context.files.settled_hash(source)
    if current != step.before:
        raise changed_error(step, current)
    context.files.trash(source)


def restore_discarded(context: ExecutionContext, step: Step) -> None:
    """Write a file again from the journal."""
    temp, source = context.at(step.temp), context.at(step.source_at)
    context.files.unlink(temp)
    context.files.stage(temp, context.content(step.before or ""), like=None, mode=step.mode)
    context.files.sync(temp)
    give_back(context, step, source)


def remove_folder(context: ExecutionContext, step: Step) -> None:
    """Remove a folder that is empty."""
    folder = context.at(step.source_at)
    try:
        context.files.rmdir(folder)
    except OSError as error:
        if context.files.stamp(folder) is None or not context.files.names(folder):
            raise
        msg = f"'{step.source}' isn't empty any more; nothing was changed"
        raise ConflictError(msg, hint="look at what was put there, then try again") from error


def unmake_folder(context: ExecutionContext, step: Step) -> None:
    """Remove a folder again, unless it holds something."""
    folder = context.at(step.target_at)
    if context.files.stamp(folder) is not None and not context.files.names(folder):
        context.files.rmdir(folder)


def remake_folder(context: ExecutionContext, step: Step) -> None:
    """Make a removed folder again."""
    context.files.mkdir(context.at(step.source_at), mode=step.mode)


def make_folder(context: ExecutionContext, step: Step) -> None:
    """Make a folder; nothing happens where it exists."""
    context.files.mkdir(context.at(step.target_at), mode=step.mode)


def has_target(context: ExecutionContext, step: Step) -> bool:
    """Return whether something has the step's new name."""
    return context.files.stamp(context.at(step.target_at)) is not None


def has_no_source(context: ExecutionContext, step: Step) -> bool:
    """Return whether nothing has the step's old name."""
    return context.files.stamp(context.at(step.source_at)) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepActions:
    do: Callable[[ExecutionContext, Step], None]
    is_done: Callable[[ExecutionContext, Step], bool]
    take_back: Callable[[ExecutionContext, Step], None]


_STEP_ACTIONS: dict[StepKind, _StepActions] = {
    "replace": _StepActions(do=replace_file, is_done=is_replaced, take_back=restore_file),
    "create": _StepActions(do=create_file, is_done=is_created, take_back=remove_created),
    "remove": _StepActions(do=set_file_aside, is_done=is_set_aside, take_back=put_back),
    "move": _StepActions(do=move_file, is_done=is_moved, take_back=move_file_back),
    "discard": _StepActions(do=discard_file, is_done=has_no_source, take_back=restore_discarded),
    "mkdir": _StepActions(do=make_folder, is_done=has_target, take_back=unmake_folder),
    "rmdir": _StepActions(do=remove_folder, is_done=has_no_source, take_back=remake_folder),
}


def do_step(context: ExecutionContext, step: Step, planned: Stamp | None = None) -> None:
    """Carry out a step whose temp file is staged.

    Args:
        context: The change's context.
        step: The step.
        planned: Stamp of a moved file when it was checked; None for no check.

    Raises:
        ConflictError: An editor saved, made or moved the file since it was checked; its file is as the editor left it.
            Or a folder above it became a symbolic link.
        OSError: The system refused; the step wasn't done.
    """
    if folder := context.symlinked_folder(step):
        raise symlink_error(folder)
    _STEP_ACTIONS[step.kind].do(context, step)
    if planned is not None:
        check_moved(context, step, planned)


def is_step_done(context: ExecutionContext, step: Step) -> bool:
    """Return whether a staged step was done, judged by the disk alone, after a kill at any point."""
    return _STEP_ACTIONS[step.kind].is_done(context, step)


def take_step_back(context: ExecutionContext, step: Step) -> None:
    """Take a step back if it was done; an editor's newer file stays, and a notice says so.

    Raises:
        OSError: The system refused; the next start tries again.
    """
    if folder := context.symlinked_folder(step):
        context.notices.append(f"'{folder}' became a symbolic link meanwhile; what lies there stays as it is")
        return
    if step.temp:
        context.files.mend(context.at(step.temp))
    if is_step_done(context, step):
        _STEP_ACTIONS[step.kind].take_back(context, step)
    elif step.temp and step.kind != "remove":
        context.clear(step.temp)


def check_displaced(context: ExecutionContext, step: Step) -> None:
    """Check that no program wrote into a displaced file after its content was checked.

    Raises:
        ConflictError: One did.
    """
    stamp = context.expected_stamps.get(step.temp)
    if stamp is not None and context.files.stamp(context.at(step.temp)) != stamp:
        raise changed_error(step, context.files.hash_now(context.at(step.temp)))


def finish_step(context: ExecutionContext, step: Step) -> None:
    """Delete the displaced file of an applied step, or keep it as a copy if an editor wrote into it late."""
    if step.kind not in {"replace", "remove"}:
        return
    stamp, now = context.expected_stamps.get(step.temp), context.files.stamp(temp := context.at(step.temp))
    if now is None:
        if link := context.symlinked_folder(step):
            context.notices.append(f"'{link}' became a symbolic link; '{temp.name}' stays where the folder is now")
        return
    if (stamp != now or not context.files.is_settled(temp)) and context.files.settled_hash(temp) != step.before:
        keep_conflict_copy(context, temp, step)
    else:
        context.files.unlink(temp)


THREADS = 8
_MAX_SEQUENTIAL = 4
_Item = TypeVar("_Item")


def make_context(state: State) -> ExecutionContext:
    """Return the context for the steps of a change."""
    return ExecutionContext(
        root=state.root, files=state.files, conflicts_folder=state.conflicts_folder, content=state.journal.content
    )


def commit(state: State, plan: ChangePlan, meta: ChangeMeta, *, change_id: str) -> list[str]:
    """Carry out a plan without conflicts; the caller holds the lock.

    Returns:
        Notices: what a person should know.

    Raises:
        ConflictError: An editor saved meanwhile; everything is as it was, and as the editor left it.
        StorageError: The disk refused; everything is as it was.
    """
    context = make_context(state)
    tried = 0
    try:
        private.place_marker(state.folder)
        # One step alone is either done or not, so that after a power cut no reader sees half of it.
        if len(plan.steps) > 1:
            files.sync_folder(state.folder)
        state.journal.begin(change_id, meta, plan.steps)
        staged = stage_steps(context, plan)
        hashes = {name for step in plan.steps for name in (step.before, step.after)}
        contents = {name: content for name, content in plan.contents.items() if name in hashes}
        # Everything has to be on disk before the first name changes, and the files before the journal says so.
        if len(staged) > _MAX_SEQUENTIAL:
            files.begin_writing(context.at(step.temp) for step in staged)
        _for_each(partial(_sync_step, context), staged)
        state.journal.ready(change_id, contents)
        check_sources(context, plan.steps)
        for tried, step in enumerate(plan.steps, start=1):
            do_step(context, step, plan.stamps.get(tried - 1))
        # An editor that opened a file before the exchange may have written into the displaced one since.
        for step in plan.steps:
            check_displaced(context, step)
        sync_folders(context, plan.steps)
        # One step alone needn't wait for the disk: recovery sees its outcome in the file.
        state.journal.applied(change_id, durable=len(plan.steps) > 1)
    # An interrupt takes the change back, too.
    except BaseException as error:
        _abandon(state, context, plan.steps, tried, change_id)
        if isinstance(error, OSError):
            shaped = files.storage_error(error, plan.steps[max(tried, 1) - 1].path)
            raise displaced.add_notices(shaped, context.notices) from error
        if isinstance(error, KnapError):
            displaced.add_notices(error, context.notices)
        raise
    finish_change(state, context, plan.steps, change_id)
    return [*plan.notices, *context.notices]


def stage_steps(context: ExecutionContext, plan: ChangePlan) -> list[Step]:
    """Write the temp files, not yet synced, and return their steps."""
    staged: list[Step] = []
    earlier: list[Step] = []
    for step in plan.steps:
        like = metadata_source(context, earlier, step.source_at) if step.kind == "replace" else None
        if step.kind in _BRINGING:
            earlier.append(step)
        if step.kind not in {"replace", "create"}:
            continue
        if folder := context.symlinked_folder(step):
            raise symlink_error(folder)
        try:
            context.files.stage(context.at(step.temp), plan.contents[step.after or ""], like=like, mode=step.mode)
        except OSError as error:
            # An editor that saves by renaming has no file for a moment.
            if like is not None and isinstance(error, FileNotFoundError):
                raise changed_error(step, None) from error
            raise files.storage_error(error, step.path) from error
        staged.append(step)
    return staged


def roll_back(context: ExecutionContext, steps: Sequence[Step], *, tried: int) -> None:
    """Take back the steps that were done, the last first, and delete their temp files.

    Args:
        context: The change's context.
        steps: All of the change's.
        tried: How many of them may have been done.

    Raises:
        OSError: The system refused; the next start tries again.
    """
    for step in steps[tried:]:
        if step.temp:
            context.clear(step.temp)
    done = steps[:tried]
    # No text may stand longer because another file is waited for. Where places themselves move, the order counts.
    if all(step.kind in {"replace", "create", "remove"} for step in done):
        for step in reversed(done):
            if step.kind == "replace" and not context.symlinked_folder(step):
                withdraw_text(context, step)
    for step in reversed(done):
        take_step_back(context, step)
    sync_folders(context, steps)


def finish_change(state: State, context: ExecutionContext, steps: Iterable[Step], change_id: str) -> None:
    """Delete what an applied change left over; what can't be deleted is left to the next start."""
    try:
        _for_each(partial(finish_step, context), [step for step in steps if step.temp])
        state.journal.close(change_id)
        private.remove_marker(state.folder)
    except (OSError, KnapError) as error:
        context.notices.append(f"a leftover of change {change_id} is removed at the next start: {error}")


def sync_folders(context: ExecutionContext, steps: Iterable[Step]) -> None:
    """Sync the folders in which steps changed names, each once."""
    places = {place for step in steps for place in (step.source_at, step.target_at, step.temp) if place}
    folders = [context.at(folder) for folder in {place.rpartition("/")[0] for place in places}]
    _for_each(context.files.sync_folder, [folder for folder in folders if opening.is_folder(folder)])


_BRINGING: Final = frozenset({"create", "move"})
"""Steps that bring a file to a place."""


def metadata_source(context: ExecutionContext, earlier: Sequence[Step], at: str) -> Path | None:
    """Return the current path of the file that steps of `_BRINGING` bring to a place; None if they create it."""
    for step in reversed(earlier):
        if step.kind == "create" and step.target_at == at:
            return None
        if step.kind == "move" and (at == step.target_at or at.startswith(step.target_at + "/")):
            at = step.source_at + at[len(step.target_at) :]
    return context.at(at)


def _abandon(state: State, context: ExecutionContext, steps: Sequence[Step], tried: int, change_id: str) -> None:
    try:
        context.notices.extend(displaced.find_moved_away(context.files, context.root, steps[:tried]))
        roll_back(context, steps, tried=tried)
    except (OSError, KnapError) as error:
        raise StorageError(
            f"change {change_id} failed, and taking it back failed too: {error}",
            code="unfinished",
            hint="mend the cause; the next start finishes the way back",
        ) from error
    finally:
        # Only now: a program that is still saving is waited for, and everything stands as it was.
        context.notices.extend(context.saves.keep())
    # If the journal can't be written now, the next start forgets the change.
    with contextlib.suppress(StorageError, OSError):
        state.journal.forget(change_id)
        private.remove_marker(state.folder)


def _sync_step(context: ExecutionContext, step: Step) -> None:
    try:
        context.files.sync(context.at(step.temp))
    except OSError as error:
        raise files.storage_error(error, step.path) from error


def _for_each(act: Callable[[_Item], None], items: Sequence[_Item]) -> None:
    if len(items) <= _MAX_SEQUENTIAL:
        for item in items:
            act(item)
        return
    # Handing each item to a thread would take longer than most of what is done with it: each thread takes the next.
    rest = iter(items)

    def act_on_rest(_thread: int) -> None:
        try:
            for item in rest:
                act(item)
        finally:
            # Nothing is left to the others after an error.
            _ = list(rest)

    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(act_on_rest, range(THREADS)):
            pass
