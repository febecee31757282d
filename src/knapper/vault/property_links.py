"""Read the links that stand in a note's properties."""

import re
from collections.abc import Iterator
from typing import Final

import yaml

from knapper.vault import link_text, links, yaml_nodes
from knapper.vault.frontmatter import Properties
from knapper.vault.lines import Lines
from knapper.vault.outline import Link, LinkKind

_MARKDOWN: Final = re.compile(r"!?\[(?P<text>[^\[\]]*)\]\((?P<inner>[^\r\n]*)\)")


def read(data: bytes, properties: Properties, lines: Lines) -> Iterator[Link]:
    """Find ``[[links]]`` inside text values, and values that are one Markdown link.

    The kind is ``property`` and the key the property's name, with those of nested mappings after dots. An unquoted
    ``[[Note]]`` is a list in YAML, not a link.
    """
    if properties.root is None:
        return
    block = properties.frontmatter
    if b"[[" not in data[block.yaml_start : block.yaml_stop] and b"](" not in data[block.yaml_start : block.yaml_stop]:
        return
    for key, node in scalars(properties.root):
        span = (properties.offsets[node.start_mark.index], properties.offsets[node.end_mark.index])
        yield from wikilinks(data, span, (key, node), lines)
        whole = _MARKDOWN.fullmatch(str(node.value).strip())
        at = data.find(whole.string.encode(), *span) if whole else -1
        if whole and at >= 0:
            yield from _markdown(data, at, (key, whole), lines)


def scalars(root: yaml.Node) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """List all scalar values with their keys, those of nested mappings joined by dots; each once, whatever aliases."""
    seen: set[int] = set()
    waiting = [("", root)]
    while waiting:
        key, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield key, node
        nested = [(key, child) for child in yaml_nodes.children(node)]
        nested += [(f"{key}.{name.value}".removeprefix("."), value) for name, value in yaml_nodes.pairs(node)]
        waiting += reversed(nested)


def wikilinks(data: bytes, span: tuple[int, int], scalar: tuple[str, yaml.ScalarNode], lines: Lines) -> Iterator[Link]:
    """Find the wikilinks in one scalar.

    Args:
        data: The file.
        span: Where the scalar stands in it.
        scalar: Its key and node.
        lines: The file's lines.
    """
    key, node = scalar
    style = str(node.style or "")
    for match in link_text.WIKILINK.finditer(data, *span):
        if not match[1].strip():
            continue
        target, alias = link_text.wikilink_target(match[1], match.start(1))
        yield Link(
            kind="property",
            target=_unquoted(target.name, style),
            headings=tuple(_unquoted(heading, style) for heading in target.headings),
            block=target.block,
            alias=None if alias is None else _unquoted(alias, style),
            start=match.start(),
            stop=match.end(),
            target_start=target.start,
            target_stop=target.stop,
            line=lines.number(match.start()),
            key=key,
        )


def _markdown(data: bytes, at: int, found: tuple[str, re.Match[str]], lines: Lines) -> Iterator[Link]:
    key, match = found
    opening = at + len(match.string[: match.start("inner")].encode())
    stop = at + len(match.group().encode())
    place = link_text.destination_span(data, opening, stop)
    written = data[place[0] : place[1]].decode()
    if not written:
        return
    external = links.is_external(link_text.unescaped(written))
    target = link_text.markdown_target(written, place)
    kind: LinkKind = "external" if external else "property"
    yield Link(
        kind=kind,
        target=link_text.unescaped(written) if external else target.name,
        headings=() if external else target.headings,
        block="" if external else target.block,
        alias=match["text"],
        start=at,
        stop=stop,
        target_start=place[0],
        target_stop=place[1] if external else target.stop,
        line=lines.number(at),
        key=key,
    )


def _unquoted(text: str, style: str) -> str:
    """Take a quoted scalar's escapes out of a piece of its source."""
    if style == "'":
        return text.replace("''", "'")
    if style == '"' and "\\" in text:
        try:
            node = yaml_nodes.compose(f'"{text}"')
        except yaml_nodes.InvalidYAMLError:
            return text
        return text if node is None else str(node.value)
    return text
