"""Drafts of moved notes, and of renamed headings and block ids, with the links that follow."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from knapper.changes import text_edits
from knapper.changes.drafts import Capability, Draft, FileDraft, LinkRewrite, Move, RenameBlock, RenameHeading
from knapper.changes.links import rewriting, targets
from knapper.changes.links.rewriting import (
    LinkConvention,
    LinkEdit,
    LinkForms,
    LinkRedirect,
    LinkSource,
    RelinkedFile,
    UnwritableLink,
    is_card,
)
from knapper.changes.links.targets import LinkHistory, PastRewrite, Relocation
from knapper.changes.text import positions, splices
from knapper.changes.text.splices import Splice
from knapper.errors import KnapError, NotFound
from knapper.index import documents
from knapper.index.documents import FileState
from knapper.index.graph import Edge, Graph, UnresolvedLinks
from knapper.vault import files, links, parser, paths, walk
from knapper.vault.paths import NotePath
from knapper.vault.source import Link, Section
from knapper.vault.view import View

_FILE_DEPENDENT_KINDS = frozenset({"markdown", "image", "property", "canvas", "base"})
"""Kinds of links for which the index isn't enough: only the file shows whether they stay right."""


@dataclass(slots=True, kw_only=True)
class ReferrerCounts:
    """Counts of the files that were read, for notices."""

    stale: int = 0
    """Files that changed since they were indexed; they were read again."""
    hidden: int = 0
    """Files with links that the client may not see, and for which no other view was given."""
    unreadable: list[NotePath] = field(default_factory=list[NotePath])


class Referrers:
    """Reader of the files whose links may have to follow a move."""

    def __init__(self, view: View, owner: View, graph: Graph) -> None:
        """Prepare to read a vault.

        Args:
            view: The vault as the client sees it.
            owner: The vault as its owner sees it, for links in hidden files; *view* again to leave those alone.
            graph: The index's.
        """
        self.counts: ReferrerCounts = ReferrerCounts()
        self._view: View = view
        self._owner: View = owner
        self._graph: Graph = graph
        self._root: str = os.fspath(view.root)

    def following(self, relocation: Relocation, histories: Collection[NotePath]) -> Iterator[LinkSource]:
        """Yield the files that don't move, but have links that may lead elsewhere afterwards, or that a move rewrote.

        Args:
            relocation: What moves.
            histories: Files that earlier moves rewrote.
        """
        candidates = [one for one in self._graph.links_to_keys(relocation.keys) if one.source not in relocation.files]
        yield from self._pages(
            {one.source for one in candidates if one.source in histories or self._may_change(one, relocation)}
        )

    def linking(self, path: NotePath, matters: Callable[[Edge], bool]) -> Iterator[LinkSource]:
        """Yield the files that link to a note, without the note itself.

        Args:
            path: The note.
            matters: Called for each link; files without a link that matters are left out.
        """
        sources = {edge.source for edge in self._graph.incoming(path) if matters(edge)}
        candidates = self._graph.links_to_keys([documents.link_key(path)])
        stale = {one.source for one in candidates if not self._is_current(one.source, one.known)}
        yield from self._pages((sources | stale) - {path})

    def moving(
        self, path: NotePath, relocation: Relocation, histories: Collection[NotePath]
    ) -> tuple[bytes, LinkSource | None]:
        """Return a moving note, canvas or base, with its links; None in their place if none of them can change.

        Raises:
            NotFound: It is gone.
            StorageError: It can't be read.
        """
        raw = self._view.read_bytes(path)
        kind = walk.kind_of(path)
        if kind != walk.kind_of(relocation.path_after(path)):
            return raw, None
        indexed_links = self._graph.links_of(path)
        is_idle = (
            path not in histories and indexed_links is not None and not self._may_change(indexed_links, relocation)
        )
        return raw, None if is_idle else LinkSource(path=path, raw=raw, kind=kind)

    def _pages(self, sources: Collection[NotePath]) -> Iterator[LinkSource]:
        for path in sorted(sources):
            if not self._owner.visible(path):
                self.counts.hidden += not self._view.visible(path)
                continue
            page = self._read(path)
            if page is not None:
                yield page

    def is_hidden(self, path: NotePath) -> bool:
        """Return whether the client may not see a file."""
        return not self._view.visible(path)

    def _may_change(self, indexed_links: UnresolvedLinks, relocation: Relocation) -> bool:
        """Return whether a link of a file may have to be rewritten, or the index is out of date."""
        if not self._is_current(indexed_links.source, indexed_links.known):
            return True
        source, place = indexed_links.source, relocation.path_after(indexed_links.source)
        for kind, target in indexed_links.links:
            depends_on_file = kind in _FILE_DEPENDENT_KINDS
            before = relocation.resolve_before(target, source).path
            after = relocation.after.resolve(target, place).path
            if before is None:
                may_change = after is not None or depends_on_file or target.startswith(("./", "../"))
            else:
                is_elsewhere = after != relocation.path_after(before)
                may_change = is_elsewhere or (depends_on_file and (place != source or after != before))
            if may_change:
                return True
        return False

    def _is_current(self, source: NotePath, known: FileState) -> bool:
        try:
            status = os.stat(f"{self._root}/{source}")  # noqa: PTH116  # hundreds of files, and Path makes it twice as slow
        except OSError:
            return False
        times = (status.st_mtime_ns, status.st_ctime_ns)
        same = (status.st_size, *times) == (known.size, known.mtime_ns, known.ctime_ns)
        self.counts.stale += not same
        # A racy file may have been saved again without a change of its time.
        return same and not known.racy

    def _read(self, path: NotePath) -> LinkSource | None:
        try:
            match = files.find_path(self._owner.root, path, known=self._owner.folders)
            if match.target != path:
                # A symbolic link: the file that it leads to is read under its own path.
                return None
            return LinkSource(path=path, raw=files.read_bytes(match.place, shown_as=path), kind=walk.kind_of(path))
        except NotFound:
            # The file is gone since it was indexed.
            return None
        except KnapError as error:
            if error.code == "not_a_file":
                return None
            if self._view.visible(path):
                self.counts.unreadable.append(path)
            else:
                self.counts.hidden += 1
            return None


_MAX_SHOWN: Final = 5


@dataclass(slots=True, kw_only=True)
class LinkReport:
    """Files of a draft, with the links in them that were rewritten, or couldn't be."""

    needs: frozenset[Capability]
    """What a client must be allowed to do for the draft."""
    files: list[FileDraft] = field(default_factory=list[FileDraft])
    rewritten: list[LinkRewrite] = field(default_factory=list[LinkRewrite])
    broken: list[tuple[NotePath, UnwritableLink]] = field(default_factory=list[tuple[NotePath, UnwritableLink]])
    hidden: int = 0
    """Number of links rewritten in files that the client doesn't see."""
    hidden_broken: int = 0
    healed: int = 0
    """Number of links that led nowhere and lead to a file now."""

    def add(self, file: FileDraft, relinked: RelinkedFile) -> None:
        """Add a file that the caller named."""
        self.files.append(file)
        self._count(file.place, relinked)

    def follow(self, page: LinkSource, relinked: RelinkedFile, *, hidden: bool) -> None:
        """Add a file in which only links follow; nothing happens if none changes."""
        if hidden:
            self.hidden += len(relinked.rewritten)
            self.hidden_broken += len(relinked.broken)
            self.healed += relinked.healed
        else:
            self._count(page.path, relinked)
        if relinked.rewritten:
            self.files.append(
                FileDraft(
                    path=page.path,
                    base=parser.content_hash(page.raw),
                    before=page.raw,
                    after=relinked.after,
                    needs=self.needs,
                    cause="link",
                    hidden=hidden,
                )
            )

    def sorted_rewrites(self) -> tuple[LinkRewrite, ...]:
        """Return the rewritten links, sorted by file and line."""
        return tuple(sorted(self.rewritten, key=lambda one: (one.path, one.line)))

    def notices(self, counts: ReferrerCounts, *, missing: int = 0, is_complete: bool = True) -> Iterator[str]:
        """Yield what a person should know.

        Args:
            counts: Of the files that were read.
            missing: Number of files that are in the index, but gone.
            is_complete: The index covers the whole vault.
        """
        for path, one in self.broken[:_MAX_SHOWN]:
            place = f"{path}, line {one.line}"
            yield f"{place}: {one.text} can't be written so that it leads to {one.path}; mend it by hand"
        if len(self.broken) > _MAX_SHOWN:
            yield f"{len(self.broken) - _MAX_SHOWN} more links can't be written so that they lead where they led"
        if self.hidden_broken:
            yield f"{_counted(self.hidden_broken, 'link')} in files that aren't yours to see can't follow"
        if self.hidden:
            yield f"{_counted(self.hidden, 'link')} in files that aren't yours to see followed too"
        if counts.hidden:
            yield f"{_counted(counts.hidden, 'file')} not yours to see may link there, and stays as it is"
        if self.healed:
            yield f"{_counted(self.healed, 'link')} that led nowhere will lead to a file"
        for path in counts.unreadable[:_MAX_SHOWN]:
            yield f"{path} can't be read, so its links stay as they are"
        if stale := counts.stale + missing:
            yield f"the index is behind by {_counted(stale, 'file')} of those looked at; they were read from the disk"
        if not is_complete:
            yield "the index isn't complete yet: files that it doesn't know may hold links that stay as they are"

    def _count(self, place: NotePath, relinked: RelinkedFile) -> None:
        self.rewritten += relinked.rewritten
        self.broken += ((place, one) for one in relinked.broken)
        self.healed += relinked.healed


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def rewrite_links(
    page: LinkSource, relocation: Relocation, convention: LinkConvention, histories: Sequence[PastRewrite] = ()
) -> RelinkedFile:
    """Rewrite the links of a file that would lead elsewhere after a move; every other byte stays.

    Args:
        page: The file as it is, under its path before the move.
        relocation: What moves.
        convention: How the vault writes links.
        histories: What earlier moves, which are now reversed, rewrote in the file. Links get their old text back, even
            those that are still right, unless they were changed since.
    """
    page_links = page.outline.links
    forms = LinkForms(page.raw, page.kind, page.outline)
    earlier = _earlier_targets(page, histories) if histories else {}
    edits: dict[tuple[int, int], LinkEdit] = {}
    broken: list[UnwritableLink] = []
    healed = 0
    stays = page.path not in relocation.files and not relocation.folders
    for number, link in enumerate(page_links):
        if link.kind == "external" or not link.target:
            continue
        if stays and number not in earlier and not relocation.may_affect(link.target):
            continue
        aim = _find_redirect(page, forms, link, relocation, convention, is_sure=number in earlier)
        replacement = _earlier_target(aim, earlier[number], relocation) if aim and number in earlier else None
        if aim is None or (replacement is None and rewriting.is_correct_target(aim, link.target, relocation.after)):
            before = relocation.resolve_before(link.target, page.path).path
            healed += before is None and relocation.resolves_after(link.target, relocation.path_after(page.path))
            continue
        replacement = replacement or next(rewriting.candidate_targets(aim, convention, relocation.after), None)
        if replacement is None or not page.can_encode(replacement[1]):
            if relocation.after.resolve(link.target, aim.source).path != aim.new:
                broken.append(rewriting.unwritable_link(page, link, aim.new))
        elif replacement[1] != _target_bytes(page.raw, link):
            healed += not aim.is_file and relocation.resolves_after(replacement[0], aim.source)
            span = (link.target_start, link.target_stop)
            splice = Splice(start=span[0], stop=span[1], new=replacement[1])
            edits[span] = LinkEdit(
                link=link,
                wanted=link._replace(target=replacement[0]),
                splice=splice,
                scalar=aim.form.scalar,
                path=aim.new,
            )
    relinked = rewriting.apply_edits(page, list(edits.values())) if edits else RelinkedFile(after=page.raw)
    if not (broken or healed):
        return relinked
    return replace(relinked, broken=(*broken, *relinked.broken), healed=healed)


def _earlier_targets(page: LinkSource, histories: Sequence[PastRewrite]) -> dict[int, list[tuple[str, bytes]]]:
    """Return the links that are still as earlier moves rewrote them, with what they said before, the oldest first."""
    earlier_targets: dict[int, list[tuple[str, bytes]]] = {}
    current_targets = [_target_bytes(page.raw, link) for link in page.outline.links]
    for before, after in filter(None, (past.read() for past in reversed(histories))):
        old, new = page.outline_of(before).links, page.outline_of(after).links
        if not len(old) == len(new) == len(current_targets):
            continue
        for number, (one, other, link) in enumerate(zip(old, new, page.outline.links, strict=True)):
            previous = _target_bytes(before, one)
            if previous != current_targets[number] == _target_bytes(after, other) and _link_shape(one) == _link_shape(
                other
            ) == _link_shape(link):
                earlier_targets.setdefault(number, []).insert(0, (one.target, previous))
                current_targets[number] = previous
    return earlier_targets


def _target_bytes(raw: bytes, link: Link) -> bytes:
    return raw[link.target_start : link.target_stop]


def _link_shape(link: Link) -> tuple[str, tuple[str, ...], str, str | None]:
    return link.kind, link.headings, link.block, link.alias


def _earlier_target(
    aim: LinkRedirect, earlier: Sequence[tuple[str, bytes]], relocation: Relocation
) -> tuple[str, bytes] | None:
    """Return the oldest text of a link, from before earlier moves, that leads to the right file now."""
    unstyled = aim if aim.style == "card" else replace(aim, style="name")
    return next(
        (candidate for candidate in earlier if rewriting.is_correct_target(unstyled, candidate[0], relocation.after)),
        None,
    )


def _find_redirect(
    page: LinkSource, forms: LinkForms, link: Link, relocation: Relocation, convention: LinkConvention, *, is_sure: bool
) -> LinkRedirect | None:
    """Return where a link leads and is to lead; None if nothing changes, or its target is unknown."""
    resolution = relocation.resolve_before(link.target, page.path)
    card = is_card(page.raw, link)
    old = resolution.path
    # What a card or a relative target means where the index has no file, such as an ignored one.
    if old is None and card:
        old = NotePath(link.target)
    elif old is None and link.target.startswith(("./", "../")):
        old = NotePath(links.join_relative(paths.parent_folder(page.path), link.target)) or None
    if old is None:
        return None
    # A quick check that settles most links: neither the link's file nor its meaning changes.
    is_moved = resolution.path in relocation.files or page.path in relocation.files
    is_doubtful = resolution.path and not is_sure and not is_moved
    if is_doubtful and relocation.after.resolve(link.target, page.path).path == resolution.path:
        return None
    form = forms.of(link)
    return LinkRedirect(
        target=link.target,
        form=form,
        style=rewriting.link_style(link.target, form, (page.path, old), convention, is_card=card),
        source=relocation.path_after(page.path),
        old=old,
        new=relocation.path_after(old),
        is_file=resolution.path is not None,
        ambiguous=bool(resolution.ambiguous),
        uses_dot_prefix=forms.uses_dot_prefix,
    )


def draft_moves(
    view: View, owner: View, graph: Graph, moves: Sequence[Move], history: LinkHistory | None = None
) -> Draft:
    """Draft moves of notes, other files and whole folders, with every link rewritten that would lead elsewhere.

    A link that is still right stays as it is, byte for byte. Any other keeps its form: a wikilink stays a wikilink, a
    name stays a name if that is unique, a path stays a path of its kind, and ``.md`` and percent signs are kept.
    In files that the client sees, links to files that it doesn't see stay as they are.

    Args:
        view: The vault as the client sees it.
        owner: The vault as its owner sees it: links in files that the client doesn't see follow too, and are only
            counted. Pass *view* again to leave such files alone.
        graph: The links in the index; files are read again.
        moves: From where to where, as the client wrote the paths.
        history: What earlier moves rewrote, so that moving back restores every link's text; None to look nothing up.

    Raises:
        BadInput, NotFound, Ambiguous, RefusedError, ConflictError: As for `targets.plan_moves`.
        StorageError: A file that moves can't be read.
    """
    planned = targets.plan_moves(view, moves)
    relocation = Relocation(
        {old: new for one in planned for old, new in one.pairs()},
        {one.source: one.target for one in planned if one.is_whole},
        graph.lookup,
        view.root,
        view.visible,
    )
    convention = LinkConvention(format=view.settings.new_link_format, is_app_vault=(view.root / ".obsidian").is_dir())
    referrers = Referrers(view, owner, graph)
    report = LinkReport(needs=frozenset({"move"}))
    ends = (pair for one in planned for pair in ([(one.source, one.target)] if one.is_whole else one.pairs()))
    earlier: Mapping[NotePath, Sequence[PastRewrite]] = history.of(ends) if history else {}
    for old, new in relocation.files.items():
        if walk.kind_of(old) == "attachment":
            report.files.append(FileDraft(path=old, base=None, target=new, needs=report.needs))
            continue
        raw, page = referrers.moving(old, relocation, earlier)
        relinked = (
            rewrite_links(page, relocation, convention, earlier.get(old, ())) if page else RelinkedFile(after=raw)
        )
        base = parser.content_hash(raw)
        report.add(
            FileDraft(path=old, base=base, before=raw, after=relinked.after, target=new, needs=report.needs), relinked
        )
    for page in referrers.following(relocation, earlier):
        relinked = rewrite_links(page, relocation, convention, earlier.get(page.path, ()))
        report.follow(page, relinked, hidden=referrers.is_hidden(page.path))
    report_notices = report.notices(referrers.counts, missing=len(relocation.gone), is_complete=graph.is_complete)
    return Draft(
        files=tuple(report.files),
        folders=tuple(relocation.folders.items()),
        by_query=any(one.is_folder for one in planned),
        notices=(*(notice for one in planned for notice in one.notices), *report_notices),
        rewritten=report.sorted_rewrites(),
    )


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
                return link._replace(headings=choice)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockRename:
    """New id of a block."""

    old: str
    new: str

    def matters(self, edge: Edge) -> bool:
        return edge.block.casefold() == self.old.casefold()

    def updated_link(self, link: Link) -> Link | None:
        return link._replace(block=self.new) if link.block.casefold() == self.old.casefold() else link


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
    snapshot = splices.take_snapshot(note.raw, note.outline)
    renamed: AnchorRename
    if isinstance(request, RenameBlock):
        splice = positions.rename_block(snapshot, request.old, request.new)
        renamed = _BlockRename(old=snapshot.decode(splice.start, splice.stop), new=splice.new.decode())
    else:
        section = positions.find_section(snapshot, request.heading)
        splice = positions.rename_heading(snapshot, request.heading, request.title)
        after, old = parser.parse_note(splices.merge(note.raw, [splice])).sections, snapshot.outline.sections
        renamed = _HeadingRename(old=old, new=after, number=old.index(section))
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
