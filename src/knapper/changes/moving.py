"""Draft moves of files and folders: what moves, and the links that follow."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from knapper.changes import destinations, relinks
from knapper.changes.destinations import Planned
from knapper.changes.drafts import Capability, Draft, FileDraft, Rewritten
from knapper.changes.link_styles import Habit
from knapper.changes.referrers import Account, Referrers
from knapper.changes.relinks import Broken, Page, Relinked
from knapper.changes.relocation import Relocation
from knapper.changes.requests import Move
from knapper.index.graph import Graph
from knapper.vault import notes, walk
from knapper.vault.paths import NotePath
from knapper.vault.view import View

_NEEDS: Final[frozenset[Capability]] = frozenset({"move"})
_SHOWN: Final = 5


@dataclass(slots=True, kw_only=True)
class _Sheet:
    """Gather what a draft is made of."""

    files: list[FileDraft] = field(default_factory=list[FileDraft])
    rewritten: list[Rewritten] = field(default_factory=list[Rewritten])
    broken: list[tuple[NotePath, Broken]] = field(default_factory=list[tuple[NotePath, Broken]])
    hidden: int = 0
    """Links rewritten in files that the asker doesn't see."""
    hidden_broken: int = 0
    healed: int = 0
    """Links that led nowhere and lead to a file now."""


def draft(view: View, owner: View, graph: Graph, moves: Sequence[Move]) -> Draft:
    """Draft moves of notes, other files and whole folders, with every link rewritten that would lead elsewhere.

    A link that is still right stays as it is, byte for byte. One that isn't keeps its form: a wikilink stays one, a
    name stays a name where that is unique, a path stays a path of its kind, ``.md`` and percent signs stay or don't.

    Args:
        view: The vault as the asker sees it.
        owner: The vault as its owner does: links in files that the asker doesn't see follow too, and are only counted.
            Pass *view* again to leave such files alone.
        graph: The links that the index knows; files are read anew.
        moves: From where to where, as the asker wrote the paths.

    Raises:
        BadInput, NotFound, Ambiguous, RefusedError, ConflictError: As for `destinations.plan`.
        StorageError: A file that moves can't be read.
    """
    planned = destinations.plan(view, moves)
    relocation = Relocation(
        {old: new for one in planned for old, new in one.pairs()},
        {one.source: one.target for one in planned if one.is_whole},
        graph.lookup,
        view.root,
    )
    habit = Habit(format=view.settings.new_link_format, is_app_vault=(view.root / ".obsidian").is_dir())
    referrers = Referrers(view, owner, graph)
    sheet = _Sheet()
    for old, new in relocation.files.items():
        sheet.files.append(_moved(sheet, referrers, relocation, habit, (old, new)))
    for page in referrers.following(relocation):
        _follow(sheet, page, relinks.rewrite(page, relocation, habit), hidden=referrers.is_hidden(page.path))
    return Draft(
        files=tuple(sheet.files),
        folders=tuple(relocation.folders.items()),
        by_query=any(one.is_folder for one in planned),
        notices=tuple(_notices(planned, sheet, referrers.account, graph, relocation)),
        rewritten=tuple(sorted(sheet.rewritten, key=lambda one: (one.path, one.line))),
    )


def _moved(
    sheet: _Sheet, referrers: Referrers, relocation: Relocation, habit: Habit, ends: tuple[NotePath, NotePath]
) -> FileDraft:
    old, new = ends
    if walk.kind_of(old) == "attachment":
        return FileDraft(path=old, base=None, target=new, needs=_NEEDS)
    raw, page = referrers.moving(old, relocation)
    made = relinks.rewrite(page, relocation, habit) if page else Relinked(after=raw)
    sheet.healed += made.healed
    sheet.rewritten += made.rewritten
    sheet.broken += ((new, one) for one in made.broken)
    return FileDraft(path=old, base=notes.hash_of(raw), before=raw, after=made.after, target=new, needs=_NEEDS)


def _follow(sheet: _Sheet, page: Page, made: Relinked, *, hidden: bool) -> None:
    sheet.healed += made.healed
    if hidden:
        sheet.hidden += len(made.rewritten)
        sheet.hidden_broken += len(made.broken)
    else:
        sheet.rewritten += made.rewritten
        sheet.broken += ((page.path, one) for one in made.broken)
    if made.rewritten:
        sheet.files.append(
            FileDraft(
                path=page.path,
                base=notes.hash_of(page.raw),
                before=page.raw,
                after=made.after,
                needs=_NEEDS,
                cause="link",
                hidden=hidden,
            )
        )


def _notices(
    planned: Iterable[Planned], sheet: _Sheet, account: Account, graph: Graph, relocation: Relocation
) -> Iterator[str]:
    for one in planned:
        yield from one.notices
    yield from _broken_notices(sheet)
    if sheet.hidden:
        yield f"{_count(sheet.hidden, 'link')} in files that aren't yours to see followed too"
    if account.kept:
        yield f"{_count(account.kept, 'file')} not yours to see may link there, and stays as it is"
    if sheet.healed:
        yield f"{_count(sheet.healed, 'link')} that led nowhere will lead to a file"
    for path in account.unreadable[:_SHOWN]:
        yield f"{path} can't be read, so its links stay as they are"
    stale = account.stale + len(relocation.gone)
    if stale:
        yield f"the index is behind by {_count(stale, 'file')} of those looked at; they were read from the disk"
    if not graph.is_complete:
        yield "the index isn't complete yet: files that it doesn't know may hold links that stay as they are"


def _broken_notices(sheet: _Sheet) -> Iterator[str]:
    for path, one in sheet.broken[:_SHOWN]:
        yield f"{path}, line {one.line}: {one.text} can't be written so that it leads to {one.path}; mend it by hand"
    if len(sheet.broken) > _SHOWN:
        yield f"{len(sheet.broken) - _SHOWN} more links can't be written so that they lead where they led"
    if sheet.hidden_broken:
        yield f"{_count(sheet.hidden_broken, 'link')} in files that aren't yours to see can't follow"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
