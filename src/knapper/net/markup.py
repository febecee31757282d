"""Keep HTML that strangers wrote from taking time that grows faster than its length."""

import re
from collections.abc import Iterable, MutableMapping
from typing import Final, Protocol

MOST: Final = 1_000
"""Attributes of one element: each is compared with all others, and no page has as many."""
_TAG: Final = re.compile(r"<([A-Za-z][A-Za-z0-9]*)(?:[^\"'>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')|[\"'=])*+")
_BETWEEN: Final = re.compile(r"[\s/]+")


class Element(Protocol):
    """Describe an element of a parsed page."""

    @property
    def attrib(self) -> MutableMapping[str, str]:
        """Give its attributes."""
        ...


class Tree(Protocol):
    """Describe a parsed page."""

    def iter(self) -> Iterable[Element]:
        """Give its elements."""
        ...


def lean(html: str) -> str:
    """Leave out the attributes of tags that have thousands; made to look like something else, some stay."""
    return _TAG.sub(_lean, html)


def strip(tree: Tree) -> None:
    """Leave out the attributes of elements that have thousands."""
    for element in tree.iter():
        if len(element.attrib) > MOST:
            element.attrib.clear()


def _lean(tag: re.Match[str]) -> str:
    return f"<{tag[1]}" if len(tag[0]) > MOST and len(_BETWEEN.findall(tag[0])) > MOST else tag[0]
