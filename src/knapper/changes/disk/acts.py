"""Do, take back and finish the steps of a change, each by its kind."""

from collections.abc import Callable
from dataclasses import dataclass

from knapper.changes.disk import moves, swaps
from knapper.changes.disk.files import Stamp
from knapper.changes.disk.site import Site, changed, led_away, shelve
from knapper.changes.disk.steps import Step, StepKind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Act:
    do: Callable[[Site, Step], None]
    is_done: Callable[[Site, Step], bool]
    take_back: Callable[[Site, Step], None]


_ACTS: dict[StepKind, _Act] = {
    "replace": _Act(do=swaps.replace, is_done=swaps.is_replaced, take_back=swaps.restore),
    "create": _Act(do=swaps.create, is_done=swaps.is_created, take_back=swaps.uncreate),
    "remove": _Act(do=swaps.set_aside, is_done=swaps.is_aside, take_back=swaps.put_back),
    "move": _Act(do=moves.move, is_done=moves.is_moved, take_back=moves.unmove),
    "discard": _Act(do=moves.discard, is_done=moves.is_gone, take_back=moves.undiscard),
    "mkdir": _Act(do=moves.make_folder, is_done=moves.is_there, take_back=moves.unmake_folder),
    "rmdir": _Act(do=moves.remove_folder, is_done=moves.is_gone, take_back=moves.remake_folder),
}


def do(site: Site, step: Step, planned: Stamp | None = None) -> None:
    """Do a step whose temp file is staged.

    Args:
        site: Where.
        step: What.
        planned: What a moved file looked like when it was checked; None for no matter what.

    Raises:
        ConflictError: An editor saved, made or moved the file since it was checked; its file is as the editor left it.
            Or a folder above it became a symbolic link.
        OSError: The system refused; the step wasn't done.
    """
    if folder := site.strayed(step):
        raise led_away(folder)
    _ACTS[step.kind].do(site, step)
    if planned is not None:
        moves.check(site, step, planned)


def is_done(site: Site, step: Step) -> bool:
    """Tell from the disk whether a staged step was done, after a kill at any point."""
    return _ACTS[step.kind].is_done(site, step)


def take_back(site: Site, step: Step) -> None:
    """Undo a step if it was done; an editor's newer file stays, and a notice says so.

    Raises:
        OSError: The system refused; the next start tries again.
    """
    if folder := site.strayed(step):
        site.notices.append(f"'{folder}' became a symbolic link meanwhile; what lies there stays as it is")
        return
    if step.temp:
        site.files.mend(site.at(step.temp))
    if is_done(site, step):
        _ACTS[step.kind].take_back(site, step)
    elif step.temp and step.kind != "remove":
        site.clear(step.temp)


def look_again(site: Site, step: Step) -> None:
    """Check that nobody wrote into a displaced file after it was looked at.

    Raises:
        ConflictError: Somebody did.
    """
    seen = site.looks.get(step.temp)
    if seen is not None and site.files.stamp(site.at(step.temp)) != seen:
        raise changed(step, site.files.settled(site.at(step.temp)))


def finish(site: Site, step: Step) -> None:
    """Remove what an applied step left: the displaced file, or a copy of it if an editor wrote into it at last."""
    if step.kind not in {"replace", "remove"}:
        return
    temp = site.at(step.temp)
    seen, now = site.looks.get(step.temp), site.files.stamp(temp)
    if now is None:
        return
    if seen != now and site.files.settled(temp) != step.before:
        shelve(site, temp, step)
    else:
        site.files.unlink(temp)
