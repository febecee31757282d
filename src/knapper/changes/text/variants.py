"""Match text whose quotes, dashes, white space or accents are written in another way."""

import re
from collections.abc import Iterable
from typing import Final
from unicodedata import combining, normalize

from knapper.errors import BadInput

_MAX_CHARACTERS: Final = 20_000
_SINGLE: Final = "'\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4"
_DOUBLE: Final = '"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb'
_DASHES: Final = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_SPACES: Final = " \t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DOTS: Final = ("\u2026", "...")
_ENDING: Final = rb"(?:\r\n|\r|\n)"
_TOKEN: Final = re.compile(rf"\r\n|\r|\n|[{_SPACES}]+|\u2026|\.\.\.|.[\u0300-\u036f]*", re.DOTALL)
_TRAILING: Final = re.compile(rf"[{_SPACES}]+(?=[\r\n]|\Z)")


def pattern(text: str) -> re.Pattern[bytes]:
    """Make a pattern that finds *text*, and what differs from it only in ways that are easily mistaken.

    Curly and straight quotes, dashes, runs of spaces of any kind, spaces at line ends, line endings, the ellipsis,
    composed and decomposed letters each match the other.

    Raises:
        BadInput: The text is too long for that, or nothing but white space.
    """
    if len(text) > _MAX_CHARACTERS or not text.strip():
        raise BadInput("The old text can't be compared loosely: it is blank or very long.")
    tokens: list[str] = _TOKEN.findall(_TRAILING.sub("", text))
    return re.compile(b"".join(map(_piece, tokens)))


def _piece(token: str) -> bytes:
    if token[0] in "\r\n":
        return b"(?:" + _any(_SPACES) + b")*" + _ENDING
    if token[0] in _SPACES:
        return b"(?:" + _any(_SPACES) + b")+"
    if token in _DOTS:
        return _any(_DOTS)
    for kind in (_SINGLE, _DOUBLE, _DASHES):
        if token in kind:
            return _any(kind)
    return _any(sorted({token, normalize("NFC", token), normalize("NFD", token)}))


def _any(options: Iterable[str]) -> bytes:
    found = [re.escape(option.encode(errors="surrogatepass")) for option in options]
    return found[0] if len(found) == 1 else b"(?:" + b"|".join(found) + b")"


def differences(asked: str, found: str) -> tuple[str, ...]:
    """Name in which ways two texts that a pattern holds for the same are written differently."""
    kinds = {
        "line endings": (_lines(asked), _lines(found)),
        "quotes": (_of(asked, _SINGLE + _DOUBLE), _of(found, _SINGLE + _DOUBLE)),
        "dashes": (_of(asked, _DASHES), _of(found, _DASHES)),
        "spaces": (_spaces(asked), _spaces(found)),
        "ellipsis": (asked.count(_DOTS[0]), found.count(_DOTS[0])),
        "accents": (_letters(asked), _letters(found)),
    }
    return tuple(name for name, (one, other) in kinds.items() if one != other)


def _lines(text: str) -> list[str]:
    return re.findall(r"\r\n|\r|\n", text)


def _of(text: str, kind: str) -> list[str]:
    return [character for character in text if character in kind]


def _spaces(text: str) -> list[str]:
    return [part for row in re.split(r"\r\n|\r|\n", text) for part in re.findall(rf"[{_SPACES}]+", row)]


def _letters(text: str) -> list[str]:
    return [character for character in text if combining(character) or normalize("NFD", character) != character]
