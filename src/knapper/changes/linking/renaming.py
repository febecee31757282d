"""Draft another name for a heading or a block id, and the links that follow."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from knapper.changes import text_edits
from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.linking import fragments, headings, link_edits
from knapper.changes.linking.link_edits import Broken, Edit, Relinked
from knapper.changes.linking.link_forms import Forms
from knapper.changes.linking.pages import Page
from knapper.changes.linking.referrers import Referrers
from knapper.changes.linking.relocation import Relocation
from knapper.changes.linking.sheets import Sheet
from knapper.changes.requests import RenameBlock, RenameHeading
from knapper.changes.text import anchors, sections, snapshots, splices
from knapper.changes.text.snapshots import Snapshot
from knapper.changes.text.splices import Splice
from knapper.index.graph import Edge, Graph
from knapper.vault import links, parser
from knapper.vault.outline import Link, Section
from knapper.vault.view import View


class Renamed(Protocol):
    """Tell what links to a renamed place have to say."""

    def matters(self, edge: Edge) -> bool:
        """Tell whether a link that the index knows may be concerned."""
        ...

    def wanted(self, link: Link) -> Link | None:
        """Give a link with the headings or the block that it is to have; None where nothing leads there any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heading:
    """Hold a note's sections before and after one of them gets another title."""

    old: Sequence[Section]
    new: Sequence[Section]
    number: int

    def matters(self, edge: Edge) -> bool:
        keys = {links.heading_key(sections_[self.number].title) for sections_ in (self.old, self.new)}
        return any(links.heading_key(heading) in keys for heading in edge.headings)

    def wanted(self, link: Link) -> Link | None:
        """Leave a link as it is where it still leads to its section, and name more headings where it has to."""
        there = headings.find(link.headings, self.old)
        if not there:
            return link
        titles = [headings.linkable(section.title) for section in self.new]
        pairs = zip(link.headings, there, strict=True)
        renamed = tuple(titles[number] if number == self.number else heading for heading, number in pairs)
        whole = tuple(titles[number] for number in headings.above(there[-1], self.new))
        for choice in (link.headings, renamed, whole):
            if headings.find(choice, self.new)[-1:] == there[-1:]:
                return replace(link, headings=choice)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Hold a block's id before and after."""

    old: str
    new: str

    def matters(self, edge: Edge) -> bool:
        return edge.block.casefold() == self.old.casefold()

    def wanted(self, link: Link) -> Link | None:
        return replace(link, block=self.new) if link.block.casefold() == self.old.casefold() else link


def draft(view: View, owner: View, graph: Graph, request: RenameHeading | RenameBlock) -> Draft:
    """Draft a heading's new title, or a block's new id, with every link that leads there.

    Of several equal headings a link means the first, so that links follow only where that is the one renamed. A link
    that would lead to another heading of the new title names the headings above it, too.

    Args:
        view: The vault as the asker sees it.
        owner: The vault as its owner does; see `knapper.changes.linking.moving.draft`.
        graph: The links that the index knows; files are read anew.
        request: What gets which name.

    Raises:
        NotFound: There is no such note, heading or block.
        Ambiguous: The heading or the id stands several times.
        BadInput: The new name can't be one, or is the old one.
        ConflictError: The note isn't what the caller saw.
    """
    note = view.read(request.path)
    if request.base and request.base != note.hash:
        raise text_edits.stale(note, request.base)
    splice, renamed = _renamed(snapshots.take(note.raw, note.outline), request)
    names = Relocation({}, {}, graph.lookup, view.root)
    referrers = Referrers(view, owner, graph)
    sheet = Sheet(needs=frozenset({"delete"}))
    page = Page(path=note.path, raw=splices.merge(note.raw, [splice]), kind="note")
    fresh = range(splice.start, splice.start + len(splice.new))  # links in the new title say what they should
    made = _follow(page, [link for link in _leading(page, note.path, names) if link.start not in fresh], renamed)
    file = FileDraft(
        path=note.path,
        base=note.hash,
        before=note.raw,
        after=made.after,
        needs=sheet.needs,
        anchored=True,
    )
    sheet.add(file, made)
    for other in referrers.linking(note.path, renamed.matters):
        made = _follow(other, _leading(other, note.path, names), renamed)
        sheet.follow(other, made, hidden=referrers.is_hidden(other.path))
    told = sheet.notices(referrers.account, is_complete=graph.is_complete)
    return Draft(files=tuple(sheet.files), notices=tuple(told), rewritten=sheet.listed())


def _renamed(snapshot: Snapshot, request: RenameHeading | RenameBlock) -> tuple[Splice, Renamed]:
    """Make the change in the note itself, and tell what it means for links."""
    if isinstance(request, RenameBlock):
        splice = anchors.rename_block(snapshot, request.old, request.new)
        return splice, _Block(old=snapshot.decode(splice.start, splice.stop), new=splice.new.decode())
    section = sections.find(snapshot, request.heading)
    splice = anchors.rename_heading(snapshot, request.heading, request.title)
    after = parser.parse_note(splices.merge(snapshot.raw, [splice])).sections
    return splice, _Heading(old=snapshot.outline.sections, new=after, number=snapshot.outline.sections.index(section))


def _leading(page: Page, path: str, names: Relocation) -> list[Link]:
    """List a file's links that lead to a note, and into it."""
    return [
        link
        for link in page.outline.links
        if link.kind != "external"
        and (link.headings or link.block)
        and names.before.resolve(link.target, page.path).path == path
    ]


def _follow(page: Page, leading: Sequence[Link], renamed: Renamed) -> Relinked:
    forms = Forms(page.raw, page.kind, page.outline)
    edits: dict[int, Edit] = {}
    broken: list[Broken] = []
    for link in leading:
        wanted = renamed.wanted(link)
        if wanted == link:
            continue
        form = forms.of(link)
        splice = None
        if wanted is not None and wanted.headings != link.headings:
            splice = fragments.with_headings(page, link, form, wanted.headings)
        elif wanted is not None:
            splice = fragments.with_block(page, link, form, wanted.block)
        if wanted is None or splice is None or not page.takes(splice.new):
            broken.append(link_edits.broken(page, link, page.path))
        else:
            edits[splice.start] = Edit(link=link, wanted=wanted, splice=splice, scalar=form.scalar, path=page.path)
    made = link_edits.apply(page, list(edits.values())) if edits else Relinked(after=page.raw)
    return replace(made, broken=(*broken, *made.broken))
