"""Match paths by untrusted gitignore globs and regular expressions in time linear in the path."""

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from knapper.vault.paths import base_name, name_key, parent_folders, quote_path

MAX_GLOB_LENGTH: Final = 1000
"""Characters; git's own files hold far shorter ones."""

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
    """One pattern."""

    regex: re.Pattern[str]
    includes: bool
    """False for a pattern that begins with ``!``."""
    folders_only: bool
    on_name: bool
    """Whether the pattern is compared with the last part alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Globs:
    """Patterns of which the last that matches decides."""

    rules: tuple[GlobRule, ...] = ()
    """Last line first."""
    problems: tuple[str, ...] = ()
    """Lines that are no patterns and match nothing."""

    def match(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether the patterns match a path or a folder around it, from where ``!`` can't take it back."""
        if not self.rules:
            return False
        return any(self.match_only(above, is_folder=True) for above in parent_folders(path)) or self.match_only(
            path, is_folder=is_folder
        )

    def match_only(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the patterns match this very path, its folders not asked."""
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
    """Read patterns, a line each, as gitignore's documentation describes them.

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
    """Translate a pattern whose parts stand for parts of a path; ``**`` stands for any number of them."""
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
    middle = "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _character_regex(glob: str, at: int) -> tuple[str, int]:
    """Translate what stands for one character; return it with the position after it."""
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
    """Translate a set such as ``[a-z_]``, whose first character after the bracket stands at *at*."""
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
MAX_POSITIONS: Final = 200
MAX_GROUP_DEPTH: Final = 20
MAX_CACHED_STEPS: Final = 50_000
"""Remembered steps; all are forgotten when there are more."""

TEXT_START: Final = "start"
TEXT_END: Final = "end"
_ANCHORS: Final = {"^": TEXT_START, "$": TEXT_END}
_ESCAPES: Final = frozenset("dDwWsStnrfv")
_CHARACTER_SET: Final = re.compile(r"\[\^?(?:\\.|[^\]\\])+\]", re.DOTALL)
_REPETITION: Final = re.compile(r"\{(\d{1,3})(,?)(\d{0,3})\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex:
    """An expression as an automaton."""

    symbols: tuple[re.Pattern[str] | str, ...]
    """What each position matches: one character by a pattern, or `START` or `END`."""
    follow: tuple[int, ...]
    """For each position the set of those that may come next, as bits."""
    first: int
    last: int
    matches_empty: bool
    """Whether the expression matches the empty text, and so any."""
    steps: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int], repr=False, compare=False)
    positions_by_character: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)
    """For each character met the positions that match it."""

    def search(self, text: str) -> bool:
        """Return whether the expression matches anywhere in a text, whatever the letters' case."""
        state = 0
        steps = self.steps
        for symbol in (TEXT_START, *text, TEXT_END):
            step = steps.get((state, symbol))
            state = self._step(state, symbol) if step is None else step
            if state & self.last:
                return True
        return self.matches_empty

    def _step(self, state: int, symbol: str) -> int:
        if len(self.steps) >= MAX_CACHED_STEPS:
            self.steps.clear()
        if symbol not in self.positions_by_character:
            self.positions_by_character[symbol] = sum(
                1 << at for at, wanted in enumerate(self.symbols) if _symbol_matches(wanted, symbol)
            )
        ahead = self.first
        for position in _bit_positions(state):
            ahead |= self.follow[position]
        self.steps[state, symbol] = ahead & self.positions_by_character[symbol]
        return self.steps[state, symbol]


def _symbol_matches(expected: re.Pattern[str] | str, symbol: str) -> bool:
    if isinstance(expected, str) or symbol in {TEXT_START, TEXT_END}:
        return expected == symbol
    return expected.fullmatch(symbol) is not None


def _bit_positions(positions: int) -> Iterator[int]:
    while positions:
        lowest = positions & -positions
        yield lowest.bit_length() - 1
        positions ^= lowest


def parse_regex(pattern: str) -> Regex:
    """Read a regular expression.

    Raises:
        ValueError: It isn't one, is too large, or holds what isn't covered; the text says which.
    """
    if len(pattern) > MAX_REGEX_LENGTH:
        msg = f"longer than {MAX_REGEX_LENGTH} characters"
        raise ValueError(msg)
    parser = _RegexParser(pattern=pattern)
    whole = parser.alternatives()
    if parser.at < len(pattern):
        msg = "a closing bracket without an opening one"
        raise ValueError(msg)
    return Regex(
        symbols=tuple(parser.symbols),
        follow=tuple(parser.follow),
        first=whole.first,
        last=whole.last,
        matches_empty=whole.empty,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fragment:
    """Tell where a stretch of the expression may begin and end, as sets of positions."""

    first: int = 0
    last: int = 0
    empty: bool = True

    def optional(self) -> "_Fragment":
        return _Fragment(first=self.first, last=self.last)


@dataclass(slots=True, kw_only=True)
class _RegexParser:
    pattern: str
    at: int = 0
    depth: int = 0
    symbols: list[re.Pattern[str] | str] = field(default_factory=list[re.Pattern[str] | str])
    follow: list[int] = field(default_factory=list[int])

    def alternatives(self) -> _Fragment:
        whole = self.sequence()
        while self.take("|"):
            other = self.sequence()
            whole = _Fragment(
                first=whole.first | other.first, last=whole.last | other.last, empty=whole.empty or other.empty
            )
        return whole

    def sequence(self) -> _Fragment:
        whole = _Fragment()
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            whole = self.join(whole, self.repeated())
        return whole

    def repeated(self) -> _Fragment:
        start, mark = self.at, len(self.symbols)
        part = self.atom()
        if count := _REPETITION.match(self.pattern, self.at):
            del self.symbols[mark:], self.follow[mark:]
            part = self.counted(start, count)
        elif self.take("*"):
            part = self.loop(part).optional()
        elif self.take("+"):
            part = self.loop(part)
        elif self.take("?"):
            part = part.optional()
        else:
            return part
        self.take("?")  # a lazy repetition matches the same texts
        return part

    def counted(self, start: int, count: re.Match[str]) -> _Fragment:
        """Write ``x{2,4}`` out as ``xxx?x?`` and ``x{2,}`` as ``xxx*``, reading *x* anew for each."""
        least, most = int(count[1]), int(count[3] or count[1])
        whole = _Fragment()
        for _ in range(least):
            whole = self.join(whole, self.again(start))
        for _ in range(most - least):
            whole = self.join(whole, self.again(start).optional())
        if count[2] and not count[3]:
            whole = self.join(whole, self.loop(self.again(start)).optional())
        self.at = count.end()
        return whole

    def again(self, start: int) -> _Fragment:
        self.at = start
        return self.atom()

    def loop(self, part: _Fragment) -> _Fragment:
        self.link(part.last, part.first)
        return part

    def join(self, one: _Fragment, other: _Fragment) -> _Fragment:
        self.link(one.last, other.first)
        return _Fragment(
            first=one.first | (other.first if one.empty else 0),
            last=other.last | (one.last if other.empty else 0),
            empty=one.empty and other.empty,
        )

    def link(self, last: int, first: int) -> None:
        for position in _bit_positions(last):
            self.follow[position] |= first

    def atom(self) -> _Fragment:
        char = self.pattern[self.at]
        if char == "(":
            return self.group()
        if char in "*+?" or _REPETITION.match(self.pattern, self.at):
            msg = f"nothing stands before {char!r} that it could repeat"
            raise ValueError(msg)
        if char in _ANCHORS:
            self.at += 1
            return self.position(_ANCHORS[char])
        source = self.source(char)
        self.at += len(source)
        try:
            with warnings.catch_warnings(action="ignore"):  # of sets that a later Python may read otherwise
                return self.position(re.compile(source, re.IGNORECASE | re.DOTALL))
        except re.error as error:
            msg = f"{source!r}: {error}"
            raise ValueError(msg) from error

    def position(self, symbol: re.Pattern[str] | str) -> _Fragment:
        if len(self.symbols) >= MAX_POSITIONS:
            msg = f"stands for more than {MAX_POSITIONS} characters"
            raise ValueError(msg)
        here = 1 << len(self.symbols)
        self.symbols.append(symbol)
        self.follow.append(0)
        return _Fragment(first=here, last=here, empty=False)

    def group(self) -> _Fragment:
        self.at += 1
        if self.take("?") and not self.take(":"):
            msg = "look-around and named groups aren't covered"
            raise ValueError(msg)
        self.depth += 1
        if self.depth > MAX_GROUP_DEPTH:
            msg = f"groups are nested deeper than {MAX_GROUP_DEPTH}"
            raise ValueError(msg)
        part = self.alternatives()
        self.depth -= 1
        if not self.take(")"):
            msg = "a group isn't closed"
            raise ValueError(msg)
        return part

    def take(self, char: str) -> bool:
        matches = self.pattern.startswith(char, self.at)
        self.at += matches
        return matches

    def source(self, char: str) -> str:
        """Return the stretch of the expression that stands for one character."""
        if char == "[":
            set_match = _CHARACTER_SET.match(self.pattern, self.at)
            if not set_match:
                msg = "a set isn't closed"
                raise ValueError(msg)
            return set_match.group()
        if char != "\\":
            return char
        escaped = self.pattern[self.at : self.at + 2]
        if escaped == char or (escaped[1].isalnum() and escaped[1] not in _ESCAPES):
            msg = f"{escaped!r} isn't covered"
            raise ValueError(msg)
        return escaped
