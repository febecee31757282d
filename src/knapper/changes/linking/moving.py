"""Draft moves of files and folders: what moves, and the links that follow."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.linking import destinations, relinks
from knapper.changes.linking.destinations import Planned
from knapper.changes.linking.link_edits import Relinked
from knapper.changes.linking.link_styles import Habit
from knapper.changes.linking.pasts import Past, Pasts
from knapper.changes.linking.referrers import Referrers
from knapper.changes.linking.relocation import Relocation
from knapper.changes.linking.sheets import Sheet
from knapper.changes.requests import Move
from knapper.index.graph import Graph
from knapper.vault import parser, walk
from knapper.vault.paths import NotePath
from knapper.vault.view import View


def draft(view: View, owner: View, graph: Graph, moves: Sequence[Move], pasts: Pasts | None = None) -> Draft:
    """Draft moves of notes, other files and whole folders, with every link rewritten that would lead elsewhere.

    A link that is still right stays as it is, byte for byte. One that isn't keeps its form: a wikilink stays one, a
    name stays a name where that is unique, a path stays a path of its kind, ``.md`` and percent signs stay or don't.
    Where the asker sees a file, its links to files that the asker doesn't see stay as they are.

    Args:
        view: The vault as the asker sees it.
        owner: The vault as its owner does: links in files that the asker doesn't see follow too, and are only counted.
            Pass *view* again to leave such files alone.
        graph: The links that the index knows; files are read anew.
        moves: From where to where, as the asker wrote the paths.
        pasts: What earlier moves rewrote, so that the way back gives every link what it said; None for no memory.

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
        view.visible,
    )
    habit = Habit(format=view.settings.new_link_format, is_app_vault=(view.root / ".obsidian").is_dir())
    referrers = Referrers(view, owner, graph)
    sheet = Sheet(needs=frozenset({"move"}))
    earlier: Mapping[NotePath, Sequence[Past]] = pasts.of(_ends(planned)) if pasts else {}
    for old, new in relocation.files.items():
        if walk.kind_of(old) == "attachment":
            sheet.files.append(FileDraft(path=old, base=None, target=new, needs=sheet.needs))
            continue
        raw, page = referrers.moving(old, relocation, earlier)
        made = relinks.rewrite(page, relocation, habit, earlier.get(old, ())) if page else Relinked(after=raw)
        base = parser.content_hash(raw)
        sheet.add(FileDraft(path=old, base=base, before=raw, after=made.after, target=new, needs=sheet.needs), made)
    for page in referrers.following(relocation, earlier):
        made = relinks.rewrite(page, relocation, habit, earlier.get(page.path, ()))
        sheet.follow(page, made, hidden=referrers.is_hidden(page.path))
    told = sheet.notices(referrers.account, missing=len(relocation.gone), is_complete=graph.is_complete)
    return Draft(
        files=tuple(sheet.files),
        folders=tuple(relocation.folders.items()),
        by_query=any(one.is_folder for one in planned),
        notices=(*(notice for one in planned for notice in one.notices), *told),
        rewritten=sheet.listed(),
    )


def _ends(planned: Iterable[Planned]) -> Iterator[tuple[NotePath, NotePath]]:
    for one in planned:
        yield from [(one.source, one.target)] if one.is_whole else one.pairs()
