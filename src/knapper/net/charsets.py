"""Turn a page's bytes into text."""

import codecs
import re
from typing import Final

import charset_normalizer

_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_SAID_INSIDE: Final = re.compile(
    rb"<(?:meta|\?xml)\b[^>]{0,300}?(?:charset|encoding)\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})"
)
_HEAD: Final = 4_096
_SAMPLE: Final = 65_536
_AS_ON_THE_WEB: Final = {
    "ascii": "cp1252",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
}
"""What pages mean by a name. Source: WHATWG, Encoding, section 4.2."""
_KNOWN: Final = frozenset(
    {
        *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5", "big5hkscs", "cp932", "cp949", "cp874"),
        *("euc_jp", "iso2022_jp", "cp866", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman", "tis-620"),
        *(f"cp{number}" for number in range(1250, 1259)),
        *(f"iso8859-{number}" for number in range(2, 17)),
    }
)
"""Python's names of what pages are written in; others, some of which decode slowly, aren't used."""


def decode(body: bytes, said: str) -> str:
    """Decode a page.

    A byte-order mark counts first, then the header, then what the page says of itself, then UTF-8, then a guess.

    Args:
        body: The page.
        said: The charset in the header; empty where it names none.

    Returns:
        Text; bytes that don't fit became U+FFFD.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, errors="replace")
    inside = _SAID_INSIDE.search(body[:_HEAD])
    name = find(said) or (find(inside[1].decode("ascii")) if inside else "")
    if name:
        return body.decode(name, errors="replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode(_guess(body), errors="replace")


def is_wide(head: bytes, said: str) -> bool:
    """Tell whether NUL bytes are usual in a page, since its characters have two bytes each."""
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or find(said).startswith("utf-16")


def find(name: str) -> str:
    """Give Python's name of a charset; empty where it isn't one that pages are written in."""
    try:
        found = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return ""
    found = _AS_ON_THE_WEB.get(found, found)
    return found if found in _KNOWN else ""


def _guess(body: bytes) -> str:
    best = charset_normalizer.from_bytes(body[:_SAMPLE]).best()
    return (find(best.encoding) if best else "") or "cp1252"
