"""Keep HTML that strangers wrote from taking time that grows faster than its length."""

import re
from collections.abc import Iterable, MutableMapping
from typing import Final, Protocol

MOST: Final = 1_000
"""Attributes of one element: each is compared with all others, and no page has as many."""
_TAG: Final = re.compile(r"<([A-Za-z][A-Za-z0-9]*)(?:[^\"'>=]++|=\s*+(?:\"[^\"]*+\"|'[^']*+')|[\"'=])*+")
_BETWEEN: Final = re.compile(r"[\s/]+")
_REFERENCE: Final = re.compile(r"&#(?:0*([0-9]{1,7})(?![0-9])|[xX]0*([0-9a-fA-F]{1,6})(?![0-9a-fA-F]));?")
_NO_TEXT: Final = frozenset({*range(9), 11, 12, *range(14, 32), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF})
"""Characters that XML can't hold. Source: XML 1.0, section 2.2."""


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
    """Leave out what keeps a page's main text from being found: tags' attributes by the thousand, and no characters.

    Tags that were made to look like something else keep theirs.
    """
    return _REFERENCE.sub(_character, _TAG.sub(_lean, html))


def strip(tree: Tree) -> None:
    """Leave out the attributes of elements that have thousands."""
    for element in tree.iter():
        if len(element.attrib) > MOST:
            element.attrib.clear()


def _lean(tag: re.Match[str]) -> str:
    return f"<{tag[1]}" if len(tag[0]) > MOST and len(_BETWEEN.findall(tag[0])) > MOST else tag[0]


def _character(reference: re.Match[str]) -> str:
    code = int(reference[1]) if reference[1] else int(reference[2], 16)
    return "" if code in _NO_TEXT else reference[0]
