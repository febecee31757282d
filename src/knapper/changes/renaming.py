"""Draft the renaming of a heading or block id, with the links that lead there."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from knapper.changes import anchors, sections, snapshots, splices
from knapper.changes.drafts import Capability, Draft, FileDraft, Rewritten
from knapper.changes.requests import RenameBlock, RenameHeading
from knapper.changes.splices import Splice
from knapper.changes.text_edits import stale
from knapper.errors import KnapError
from knapper.index.graph import Graph
from knapper.vault import bases, canvas, links, notes, parse, walk
from knapper.vault.notes import Note
from knapper.vault.outline import Link, Outline
from knapper.vault.paths import NotePath
from knapper.vault.view import View

_NEEDS: Final[frozenset[Capability]] = frozenset({"delete"})
_PARSERS: Final = {"note": parse.parse, "canvas": canvas.parse, "base": bases.parse}
_WIKI: Final = re.compile(rb"#?\^?[^|\]\\]*")
_MARKDOWN: Final = re.compile(rb"#[^)\s>]*")
_UNLINKABLE: Final = re.compile(r"[#|^:%\[\]\\\s]+")
"""What a heading may hold and a link to it may not; Obsidian writes a space instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anchor:
    """Hold what is renamed, as links name it."""

    path: NotePath
    titles: tuple[str, ...]
    """The note's headings in order; empty where a block id is renamed."""
    place: int
    """Which of them is renamed."""
    block: str
    new: str

    def renamed(self, link: Link) -> list[str] | None:
        """Give a link's headings, or its one block id, as they are to be; None where it leads elsewhere."""
        if self.block:
            return [f"^{self.new}"] if link.block.casefold() == self.block.casefold() else None
        found = list(link.headings)
        at, hit = -1, False
        for number, wanted in enumerate(link.headings):
            at = next((n for n, t in enumerate(self.titles) if n > at and links.heading_matches(wanted, t)), -2)
            if at == -2:
                return None
            if at == self.place:
                found[number], hit = self.new, True
        return found if hit else None


def draft(view: View, owner: View, graph: Graph, request: RenameHeading | RenameBlock) -> Draft:
    """Draft a heading's or block id's new name; every link to it, in whatever file, says the new one.

    Args:
        view: The vault as the asker sees it.
        owner: The vault as its owner does: links in files that the asker doesn't see follow too, and are only counted.
        graph: The links that the index knows; files are read anew.
        request: What is renamed.

    Raises:
        NotFound, Ambiguous, BadInput: As for `anchors`.
        ConflictError: The note isn't what the caller saw.
    """
    note = view.read(request.path)
    if request.base and request.base != note.hash:
        raise stale(note, request.base)
    anchor, own = _anchor(note, request)
    files: list[FileDraft] = []
    rewritten: list[Rewritten] = []
    notices: list[str] = []
    for path in dict.fromkeys([note.path, *(edge.source for edge in graph.incoming(note.path))]):
        hidden = not view.visible(path)
        try:
            raw = note.raw if path == note.path else owner.read_bytes(path)
        except KnapError:  # gone since the index saw it
            continue
        made, left = _rewrite(path, raw, anchor, graph, own if path == note.path else None)
        notices += () if hidden else [f"{path}: a link to it could not be written" for _ in range(left)]
        if made is None:
            continue
        after, told = made
        rewritten += () if hidden else told
        cause = "asked" if path == note.path else "link"
        base = notes.hash_of(raw)
        files.append(
            FileDraft(
                path=path, base=base, before=raw, after=after, needs=_NEEDS, anchored=True, cause=cause, hidden=hidden
            )
        )
    return Draft(files=tuple(files), notices=tuple(notices), rewritten=tuple(rewritten))


def _anchor(note: Note, request: RenameHeading | RenameBlock) -> tuple[_Anchor, Splice]:
    snapshot = snapshots.take(note.raw, note.outline)
    if isinstance(request, RenameBlock):
        splice = anchors.rename_block(snapshot, request.old, request.new)
        old, new = request.old.removeprefix("^"), request.new.removeprefix("^")
        return _Anchor(path=note.path, titles=(), place=-1, block=old, new=new), splice
    section = sections.find(snapshot, request.heading)
    splice = anchors.rename_heading(snapshot, request.heading, request.title)
    owned = [one for one in note.outline.sections if one.level]
    new = _UNLINKABLE.sub(" ", request.title).strip()
    titles = tuple(one.title for one in owned)
    return _Anchor(path=note.path, titles=titles, place=owned.index(section), block="", new=new), splice


def _rewrite(
    path: NotePath, raw: bytes, anchor: _Anchor, graph: Graph, own: Splice | None
) -> tuple[tuple[bytes, list[Rewritten]] | None, int]:
    """Rewrite a file's links to the anchor; tell also how many can't be written."""
    outline = _PARSERS[walk.kind_of(path)](raw) if walk.kind_of(path) in _PARSERS else None
    made: list[tuple[Splice, Link]] = []
    left = 0
    for link, parts in _leading(path, outline, anchor, graph) if outline else ():
        splice = _splice(raw, link, parts)
        if splice is None:
            left += 1
        else:
            made.append((splice, link))
    found = [splice for splice, _ in made]
    if not found and own is None:
        return None, left
    after = splices.merge(raw, [*found, *([own] if own else [])])
    told = [
        Rewritten(path=path, line=link.line, old=_text(raw, link), new=_text(splices.merge(raw, [one]), link, one))
        for one, link in made
    ]
    return (after, told), left


def _leading(path: NotePath, outline: Outline, anchor: _Anchor, graph: Graph) -> Iterator[tuple[Link, list[str]]]:
    for link in outline.links:
        if link.kind == "external" or not (link.headings or link.block):
            continue
        leads = graph.resolve(link.target, path).path if link.target else path
        parts = anchor.renamed(link) if leads == anchor.path else None
        if parts:
            yield link, parts


def _splice(raw: bytes, link: Link, parts: Sequence[str]) -> Splice | None:
    """Put the new fragment in the place of the old one; None where the text isn't as plain as it has to be."""
    if link.kind == "canvas" and link.stop > link.start and raw[link.start : link.start + 1] == b"#":
        new = json.dumps("#" + "#".join(parts), ensure_ascii=False)[1:-1].encode()
        return Splice(start=link.start, stop=link.stop, new=new)
    is_markdown = link.kind in {"markdown", "image"}
    found = (_MARKDOWN if is_markdown else _WIKI).match(raw, link.target_stop, link.stop)
    said = "#".join((*link.headings, *([f"^{link.block}"] if link.block else [])))
    if found is None or _plain(found.group(), markdown=is_markdown) != said:
        return None
    sign = "#" if found.group().startswith(b"#") else ""
    text = "#".join(parts)
    new = f"#{quote(text, safe='#^')}" if is_markdown else f"{sign}{text}"
    return Splice(start=found.start(), stop=found.end(), new=new.encode())


def _plain(fragment: bytes, *, markdown: bool) -> str:
    text = fragment.decode(errors="replace")
    return (unquote(text) if markdown else text).removeprefix("#").strip()


def _text(raw: bytes, link: Link, moved: Splice | None = None) -> str:
    grown = len(moved.new) - (moved.stop - moved.start) if moved else 0
    return raw[link.start : link.stop + grown].decode(errors="replace")
