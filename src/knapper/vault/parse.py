"""Read all that a note's bytes say about its structure."""

from collections.abc import Iterable

from knapper.vault import blocks, frontmatter, lines, masks, property_links, sections, source, tags, tasks
from knapper.vault.covers import Cover, Span
from knapper.vault.frontmatter import Properties
from knapper.vault.lines import Lines
from knapper.vault.link_text import Reader
from knapper.vault.masks import Masked
from knapper.vault.outline import BlockKind, Link, Outline, Tag


def parse(raw: bytes) -> Outline:
    """Read a note; no bytes are too broken for it.

    Args:
        raw: The file as it lies on disk.

    Returns:
        Its outline; what couldn't be read is empty there and stands in ``problems``.
    """
    read = source.decode(raw)
    data = read.data
    text_start = frontmatter.start(data)
    place = lines.of(data, text_start=text_start)
    properties = frontmatter.read(data)
    body_start = properties.frontmatter.stop if properties else text_start
    masked = masks.read(data, body_start)
    parts = masked.events.parts
    code = Cover((*masked.events.code, *masked.events.html, *masked.events.math, *masked.math, *masked.comments))
    hidden: dict[Span, BlockKind] = dict.fromkeys(masked.math, "math")
    hidden.update(dict.fromkeys(masked.comments, "comment"))
    return Outline(
        encoding=read.encoding,
        newline=lines.ending(data),
        line_starts=(0, *place.starts[1:]) if text_start else place.starts,
        frontmatter=properties.frontmatter if properties else None,
        body_start=body_start,
        sections=sections.read(data, parts, place, body_start),
        blocks=tuple(blocks.read(data, body_start, parts, hidden, place)),
        links=_links(data, body_start, masked, properties, place),
        tags=_tags(data, body_start, masked, properties, place),
        tasks=tuple(tasks.read(data, parts, code, place)),
        block_ids=tuple(blocks.ids(data, parts, code, place)),
        code_spans=code.spans,
        problems=(*read.problems, *(properties.problems if properties else ())),
    )


def head(raw: bytes) -> Outline:
    """Read a note's properties and where its lines begin, and nothing of its text; takes a tenth of the time.

    Args:
        raw: The file as it lies on disk.

    Returns:
        An outline without sections, blocks, links, tags and tasks.
    """
    read = source.decode(raw)
    text_start = frontmatter.start(read.data)
    properties = frontmatter.read(read.data)
    return Outline(
        encoding=read.encoding,
        newline=lines.ending(read.data),
        line_starts=lines.starts(read.data),
        frontmatter=properties.frontmatter if properties else None,
        body_start=properties.frontmatter.stop if properties else text_start,
        problems=(*read.problems, *(properties.problems if properties else ())),
    )


def _links(
    data: bytes, body_start: int, masked: Masked, properties: Properties | None, place: Lines
) -> tuple[Link, ...]:
    """Join the links of properties and body; none stands in a comment, as in Obsidian."""
    found = list(property_links.read(data, properties, place)) if properties else []
    reader = Reader(data, masked.text, body_start, place)
    found += reader.read(masked.events.anchors, Cover((*masked.comments, *masked.math)))
    if data.find(b"://", body_start) >= 0:
        anchors = ((anchor.start, anchor.stop) for anchor in masked.events.anchors)
        found += reader.addresses(_opaque(masked, anchors))
    found.sort(key=lambda link: (link.start, link.stop))
    return tuple(found)


def _tags(data: bytes, body_start: int, masked: Masked, properties: Properties | None, place: Lines) -> tuple[Tag, ...]:
    found = list(tags.in_properties(data, properties, place)) if properties else []
    if data.find(b"#", body_start) >= 0:
        links = ((anchor.bare_start, anchor.stop) for anchor in masked.events.anchors)
        found += tags.in_text(data, body_start, _opaque(masked, links), masked.events.openings, place)
    return tuple(found)


def _opaque(masked: Masked, links: Iterable[Span]) -> Cover:
    """Join all spans in which text is neither a tag nor an address."""
    found = masked.events
    return Cover((*found.code, *found.html, *found.math, *masked.math, *masked.comments, *links))
