"""Keep what an agent has found out about notes, and which it would choose now."""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final, cast

from knapper.agents import asking
from knapper.agents.contexts.records import NoteSelectionMetadata
from knapper.agents.repair import Arguments
from knapper.agents.scout.records import CONFIDENCES, Confidence, Question
from knapper.errors import KnapError
from knapper.index.fulltext import MatchPlace
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.vault import walk
from knapper.vault.paths import NotePath

_STEPS: Final = 40
"""Steps that the summary tells."""
_MAX_REASON: Final = 2_000
_PLACES: Final[Mapping[str, MatchPlace]] = {"title": "title", "heading": "heading", "content": "content"}
_FOUND: Final = frozenset({"search_semantic", "search_task_relevant"})


@dataclass(slots=True)
class Exploration:
    """Hold the state of a run; JSON can hold it while the run pauses."""

    known: dict[str, NoteSelectionMetadata] = field(default_factory=dict[str, NoteSelectionMetadata])
    """What is known of notes, by path."""
    selected: list[str] = field(default_factory=list[str])
    reasoning: str = ""
    confidence: Confidence = "exploring"
    trail: list[str] = field(default_factory=list[str])
    question: Question | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Tools answer side by side."""

    def hear(self, name: str, arguments: Arguments, answer: Answer) -> None:
        """Learn from a tool's answer why its notes are of interest."""
        with self._lock:
            self._hear(name, arguments, answer)

    def update(self, context: Context, arguments: Arguments, most: int) -> Answer:
        """Take a selection in the place of the last one; notes that aren't there are left out, and told.

        Args:
            context: The vault, as the agent sees it.
            arguments: Of the call.
            most: How many notes may be chosen.
        """
        kept: list[str] = []
        unknown: list[JSONValue] = []
        for raw in _texts(arguments.get("selected_paths", arguments.get("selectedPaths"))):
            try:
                path = context.view.path(raw)
                if walk.kind_of(path) == "attachment":
                    unknown.append({"path": raw, "error": "it is no note"})
                elif path not in kept:
                    kept.append(path)
            except KnapError as error:
                unknown.append({"path": raw, "error": error.message, "hint": error.hint})
        self.selected = kept[:most]
        self.reasoning = str(arguments.get("reasoning", ""))[:_MAX_REASON]
        self.confidence = _confidence(arguments.get("confidence"))
        reasons = arguments.get("reasons")
        for path, why in reasons.items() if isinstance(reasons, dict) else ():
            if path in self.selected:
                self.known[path] = replace(self._of(path), reason=str(why)[:300])
        self._step(f"notes chosen: {len(self.selected)} ({self.confidence})")
        return self._told(unknown, dropped=len(kept) - len(self.selected), most=most)

    def ask(self, arguments: Arguments) -> Answer:
        """Put a question to the person.

        Raises:
            BadInput: It is empty, or the second one.
        """
        question, options = asking.read(arguments)
        asking.check(question, is_first=self.question is None)
        self.question = Question(question=question, options=options)
        self._step(f"asked: {self.question.question}")
        return {"success": True, "message": "The question is put to the person; the answer comes next."}

    def chosen(self) -> tuple[NoteSelectionMetadata, ...]:
        """Give the selection with what is known of each note."""
        return tuple(self._of(path) for path in self.selected)

    def summary(self) -> str:
        """Tell what was done, step by step."""
        left_out = len(self.trail) - _STEPS
        return "; ".join(self.trail[:_STEPS]) + (f"; and {left_out} more steps" if left_out > 0 else "")

    def dump(self) -> str:
        """Write the state as JSON."""
        known = {path: asdict(one) for path, one in self.known.items()}
        return json.dumps(
            {
                "known": known,
                "selected": self.selected,
                "reasoning": self.reasoning,
                "confidence": self.confidence,
                "trail": self.trail,
            },
            ensure_ascii=False,
        )

    def _hear(self, name: str, arguments: Arguments, answer: Answer) -> None:
        if answer.get("success") is False:
            self._step(f"{name}: {answer.get('error', 'failed')}")
            return
        results = answer.get("results")
        rows = [row for row in results if isinstance(row, dict)] if isinstance(results, list) else []
        for row in rows:
            self._learn(name, row)
        if name == "fetch_note":
            path = str(answer.get("path", ""))
            self.known[path] = replace(self._of(path), fetched=True)
            self._step(f"read {path}")
        else:
            about = next((str(arguments[key]) for key in _ABOUT if arguments.get(key)), "")
            self._step(f"{name}{f' {about[:80]!r}' if about else ''}: {answer.get('total', len(rows))} found")

    def _learn(self, name: str, row: Mapping[str, JSONValue]) -> None:
        path, one = str(row.get("path", "")), self._of(str(row.get("path", "")))
        if not path:
            return
        score, match, depth = row.get("score"), row.get("match"), row.get("depth")
        if name in _FOUND and isinstance(score, int | float):
            one = replace(one, semantic_score=max(one.semantic_score or 0.0, min(float(score), 1.0)))
        if name == "search_keyword" and isinstance(match, str) and match in _PLACES:
            one = replace(one, keyword_match=_PLACES[match])
        if name == "get_links":
            depth = 1
        if isinstance(depth, int):
            one = replace(one, link_depth=min(one.link_depth or depth, depth))
        self.known[path] = one

    def _told(self, unknown: list[JSONValue], *, dropped: int, most: int) -> Answer:
        chosen: list[JSONValue] = [*self.selected]
        unread: list[JSONValue] = [path for path in self.selected if not self._of(path).fetched]
        told: Answer = {"success": True, "selected": chosen, "confidence": self.confidence}
        if unknown:
            told["not_there"] = unknown
        if dropped:
            told["message"] = f"only {most} notes may be chosen: the last {dropped} were left out"
        if unread and self.confidence != "done":
            told["not_read_yet"] = unread
        return told

    def _of(self, path: str) -> NoteSelectionMetadata:
        return self.known.get(path) or NoteSelectionMetadata(path=NotePath(path))

    def _step(self, text: str) -> None:
        self.trail.append(" ".join(text.split()))


_ABOUT: Final = ("query", "task", "path", "folder", "tag", "prefix")


def load(text: str) -> Exploration:
    """Read a state as `Exploration.dump` writes it."""
    said = cast("dict[str, object]", json.loads(text))
    known = cast("dict[str, dict[str, object]]", said["known"])
    return Exploration(
        known={
            path: NoteSelectionMetadata(**{**one, "sources": tuple(cast("list[str]", one["sources"]))})  # pyright: ignore[reportArgumentType] - as it was written
            for path, one in known.items()
        },
        selected=list(map(str, cast("list[object]", said["selected"]))),
        reasoning=str(said["reasoning"]),
        confidence=_confidence(said["confidence"]),
        trail=list(map(str, cast("list[object]", said["trail"]))),
    )


def _confidence(said: object) -> Confidence:
    word = str(said).strip().lower()
    return word if word in CONFIDENCES else "exploring"


def _texts(given: JSONValue) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [str(one) for one in given if isinstance(one, str)] if isinstance(given, list) else []
