"""Rewrite the links of one file so that they lead where they led, after files have moved."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from knapper.changes import link_styles, splices, yaml_text
from knapper.changes.drafts import Rewritten
from knapper.changes.link_forms import Form, Forms, is_card
from knapper.changes.link_styles import Aim, Habit
from knapper.changes.relocation import Relocation
from knapper.changes.splices import Splice
from knapper.vault import bases, canvas, lines, links, parse, paths
from knapper.vault.outline import Link, Outline
from knapper.vault.paths import NotePath
from knapper.vault.walk import Kind

PARSERS: Final[Mapping[str, Callable[[bytes], Outline]]] = {
    "note": parse.parse,
    "canvas": canvas.parse,
    "base": bases.parse,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Hold a file that may have links."""

    path: NotePath
    raw: bytes
    kind: Kind
    outline: Outline

    @classmethod
    def read(cls, path: NotePath, raw: bytes, kind: Kind) -> "Page":
        """Read what a file's bytes say; an attachment says nothing."""
        return cls(path=path, raw=raw, kind=kind, outline=PARSERS.get(kind, parse.parse)(raw))


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
    form: Form
    target: str
    """Decoded."""
    new: bytes
    path: NotePath
    """Where it is to lead."""

    @property
    def splice(self) -> Splice:
        """Give the change of the bytes."""
        return Splice(start=self.link.target_start, stop=self.link.target_stop, new=self.new)


def rewrite(page: Page, relocation: Relocation, habit: Habit) -> Relinked:
    """Rewrite the links of a file that would lead elsewhere after a move; every other byte stays.

    Args:
        page: The file as it is, by the path that it has before.
        relocation: What moves.
        habit: How the vault writes links.
    """
    forms = Forms(page.raw, page.kind, page.outline)
    edits: dict[tuple[int, int], Edit] = {}
    broken: list[Broken] = []
    healed = 0
    for link in page.outline.links:
        if link.kind == "external" or not link.target:
            continue
        aim = _aim(page, forms, link, relocation, habit)
        healed += aim is None and _heals(page, link, relocation)
        if aim is None or link_styles.is_right(aim, link.target, relocation.after):
            continue
        found = next(link_styles.choose(aim, habit, relocation.after), None)
        if found is None or not _encodable(page, found[1]):
            broken.append(_broken(page, link, aim.new))
        else:
            span = (link.target_start, link.target_stop)
            edits[span] = Edit(link=link, form=aim.form, target=found[0], new=found[1], path=aim.new)
    made = apply(page, list(edits.values())) if edits else Relinked(after=page.raw)
    return replace(made, broken=(*broken, *made.broken), healed=healed)


def _heals(page: Page, link: Link, relocation: Relocation) -> bool:
    before = relocation.before.resolve(link.target, page.path).path
    return before is None and relocation.after.resolve(link.target, relocation.place(page.path)).path is not None


def _aim(page: Page, forms: Forms, link: Link, relocation: Relocation, habit: Habit) -> Aim | None:
    """Tell where a link leads and is to lead; None where it leads nowhere, and didn't say just where."""
    found = relocation.before.resolve(link.target, page.path)
    card = is_card(page.raw, link)
    old = found.path or _nowhere(page.path, link.target, is_card=card)
    place = relocation.place(page.path)
    if old is None or (found.path and _is_untouched(found.path, link, page, relocation)):
        return None
    form = forms.of(link)
    return Aim(
        target=link.target,
        form=form,
        style=link_styles.style(link.target, form, (page.path, old), habit, is_card=card),
        source=place,
        old=old,
        new=relocation.place(old),
        is_file=found.path is not None,
        ambiguous=bool(found.ambiguous),
        dotted=any(other.target.startswith("./") for other in page.outline.links),
    )


def _is_untouched(path: NotePath, link: Link, page: Page, relocation: Relocation) -> bool:
    """Tell quickly of most links that nothing about them changes."""
    if path in relocation.files or page.path in relocation.files:
        return False
    return relocation.after.resolve(link.target, page.path).path == path


def _nowhere(source: NotePath, target: str, *, is_card: bool) -> NotePath | None:
    """Give the place that a path means though the index knows no file there: an ignored one, or one to be."""
    if is_card:
        return NotePath(target)
    if not target.startswith(("./", "../")):
        return None
    return NotePath(links.joined(paths.folder(source), target)) or None


def _encodable(page: Page, new: bytes) -> bool:
    """Tell whether a file can take bytes: UTF-16 isn't edited, and a file of unknown encoding takes ASCII alone."""
    return page.outline.encoding != "utf-16" and (page.outline.encoding != "unknown" or new.isascii())


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
        broken=tuple(_broken(page, edit.link, edit.path) for edit in failed),
    )


_Made = tuple[Sequence[Edit], Splice]


def _fitting(page: Page, edits: Sequence[Edit]) -> tuple[list[_Made], list[Edit]]:
    """Find the edits after which every link says what it should: nearly always all of them."""
    made: list[_Made] = [((edit,), edit.splice) for edit in edits]
    if _holds(page, made):
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


def _groups(edits: Iterable[Edit]) -> list[list[Edit]]:
    """Put edits of one YAML scalar together."""
    groups: dict[int, list[Edit]] = {}
    for edit in edits:
        scalar = edit.form.scalar
        groups.setdefault(scalar.start if scalar else edit.link.target_start, []).append(edit)
    return list(groups.values())


def _quoted(page: Page, group: Sequence[Edit]) -> Splice | None:
    """Put quotes around the text of a property, which needs them for what its links say now."""
    scalar = group[0].form.scalar
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
    wanted = {(edit.link.target_start, edit.link.target_stop): edit.target for group, _ in made for edit in group}
    outline = PARSERS[page.kind](splices.merge(page.raw, [splice for _, splice in made]))
    old, new = page.outline.links, outline.links
    if len(old) != len(new) or len(outline.problems) > len(page.outline.problems):
        return False
    return all(map(partial(_says, wanted), old, new))


def _says(wanted: Mapping[tuple[int, int], str], old: Link, new: Link) -> bool:
    target = wanted.get((old.target_start, old.target_stop), old.target)
    same = (old.kind, old.headings, old.block, old.alias) == (new.kind, new.headings, new.block, new.alias)
    return same and links.folded(new.target).rstrip("/") == links.folded(target).rstrip("/")


def _rewritten(page: Page, edit: Edit) -> Rewritten:
    link = edit.link
    start, stop = _shown(link)
    head, tail = page.raw[start : link.target_start], page.raw[link.target_stop : stop]
    return Rewritten(
        path=page.path,
        line=_line(page, link),
        old=page.raw[start:stop].decode(errors="replace"),
        new=(head + edit.new + tail).decode(errors="replace"),
    )


def _broken(page: Page, link: Link, path: NotePath) -> Broken:
    start, stop = _shown(link)
    return Broken(line=_line(page, link), text=page.raw[start:stop].decode(errors="replace"), path=path)


def _shown(link: Link) -> tuple[int, int]:
    """Give the whole link, or the target alone where that stands elsewhere: in a definition, or on a card."""
    if link.start <= link.target_start and link.target_stop <= link.stop:
        return link.start, link.stop
    return link.target_start, link.target_stop


def _line(page: Page, link: Link) -> int:
    return lines.Lines(starts=page.outline.line_starts, size=len(page.raw)).number(link.target_start)
