"""Say what a note in a context is, and why it is there."""

from dataclasses import dataclass
from typing import Final, Literal

from knapper.index.fulltext import MatchPlace
from knapper.jsontypes import JSONValue
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

Source = Literal["current", "linked", "folder", "semantic", "manual"]
"""The open note; reached by links; in the same folder; chosen by exploring; added by the person."""
KEPT: Final[tuple[Source, ...]] = ("current", "linked", "folder", "semantic", "manual")
"""Where a limit is reached, the last of these goes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSelectionMetadata:
    """Say why a note was chosen."""

    path: NotePath
    sources: tuple[Source, ...] = ()
    """All that speak for it, the strongest first."""
    reason: str = ""
    """In words; empty where none were given."""
    semantic_score: float | None = None
    """0 to 1; None where it wasn't found by meaning."""
    keyword_match: MatchPlace | None = None
    """Where the words stood: title, heading or content."""
    link_depth: int | None = None
    """Links from the open note; None where it wasn't found by links."""
    fetched: bool = False
    """Whether it was read before it was chosen."""

    @property
    def source(self) -> Source:
        """Give what holds it longest where a limit is reached."""
        found = min((KEPT.index(one) for one in self.sources), default=KEPT.index("semantic"))
        return KEPT[found]

    @property
    def rank(self) -> tuple[int, int, float, NotePath]:
        """Order notes by how easily they can be done without, the last first: by kind, then by depth and score."""
        return KEPT.index(self.source), self.link_depth or 0, -(self.semantic_score or 0.0), self.path

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        sources: list[JSONValue] = [*self.sources]
        shown: dict[str, JSONValue] = {"path": self.path, "sources": sources, "why": self.why()}
        known: dict[str, JSONValue] = {
            "reason": self.reason or None,
            "semantic_score": self.semantic_score,
            "keyword_match": self.keyword_match,
            "link_depth": self.link_depth,
            "fetched": self.fetched or None,
        }
        return shown | {name: value for name, value in known.items() if value is not None}

    def why(self) -> str:
        """Say in a few words why it is there: ``semantic 82%, keyword in title, link depth 1``."""
        said = ["the open note"] if "current" in self.sources else []
        if self.semantic_score is not None:
            said.append(f"semantic {round(100 * self.semantic_score)}%")
        if self.keyword_match is not None:
            said.append(f"keyword in {self.keyword_match}")
        if self.link_depth is not None:
            said.append(f"link depth {self.link_depth}")
        if "folder" in self.sources:
            said.append("same folder")
        if "manual" in self.sources:
            said.append("manual")
        return ", ".join(said) or "chosen while exploring"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextNote:
    """Hold a note of a context."""

    note: Note
    why: NoteSelectionMetadata
    foreign: bool = False
    """Whether others wrote it."""
