r"""Match the regular expressions of a vault's settings in time linear in the text.

Settings may come with a vault that someone else made, and Python's own matcher can be made to run for years by one
expression and one name. Here an expression becomes a position automaton (a bit for each character of the
expression), whose deterministic steps are remembered as they are met.

Covered: characters, ``.``, sets, ``\d \w \s`` and their opposites, groups, ``|``, ``* + ? {m,n}``, ``^`` and ``$``.
Not covered, and refused: look-around, references back, word boundaries.

Source: Glushkov, "The abstract theory of automata", 1961.
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

MAX_PATTERN: Final = 300
MAX_POSITIONS: Final = 200
MAX_DEPTH: Final = 20
MAX_STEPS: Final = 50_000
"""Remembered steps; all are forgotten when there are more."""

START: Final = "start"
END: Final = "end"
_ANCHORS: Final = {"^": START, "$": END}
_ESCAPES: Final = frozenset("dDwWsStnrfv")
_SET: Final = re.compile(r"\[\^?(?:\\.|[^\]\\])+\]", re.DOTALL)
_COUNT: Final = re.compile(r"\{(\d{1,3})(,?)(\d{0,3})\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex:
    """Hold an expression as an automaton."""

    symbols: tuple[re.Pattern[str] | str, ...]
    """What each position matches: one character by a pattern, or `START` or `END`."""
    follow: tuple[int, ...]
    """For each position the set of those that may come next, as bits."""
    first: int
    last: int
    empty: bool
    """Whether the expression matches the empty text, and so any."""
    steps: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int], repr=False, compare=False)
    fits: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)
    """For each character met the positions that match it."""

    def search(self, text: str) -> bool:
        """Tell whether the expression matches anywhere in a text, whatever the letters' case."""
        state = 0
        steps = self.steps
        for symbol in (START, *text, END):
            step = steps.get((state, symbol))
            state = self._step(state, symbol) if step is None else step
            if state & self.last:
                return True
        return self.empty

    def _step(self, state: int, symbol: str) -> int:
        if len(self.steps) >= MAX_STEPS:
            self.steps.clear()
        if symbol not in self.fits:
            self.fits[symbol] = sum(1 << at for at, wanted in enumerate(self.symbols) if _matches(wanted, symbol))
        ahead = self.first
        for position in _members(state):
            ahead |= self.follow[position]
        self.steps[state, symbol] = ahead & self.fits[symbol]
        return self.steps[state, symbol]


def _matches(wanted: re.Pattern[str] | str, symbol: str) -> bool:
    if isinstance(wanted, str) or symbol in {START, END}:
        return wanted == symbol
    return wanted.fullmatch(symbol) is not None


def _members(positions: int) -> Iterator[int]:
    while positions:
        lowest = positions & -positions
        yield lowest.bit_length() - 1
        positions ^= lowest


def parse(pattern: str) -> Regex:
    """Read a regular expression.

    Raises:
        ValueError: It isn't one, is too large, or holds what isn't covered; the text says which.
    """
    if len(pattern) > MAX_PATTERN:
        msg = f"longer than {MAX_PATTERN} characters"
        raise ValueError(msg)
    parser = _Parser(pattern=pattern)
    whole = parser.alternatives()
    if parser.at < len(pattern):
        msg = "a closing bracket without an opening one"
        raise ValueError(msg)
    return Regex(
        symbols=tuple(parser.symbols),
        follow=tuple(parser.follow),
        first=whole.first,
        last=whole.last,
        empty=whole.empty,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Tell where a stretch of the expression may begin and end, as sets of positions."""

    first: int = 0
    last: int = 0
    empty: bool = True

    def optional(self) -> "_Part":
        return _Part(first=self.first, last=self.last)


@dataclass(slots=True, kw_only=True)
class _Parser:
    pattern: str
    at: int = 0
    depth: int = 0
    symbols: list[re.Pattern[str] | str] = field(default_factory=list[re.Pattern[str] | str])
    follow: list[int] = field(default_factory=list[int])

    def alternatives(self) -> _Part:
        whole = self.sequence()
        while self.take("|"):
            other = self.sequence()
            whole = _Part(
                first=whole.first | other.first, last=whole.last | other.last, empty=whole.empty or other.empty
            )
        return whole

    def sequence(self) -> _Part:
        whole = _Part()
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            whole = self.join(whole, self.repeated())
        return whole

    def repeated(self) -> _Part:
        start, mark = self.at, len(self.symbols)
        part = self.atom()
        if count := _COUNT.match(self.pattern, self.at):
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

    def counted(self, start: int, count: re.Match[str]) -> _Part:
        """Write ``x{2,4}`` out as ``xxx?x?`` and ``x{2,}`` as ``xxx*``, reading *x* anew for each."""
        least, most = int(count[1]), int(count[3] or count[1])
        whole = _Part()
        for _ in range(least):
            whole = self.join(whole, self.again(start))
        for _ in range(most - least):
            whole = self.join(whole, self.again(start).optional())
        if count[2] and not count[3]:
            whole = self.join(whole, self.loop(self.again(start)).optional())
        self.at = count.end()
        return whole

    def again(self, start: int) -> _Part:
        self.at = start
        return self.atom()

    def loop(self, part: _Part) -> _Part:
        self.link(part.last, part.first)
        return part

    def join(self, one: _Part, other: _Part) -> _Part:
        self.link(one.last, other.first)
        return _Part(
            first=one.first | (other.first if one.empty else 0),
            last=other.last | (one.last if other.empty else 0),
            empty=one.empty and other.empty,
        )

    def link(self, last: int, first: int) -> None:
        for position in _members(last):
            self.follow[position] |= first

    def atom(self) -> _Part:
        char = self.pattern[self.at]
        if char == "(":
            return self.group()
        if char in "*+?" or _COUNT.match(self.pattern, self.at):
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

    def position(self, symbol: re.Pattern[str] | str) -> _Part:
        if len(self.symbols) >= MAX_POSITIONS:
            msg = f"stands for more than {MAX_POSITIONS} characters"
            raise ValueError(msg)
        here = 1 << len(self.symbols)
        self.symbols.append(symbol)
        self.follow.append(0)
        return _Part(first=here, last=here, empty=False)

    def group(self) -> _Part:
        self.at += 1
        if self.take("?") and not self.take(":"):
            msg = "look-around and named groups aren't covered"
            raise ValueError(msg)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            msg = f"groups are nested deeper than {MAX_DEPTH}"
            raise ValueError(msg)
        part = self.alternatives()
        self.depth -= 1
        if not self.take(")"):
            msg = "a group isn't closed"
            raise ValueError(msg)
        return part

    def take(self, char: str) -> bool:
        taken = self.pattern.startswith(char, self.at)
        self.at += taken
        return taken

    def source(self, char: str) -> str:
        """Return the stretch of the expression that stands for one character."""
        if char == "[":
            found = _SET.match(self.pattern, self.at)
            if not found:
                msg = "a set isn't closed"
                raise ValueError(msg)
            return found.group()
        if char != "\\":
            return char
        escaped = self.pattern[self.at : self.at + 2]
        if escaped == char or (escaped[1].isalnum() and escaped[1] not in _ESCAPES):
            msg = f"{escaped!r} isn't covered"
            raise ValueError(msg)
        return escaped
