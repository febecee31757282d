"""Drafts of renamed headings and block ids, with the links that follow."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from knapper.changes import text_edits
from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.links import rewriting
from knapper.changes.links.moving import LinkReport, Referrers
from knapper.changes.links.rewriting import LinkEdit, LinkForms, LinkSource, RelinkedFile, UnwritableLink
from knapper.changes.links.targets import Relocation
from knapper.changes.requests import RenameBlock, RenameHeading
from knapper.changes.text import positions, splices
from knapper.changes.text.splices import Snapshot, Splice
from knapper.index.graph import Edge, Graph
from knapper.vault import links, parser
from knapper.vault.source import Link, Section
from knapper.vault.view import View

_NOT_IN_LINK: Final = re.compile(r"[:#|^\\\[\]\r\n]|%%")


def find_heading_path(wanted: Sequence[str], sections: Sequence[Section]) -> tuple[int, ...]:
    """Find the section that a link means: the first that has the last heading and lies below the headings before it.

    ``("A", "C")`` finds ``# A > ## B > ### C``: headings between may be left out.

    Args:
        wanted: The link's headings, outermost first.
        sections: The note's, in order.

    Returns:
        The index of each named heading's section, that of the meant section last; empty if none fits.
    """
    keys = [links.heading_key(heading) for heading in wanted]
    path: list[int] = []
    for number, section in enumerate(sections):
        if not section.level:
            continue
        while path and sections[path[-1]].level >= section.level:
            _ = path.pop()
        path.append(number)
        chain = _match_chain(keys, path, sections)
        if chain:
            return chain
    return ()


def _match_chain(keys: Sequence[str], path: Sequence[int], sections: Sequence[Section]) -> tuple[int, ...]:
    if not keys or links.heading_key(sections[path[-1]].title) != keys[-1]:
        return ()
    numbers = [path[-1]]
    outer = iter(reversed(path[:-1]))
    for key in reversed(keys[:-1]):
        above = next((number for number in outer if links.heading_key(sections[number].title) == key), None)
        if above is None:
            return ()
        numbers.append(above)
    return tuple(reversed(numbers))


def ancestors(number: int, sections: Sequence[Section]) -> tuple[int, ...]:
    """Return the indexes of a section and of those that contain it, outermost first."""
    numbers = [number]
    for other in range(number - 1, -1, -1):
        if 0 < sections[other].level < sections[numbers[-1]].level:
            numbers.append(other)
    return tuple(reversed(numbers))


def linkable_title(title: str) -> str:
    """Return a heading as a link writes it: without the signs that end a link or begin another heading."""
    return " ".join(_NOT_IN_LINK.sub(" ", title).split())


class AnchorRename(Protocol):
    """Rename of a place in a note, which decides what links to it have to say."""

    def matters(self, edge: Edge) -> bool:
        """Return whether a link in the index may be affected."""
        ...

    def updated_link(self, link: Link) -> Link | None:
        """Return a link with its new headings or block; None if no link can lead there any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeadingRename:
    """New title of a section, with the note's sections before and after."""

    old: Sequence[Section]
    new: Sequence[Section]
    number: int

    def matters(self, edge: Edge) -> bool:
        keys = {links.heading_key(sections_[self.number].title) for sections_ in (self.old, self.new)}
        return any(links.heading_key(heading) in keys for heading in edge.headings)

    def updated_link(self, link: Link) -> Link | None:
        """Return a link unchanged if it still leads to its section, else with as many headings as it needs."""
        heading_path = find_heading_path(link.headings, self.old)
        if not heading_path:
            return link
        titles = [linkable_title(section.title) for section in self.new]
        pairs = zip(link.headings, heading_path, strict=True)
        renamed = tuple(titles[number] if number == self.number else heading for heading, number in pairs)
        full_path = tuple(titles[number] for number in ancestors(heading_path[-1], self.new))
        for choice in (link.headings, renamed, full_path):
            if find_heading_path(choice, self.new)[-1:] == heading_path[-1:]:
                return replace(link, headings=choice)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockRename:
    """New id of a block."""

    old: str
    new: str

    def matters(self, edge: Edge) -> bool:
        return edge.block.casefold() == self.old.casefold()

    def updated_link(self, link: Link) -> Link | None:
        return replace(link, block=self.new) if link.block.casefold() == self.old.casefold() else link


def draft_rename(view: View, owner: View, graph: Graph, request: RenameHeading | RenameBlock) -> Draft:
    """Draft a heading's new title, or a block's new id, with every link that leads there.

    Of several equal headings, a link means the first, so links follow only if that one is renamed. A link that would
    lead to another heading with the new title gets the headings above it, too.

    Args:
        view: The vault as the client sees it.
        owner: The vault as its owner sees it; see `knapper.changes.links.moving.draft_moves`.
        graph: The links in the index; files are read again.
        request: What gets which name.

    Raises:
        NotFound: There is no such note, heading or block.
        Ambiguous: The heading or the id occurs several times.
        BadInput: The new name can't be one, or is the old one.
        ConflictError: The note isn't what the caller saw.
    """
    note = view.read(request.path)
    if request.base and request.base != note.hash:
        raise text_edits.stale_error(note, request.base)
    splice, renamed = _rename_anchor(splices.take_snapshot(note.raw, note.outline), request)
    names = Relocation({}, {}, graph.lookup, view.root)
    referrers = Referrers(view, owner, graph)
    report = LinkReport(needs=frozenset({"delete"}))
    page = LinkSource(path=note.path, raw=splices.merge(note.raw, [splice]), kind="note")
    # Links in the new title itself were written by the caller, and stay as they are.
    fresh = range(splice.start, splice.start + len(splice.new))
    relinked = _relink(page, [link for link in _links_into(page, note.path, names) if link.start not in fresh], renamed)
    file = FileDraft(
        path=note.path,
        base=note.hash,
        before=note.raw,
        after=relinked.after,
        needs=report.needs,
        anchored=True,
    )
    report.add(file, relinked)
    for other in referrers.linking(note.path, renamed.matters):
        relinked = _relink(other, _links_into(other, note.path, names), renamed)
        report.follow(other, relinked, hidden=referrers.is_hidden(other.path))
    notices = report.notices(referrers.counts, is_complete=graph.is_complete)
    return Draft(files=tuple(report.files), notices=tuple(notices), rewritten=report.sorted_rewrites())


def _rename_anchor(snapshot: Snapshot, request: RenameHeading | RenameBlock) -> tuple[Splice, AnchorRename]:
    """Return the splice of the note itself, and the rename by which links follow."""
    if isinstance(request, RenameBlock):
        splice = positions.rename_block(snapshot, request.old, request.new)
        return splice, _BlockRename(old=snapshot.decode(splice.start, splice.stop), new=splice.new.decode())
    section = positions.find_section(snapshot, request.heading)
    splice = positions.rename_heading(snapshot, request.heading, request.title)
    after = parser.parse_note(splices.merge(snapshot.raw, [splice])).sections
    return splice, _HeadingRename(
        old=snapshot.outline.sections, new=after, number=snapshot.outline.sections.index(section)
    )


def _links_into(page: LinkSource, path: str, names: Relocation) -> list[Link]:
    """Return a file's links to a heading or block of a note."""
    return [
        link
        for link in page.outline.links
        if link.kind != "external"
        and (link.headings or link.block)
        and names.before.resolve(link.target, page.path).path == path
    ]


def _relink(page: LinkSource, leading: Sequence[Link], renamed: AnchorRename) -> RelinkedFile:
    forms = LinkForms(page.raw, page.kind, page.outline)
    edits: dict[int, LinkEdit] = {}
    broken: list[UnwritableLink] = []
    for link in leading:
        new_link = renamed.updated_link(link)
        if new_link == link:
            continue
        form = forms.of(link)
        splice = None
        if new_link is not None and new_link.headings != link.headings:
            splice = rewriting.replace_headings(page, link, form, new_link.headings)
        elif new_link is not None:
            splice = rewriting.replace_block_id(page, link, form, new_link.block)
        if new_link is None or splice is None or not page.can_encode(splice.new):
            broken.append(rewriting.unwritable_link(page, link, page.path))
        else:
            edits[splice.start] = LinkEdit(
                link=link, wanted=new_link, splice=splice, scalar=form.scalar, path=page.path
            )
    relinked = rewriting.apply_edits(page, list(edits.values())) if edits else RelinkedFile(after=page.raw)
    return replace(relinked, broken=(*broken, *relinked.broken))
