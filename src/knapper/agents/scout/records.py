"""Say how an exploration is set up, and what it came to."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from knapper.agents.contexts.records import NoteSelectionMetadata
from knapper.agents.scout import names
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue

Confidence = Literal["exploring", "confident", "done"]
CONFIDENCES: Final[tuple[Confidence, ...]] = get_args(Confidence)
ROUNDS: Final = (2, 10)
NOTES: Final = (3, 50)
KEYWORDS: Final = (3, 20)
Ended = Literal["done", "said", "rounds", "timeout", "asked", "cancelled", "failed"]
"""It was sure; it stopped by itself; no rounds or no time were left; it asked; the person or an error ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutSettings:
    """Say how an exploration goes.

    Raises:
        BadInput: A number is out of its range, or there is no such tool.
    """

    rounds: int = 5
    """2 to 10."""
    notes: int = 20
    """That are chosen at most, 3 to 50."""
    keyword_limit: int = 10
    """Results of a search by words at most, 3 to 20."""
    tools: frozenset[str] = frozenset(names.TOOLS)
    """Those that are switched on."""
    show_tags: bool = False
    """Tell the model all tags of the vault at the beginning."""
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        check("rounds", self.rounds, ROUNDS)
        check("notes", self.notes, NOTES)
        check("keyword_limit", self.keyword_limit, KEYWORDS)
        if unknown := sorted(self.tools - set(names.TOOLS)):
            raise BadInput(f"the scout has no tool '{unknown[0]}'", hint=f"it has {', '.join(names.TOOLS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoutResult:
    """Hold what an exploration came to."""

    selected_notes: tuple[NoteSelectionMetadata, ...] = ()
    """The last selection, in the agent's order; never one that it didn't make."""
    reasoning: str = ""
    confidence: Confidence = "exploring"
    exploration_summary: str = ""
    """What it did, step by step."""
    rounds: int = 0
    tokens_used: int = 0
    ended: Ended = "said"

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        notes: list[JSONValue] = [one.as_dict() for one in self.selected_notes]
        return {
            "selected_notes": notes,
            "reasoning": self.reasoning,
            "confidence": self.confidence,
            "exploration_summary": self.exploration_summary,
            "rounds": self.rounds,
            "tokens_used": self.tokens_used,
            "ended": self.ended,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Hold what the agent asks the person."""

    question: str
    options: tuple[str, ...] = ()


def check(name: str, value: int, allowed: tuple[int, int]) -> None:
    """Refuse a number that is out of its range.

    Raises:
        BadInput: It is.
    """
    least, most = allowed
    if not least <= value <= most:
        raise BadInput(f"{name} is {value}", hint=f"give {least} to {most}", code="out_of_range")
