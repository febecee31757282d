"""Write the answers of a run into notes."""

from collections.abc import Collection, Sequence
from typing import Final
from urllib.parse import quote

from knapper.agents.runs.model import ANSWERED, ROOT, RunNode, RunRecord
from knapper.changes.drafts import Create
from knapper.jsontypes import JSONValue
from knapper.vault import parser

_MAX_FILE_NAME: Final = 60
INDEX_NAME: Final = "Answer"


def export_requests(run: RunRecord, nodes: Sequence[RunNode], place: str) -> list[Create]:
    """Return the requests that write a run's answers into notes.

    Args:
        run: A run with an answer.
        nodes: All its nodes.
        place: The path of a note where it ends in ``.md``; otherwise a folder.
    """
    citations = (one for each in (run.citations, *(node.citations for node in nodes)) for one in each)
    other_vaults = {str(vault) for one in citations if (vault := one.get("vault"))}
    answer = f"# {_single_line(run.order.task)}\n\n{_link_other_vaults(run.answer, other_vaults).strip()}\n"
    properties: dict[str, JSONValue] = {
        "run": run.id,
        "state": run.state,
        "model": run.model,
        "date": run.updated.date().isoformat(),
    }
    if place.endswith(".md"):
        return [Create(path=place, content=answer, properties=properties)]
    folder = place.strip("/")
    parts: list[Create] = []
    part_links = ""
    for node in nodes:
        if node.id == ROOT or node.state not in ANSWERED:
            continue
        safe_name = "".join(sign if sign.isalnum() or sign in " -_" else " " for sign in node.name)
        name = f"{node.id} {' '.join(safe_name.split())[:_MAX_FILE_NAME].strip()}".strip()
        part_links += f"- [[{folder}/{name}|{_escape_brackets(node.name).replace('|', '/')}]]\n"
        quoted = "\n".join(f"> {line}".rstrip() for line in node.task.splitlines())
        text = _link_other_vaults(node.answer, other_vaults).strip()
        content = f"# {_single_line(node.name)}\n\n{quoted}\n\n{text}\n"
        parts.append(Create(path=f"{folder}/{name}.md", content=content))
    below = f"\n## Parts\n\n{part_links}" if part_links else ""
    index = Create(
        path=f"{folder}/{INDEX_NAME}.md",
        content=answer + below,
        properties=properties,
    )
    return [index, *parts]


def _link_other_vaults(answer: str, vaults: Collection[str]) -> str:
    """Replace wikilinks to notes of other vaults by links that open them there."""
    data = answer.encode()
    links = [link for link in parser.parse_links(data).links if link.kind in {"wikilink", "embed"}] if vaults else []
    # From the last to the first, so that the spans of the others stay valid.
    for link in reversed(links):
        vault = next((name for name in vaults if link.target.startswith(f"{name}:")), "")
        if vault:
            note = link.target.removeprefix(f"{vault}:").strip()
            block = [f"^{link.block}"] if link.block else []
            link_text = _escape_brackets(link.alias or " > ".join([f"{vault}: {note}", *link.headings]))
            file = quote("#".join([note, *link.headings, *block]), safe="")
            opened = f"[{link_text}](obsidian://open?vault={quote(vault, safe='')}&file={file})"
            data = data[: link.start] + opened.encode() + data[link.stop :]
    return data.decode()


def _escape_brackets(text: str) -> str:
    return _single_line(text).replace("[", "(").replace("]", ")")


def _single_line(text: str) -> str:
    return " ".join(text.split())[:200]
