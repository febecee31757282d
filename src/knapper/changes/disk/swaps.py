"""Replace, make and take away files so that whatever an editor saves meanwhile outlives it.

The rule for exchanged names: what comes out must be what was put in last. If it isn't, somebody saved over it in
between; that is newer, so it goes back, and the look is repeated.
"""

from pathlib import Path

from knapper.changes.disk.site import Site, appeared, changed, shelve
from knapper.changes.disk.steps import Step

ROUNDS = 50
"""Saves in a row that are given way to before an editor's last one is kept as a copy."""


def replace(site: Site, step: Step) -> None:
    """Exchange a file with its staged successor, and back if it isn't the one that was checked."""
    temp, target = site.at(step.temp), site.at(step.target_at)
    try:
        site.files.swap(temp, target)
    except FileNotFoundError as error:
        raise changed(step, None) from error
    displaced = _look(site, step)
    if displaced != step.before:
        site.looks.pop(step.temp, None)
        restore(site, step)
        raise changed(step, displaced)


def _look(site: Site, step: Step) -> str | None:
    """Hash what a name gave up, and remember what it looked like just before."""
    temp = site.at(step.temp)
    stamp = site.files.stamp(temp)
    current = site.files.settled(temp)
    if stamp is not None:
        site.looks[step.temp] = stamp
    return current


def restore(site: Site, step: Step) -> None:
    """Give the name back to what the temp file holds, unless somebody saved over it since."""
    temp, target = site.at(step.temp), site.at(step.target_at)
    if site.files.stamp(temp) is None:
        return
    last_put = step.after
    for _ in range(ROUNDS):
        if site.files.settled(target) != last_put:
            site.notices.append(f"'{step.path}' was saved by another program meanwhile; its text stands")
            break
        putting = site.files.settled(temp)
        try:
            site.files.swap(temp, target)
        except FileNotFoundError:  # deleted meanwhile
            break
        if site.files.settled(temp) == last_put:
            break
        last_put = putting
    if site.files.settled(temp) != step.after:
        shelve(site, temp, step)
    site.files.unlink(temp)


def create(site: Site, step: Step) -> None:
    """Give a staged file a name that nothing has."""
    try:
        site.files.place(site.at(step.temp), site.at(step.target_at))
    except FileExistsError as error:
        raise appeared(site, step) from error


def uncreate(site: Site, step: Step) -> None:
    """Take a new file away, unless an editor saved it since."""
    temp, target = site.at(step.temp), site.at(step.target_at)
    if site.files.settled(target) == step.after and _taken(site, target, temp):
        if site.files.settled(temp) == step.after:
            site.files.unlink(temp)
            return
        give_back(site, step, target)
    site.notices.append(f"'{step.path}' was saved by another program meanwhile; it stays")


def _taken(site: Site, target: Path, temp: Path) -> bool:
    try:
        site.files.place(target, temp)
    except FileNotFoundError:
        return False
    return True


def set_aside(site: Site, step: Step) -> None:
    """Give a file a temp file's name."""
    source = site.at(step.source_at)
    try:
        site.files.place(source, site.at(step.temp))
    except FileNotFoundError as error:
        raise changed(step, None) from error
    aside = _look(site, step)
    if aside != step.before:
        give_back(site, step, source)
        raise changed(step, aside)


def give_back(site: Site, step: Step, home: Path) -> None:
    """Move the temp file to where it came from, or keep a copy if something newer is there."""
    temp = site.at(step.temp)
    site.looks.pop(step.temp, None)
    try:
        site.files.place(temp, home)
    except FileExistsError:
        site.notices.append(f"'{step.path}' was saved by another program meanwhile; its text stands")
        shelve(site, temp, step)


def put_back(site: Site, step: Step) -> None:
    """Give a file that was set aside its name again."""
    if site.files.stamp(site.at(step.temp)) is not None:
        give_back(site, step, site.at(step.source_at))


def finish_link(site: Site, kept: Path, extra: Path) -> None:
    """Take one of two names away that a kill left a file with, where a name is given by linking."""
    one, other = site.files.stamp(kept), site.files.stamp(extra)
    if one is not None and other is not None and one.inode == other.inode:
        site.files.unlink(extra)


def is_replaced(site: Site, step: Step) -> bool:
    """Tell whether the exchange was made."""
    temp = site.at(step.temp)
    if site.files.stamp(temp) is None:  # finished, and the mark of it lost, or taken back already
        return site.files.settled(site.at(step.target_at)) == step.after
    return site.files.settled(temp) != step.after


def is_created(site: Site, step: Step) -> bool:
    """Tell whether the staged file has its name."""
    temp, target = site.at(step.temp), site.at(step.target_at)
    finish_link(site, target, temp)
    return site.files.stamp(temp) is None and site.files.stamp(target) is not None


def is_aside(site: Site, step: Step) -> bool:
    """Tell whether the file has the temp file's name, or none at all."""
    temp, source = site.at(step.temp), site.at(step.source_at)
    finish_link(site, source, temp)
    return site.files.stamp(temp) is not None or site.files.stamp(source) is None
