"""New targets and fragments for links, each written in the link's own form."""

import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from knapper.changes.drafts import LinkRewrite
from knapper.changes.links.targets import NameResolver
from knapper.changes.text import splices, yaml_values
from knapper.changes.text.splices import Splice
from knapper.vault import canvas, frontmatter, links, markdown, parser, paths, source
from knapper.vault.obsidian import LinkFormat
from knapper.vault.paths import NotePath
from knapper.vault.source import Link, LinkKind, Outline
from knapper.vault.walk import FileKind

PARSERS: Final[Mapping[str, Callable[[bytes], Outline]]] = {
    "note": parser.parse_links,
    "canvas": canvas.parse_canvas,
    "base": canvas.parse_base,
}
"""Parsers of each kind of file, of which links and properties are read here, and nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSource:
    """File that may have links."""

    path: NotePath
    raw: bytes
    kind: FileKind
    _outlines: dict[bytes, Outline] = field(default_factory=dict[bytes, Outline], init=False, repr=False, compare=False)

    @property
    def outline(self) -> Outline:
        """Return the outline of the file."""
        return self.outline_of(self.raw)

    def outline_of(self, raw: bytes) -> Outline:
        """Return the outline of the file with other bytes; cached, since moving back leads to bytes that it had."""
        if raw not in self._outlines:
            self._outlines[raw] = PARSERS[self.kind](raw)
        return self._outlines[raw]

    def line(self, link: Link) -> int:
        """Return the line of a link's target."""
        return source.Lines(starts=self.outline.line_starts, size=len(self.raw)).line_number(link.target_start)

    def display_span(self, link: Link) -> tuple[int, int]:
        """Return the span of the link, or of the target alone if it is elsewhere: in a definition or on a card."""
        if link.start <= link.target_start and link.target_stop <= link.stop:
            return link.start, link.stop
        return link.target_start, link.target_stop

    def can_encode(self, new: bytes) -> bool:
        """Return whether bytes can be inserted: never into UTF-16, and only ASCII into an unknown encoding."""
        return self.outline.encoding != "utf-16" and (self.outline.encoding != "unknown" or new.isascii())


ScalarStyle = Literal["plain", "single", "double", "block"]

_STYLES: Final[dict[str, ScalarStyle]] = {"'": "single", '"': "double", "|": "block", ">": "block"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One scalar of a YAML document."""

    style: ScalarStyle
    start: int
    """In bytes of the file, quotes included."""
    stop: int
    value: str


def read_scalars(raw: bytes, kind: FileKind, outline: Outline) -> list[Scalar]:
    """Return the scalars of a note's properties, or of a base, that was read without problems.

    Args:
        raw: The file.
        kind: ``note`` or ``base``.
        outline: What was read from it.
    """
    block = outline.frontmatter
    if kind == "base":
        start, stop = frontmatter.find_text_start(raw), len(raw)
    elif block is not None and block.valid:
        start, stop = block.yaml_start, block.yaml_stop
    else:
        return []
    text = raw[start:stop].decode(errors="replace")
    root = frontmatter.compose_yaml(text)
    offsets = frontmatter.list_byte_offsets(text, start)
    return [
        Scalar(
            style=_STYLES.get(str(node.style or ""), "plain"),
            start=offsets[node.start_mark.index],
            stop=offsets[node.end_mark.index],
            value=str(node.value),
        )
        for _, node in (frontmatter.list_scalars(root) if root is not None else ())
    ]


Markup = Literal["wikilink", "markdown", "path"]
Container = Literal["text", "json"] | ScalarStyle

_OPENING: Final = re.compile(r"!?\[\[")
_NOT_IN_WIKILINK: Final = re.compile(r"[\[\]|#^\r\n]|%%")
_NOT_IN_CALL: Final = re.compile(r"[\"'\\\[\]|#^\r\n]")
_NOT_IN_DESTINATION: Final = re.compile(r"[\x00-\x20\x7f()<>\\#%|`$\xa0\u2028\u2029]")
_NOT_IN_BRACKETS: Final = re.compile(r"[\x00-\x1f\x7f<>\\#%|`$]")
_QUOTES: Final = re.compile(r"[\"']")
_LETTERS: Final = re.compile(r"[^\x00-\x7f]+")
_ENCODED_LETTER: Final = re.compile(rb"%[89A-Fa-f][0-9A-Fa-f]")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkForm:
    r"""How one link's target is written.

    ``[a](<my%20notes/b.md>)`` has the pieces ``my%20notes`` and ``b.md``, the markup ``markdown``, and is bracketed.
    """

    markup: Markup
    container: Container
    pieces: tuple[bytes, ...]
    """The target split at its slashes, as written in the file; empty if it has other parts than the decoded target."""
    bracketed: bool = False
    """Whether it is written in ``<>``."""
    encodes_letters: bool = False
    """Letters beyond ASCII are written with percent signs, or with escapes in JSON."""
    escapes_slashes: bool = False
    r"""JSON with ``\/``."""
    scalar: Scalar | None = None
    """The YAML scalar that holds it."""

    @property
    def slash(self) -> bytes:
        """Return the separator of two parts."""
        return b"\\/" if self.escapes_slashes else b"/"

    def write(self, part: str) -> bytes | None:
        """Return one part of a path as written; None if a link of this form can't hold it."""
        if self.markup == "wikilink" and _NOT_IN_WIKILINK.search(part):
            return None
        if self.markup == "path" and self.container != "json" and _NOT_IN_CALL.search(part):
            return None
        text = self._destination(part) if self.markup == "markdown" else part
        match self.container:
            case "json":
                return json.dumps(text, ensure_ascii=self.encodes_letters)[1:-1].encode()
            case "single":
                return text.replace("'", "''").encode()
            case "double":
                return json.dumps(text, ensure_ascii=False)[1:-1].encode()
            case "text" | "plain" | "block":
                return text.encode()

    def _destination(self, part: str) -> str:
        """Return a part of a Markdown link's destination, percent-encoded where needed."""
        text = (_NOT_IN_BRACKETS if self.bracketed else _NOT_IN_DESTINATION).sub(_percent_encode, part)
        if self.container != "text":
            text = _QUOTES.sub(_percent_encode, text)
        if html.unescape(text) != text:
            text = text.replace("&", "%26")
        if _SCHEME.match(text):
            text = text.replace(":", "%3A", 1)
        return _LETTERS.sub(_percent_encode, text) if self.encodes_letters else text


class LinkForms:
    """Reader of the forms in which the links of one file are written."""

    def __init__(self, raw: bytes, kind: FileKind, outline: Outline) -> None:
        """Wrap a file.

        Args:
            raw: Its bytes, to which the spans of its links refer.
            kind: Its kind.
            outline: What was read from it.
        """
        self._raw: bytes = raw
        self._kind: FileKind = kind
        self._outline: Outline = outline

    def of(self, link: Link) -> LinkForm:
        """Return how a link to a file is written."""
        target_bytes = self._raw[link.target_start : link.target_stop]
        scalar = self._scalar_at(link.target_start) if link.kind in {"property", "base"} else None
        container: Container = "json" if link.kind == "canvas" else scalar.style if scalar else "text"
        markup = self._markup(link)
        escapes_slashes = container == "json" and b"\\/" in target_bytes
        cut = target_bytes.split(b"\\/" if escapes_slashes else b"/")
        return LinkForm(
            markup=markup,
            container=container,
            pieces=tuple(cut) if len(cut) == len(link.target.split("/")) else (),
            bracketed=markup == "markdown" and self._raw[link.target_start - 1 : link.target_start] == b"<",
            encodes_letters=self._encodes_letters(markup, container, target_bytes),
            escapes_slashes=escapes_slashes,
            scalar=scalar,
        )

    @cached_property
    def uses_dot_prefix(self) -> bool:
        """Return whether the file's links to what lies below its folder begin with ``./``."""
        return any(link.target.startswith("./") for link in self._outline.links)

    @cached_property
    def _scalars(self) -> list[Scalar]:
        # in the order of the text: an alias repeats an earlier one
        scalars = read_scalars(self._raw, self._kind, self._outline)
        return sorted(scalars, key=lambda scalar: (scalar.start, scalar.stop))

    def _scalar_at(self, offset: int) -> Scalar | None:
        """Return the scalar that holds a byte; a list of properties may have as many of them as the file has links."""
        before = bisect_right(self._scalars, offset, key=lambda scalar: scalar.start)
        scalar = self._scalars[before - 1] if before else None
        return scalar if scalar is not None and offset < scalar.stop else None

    def _markup(self, link: Link) -> Markup:
        if link.kind in {"wikilink", "embed"}:
            return "wikilink"
        if link.kind in {"markdown", "image"}:
            return "markdown"
        if is_card(self._raw, link):
            return "path"
        before = self._raw[link.start : link.target_start].decode(errors="replace")
        opening = str(json.loads(f'"{before}"')) if link.kind == "canvas" else before
        if _OPENING.match(opening):
            return "wikilink"
        return "path" if link.kind == "base" else "markdown"

    def _encodes_letters(self, markup: Markup, container: Container, written: bytes) -> bool:
        """Return whether letters beyond ASCII are encoded: as in the target itself, if it has any."""
        if container == "json" and markup != "markdown":
            return written.isascii() and b"\\u" in written
        encoded = written.isascii() and _ENCODED_LETTER.search(written) is not None
        return markup == "markdown" and (encoded or self._outline.encoding == "unknown")


def is_card(raw: bytes, link: Link) -> bool:
    """Return whether a link is a canvas's card that shows a file, and not a link in a card's text."""
    around = raw[link.target_start - 1 : link.target_start] + raw[link.target_stop : link.target_stop + 1]
    return link.kind == "canvas" and around == b'""'


def _percent_encode(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode())


_CARET: Final = re.compile(rb"(?:\^|%5[eE]|\\u005[eE])[ \t]*")


def fragment_span(page: LinkSource, link: Link, form: LinkForm) -> tuple[int, int]:
    """Return the span of a link's fragment, ``#`` included: ``#H`` in ``[[Note#H|text]]``."""
    if form.markup == "path" and is_card(page.raw, link):
        return (link.start, link.stop) if link.start != link.target_start else (link.target_stop, link.target_stop)
    if form.markup == "markdown":
        start = link.target_start - form.bracketed
        _, stop = markdown.find_destination_span(page.raw, start, len(page.raw))
        return link.target_stop, max(stop, link.target_stop)
    stop = link.stop - (2 if form.markup == "wikilink" else 0)
    bar = page.raw.find(b"|", link.target_stop, stop)
    if bar >= 0:
        stop = bar - (page.raw[bar - 1 : bar] == b"\\")
    return link.target_stop, stop


def replace_headings(page: LinkSource, link: Link, form: LinkForm, wanted: Sequence[str]) -> Splice | None:
    """Replace the headings of a link; unchanged ones keep their spelling.

    Returns:
        None if a link of this form can't hold them, or isn't written as expected.
    """
    start, stop = fragment_span(page, link, form)
    written_pieces = [piece for piece in page.raw[start:stop].split(b"#") if piece.strip()]
    if len(written_pieces) != len(link.headings) or not all(wanted):
        return None
    spellings = dict(zip(link.headings, written_pieces, strict=True))
    pieces = [spellings.get(heading) or form.write(heading) for heading in wanted]
    new_pieces = [piece for piece in pieces if piece is not None]
    return (
        Splice(start=start, stop=stop, new=b"".join(b"#" + piece for piece in new_pieces))
        if new_pieces == pieces
        else None
    )


def replace_block_id(page: LinkSource, link: Link, form: LinkForm, wanted: str) -> Splice | None:
    """Replace the block id of a link; return None if it isn't written as expected."""
    start, stop = fragment_span(page, link, form)
    carets = list(_CARET.finditer(page.raw, start, stop))
    if len(carets) != 1:
        return None
    at = carets[0].end()
    tail = page.raw[at:stop]
    return Splice(start=at, stop=at + len(tail.rstrip()), new=wanted.encode())


LinkStyle = Literal["name", "partial", "absolute", "rooted", "relative", "literal", "card"]
"""``B`` · ``folder/B``, the end of the path · all of it · with ``/`` before · with ``./`` or ``../`` · a Markdown path
that any reader takes as relative · a card's, which Obsidian takes as written."""

_SUFFIX: Final = ".md"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConvention:
    """How a vault writes links."""

    format: LinkFormat
    is_app_vault: bool
    """Obsidian has opened the vault; otherwise, Markdown links are read as any Markdown reader does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRedirect:
    """One link with the file that it led to, and the path that it is to lead to."""

    target: str
    form: LinkForm
    style: LinkStyle
    source: NotePath
    """The file that holds the link, by its path after the move."""
    old: NotePath
    new: NotePath
    is_file: bool
    """False for a relative path to a file that isn't in the index."""
    ambiguous: bool
    """Other files matched the target as well."""
    uses_dot_prefix: bool = False
    """The file's links to what is below its folder begin with ``./``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCandidate:
    """One way to write a link's target."""

    prefix: str
    parts: tuple[str, ...]
    alone: bool = False
    """Only valid if no other file matches."""

    @property
    def target(self) -> str:
        """Return the target, decoded."""
        return self.prefix + "/".join(self.parts)


def link_style(
    target: str, form: LinkForm, ends: tuple[NotePath, NotePath], convention: LinkConvention, *, is_card: bool
) -> LinkStyle:
    """Return the style of a link's target.

    Args:
        target: Decoded.
        form: How it is written.
        ends: The file that holds it, and the file that it leads to.
        convention: The vault's.
        is_card: The link is a canvas's card.
    """
    source, path = ends
    normalized = target.replace("\\", "/").strip()
    is_absolute = _same_file(normalized, path)
    if is_card and paths.fold_target(normalized) == paths.fold_target(path):
        return "card"
    if normalized.startswith(("./", "../")):
        return "relative"
    if normalized.startswith("/"):
        return "rooted"
    if form.markup == "markdown" and _same_file(links.join_relative(paths.parent_folder(source), normalized), path):
        relative = convention.format == "relative" or not convention.is_app_vault
        if relative or ("/" in normalized and not is_absolute):
            return "literal"
    if "/" not in normalized:
        return "name"
    return "absolute" if is_absolute else "partial"


def is_correct_target(aim: LinkRedirect, target: str, names: NameResolver) -> bool:
    """Return whether a target leads to the right file, in the way that the link's style requires."""
    if aim.style == "card":
        return paths.fold_target(target) == paths.fold_target(aim.new)
    if (aim.style == "literal" or not aim.is_file) and not _same_file(
        links.join_relative(paths.parent_folder(aim.source), target.replace("\\", "/").strip()), aim.new
    ):
        return False
    return not aim.is_file or names.means(target, aim.source, aim.new)


def candidate_targets(
    aim: LinkRedirect, convention: LinkConvention, names: NameResolver
) -> Iterator[tuple[str, bytes]]:
    """Yield possible targets of a link, best first: decoded, and as written in the file.

    Args:
        aim: The link.
        convention: The vault's.
        names: Files as they are to be.
    """
    for choice in _candidates(aim, convention):
        if not is_correct_target(aim, choice.target, names):
            continue
        if choice.alone and not names.means(choice.target, aim.source, aim.new, alone=True):
            continue
        target_bytes = _spell_candidate(aim, choice)
        if target_bytes is not None:
            yield choice.target, target_bytes


def _candidates(aim: LinkRedirect, convention: LinkConvention) -> Iterator[TargetCandidate]:
    new_parts = tuple(aim.new.split("/"))
    name = _target_name(aim)
    for last in dict.fromkeys((name, new_parts[-1])):
        parts = (*new_parts[:-1], last)
        absolute = TargetCandidate(prefix="", parts=parts)
        # relative to the link's folder, beginning with dots
        source_folders = paths.parent_folder(aim.source).split("/") if "/" in aim.source else []
        same = 0
        while same < min(len(source_folders), len(parts) - 1) and source_folders[same] == parts[same]:
            same += 1
        up = len(source_folders) - same
        relative = TargetCandidate(prefix="../" * up or "./", parts=tuple(parts[same:]))
        longer = [relative, absolute] if convention.format == "relative" else [absolute, relative]
        match aim.style:
            case "name":
                yield TargetCandidate(prefix="", parts=(last,), alone=not aim.ambiguous)
                yield from longer
            case "partial":
                count = len(aim.target.replace("\\", "/").strip().split("/"))
                yield TargetCandidate(prefix="", parts=parts[-count:], alone=not aim.ambiguous)
                yield from longer
            case "absolute":
                yield from (absolute, relative)
            case "rooted":
                yield from (TargetCandidate(prefix="/", parts=parts), absolute, relative)
            case "literal":
                yield from (_without_dot(aim, relative), relative)
            case "relative":
                yield from (_without_dot(aim, relative), relative, absolute)
            case "card":
                yield TargetCandidate(prefix="", parts=new_parts)


def _target_name(aim: LinkRedirect) -> str:
    """Return the file's name as the link would write it: without ``.md``, unless the link has it."""
    new = paths.base_name(aim.new)
    if not _is_note(new) or aim.style == "card":
        return new
    if _is_note(aim.old):
        written_name = aim.target.replace("\\", "/").strip().rpartition("/")[2]
        return (
            new
            if paths.fold_target(written_name) == paths.fold_target(paths.base_name(aim.old))
            else new[: -len(_SUFFIX)]
        )
    return new if aim.form.markup == "markdown" else new[: -len(_SUFFIX)]


def _without_dot(aim: LinkRedirect, relative: TargetCandidate) -> TargetCandidate:
    """Leave out ``./``, which Markdown doesn't need, unless the link or the file uses it."""
    is_dotted = aim.uses_dot_prefix or aim.target.startswith("./") or aim.form.markup != "markdown"
    return relative if relative.prefix != "./" or is_dotted else TargetCandidate(prefix="", parts=relative.parts)


def _spell_candidate(aim: LinkRedirect, choice: TargetCandidate) -> bytes | None:
    """Return a candidate as written; parts that don't change keep their spelling in the file."""
    spelled_parts: list[bytes] = []
    old, new, written = aim.old.split("/"), aim.new.split("/"), aim.target.split("/")
    shared = min(len(aim.form.pieces), len(old), len(new))
    for place, part in enumerate(reversed(choice.parts)):
        has_stayed = place < shared and old[-1 - place] == new[-1 - place]
        if has_stayed and paths.fold_target(written[-1 - place]) == paths.fold_target(part):
            piece = aim.form.pieces[-1 - place]
        else:
            piece = aim.form.write(part)
        if piece is None:
            return None
        spelled_parts.append(piece)
    ending = b"/" if aim.target.endswith("/") else b""
    prefix = choice.prefix.encode().replace(b"/", aim.form.slash)
    return prefix + aim.form.slash.join(reversed(spelled_parts)) + ending


def _same_file(written_path: str, path: str) -> bool:
    """Return whether a path, its ``.md`` perhaps left out, is that of a file."""
    return paths.fold_target(written_path) in {paths.fold_target(path), paths.fold_target(path).removesuffix(_SUFFIX)}


def _is_note(path: str) -> bool:
    return path.lower().endswith(_SUFFIX)


_WIKILINK: Final = re.compile(r"(?:[^\W_]|[ ./,-])+")
_DESTINATION: Final = re.compile(r"[A-Za-z0-9_%./-]+")
_SAFE_TARGETS: Final[Mapping[LinkKind, re.Pattern[str]]] = {
    "wikilink": _WIKILINK,
    "embed": _WIKILINK,
    "markdown": _DESTINATION,
    "image": _DESTINATION,
}
"""Targets that a parser can't read as anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwritableLink:
    """Link that can't be written so that it leads to the same file."""

    line: int
    text: str
    path: NotePath
    """The file that it led to, by its new path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelinkedFile:
    """A file with its links rewritten."""

    after: bytes
    rewritten: tuple[LinkRewrite, ...] = ()
    broken: tuple[UnwritableLink, ...] = ()
    healed: int = 0
    """Number of links that led nowhere and lead to a file now; they aren't rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEdit:
    """New text of one link, or of several through their definition."""

    link: Link
    wanted: Link
    """The link as it should be read afterwards: its target, headings and block."""
    splice: Splice
    scalar: Scalar | None
    """The YAML scalar that holds it."""
    path: NotePath
    """The file that it is to lead to."""


def apply_edits(page: LinkSource, edits: Sequence[LinkEdit]) -> RelinkedFile:
    """Apply edits, read the file again, and leave out the edits that aren't read as intended.

    Args:
        page: The file as it is.
        edits: New texts of links; no two of the same span.
    """
    applied, failed = _working_edits(page, edits)
    after = splices.merge(page.raw, [splice for _, splice in applied])
    rewrites: list[LinkRewrite] = []
    for edit in (edit for group, _ in applied for edit in group):
        start, stop = page.display_span(edit.link)
        start, stop = min(start, edit.splice.start), max(stop, edit.splice.stop)
        new = page.raw[start : edit.splice.start] + edit.splice.new + page.raw[edit.splice.stop : stop]
        rewrites.append(
            LinkRewrite(
                path=page.path,
                line=page.line(edit.link),
                old=page.raw[start:stop].decode(errors="replace"),
                new=new.decode(errors="replace"),
            )
        )
    return RelinkedFile(
        after=after,
        rewritten=tuple(sorted(rewrites, key=lambda one: one.line)),
        broken=tuple(unwritable_link(page, edit.link, edit.path) for edit in failed),
    )


_AppliedGroup = tuple[Sequence[LinkEdit], Splice]
_MAX_LOOKS: Final = 500
"""So many links fail at once in no file that is written by hand; the rest is told as links to mend."""


def _working_edits(page: LinkSource, edits: Sequence[LinkEdit]) -> tuple[list[_AppliedGroup], list[LinkEdit]]:
    """Return the edits that are read as intended, and those that aren't; nearly always, all are."""
    applied: list[_AppliedGroup] = [((edit,), edit.splice) for edit in edits]
    if all(_is_plainly_safe(page, edit) for edit in edits) or _verify_links(page, applied):
        return applied, []
    groups: dict[int, list[LinkEdit]] = {}
    for edit in edits:
        groups.setdefault(edit.scalar.start if edit.scalar else edit.link.target_start, []).append(edit)
    search = _FittingSearch(page)
    search.add(list(groups.values()))
    return search.fitting, search.failed


class _FittingSearch:
    """A search for the edits that are read as intended together; each look parses the file with some of them.

    Of 1,000 links of which one fails, that takes some 20 looks.
    """

    def __init__(self, page: LinkSource) -> None:
        """Begin with no edit.

        Args:
            page: The file as it is.
        """
        self.fitting: list[_AppliedGroup] = []
        self.failed: list[LinkEdit] = []
        self._page = page
        self._looks = 0

    def add(self, groups: Sequence[Sequence[LinkEdit]]) -> None:
        """Add the edits of each scalar, or of each link, to those that fit; by halves where they don't as they are."""
        if self._takes([((edit,), edit.splice) for group in groups for edit in group]):
            return
        if len(groups) == 1:
            quoted = _quote_scalar(self._page, groups[0])
            if quoted is None or not self._takes([(groups[0], quoted)]):
                self.failed += groups[0]
        elif self._looks > _MAX_LOOKS:
            self.failed += (edit for group in groups for edit in group)
        else:
            middle = len(groups) // 2
            self.add(groups[:middle])
            self.add(groups[middle:])

    def _takes(self, groups: Sequence[_AppliedGroup]) -> bool:
        self._looks += 1
        fits = _verify_links(self._page, [*self.fitting, *groups])
        self.fitting += groups if fits else ()
        return fits


def _is_plainly_safe(page: LinkSource, edit: LinkEdit) -> bool:
    """Return whether old and new text are so plain that a long file needn't be parsed again."""
    allowed = _SAFE_TARGETS.get(edit.link.kind)
    old, new = page.raw[edit.splice.start : edit.splice.stop].decode(errors="replace"), edit.splice.new.decode()
    return allowed is not None and bool(allowed.fullmatch(old) and allowed.fullmatch(new)) and new == new.strip()


def _quote_scalar(page: LinkSource, group: Sequence[LinkEdit]) -> Splice | None:
    """Return a splice that quotes a plain scalar, which its new links may require; None if it can't be quoted."""
    scalar = group[0].scalar
    if scalar is None or scalar.style != "plain":
        return None
    source = page.raw[scalar.start : scalar.stop]
    if source[:1] in b"&!" or b"\n" in source or b"\r" in source:
        return None
    edit_splices = [edit.splice for edit in group]
    moved = [Splice(start=s.start - scalar.start, stop=s.stop - scalar.start, new=s.new) for s in edit_splices]
    text = splices.merge(source, moved).decode()
    return Splice(start=scalar.start, stop=scalar.stop, new=yaml_values.write_scalar(text, '"').encode())


def _verify_links(page: LinkSource, applied: Sequence[_AppliedGroup]) -> bool:
    """Return whether the edited file has the same links in the same order, each as intended."""
    expected_links = {_target_span(edit.link): edit.wanted for group, _ in applied for edit in group}
    # Not cached: of a search for what fits, each outline is looked at once.
    outline = PARSERS[page.kind](splices.merge(page.raw, [splice for _, splice in applied]))
    old, new = page.outline.links, outline.links
    if len(old) != len(new) or len(outline.problems) > len(page.outline.problems):
        return False
    for one, two in zip(old, new, strict=True):
        expected = expected_links.get(_target_span(one), one)
        if not (
            (two.kind, two.alias) == (one.kind, one.alias)
            and paths.fold_target(two.target).rstrip("/") == paths.fold_target(expected.target).rstrip("/")
            and list(map(links.heading_key, two.headings)) == list(map(links.heading_key, expected.headings))
            and two.block.casefold() == expected.block.casefold()
        ):
            return False
    return True


def _target_span(link: Link) -> tuple[int, int]:
    return link.target_start, link.target_stop


def unwritable_link(page: LinkSource, link: Link, path: NotePath) -> UnwritableLink:
    """Build the record of a link that can't be written so that it leads to a file."""
    start, stop = page.display_span(link)
    return UnwritableLink(line=page.line(link), text=page.raw[start:stop].decode(errors="replace"), path=path)
