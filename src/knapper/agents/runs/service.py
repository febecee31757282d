"""List, show, cancel, delete, watch and export the runs of a vault."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from knapper.agents.runs import model, retrieving, store
from knapper.agents.runs.model import (
    ANSWERED,
    ROOT,
    NodeChanged,
    NodeRow,
    RunEvent,
    RunNode,
    RunRecord,
    RunStarted,
    RunWithNodes,
)
from knapper.agents.runs.store import RunStore
from knapper.changes.drafts import Create
from knapper.codemode.checkpoints import Checkpoint as Kept
from knapper.codemode.tasks import ModelSpend
from knapper.jsontypes import JSONValue
from knapper.tools.context import Context
from knapper.vault import parser


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """A run with its nodes."""

    run: RunRecord
    nodes: Sequence[RunNode]

    def as_dict(self) -> RunWithNodes:
        """Return it in the shape that every surface shows."""
        return {
            **self.run.as_dict(),
            "usage": model.total_spent(self.nodes).as_dict(),
            "cached": sum(node.cached for node in self.nodes),
            "node_count": len(self.nodes),
            "nodes": [node.brief() for node in self.nodes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultRuns:
    """The runs of one vault; listing and reading them needs no model."""

    store: RunStore
    folder: Path
    """The vault's state folder."""

    def runs(
        self, *, limit: int = 50, offset: int = 0, clients: Sequence[str] | None = None
    ) -> tuple[Sequence[RunRecord], int]:
        """List runs as `RunStore.runs` does, with interrupted runs marked."""
        runs_page, total = self.store.runs(limit=limit, offset=offset, clients=clients)
        return [self._with_actual_state(run) for run in runs_page], total

    def show(self, run_id: str) -> RunDetails:
        """Return a run with its nodes.

        Raises:
            NotFound: No run's id is or begins with *run_id* (code ``no_run``).
        """
        run = self.store.get(run_id)
        return RunDetails(run=self._with_actual_state(run), nodes=self.store.nodes(run.id))

    def node(self, run_id: str, node_id: str) -> RunNode:
        """Return a node with all its details.

        Raises:
            NotFound: There is no such run, or no such node in it (code ``no_node``).
        """
        return self.store.node(self.store.get(run_id).id, node_id)

    def cancel(self, run_id: str) -> bool:
        """Request a run's cancellation, in whichever process it runs, and return whether one does.

        Raises:
            NotFound: There is no such run.
        """
        run = self.store.get(run_id)
        if not store.is_run_locked(self.folder, run.id):
            return False
        self.store.ask_to_cancel(run.id)
        return True

    def check_idle(self, run_id: str) -> None:
        """Check that no process is carrying out a run.

        Raises:
            ConflictError: One is (code ``run_busy``).
        """
        with store.lock_run(self.folder, run_id):
            pass

    def delete(self, run_id: str) -> None:
        """Delete a run; the notes that it wrote stay, and can be undone.

        Raises:
            NotFound: There is no such run.
            ConflictError: It is running.
        """
        run = self.store.get(run_id)
        with store.lock_run(self.folder, run.id):
            self.store.delete(run.id)

    def stale(self, run_id: str, context: Context) -> dict[str, list[str]]:
        """List the nodes whose notes have changed since, with those notes.

        For a node with children only the notes that it cites count; changes of its children are found at those.

        Args:
            run_id: The run's id.
            context: The vault, as the run sees it.

        Raises:
            NotFound: There is no such run.
        """
        return retrieving.list_stale_nodes(context, self.store.nodes(self.store.get(run_id).id))

    def _with_actual_state(self, run: RunRecord) -> RunRecord:
        marked = store.mark_interrupted(run, is_held=lambda run_id: store.is_run_locked(self.folder, run_id))
        if marked is run:
            return run
        # The run may have ended between reading its state and probing its lock.
        current = self.store.get(run.id)
        return marked if current.state == run.state else current


class RunWatcher:
    """The reported state of one run, from which new events are derived."""

    def __init__(self) -> None:
        """Begin with nothing reported."""
        self._has_begun = False
        self._nodes: dict[str, NodeRow] = {}
        self._asked: set[str] = set()
        self._spent = ModelSpend()

    def new_events(self, run: RunRecord, nodes: Sequence[RunNode], waiting: Iterable[Kept] = ()) -> list[RunEvent]:
        """Return the events since the last call; where the run has ended, `RunDone` comes last.

        Args:
            run: The run in its actual state.
            nodes: Its stored nodes.
            waiting: Its open questions to a person.
        """
        events: list[RunEvent] = (
            [] if self._has_begun else [RunStarted(run=run.brief(), resumed=run.state != "pending")]
        )
        self._has_begun = True
        for node in nodes:
            brief = node.brief()
            if self._nodes.get(node.id) != brief:
                self._nodes[node.id] = brief
                events.append(NodeChanged(node=brief))
        # New questions, and answers to earlier ones.
        waiting_ids = {one.id for one in waiting}
        for node in nodes:
            if node.asking is None or node.found is None:
                continue
            is_open = not node.asking.answer and not node.asking.unattended
            key = f"{node.id} {is_open}"
            if key in self._asked or (is_open and node.found.checkpoint not in waiting_ids):
                continue
            self._asked.add(key)
            events.append(model.make_checkpoint_event(node, node.asking))
        spent = model.total_spent(nodes)
        if spent != self._spent:
            self._spent = spent
            events.append(model.make_usage_event(nodes))
        if run.state not in {"pending", "running"}:
            events.append(model.make_done_event(run, nodes))
        return events


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
