"""Write a run as notes: its answer as one, or, in a folder, each node's answer as well."""

from collections.abc import Sequence
from typing import Final

from knapper.agents.run.nodes import ANSWERED, ROOT, Node
from knapper.agents.run.records import Run
from knapper.changes.requests import Create
from knapper.vault.outline import JSONValue

_MAX_NAME: Final = 60
INDEX: Final = "Answer"


def requests(run: Run, nodes: Sequence[Node], place: str) -> list[Create]:
    """Say which notes a run becomes.

    Args:
        run: A run with an answer.
        nodes: All of its nodes.
        place: A note, by its ending ``.md``; otherwise a folder.
    """
    if place.endswith(".md"):
        return [Create(path=place, content=_answer(run), properties=_properties(run))]
    folder = place.strip("/")
    parts = [node for node in nodes if node.id != ROOT and node.state in ANSWERED]
    names = {node.id: _name(node) for node in parts}
    listed = "".join(f"- [[{folder}/{names[node.id]}|{_shown(node)}]]\n" for node in parts)
    below = f"\n## Parts\n\n{listed}" if listed else ""
    index = Create(path=f"{folder}/{INDEX}.md", content=_answer(run) + below, properties=_properties(run))
    return [index, *(Create(path=f"{folder}/{names[node.id]}.md", content=_part(node)) for node in parts)]


def _answer(run: Run) -> str:
    return f"# {_line(run.order.task)}\n\n{run.answer.strip()}\n"


def _part(node: Node) -> str:
    quoted = "\n".join(f"> {line}".rstrip() for line in node.task.splitlines())
    return f"# {_line(node.name)}\n\n{quoted}\n\n{node.answer.strip()}\n"


def _properties(run: Run) -> dict[str, JSONValue]:
    return {"run": run.id, "state": run.state, "model": run.model, "date": run.updated.date().isoformat()}


def _name(node: Node) -> str:
    kept = "".join(sign if sign.isalnum() or sign in " -_" else " " for sign in node.name)
    return f"{node.id} {' '.join(kept.split())[:_MAX_NAME].strip()}".strip()


def _shown(node: Node) -> str:
    return _line(node.name).replace("[", "(").replace("]", ")").replace("|", "/")


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
