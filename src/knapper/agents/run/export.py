"""Write a run as notes: its answer as one, or, in a folder, each node's answer as well.

A citation of another vault's note becomes a link by which Obsidian opens that vault; as a wikilink it would be broken.
"""

from collections.abc import Collection, Sequence
from typing import Final
from urllib.parse import quote

from knapper.agents.run.nodes import ANSWERED, ROOT, Node
from knapper.agents.run.records import Run
from knapper.changes.requests import Create
from knapper.jsontypes import JSONValue
from knapper.vault import parser
from knapper.vault.outline import Link

_MAX_NAME: Final = 60
INDEX: Final = "Answer"


def requests(run: Run, nodes: Sequence[Node], place: str) -> list[Create]:
    """Say which notes a run becomes.

    Args:
        run: A run with an answer.
        nodes: All of its nodes.
        place: A note, by its ending ``.md``; otherwise a folder.
    """
    cited = (one for each in (run.citations, *(node.citations for node in nodes)) for one in each)
    others = {str(vault) for one in cited if (vault := one.get("vault"))}
    if place.endswith(".md"):
        return [Create(path=place, content=_answer(run, others), properties=_properties(run))]
    folder = place.strip("/")
    parts = [node for node in nodes if node.id != ROOT and node.state in ANSWERED]
    names = {node.id: _name(node) for node in parts}
    listed = "".join(f"- [[{folder}/{names[node.id]}|{_shown(node)}]]\n" for node in parts)
    below = f"\n## Parts\n\n{listed}" if listed else ""
    index = Create(path=f"{folder}/{INDEX}.md", content=_answer(run, others) + below, properties=_properties(run))
    return [index, *(Create(path=f"{folder}/{names[node.id]}.md", content=_part(node, others)) for node in parts)]


def _answer(run: Run, others: Collection[str]) -> str:
    return f"# {_line(run.order.task)}\n\n{_opened(run.answer, others).strip()}\n"


def _part(node: Node, others: Collection[str]) -> str:
    quoted = "\n".join(f"> {line}".rstrip() for line in node.task.splitlines())
    return f"# {_line(node.name)}\n\n{quoted}\n\n{_opened(node.answer, others).strip()}\n"


def _opened(answer: str, vaults: Collection[str]) -> str:
    """Turn wikilinks to notes of other vaults into links that open them there."""
    data = answer.encode()
    links = [link for link in parser.parse_note(data).links if link.kind in {"wikilink", "embed"}] if vaults else []
    for link in reversed(links):
        vault = next((name for name in vaults if link.target.startswith(f"{name}:")), "")
        if vault:
            data = data[: link.start] + _address(vault, link).encode() + data[link.stop :]
    return data.decode()


def _address(vault: str, link: Link) -> str:
    note = link.target.removeprefix(f"{vault}:").strip()
    block = [f"^{link.block}"] if link.block else []
    shown = link.alias or " > ".join([f"{vault}: {note}", *link.headings])
    file = quote("#".join([note, *link.headings, *block]), safe="")
    return f"[{_escaped(shown)}](obsidian://open?vault={quote(vault, safe='')}&file={file})"


def _properties(run: Run) -> dict[str, JSONValue]:
    return {"run": run.id, "state": run.state, "model": run.model, "date": run.updated.date().isoformat()}


def _name(node: Node) -> str:
    kept = "".join(sign if sign.isalnum() or sign in " -_" else " " for sign in node.name)
    return f"{node.id} {' '.join(kept.split())[:_MAX_NAME].strip()}".strip()


def _shown(node: Node) -> str:
    return _escaped(node.name).replace("|", "/")


def _escaped(text: str) -> str:
    return _line(text).replace("[", "(").replace("]", ")")


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
