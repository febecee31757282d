"""Match paths by untrusted gitignore globs and regular expressions in time linear in the path."""

import importlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

from knapper.vault.paths import base_name, name_key, parent_folders, quote_path

MAX_GLOB_LENGTH: Final = 1000
"""Characters; real gitignore files hold far shorter ones."""

_TRAILING_SPACES: Final = re.compile(r"(?<!\\) +\Z")
_PART_END: Final = "(?![^/])"
_CHARACTER_CLASSES: Final = {
    "alnum": "a-z0-9",
    "alpha": "a-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-.:-@\[-`{-~",
    "space": r"\s",
    "upper": "a-z",
    "xdigit": "0-9a-f",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobRule:
    """One compiled pattern."""

    regex: re.Pattern[str]
    includes: bool
    """False for a pattern that begins with ``!``."""
    folders_only: bool
    on_name: bool
    """Whether the pattern is compared with the last part alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Globs:
    """Patterns in gitignore's syntax; the last one that matches decides."""

    rules: tuple[GlobRule, ...] = ()
    """In reverse order: the last line first."""
    problems: tuple[str, ...] = ()
    """Lines that aren't patterns and match nothing, with the reason."""

    def match(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether the patterns match a path or a folder above it, below which ``!`` can't re-include."""
        if not self.rules:
            return False
        return any(self.match_only(above, is_folder=True) for above in parent_folders(path)) or self.match_only(
            path, is_folder=is_folder
        )

    def match_only(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the patterns match this path itself, whatever its folders."""
        if not self.rules:
            return False
        folded_path = name_key(path)
        folded_name = base_name(folded_path)
        for rule in self.rules:
            if rule.folders_only and not is_folder:
                continue
            if rule.regex.fullmatch(folded_name if rule.on_name else folded_path):
                return rule.includes
        return False


def parse_globs(lines: Iterable[str]) -> Globs:
    """Parse patterns, one a line, as gitignore's documentation describes them.

    ``["Private/", "*.tmp", "!keep.tmp"]`` matches ``a/Private/b.md`` and ``x.tmp``, not ``keep.tmp``.
    """
    rules: list[GlobRule] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            rule = _parse_rule(line)
        except ValueError as error:
            problems.append(f"line {number}, {quote_path(line)}: {error}")
            continue
        if rule:
            rules.append(rule)
    return Globs(rules=tuple(reversed(rules)), problems=tuple(problems))


def _parse_rule(line: str) -> GlobRule | None:
    text = _TRAILING_SPACES.sub("", line.rstrip("\r\n"))
    if len(text) > MAX_GLOB_LENGTH:
        msg = f"longer than {MAX_GLOB_LENGTH} characters"
        raise ValueError(msg)
    if not text or text.startswith("#"):
        return None
    glob = name_key(text.removeprefix("!"))
    body = glob.removesuffix("/")
    on_name = "/" not in body
    return GlobRule(
        regex=re.compile(_part_regex(body) if on_name else _path_regex(body.removeprefix("/").split("/")), re.DOTALL),
        includes=not text.startswith("!"),
        folders_only=body != glob,
        on_name=on_name,
    )


def _path_regex(parts: list[str]) -> str:
    """Translate a pattern of several path parts; ``**`` matches any number of parts."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(part)
    inner = [run for run in runs[1:-1] if run]
    regex = _run_regex(runs[0])
    glue = "/" if regex else ""
    for run in inner:
        # Atomic groups keep the match linear: an untrusted pattern of many "**" must not backtrack.
        regex += f"{glue}(?>(?:[^/]+/)*?{_run_regex(run)})"
        glue = "/"
    if len(runs) == 1:
        return regex
    return f"{regex}{glue}(?:[^/]+/)*?{_run_regex(runs[-1])}" if runs[-1] else f"{regex}{glue}.+"


def _run_regex(parts: list[str]) -> str:
    return "/".join(f"(?>{_part_regex(part)}{_PART_END})" for part in parts)


def _part_regex(glob: str) -> str:
    """Translate the pattern of one part of a path."""
    pieces = [""]
    at = 0
    while at < len(glob):
        if glob[at] == "*":
            pieces += [""] if pieces[-1] or len(pieces) == 1 else []
            at += 1
            continue
        piece, at = _character_regex(glob, at)
        pieces[-1] += piece
    if len(pieces) == 1:
        return pieces[0]
    # Atomic as well: the shortest match of each piece is enough, so nothing has to be tried again.
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _character_regex(glob: str, at: int) -> tuple[str, int]:
    """Translate what matches one character; return the regex and the position after it."""
    if glob[at] == "?":
        return "[^/]", at + 1
    if glob[at] == "[":
        return _set_regex(glob, at + 1)
    if glob[at] != "\\":
        return re.escape(glob[at]), at + 1
    if at + 1 == len(glob):
        msg = "a backslash at the end escapes nothing"
        raise ValueError(msg)
    return re.escape(glob[at + 1]), at + 2


def _set_regex(glob: str, at: int) -> tuple[str, int]:
    """Translate a set such as ``[a-z_]``; *at* is the position after its bracket."""
    negated = glob[at : at + 1] in {"!", "^"}
    at += negated
    members: list[str] = []
    first = at
    while at == first or glob[at : at + 1] != "]":
        member, at = _set_member_regex(glob, at)
        members.append(member)
    inside = "".join(members)
    if negated:
        return f"[^/{inside}]", at + 1
    return (f"(?!/)[{inside}]" if inside else "(?!)"), at + 1


def _set_member_regex(glob: str, at: int) -> tuple[str, int]:
    if glob.startswith("[:", at):
        word, closed, _ = glob[at + 2 :].partition(":]")
        if not closed or word not in _CHARACTER_CLASSES:
            msg = "a set holds an unknown class"
            raise ValueError(msg)
        return _CHARACTER_CLASSES[word], at + len(word) + 4
    low, at = _literal_character(glob, at)
    if glob[at : at + 1] != "-" or glob[at + 1 : at + 2] in {"", "]"}:
        return re.escape(low), at
    high, at = _literal_character(glob, at + 1)
    return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), at


def _literal_character(glob: str, at: int) -> tuple[str, int]:
    at += glob.startswith("\\", at)
    if at >= len(glob):
        msg = "a set isn't closed"
        raise ValueError(msg)
    return glob[at], at + 1


MAX_REGEX_LENGTH: Final = 300
"""Maximum characters of an expression."""
MAX_MEMORY: Final = 256 * 1024
"""Bytes that RE2 may use for an expression and its cached states; a vault may have 200 expressions."""

_ATOM: Final = re.compile(
    r"""
    \\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}  # a surrogate pair
    | \\u[0-9a-fA-F]{4}
    | \\x[0-9a-fA-F]{2}
    | \\.?
    | \[\^?\]?              # a set's beginning, or an empty set
    | \(\?(?!:|<(?![=!]))   # neither a group nor a named one
    | .
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPES: Final = frozenset("dDwWtnrfvbB")
"""Letters that mean the same behind a backslash in JavaScript and in RE2."""
_SPACES: Final = r"\t-\r\x{2028}\x{2029}\x{feff}\p{Zs}"
_OTHERS: Final = (
    r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}\d"
)
_CLASSES: Final = {r"\s": _SPACES, r"\S": _OTHERS}
r"""What JavaScript's ``\s`` and ``\S`` hold; RE2's ``\s`` lacks the no-break space, for one.

Each ends in a class, so that no hyphen behind it makes a range.
"""


class _Compiled(Protocol):
    def search(self, text: bytes) -> object:
        """Return the first match, or None."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex:
    """A regular expression that RE2 has compiled."""

    pattern: str
    compiled: _Compiled = field(repr=False, compare=False)

    def search(self, text: str) -> bool:
        """Check whether the expression matches anywhere in a text, whatever the letters' case."""
        return self.compiled.search(text.encode(errors="replace")) is not None


def parse_regex(pattern: str) -> Regex:
    """Compile a regular expression as Obsidian's filters have it (JavaScript); ``.`` also matches line breaks.

    Raises:
        ValueError: It is invalid, too large or not supported by RE2, or RE2 isn't installed; the text says which.
    """
    if len(pattern) > MAX_REGEX_LENGTH:
        msg = f"longer than {MAX_REGEX_LENGTH} characters"
        raise ValueError(msg)
    written = _as_re2(pattern).encode(errors="replace")
    try:
        # Imported here: few vaults have such a filter, and it isn't available on all systems.
        re2 = importlib.import_module("re2")
    except ImportError as error:
        msg = "the package google-re2, which reads expressions, isn't installed (not all systems have it)"
        raise ValueError(msg) from error
    options = re2.Options()
    options.case_sensitive = False
    options.dot_nl = True
    options.never_capture = True
    options.max_mem = MAX_MEMORY
    # RE2 would write each error to stderr.
    options.log_errors = False
    try:
        return Regex(pattern=pattern, compiled=cast("_Compiled", re2.compile(written, options)))
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from error


def _as_re2(pattern: str) -> str:
    """Translate a JavaScript expression to RE2's syntax.

    Raises:
        ValueError: It uses what RE2 doesn't support or reads differently.
    """
    parts: list[str] = []
    in_set = False
    for atom in _ATOM.findall(pattern):
        part = atom
        if atom.startswith("\\"):
            part = _escape(atom, in_set=in_set)
        elif in_set:
            # In RE2 `[:` would begin a class such as `[:alpha:]`.
            part = atom.replace("[", r"\[")
            in_set = not atom.endswith("]")
        elif atom == "[]":
            msg = "a set is empty"
            raise ValueError(msg)
        elif atom == "(?":
            msg = "look-around and flags aren't covered"
            raise ValueError(msg)
        elif atom == "[^]":
            part = r"[\x{0}-\x{10ffff}]"
        else:
            in_set = atom.startswith("[")
        parts.append(part)
    return "".join(parts)


def _escape(atom: str, *, in_set: bool) -> str:
    if atom in _CLASSES:
        return _CLASSES[atom] if in_set else f"[{_CLASSES[atom]}]"
    if len(atom) > len(r"\x00"):
        code = ord(json.loads(f'"{atom}"'))
        return f"\\x{{{code:x}}}"
    char = atom[1:]
    if len(char) == 1 and char.isascii() and char.isalnum() and char not in _ESCAPES:
        msg = f"{atom!r} isn't covered"
        raise ValueError(msg)
    return atom if char.isascii() else char
