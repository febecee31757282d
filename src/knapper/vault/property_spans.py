"""Tell which bytes each property takes, so that one can be changed without touching the others."""

import re
from dataclasses import dataclass
from typing import Final

import yaml

from knapper.vault import frontmatter, lines, yaml_nodes
from knapper.vault.outline import Frontmatter

_COMMENT: Final = re.compile(r"[ \t]*#")
_BREAK: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertySpan:
    """Hold the bytes of one property.

    Of ``tags: [a]  # mine`` the lines are the whole text, the key is ``tags`` and the value ``[a]``.
    """

    start: int
    """First byte of the key's line."""
    stop: int
    """After the last line of the value, its ending and a comment on it included; comments below belong to none."""
    key_start: int
    key_stop: int
    """Quotes of the key included."""
    value_start: int
    value_stop: int
    """Quotes, anchors and tags of the value included; both right after the colon where the value is empty."""


def read(data: bytes, block: Frontmatter) -> dict[str, PropertySpan]:
    """Find the bytes of each property at the top level; of a key that stands twice, those of the last, which counts.

    Args:
        data: The whole file as UTF-8.
        block: Its frontmatter.

    Returns:
        Spans by key, in order; empty where the YAML is invalid, empty, or one ``{...}`` with no line for each key.
    """
    if not block.valid:
        return {}
    text = data[block.yaml_start : block.yaml_stop].decode()
    root = yaml_nodes.compose(text)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        return {}
    offsets = frontmatter.byte_offsets(text, block.yaml_start)
    place = lines.of(data)
    pairs = yaml_nodes.pairs(root)
    keys = [key.start_mark.index for key, _ in pairs]
    found: dict[str, PropertySpan] = {}
    for (key, value), limit in zip(pairs, [*keys[1:], len(text)], strict=True):
        first, last = _value_span(text, key, value, limit)
        found[yaml_nodes.key_name(key)] = PropertySpan(
            start=place.start(offsets[key.start_mark.index]),
            stop=place.stop(max(offsets[last] - 1, offsets[key.start_mark.index])),
            key_start=offsets[key.start_mark.index],
            key_stop=offsets[key.end_mark.index],
            value_start=offsets[first],
            value_stop=offsets[last],
        )
    return found


def _value_span(text: str, key: yaml.Node, value: yaml.Node, limit: int) -> tuple[int, int]:
    """Find where a value begins and ends, in characters; an alias has the marks of what it stands for."""
    after = key.end_mark.index
    if value.start_mark.index >= after:
        return value.start_mark.index, _stop(text, value, limit)
    first = text.index("*", after, limit)
    return first, _text_stop(text, first, limit)


def _stop(text: str, node: yaml.Node, limit: int) -> int:
    start, stop = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.ScalarNode):
        return start + len(text[start:stop].rstrip()) if node.style in {"|", ">"} else stop
    if getattr(node, "flow_style", False):
        return stop
    pairs = yaml_nodes.pairs(node)
    last = pairs[-1][1] if pairs else yaml_nodes.children(node)[-1]
    if last.start_mark.index < start:
        return _text_stop(text, start, min(stop, limit))
    return max(_stop(text, last, limit), start + 1)


def _text_stop(text: str, start: int, limit: int) -> int:
    """Find where text ends before blank lines and comments that follow it."""
    stop = start
    at = start
    while at < limit:
        line_break = _BREAK.search(text, at, limit)
        row_stop = line_break.start() if line_break else limit
        row = text[at:row_stop]
        if row.strip() and not _COMMENT.match(row):
            stop = at + len(re.sub(r"[ \t]+#.*", "", row).rstrip())
        at = line_break.end() if line_break else limit
    return stop
