"""Make links of one file say something else, and read it again to see that they do."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from knapper.changes.drafts import Rewritten
from knapper.changes.linking.pages import Page
from knapper.changes.linking.yaml_scalars import Scalar
from knapper.changes.text import splices, yaml_text
from knapper.changes.text.splices import Splice
from knapper.vault import links
from knapper.vault.outline import Link, LinkKind
from knapper.vault.paths import NotePath

_WIKILINK: Final = re.compile(r"(?:[^\W_]|[ ./,-])+")
_DESTINATION: Final = re.compile(r"[A-Za-z0-9_%./-]+")
_TAME: Final[Mapping[LinkKind, re.Pattern[str]]] = {
    "wikilink": _WIKILINK,
    "embed": _WIKILINK,
    "markdown": _DESTINATION,
    "image": _DESTINATION,
}
"""What may stand in a target without a doubt about what it is read as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Hold a link that can't be written so that it leads where it led."""

    line: int
    text: str
    path: NotePath
    """Where it led, by its new path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relinked:
    """Hold a file with its links rewritten."""

    after: bytes
    rewritten: tuple[Rewritten, ...] = ()
    broken: tuple[Broken, ...] = ()
    healed: int = 0
    """Links that led nowhere and lead to a file now; they stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Hold what one link, or several through their definition, is to say."""

    link: Link
    wanted: Link
    """Has the target, headings and block that are to be read."""
    splice: Splice
    scalar: Scalar | None
    """The YAML scalar that holds it."""
    path: NotePath
    """Where it is to lead."""


def apply(page: Page, edits: Sequence[Edit]) -> Relinked:
    """Make edits, read the file again, and leave out those that it doesn't take.

    Args:
        page: The file as it is.
        edits: What links are to say; no two of the same span.
    """
    made, failed = _fitting(page, edits)
    after = splices.merge(page.raw, [splice for _, splice in made])
    written = [_rewritten(page, edit) for group, _ in made for edit in group]
    return Relinked(
        after=after,
        rewritten=tuple(sorted(written, key=lambda one: one.line)),
        broken=tuple(broken(page, edit.link, edit.path) for edit in failed),
    )


_Made = tuple[Sequence[Edit], Splice]


def _fitting(page: Page, edits: Sequence[Edit]) -> tuple[list[_Made], list[Edit]]:
    """Find the edits after which every link says what it should: nearly always all of them."""
    made: list[_Made] = [((edit,), edit.splice) for edit in edits]
    if all(_is_tame(page, edit) for edit in edits) or _holds(page, made):
        return made, []
    fitting: list[_Made] = []
    failed: list[Edit] = []
    for group in _groups(edits):
        one = [((edit,), edit.splice) for edit in group]
        quoted = _quoted(page, group)
        if _holds(page, one):
            fitting += one
        elif quoted is not None and _holds(page, [(group, quoted)]):
            fitting.append((group, quoted))
        else:
            failed += group
    return (fitting, failed) if _holds(page, fitting) else ([], list(edits))


def _is_tame(page: Page, edit: Edit) -> bool:
    """Tell that old and new text hold nothing that means anything to a parser, which spares reading a long file."""
    allowed = _TAME.get(edit.link.kind)
    old, new = page.raw[edit.splice.start : edit.splice.stop].decode(errors="replace"), edit.splice.new.decode()
    return allowed is not None and bool(allowed.fullmatch(old) and allowed.fullmatch(new)) and new == new.strip()


def _groups(edits: Iterable[Edit]) -> list[list[Edit]]:
    """Put edits of one YAML scalar together."""
    groups: dict[int, list[Edit]] = {}
    for edit in edits:
        groups.setdefault(edit.scalar.start if edit.scalar else edit.link.target_start, []).append(edit)
    return list(groups.values())


def _quoted(page: Page, group: Sequence[Edit]) -> Splice | None:
    """Put quotes around the text of a property, which needs them for what its links say now."""
    scalar = group[0].scalar
    if scalar is None or scalar.style != "plain":
        return None
    source = page.raw[scalar.start : scalar.stop]
    if source[:1] in b"&!" or b"\n" in source or b"\r" in source:
        return None
    wanted = [edit.splice for edit in group]
    moved = [Splice(start=s.start - scalar.start, stop=s.stop - scalar.start, new=s.new) for s in wanted]
    text = splices.merge(source, moved).decode()
    return Splice(start=scalar.start, stop=scalar.stop, new=yaml_text.scalar(text, '"').encode())


def _holds(page: Page, made: Sequence[_Made]) -> bool:
    """Read the file as it would be: the same links in the same order, each saying what it should."""
    wanted = {_span(edit.link): edit.wanted for group, _ in made for edit in group}
    outline = page.reread(splices.merge(page.raw, [splice for _, splice in made]))
    old, new = page.outline.links, outline.links
    if len(old) != len(new) or len(outline.problems) > len(page.outline.problems):
        return False
    return all(_says(two, one, wanted.get(_span(one), one)) for one, two in zip(old, new, strict=True))


def _span(link: Link) -> tuple[int, int]:
    return link.target_start, link.target_stop


def _says(link: Link, old: Link, wanted: Link) -> bool:
    return (
        (link.kind, link.alias) == (old.kind, old.alias)
        and links.fold_target(link.target).rstrip("/") == links.fold_target(wanted.target).rstrip("/")
        and list(map(links.heading_key, link.headings)) == list(map(links.heading_key, wanted.headings))
        and link.block.casefold() == wanted.block.casefold()
    )


def _rewritten(page: Page, edit: Edit) -> Rewritten:
    start, stop = page.shown(edit.link)
    start, stop = min(start, edit.splice.start), max(stop, edit.splice.stop)
    head, tail = page.raw[start : edit.splice.start], page.raw[edit.splice.stop : stop]
    return Rewritten(
        path=page.path,
        line=page.line(edit.link),
        old=page.raw[start:stop].decode(errors="replace"),
        new=(head + edit.splice.new + tail).decode(errors="replace"),
    )


def broken(page: Page, link: Link, path: NotePath) -> Broken:
    """Name a link that can't be written so that it leads to a file."""
    start, stop = page.shown(link)
    return Broken(line=page.line(link), text=page.raw[start:stop].decode(errors="replace"), path=path)
