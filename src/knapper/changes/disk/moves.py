"""Move files and folders, and make and remove folders."""

from knapper.changes.disk.files import Stamp
from knapper.changes.disk.site import Site, appeared, changed
from knapper.changes.disk.steps import Step
from knapper.changes.disk.swaps import give_back
from knapper.errors import ConflictError
from knapper.vault import paths


def move(site: Site, step: Step) -> None:
    """Give a file or folder a name that nothing has."""
    source, target = site.at(step.source_at), site.at(step.target_at)
    try:
        if _only_respelled(site, step):
            site.files.respell(source, target)
            return
        site.files.place(source, target)
    except FileExistsError as error:
        raise appeared(site, step) from error
    except FileNotFoundError as error:
        raise changed(step, None) from error


def check(site: Site, step: Step, planned: Stamp) -> None:
    """Move a file back if it isn't the one that was planned for.

    Raises:
        ConflictError: It isn't.
    """
    stamp = site.files.stamp(site.at(step.target_at))
    if stamp is None or not stamp.same_content(planned):
        unmove(site, step)
        raise changed(step, site.files.settled(site.at(step.source_at)))


def unmove(site: Site, step: Step) -> None:
    """Move back, unless something new has the old name."""
    source, target = site.at(step.source_at), site.at(step.target_at)
    try:
        if _only_respelled(site, step):
            site.files.respell(target, source)
        else:
            site.files.place(target, source)
    except (FileExistsError, FileNotFoundError) as error:
        site.notices.append(f"'{step.target}' can't go back to '{step.source}' ({error.strerror}); it stays as it is")


def _only_respelled(site: Site, step: Step) -> bool:
    if paths.name_key(step.source_at) != paths.name_key(step.target_at):
        return False
    source, target = site.files.stamp(site.at(step.source_at)), site.files.stamp(site.at(step.target_at))
    return source is not None and target is not None and source.inode == target.inode


def is_moved(site: Site, step: Step) -> bool:
    """Tell whether the move was made."""
    source, target = site.at(step.source_at), site.at(step.target_at)
    here = site.files.stamp(target)
    if here is None:
        return False
    if _only_respelled(site, step):
        return target.name in site.files.names(target.parent)
    there = site.files.stamp(source)
    if there is None:
        return True
    if there.inode == here.inode and not step.is_folder:  # linked, and the old name not yet taken away
        site.files.unlink(source)
        return True
    return str(here.inode) == step.inode


def discard(site: Site, step: Step) -> None:
    """Move a file to the system's trash."""
    source = site.at(step.source_at)
    current = site.files.settled(source)
    if current != step.before:
        raise changed(step, current)
    site.files.trash(source)


def undiscard(site: Site, step: Step) -> None:
    """Write a file anew from the journal."""
    temp, source = site.at(step.temp), site.at(step.source_at)
    site.files.unlink(temp)
    site.files.stage(temp, site.content(step.before or ""), like=None, mode=step.mode)
    site.files.sync(temp)
    give_back(site, step, source)


def remove_folder(site: Site, step: Step) -> None:
    """Remove a folder that is empty."""
    folder = site.at(step.source_at)
    try:
        site.files.rmdir(folder)
    except OSError as error:
        if site.files.stamp(folder) is None or not site.files.names(folder):
            raise
        msg = f"'{step.source}' isn't empty any more; nothing was changed"
        raise ConflictError(msg, hint="look at what was put there, then try again") from error


def unmake_folder(site: Site, step: Step) -> None:
    """Remove a folder again, unless something lies in it."""
    folder = site.at(step.target_at)
    if site.files.stamp(folder) is not None and not site.files.names(folder):
        site.files.rmdir(folder)


def remake_folder(site: Site, step: Step) -> None:
    """Make a removed folder again."""
    site.files.mkdir(site.at(step.source_at), mode=step.mode)


def make_folder(site: Site, step: Step) -> None:
    """Make a folder; nothing happens where it exists."""
    site.files.mkdir(site.at(step.target_at), mode=step.mode)


def is_there(site: Site, step: Step) -> bool:
    """Tell whether something has the step's new name."""
    return site.files.stamp(site.at(step.target_at)) is not None


def is_gone(site: Site, step: Step) -> bool:
    """Tell whether nothing has the step's old name."""
    return site.files.stamp(site.at(step.source_at)) is None
