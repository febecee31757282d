"""Write values as YAML that every reader takes for the same: text that looks like something else is quoted."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from knapper.errors import BadInput
from knapper.jsontypes import JSONValue

Quote = Literal["", "'", '"']

_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "=", "---", "..."})
_NUMBERISH: Final = re.compile(r"[-+]?\.?[0-9][-+0-9_.,:eExXoObBa-fA-F]*|[-+]?\.(?:inf|nan)", re.IGNORECASE)
_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
_PLAIN: Final = re.compile(r"(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|-(?=[^\s\-]))(?:.*[^\s:])?")
_FLOW_SIGNS: Final = re.compile(r"[,\[\]{}:]")
_ESCAPES: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_UNSAFE_LINE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_MAX_KEY: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Say how values are written."""

    flow: bool = False
    """Lists in brackets instead of a line an item."""
    indent: str = "  "
    """Of a list's items under their key."""
    quote: Quote = ""
    """What text is put into where it needs nothing; empty for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Hold a value as written after its key: what stands in the key's line, and the lines below."""

    inline: str
    below: tuple[str, ...] = ()


def write(value: JSONValue, style: Style, *, indent: str = "") -> Written:
    """Write a value.

    ``["a", "b"]`` gives the lines ``- a`` and ``- b`` below its key, or ``[a, b]`` beside it in flow style.

    Args:
        value: What to write.
        style: How.
        indent: Of the key.
    """
    match value:
        case None:
            return Written(inline="")
        case list() | dict() if not value or style.flow:
            return Written(inline=flow(value, style.quote))
        case list():
            return Written(inline="", below=tuple(_items(value, style, indent + style.indent)))
        case dict():
            return Written(inline="", below=tuple(_pairs(value, style, indent + "  ")))
        case str() if "\n" in value and not style.quote:
            return _literal(value, style, indent + "  ")
        case _:
            return Written(inline=flow(value, style.quote, alone=True))


def _literal(text: str, style: Style, indent: str) -> Written:
    rows = text.split("\n")
    kept = rows[:-1] if text.endswith("\n") else rows
    if _UNSAFE_LINE.search(text) or not kept[-1].strip() or kept[0][:1] in {" ", "\t", ""} or "\r" in text:
        return Written(inline=scalar(text, style.quote or '"'))
    sign = "|" if text.endswith("\n") else "|-"
    return Written(inline=sign, below=tuple(indent + row if row else "" for row in kept))


def _items(values: Sequence[JSONValue], style: Style, indent: str) -> list[str]:
    return [row for value in values for row in item(value, style, indent)]


def item(value: JSONValue, style: Style, indent: str) -> list[str]:
    """Write one item of a list, a line each; *indent* is that of the ``-``."""
    inner = Style(quote=style.quote)
    if isinstance(value, list | dict) and value:
        deep = indent + "  "
        rows = _items(value, inner, deep) if isinstance(value, list) else _pairs(value, inner, deep)
        return [f"{indent}- {rows[0].removeprefix(deep)}", *rows[1:]]
    if value is None:
        return [f"{indent}- null"]
    written = write(value, inner, indent=indent)
    return [f"{indent}- {written.inline}", *written.below]


def _pairs(values: Mapping[str, JSONValue], style: Style, indent: str) -> list[str]:
    rows: list[str] = []
    inner = Style(quote=style.quote)
    for name, value in values.items():
        written = write(value, inner, indent=indent)
        rows += [f"{indent}{key(name)}:{' ' if written.inline else ''}{written.inline}", *written.below]
    return rows


def flow(value: JSONValue, quote: Quote = "", *, alone: bool = False) -> str:
    """Write a value in one line.

    Args:
        value: What to write.
        quote: What text is put into where it needs nothing.
        alone: True for a value after a key, False for one between brackets, where more has to be quoted.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number(value)
        case str():
            return scalar(value, quote, alone=alone)
        case list():
            return f"[{', '.join(flow(entry, quote) for entry in value)}]"
        case dict():
            return f"{{{', '.join(f'{key(name)}: {flow(entry, quote)}' for name, entry in value.items())}}}"


def number(value: float) -> str:
    """Write a number that YAML 1.1 and 1.2 read alike.

    Raises:
        BadInput: It is infinite or none.
    """
    if not math.isfinite(value):
        raise BadInput("A property can't be an infinite number or none.", hint="Give it as text.")
    text = repr(value)
    mantissa, sign, exponent = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}e{exponent}" if sign else text


def scalar(text: str, quote: Quote = "", *, alone: bool = False) -> str:
    """Write text, in quotes where it could be read as something else or as syntax.

    ``no``, ``007`` and ``[[Note]]`` are quoted; ``2024-01-01`` isn't, as Obsidian writes dates.
    """
    if not quote and is_plain(text, alone=alone):
        return text
    breaks = _UNSAFE_LINE.search(text) or "\n" in text or "\t" in text
    if breaks or (quote != "'" and not ('"' in text and "'" not in text)):
        return _escaped(text)
    if quote == '"' and "\\" not in text and '"' not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    try:
        _ = text.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"The value holds half a character at position {error.start}.") from None
    return _ESCAPES.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def is_plain(text: str, *, alone: bool = True) -> bool:
    """Tell whether text can stand without quotes and is still read as that text."""
    if text.casefold() in _WORDS or _UNSAFE_LINE.search(text) or not _PLAIN.fullmatch(text):
        return False
    if ": " in text or " #" in text or "\t" in text or "\n" in text:
        return False
    if _FLOW_SIGNS.search(text) and not alone:
        return False
    return bool(_DATE.fullmatch(text)) or not _NUMBERISH.fullmatch(text)


def key(name: str) -> str:
    """Write a property's name.

    Raises:
        BadInput: It is empty, has several lines or is too long.
    """
    if not name.strip() or "\n" in name or "\r" in name or len(name) > _MAX_KEY:
        raise BadInput(f"{name!r} can't name a property.", hint="A name is one line of text.")
    return scalar(name)
