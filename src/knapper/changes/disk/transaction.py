"""Carry a plan out so that all of it happens or nothing, whatever fails on the way."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from knapper.changes.disk import acts, files
from knapper.changes.disk.effects import Meta
from knapper.changes.disk.plan import Plan
from knapper.changes.disk.site import Site, led_away
from knapper.changes.disk.state import State
from knapper.changes.disk.steps import Step
from knapper.errors import KnapError, StorageError

THREADS = 8
_FEW = 4
_Item = TypeVar("_Item")


def site(state: State) -> Site:
    """Say where the steps of a vault's change are done."""
    return Site(root=state.root, files=state.files, shelf=state.shelf, content=state.journal.content)


def commit(state: State, plan: Plan, meta: Meta, *, change_id: str) -> list[str]:
    """Carry out a plan without conflicts; the caller holds the lock.

    Returns:
        Notices: what a person should know.

    Raises:
        ConflictError: An editor saved meanwhile; everything is as it was, and as the editor left it.
        StorageError: The disk refused; everything is as it was.
    """
    here = site(state)
    tried = 0
    try:
        state.journal.begin(change_id, meta, plan.steps)
        staged = stage(here, plan)
        named = {name for step in plan.steps for name in (step.before, step.after)}
        contents = {name: content for name, content in plan.contents.items() if name in named}
        _both(lambda: _each(partial(_sync, here), staged), lambda: state.journal.ready(change_id, contents))
        for tried, step in enumerate(plan.steps, start=1):
            acts.do(here, step, plan.stamps.get(tried - 1))
        for step in plan.steps:
            acts.look_again(here, step)
        sync_folders(here, plan.steps)
        state.journal.applied(change_id, durable=len(plan.steps) > 1)
    except BaseException as error:
        _abandon(state, here, plan.steps, tried, change_id)
        if isinstance(error, OSError):
            shaped = files.storage_error(error, plan.steps[max(tried, 1) - 1].path)
            raise _noticed(shaped, here.notices) from error
        if isinstance(error, KnapError):
            _noticed(error, here.notices)
        raise
    finish(state, here, plan.steps, change_id)
    return [*plan.notices, *here.notices]


def stage(here: Site, plan: Plan) -> list[Step]:
    """Write every temp file that takes a name later, not yet synced, and tell whose they are."""
    staged: list[Step] = []
    for number, step in enumerate(plan.steps):
        if step.kind not in {"replace", "create"}:
            continue
        like = _like(here, plan.steps[:number], step.source_at) if step.kind == "replace" else None
        if folder := here.strayed(step):
            raise led_away(folder)
        try:
            here.files.stage(here.at(step.temp), plan.contents[step.after or ""], like=like, mode=step.mode)
        except OSError as error:
            raise files.storage_error(error, step.path) from error
        staged.append(step)
    return staged


def roll_back(here: Site, steps: Sequence[Step], *, tried: int) -> None:
    """Take back what was done of some steps, the last first, and remove their temp files.

    Args:
        here: Where.
        steps: All of the change's.
        tried: How many of them may have been done.

    Raises:
        OSError: The system refused; the next start tries again.
    """
    for step in steps[tried:]:
        if step.temp:
            here.clear(step.temp)
    for step in reversed(steps[:tried]):
        acts.take_back(here, step)
    sync_folders(here, steps)


def finish(state: State, here: Site, steps: Iterable[Step], change_id: str) -> None:
    """Remove what an applied change left over; what can't be removed is left to the next start."""
    try:
        _each(partial(acts.finish, here), [step for step in steps if step.temp])
        state.journal.close(change_id)
    except (OSError, KnapError) as error:
        here.notices.append(f"a leftover of change {change_id} is removed at the next start: {error}")


def sync_folders(here: Site, steps: Iterable[Step]) -> None:
    """Force the names that steps changed to the disk, each folder once."""
    places = {place for step in steps for place in (step.source_at, step.target_at, step.temp) if place}
    folders = {here.at(place).parent for place in places}
    _each(here.files.sync_folder, [folder for folder in folders if folder.is_dir()])


def _like(here: Site, earlier: Sequence[Step], at: str) -> Path | None:
    """Tell where the file lies now that will lie at a place after some steps; None if they make it."""
    for step in reversed(earlier):
        if step.kind == "create" and step.target_at == at:
            return None
        if step.kind == "move" and (at == step.target_at or at.startswith(step.target_at + "/")):
            at = step.source_at + at[len(step.target_at) :]
    return here.at(at)


def _abandon(state: State, here: Site, steps: Sequence[Step], tried: int, change_id: str) -> None:
    try:
        roll_back(here, steps, tried=tried)
    except (OSError, KnapError) as error:
        raise StorageError(
            f"change {change_id} failed, and taking it back failed too: {error}",
            code="unfinished",
            hint="mend the cause; the next start finishes the way back",
        ) from error
    with contextlib.suppress(StorageError):  # the next start forgets it then
        state.journal.forget(change_id)


def _noticed(error: KnapError, notices: Sequence[str]) -> KnapError:
    """Add to an error what an editor saved meanwhile, and where it is."""
    if notices:
        error.details["notices"] = list(notices)
        error.hint = "; ".join([*notices, error.hint])
    return error


def _both(aside: Callable[[], None], here: Callable[[], None]) -> None:
    """Wait for two things at once, one of them in another thread."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(aside)
        here()
        waiting.result()


def _sync(here: Site, step: Step) -> None:
    try:
        here.files.sync(here.at(step.temp))
    except OSError as error:
        raise files.storage_error(error, step.path) from error


def _each(act: Callable[[_Item], None], items: Sequence[_Item]) -> None:
    if len(items) <= _FEW:
        for item in items:
            act(item)
        return
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(act, items):
            pass
