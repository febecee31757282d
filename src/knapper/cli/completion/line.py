"""Read the words of an unfinished command line as each shell means them, and quote what is put in their place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_OBEYED: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029{BIDI}]")
"""What a terminal obeys, or what turns text around; as in `knapper.cli.output`, and line breaks too."""
_BREAKS: Final = frozenset("\"'@><=;|&(: \t\n")
"""Where bash begins a new word to complete, unless the person changed COMP_WORDBREAKS."""
_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,+-%")
"""ASCII characters that no shell reads as anything else, wherever they stand in a word."""
_ANSI_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}
_ANSI_CODE: Final = re.compile(r"x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})")
_SINGLE_QUOTES: Final = re.compile("['\u2018\u2019\u201a\u201b]")
"""PowerShell takes all of them for the same."""


class Word(NamedTuple):
    """A word as it was typed, and what it means."""

    value: str
    start: int
    """Where the part begins that is replaced: after a quote that is still open, or after the last word break."""
    kept: str
    """What the part before it means; a value has to begin with it."""
    quote: str
    """The quote that is still open: ``'``, ``"``, ``$'``, or empty."""


class Candidate(NamedTuple):
    """What a word may be completed to."""

    value: str
    about: str = ""
    goes_on: bool = False
    """More follows in the same word, such as a folder's files: no space after it."""


def read_bash(line: str, breaks: str = "") -> list[Word]:
    """Split a line of bash into words; the last one is unfinished, and empty after a space.

    ``knap read "My No`` gives ``knap``, ``read`` and ``My No`` with an open ``"``. Nothing is expanded or run.

    Args:
        line: As typed, up to the cursor.
        breaks: COMP_WORDBREAKS; empty for bash's own.
    """
    reader = _BashReader(line, frozenset(breaks) or _BREAKS)
    return reader.read()


class _BashReader:
    """Goes once over a line, with the quote that is open."""

    def __init__(self, line: str, breaks: frozenset[str]) -> None:
        self._line = line
        self._breaks = breaks
        self._at = 0
        self._words: list[Word] = []
        self._value: list[str] = []
        self._quote = ""
        self._is_begun = False
        self._start, self._kept = 0, ""
        self._outside = 0, ""
        """Where the part that is replaced began before the quote that is open now."""

    def _end_word(self) -> None:
        self._words.append(Word("".join(self._value), self._start, self._kept, self._quote))

    def read(self) -> list[Word]:
        """Return the words."""
        while self._at < len(self._line):
            if self._quote:
                character, rest = self._line[self._at], self._line[self._at + 1 : self._at + 2]
                if character == self._quote[-1]:
                    self._take("", 1)
                    self._quote = ""
                    self._start, self._kept = self._outside
                elif character == "\\" and self._quote == "$'":
                    self._read_ansi_escape()
                elif character == "\\" and self._quote == '"' and rest in {"$", "`", '"', "\\", "\n", ""}:
                    self._take(rest, 2)
                else:
                    self._take(character, 1)
            else:
                self._read_unquoted()
        self._end_word()
        return self._words

    def _take(self, text: str, length: int) -> None:
        self._value.append(text)
        self._at += length
        self._is_begun = True

    def _break_here(self) -> None:
        self._start, self._kept = self._at, "".join(self._value)

    def _read_unquoted(self) -> None:
        character, rest = self._line[self._at], self._line[self._at + 1 : self._at + 2]
        if character in " \t\n":
            if self._is_begun:
                self._end_word()
            self._at += 1
            self._value = []
            self._quote = ""
            self._is_begun = False
            self._start = self._at
            self._kept = ""
        elif character == "\\":
            self._take(rest, 2)
        elif character in "'\"" or (character == "$" and rest == "'"):
            quote = character + rest if character == "$" else character
            before = self._start, self._kept
            self._take("", len(quote))
            self._quote = quote
            self._break_here()
            self._outside = before  # once the quote is closed, bash replaces the word from there again
        else:
            self._take(character, 1)
            if character in self._breaks:
                self._break_here()

    def _read_ansi_escape(self) -> None:
        code = _ANSI_CODE.match(self._line, self._at + 1)
        if code is None:
            character = self._line[self._at + 1 : self._at + 2]
            self._take(_ANSI_ESCAPES.get(character, character), 2)
            return
        raw = bytearray()
        while code is not None:  # bytes of one letter stand in escapes of their own
            point = int(code[1] or code[2] or code[3] or code[4], 8 if code[4] else 16)
            raw += chr(min(point, 0x10FFFF)).encode(errors="replace") if code[2] or code[3] else bytes([point & 0xFF])
            self._take("", len(code[0]) + 1)
            code = _ANSI_CODE.match(self._line, self._at + 1) if self._line[self._at : self._at + 1] == "\\" else None
        self._take(raw.decode(errors="replace"), 0)


def quote_bash(text: str, quote: str = "") -> str:
    r"""Quote text so that bash reads it as it is and runs nothing of it; nothing in it steers a terminal.

    ``a $(b)`` gives ``a\ \$\(b\)``; after an open ``"`` it gives ``a \$(b)``.

    Args:
        text: What is meant.
        quote: The quote that is open before it; bash closes it.
    """
    return "".join(map({"": _bare, '"': _double, "'": _single, "$'": _ansi}[quote], text))


def _bare(character: str) -> str:
    if character in _PLAIN or (not character.isascii() and _is_shown(character)):
        return character
    return f"\\{character}" if character.isascii() and character.isprintable() else f"$'{_ansi(character)}'"


def _double(character: str) -> str:
    if character in '$`"\\':
        return f"\\{character}"
    if character == "!":  # the history is put in its place even there
        return '"\\!"'
    return character if _is_shown(character) else f"\"$'{_ansi(character)}'\""


def _single(character: str) -> str:
    if character == "'":
        return "'\\''"
    return character if _is_shown(character) else f"'$'{_ansi(character)}''"


def _ansi(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character == "\n":
        return "\\n"
    return character if _is_shown(character) else "".join(f"\\x{byte:02x}" for byte in character.encode())


def _is_shown(character: str) -> bool:
    return character == " " or (character.isprintable() and not character.isspace() and not _OBEYED.match(character))


def render_bash(candidates: Sequence[Candidate], word: Word) -> list[str]:
    """Return what takes the place of the word, of each candidate a line."""
    return [
        quote_bash(each.value[len(word.kept) :], word.quote)
        for each in candidates
        if each.value.startswith(word.kept)  # what stands before the word break stays as it was typed
    ]


def render_zsh(candidates: Sequence[Candidate]) -> list[str]:
    r"""Return a line for each candidate: its value, and what the list shows; zsh itself quotes the value.

    In the value, a backslash is written as two and a line break as ``\n``.
    """
    lines: list[str] = []
    for each in candidates:
        if not _OBEYED.search(each.value.replace("\n", "")):
            value = each.value.replace("\\", "\\\\").replace("\n", "\\n")
            lines.append(f"{value}\t{_described(each)}")
    return lines


def _described(candidate: Candidate) -> str:
    about = f"  -- {candidate.about}" if candidate.about else ""
    return _OBEYED.sub("\ufffd", f"{candidate.value}{about}")


def render_fish(candidates: Sequence[Candidate]) -> list[str]:
    """Return a line for each candidate: its value and what it is; fish itself quotes the value."""
    return [
        f"{each.value}\t{_OBEYED.sub(' ', each.about)}" if each.about else each.value
        for each in candidates
        if not _OBEYED.search(each.value)
    ]


def read_fish(token: str) -> str:
    """Return what an unfinished word of fish means: ``'My No`` gives ``My No``."""
    value: list[str] = []
    quote, at = "", 0
    while at < len(token):
        character = token[at]
        if character == "\\" and at + 1 < len(token) and (not quote or token[at + 1] in f"\\{quote}$"):
            value.append(token[at + 1])
            at += 2
            continue
        if quote and character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        else:
            value.append(character)
        at += 1
    return "".join(value)


def render_powershell(candidates: Sequence[Candidate]) -> list[str]:
    """Return a line for each candidate: its value, quoted where it has to be, and what the list shows."""
    return [
        f"{_quote_powershell(each.value)}\t{_described(each)}" for each in candidates if not _OBEYED.search(each.value)
    ]


def _quote_powershell(text: str) -> str:
    if text and text[0] not in "-,%+" and all(map(_PLAIN.difference(",%").__contains__, text)):
        return text
    if text.startswith("-") and text.lstrip("-").replace("-", "").isalnum():
        return text
    return f"'{_SINGLE_QUOTES.sub(lambda match: match.group() * 2, text)}'"
