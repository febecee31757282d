"""Say what has to hold of a vault, and of what the agents said, once a task is done."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from knapper.agents.pipeline.events import Outcome
from knapper.jsontypes import JSONValue
from knapper.vault import parser


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Hold what there is to look at."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    """The vault once the person accepted all that was proposed."""
    outcome: Outcome
    broken: frozenset[tuple[str, str]] = field(default_factory=frozenset[tuple[str, str]])
    """Links that lead nowhere now and led somewhere before: source and target."""

    @property
    def changed(self) -> set[str]:
        """Name the files that differ, new and gone ones included."""
        names = self.before.keys() | self.after.keys()
        return {name for name in names if self.before.get(name) != self.after.get(name)}

    def text(self, path: str) -> str:
        """Give a file's text afterwards; empty where there is none."""
        return self.after.get(path, "")


class Check(Protocol):
    """Tell what is wrong; empty where nothing is."""

    def problem(self, world: World) -> str:
        """Look at a world."""
        ...


@dataclass(frozen=True, slots=True)
class Only:
    """Only these files changed, each of them; none where none is named."""

    paths: tuple[str, ...] = ()

    def problem(self, world: World) -> str:
        """Look at a world."""
        if world.changed == set(self.paths):
            return ""
        return f"changed: {sorted(world.changed) or 'nothing'}, expected {sorted(self.paths) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Kept:
    """All lines of a file are still there, in their order and with their endings, but for those with these numbers."""

    path: str
    gone: tuple[int, ...] = ()

    def problem(self, world: World) -> str:
        """Look at a world."""
        rows = world.before[self.path].splitlines(keepends=True)
        wanted = [row for number, row in enumerate(rows, 1) if number not in self.gone]
        if wanted and not wanted[-1].endswith("\n"):
            wanted[-1] += "\n"
        there = iter(
            [row if row.endswith("\n") else f"{row}\n" for row in world.text(self.path).splitlines(keepends=True)]
        )
        lost = next((row for row in wanted if not any(row == other for other in there)), None)
        return "" if lost is None else f"{self.path} lost {lost!r}"


@dataclass(frozen=True, slots=True)
class Has:
    """A file holds a text, so many times or at least once."""

    path: str
    text: str
    times: int = 0

    def problem(self, world: World) -> str:
        """Look at a world."""
        count = world.text(self.path).casefold().count(self.text.casefold())
        if count == self.times if self.times else count > 0:
            return ""
        return f"{self.path} holds {self.text!r} {count} times"


@dataclass(frozen=True, slots=True)
class Lacks:
    """A file doesn't hold a text."""

    path: str
    text: str

    def problem(self, world: World) -> str:
        """Look at a world."""
        return f"{self.path} holds {self.text!r}" if self.text in world.text(self.path) else ""


@dataclass(frozen=True, slots=True)
class Order:
    """In a file one text comes before another."""

    path: str
    first: str
    second: str

    def problem(self, world: World) -> str:
        """Look at a world."""
        text = world.text(self.path)
        at, then = text.find(self.first), text.find(self.second)
        return "" if 0 <= at < then else f"{self.path}: {self.first!r} doesn't come before {self.second!r}"


@dataclass(frozen=True, slots=True)
class Property:
    """A property has this value, and its type."""

    path: str
    name: str
    value: JSONValue

    def problem(self, world: World) -> str:
        """Look at a world."""
        block = parser.parse_note(world.text(self.path).encode()).frontmatter
        found = block.values.get(self.name) if block else None
        if found == self.value and type(found) is type(self.value):
            return ""
        return f"{self.path}: {self.name} is {found!r}, expected {self.value!r}"


@dataclass(frozen=True, slots=True)
class Says:
    """The answer holds each of these words."""

    words: tuple[str, ...]

    def problem(self, world: World) -> str:
        """Look at a world."""
        said = world.outcome.answer.casefold()
        missing = [word for word in self.words if word.casefold() not in said]
        return f"the answer doesn't say {missing}" if missing else ""


@dataclass(frozen=True, slots=True)
class Cites:
    """The answer cites a note, by a citation that holds."""

    path: str

    def problem(self, world: World) -> str:
        """Look at a world."""
        cited = {str(one["path"]) for one in world.outcome.citations if isinstance(one, dict)}
        return "" if self.path in cited else f"{self.path} isn't cited"


@dataclass(frozen=True, slots=True)
class Selected:
    """These notes were chosen, and those not."""

    paths: tuple[str, ...]
    without: tuple[str, ...] = ()

    def problem(self, world: World) -> str:
        """Look at a world."""
        scout = world.outcome.pipeline.get("scout")
        rows = scout.get("selected_notes") if isinstance(scout, dict) else None
        listed = rows if isinstance(rows, list) else list[JSONValue]()
        chosen = {str(row["path"]) for row in listed if isinstance(row, dict)}
        wrong = (set(self.paths) - chosen) | (set(self.without) & chosen)
        return f"chosen: {sorted(chosen)}; wrong about {sorted(wrong)}" if wrong else ""


@dataclass(frozen=True, slots=True)
class Asks:
    """The person is asked something."""

    def problem(self, world: World) -> str:
        """Look at a world."""
        return "" if world.outcome.state == "asked" else "nothing was asked"


@dataclass(frozen=True, slots=True)
class Refused:
    """No edit of these files could be made: each was refused, or none was tried."""

    paths: tuple[str, ...]

    def problem(self, world: World) -> str:
        """Look at a world."""
        wrong = sorted(world.changed & set(self.paths))
        return f"changed though it may not: {wrong}" if wrong else ""


@dataclass(frozen=True, slots=True)
class Opened:
    """A note was opened for the person."""

    path: str

    def problem(self, world: World) -> str:
        """Look at a world."""
        return "" if self.path in world.outcome.opened else f"{self.path} wasn't opened"


@dataclass(frozen=True, slots=True)
class LinksWhole:
    """No link that led somewhere leads nowhere now."""

    def problem(self, world: World) -> str:
        """Look at a world."""
        return f"broken links: {sorted(world.broken)}" if world.broken else ""
