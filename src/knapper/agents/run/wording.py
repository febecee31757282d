"""Write what a run's models are told: fixed instructions from files, and the task with what belongs to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final, Literal

from knapper.agents import citations, untrusted
from knapper.agents.run.nodes import ANSWERED, Found, Node, Source
from knapper.agents.run.strategies import Strategy
from knapper.errors import StorageError

Name = Literal["judge", "plan", "answer", "join"]
CONTEXT_CHARS: Final = 24_000
"""Of what was retrieved, that a node's answer is written from."""
_EARLIER_CHARS: Final = 12_000
"""Of the answers of nodes that it depends on."""
_LEAST_CHARS: Final = 300
"""That every part's answer keeps, however short the room is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Find the instructions."""

    folder: Path | None = None
    """The person's own: ``run-answer.md`` and so on."""

    def load(self, name: Name) -> str:
        """Give instructions: the person's own where there are some.

        Raises:
            StorageError: They can't be read.
        """
        own = self.folder / f"run-{name}.md" if self.folder else None
        if own and own.is_file():
            try:
                return own.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                hint = "it has to be a text in UTF-8"
                raise StorageError(f"the prompt '{own}' can't be read", hint=hint) from error
        place = resources.files("knapper.agents.run").joinpath("prompts", f"{name}.md")
        return place.read_text(encoding="utf-8").strip()


def judging(node: Node, known: Sequence[Strategy]) -> str:
    """Ask whether a task should be split."""
    listed = "\n".join(f"- {one.name}: {one.summary}" for one in known)
    return f"The task:\n\n{node.task}\n\nStrategies:\n\n{listed}"


def planning(node: Node, strategy: Strategy, most: int) -> str:
    """Ask for the parts of a task."""
    parts = [f"The task:\n\n{node.task}", f"Give 2 to {most} parts."]
    if strategy.skeleton:
        parts.append(
            f"Parts that such tasks often have; take what fits, and nothing for its own sake:\n\n{strategy.skeleton}"
        )
    return "\n\n".join(parts)


def answering(node: Node, whole: str, strategy: Strategy, earlier: Sequence[Node], mark: str) -> str:
    """Ask for a node's answer.

    Args:
        node: With what was found for it.
        whole: The run's task; given where the node is only a part of it.
        strategy: How such tasks are done.
        earlier: The nodes that it depends on, with or without an answer.
        mark: The block's.
    """
    parts = [f"The task:\n\n{node.task}"]
    if node.task != whole:
        parts.append(f"It is a part of this, which others do the rest of:\n\n{whole}")
    if strategy.prompt:
        parts.append(f"How such tasks are done:\n\n{strategy.prompt}")
    parts.extend(_earlier(earlier, mark))
    parts.append(_retrieved(node.found, mark))
    if node.asking and node.asking.answer:
        parts.append(f"The person was asked: {node.asking.question}\n\nThey answered: {node.asking.answer}")
    return "\n\n".join(parts)


def joining(node: Node, children: Sequence[Node], strategy: Strategy, mark: str, room: int) -> str:
    """Ask for the answer that is made of all parts.

    Args:
        node: What is answered.
        children: All of them, with or without an answer.
        strategy: How such tasks are done.
        mark: The blocks'.
        room: Characters that all parts' answers may have.
    """
    parts = [f"The task:\n\n{node.task}"]
    if strategy.prompt:
        parts.append(f"How such tasks are done:\n\n{strategy.prompt}")
    answered = [one for one in children if one.state in ANSWERED]
    each = max(_LEAST_CHARS, room // max(1, len(answered)))
    parts.extend(_part(one, mark, each) for one in answered)
    missing = [f"- {one.name}: {one.reason}" for one in children if one.state not in ANSWERED]
    if missing:
        parts.append("Parts that are missing:\n\n" + untrusted.plain("\n".join(missing)))
    return "\n\n".join(parts)


def _part(node: Node, mark: str, most: int) -> str:
    cut = "" if len(node.answer) <= most else f"\n[cut: {len(node.answer) - most} more characters]"
    block = untrusted.enclose("part", untrusted.plain(node.answer[:most]) + cut, mark)
    return f"The part '{untrusted.plain(node.name)}':\n\n{block}"


def _earlier(nodes: Sequence[Node], mark: str) -> list[str]:
    answered = [one for one in nodes if one.state in ANSWERED]
    each = _EARLIER_CHARS // max(1, len(answered))
    return [_part(one, mark, each) for one in answered]


def _retrieved(found: Found | None, mark: str) -> str:
    if found is None or not found.context.strip():
        return "Nothing was found in the notes."
    sources = "\n".join(_source(one) for one in found.sources)
    block = untrusted.enclose("notes", untrusted.escape(found.context[:CONTEXT_CHARS]), mark)
    listed = untrusted.enclose("sources", sources, mark)
    return f"What was found in the notes:\n\n{block}\n\nThe sources, which you can cite:\n\n{listed}"


def _source(source: Source) -> str:
    """Write a place as it can be cited."""
    vault, path = untrusted.plain(source.vault), untrusted.plain(source.path)
    return citations.spelled(path, vault, source.first, source.last)
