"""Read a base: the notes that its filters and formulas name, and its text."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from knapper.vault import frontmatter, lines, link_text, property_links, source, yaml_nodes
from knapper.vault.lines import Lines
from knapper.vault.outline import Link, Outline, Passage, Problem
from knapper.vault.yaml_nodes import InvalidYAMLError

_CALL: Final = re.compile(
    rb"(?:(?<![A-Za-z0-9_.])(?:link|file|image)|\.hasLink)\([ \t]*\\?([\"'])(?P<inner>[^\"'\\\r\n]+)\\?\1"
)


def parse(raw: bytes) -> Outline:
    """Read a Bases file; no bytes are too broken for it.

    Links are ``[[Note]]`` in any of its texts, and the first argument of ``link("…")``, ``file("…")``, ``image("…")``
    and ``hasLink("…")``; their kind is ``base`` and their key the path of the text, as in ``views.filters.and``.

    Returns:
        An outline without sections and blocks; its one passage is the file's text.
    """
    read_source = source.decode(raw)
    data = read_source.data
    base = frontmatter.start(data)
    place = lines.of(data)
    text = data[base:].decode()
    problems = read_source.problems
    links: list[Link] = []
    try:
        links = list(_links(data, text, base, place))
    except InvalidYAMLError as error:
        line = lines.count(data, base + len(text.rstrip()[: error.index].encode()))
        message = f"The base can't be read as YAML in line {line}: {error.reason}."
        problems = (*problems, Problem(code="invalid_yaml", message=message, line=line))
    passage = Passage(text=text, start=base, stop=len(data), line=1, key="")
    return Outline(
        encoding=read_source.encoding,
        newline=lines.ending(data),
        line_starts=place.starts,
        body_start=base,
        links=tuple(links),
        problems=problems,
        passages=(passage,) if text.strip() else (),
    )


def _links(data: bytes, text: str, base: int, place: Lines) -> Iterator[Link]:
    root = yaml_nodes.compose(text)
    _ = yaml_nodes.Reader().mapping(root)
    if root is None:
        return
    offsets = frontmatter.byte_offsets(text, base)
    for key, node in property_links.scalars(root):
        span = (offsets[node.start_mark.index], offsets[node.end_mark.index])
        found = [replace(link, kind="base") for link in property_links.wikilinks(data, span, (key, node), place)]
        found += _calls(data, span, key, place)
        yield from sorted(found, key=lambda link: link.start)


def _calls(data: bytes, span: tuple[int, int], key: str, place: Lines) -> Iterator[Link]:
    for match in _CALL.finditer(data, *span):
        inner = match["inner"]
        if inner.startswith(b"[["):
            continue
        target, _ = link_text.wikilink_target(inner, match.start("inner"))
        yield Link(
            kind="base",
            target=target.name,
            headings=target.headings,
            block=target.block,
            alias=None,
            start=match.start("inner"),
            stop=match.end("inner"),
            target_start=target.start,
            target_stop=target.stop,
            line=place.number(match.start("inner")),
            key=key,
        )
