"""Tell what happens in a run that somebody else carries out, by what is kept of it."""

from collections.abc import Iterable, Sequence

from knapper.agents.run import sums
from knapper.agents.run.events import Checkpoint, NodeChanged, RunEvent, RunStarted
from knapper.agents.run.nodes import GO_ON, SKIP, Node
from knapper.agents.run.records import Run
from knapper.codemode.checkpoints import Checkpoint as Kept
from knapper.codemode.model import ModelSpend
from knapper.jsontypes import JSONValue


class Watch:
    """Remember what was told of one run, and tell what is new."""

    def __init__(self) -> None:
        """Nothing was told yet."""
        self._has_begun = False
        self._nodes: dict[str, dict[str, JSONValue]] = {}
        self._asked: set[str] = set()
        self._spent = ModelSpend()

    def look(self, run: Run, nodes: Sequence[Node], waiting: Iterable[Kept] = ()) -> list[RunEvent]:
        """Give what has happened since the last look; where the run doesn't go on, `RunDone` comes last.

        Args:
            run: As it really stands.
            nodes: As they are kept.
            waiting: What it asks a person.
        """
        told: list[RunEvent] = [] if self._has_begun else [RunStarted(run=run.brief(), resumed=run.state != "pending")]
        self._has_begun = True
        told += self._changed(nodes)
        told += self._questions(nodes, waiting)
        spent = sums.spent(nodes)
        if spent != self._spent:
            self._spent = spent
            told.append(sums.used(nodes))
        if run.state not in {"pending", "running"}:
            told.append(sums.done(run, nodes))
        return told

    def _changed(self, nodes: Sequence[Node]) -> list[RunEvent]:
        found: list[RunEvent] = []
        for node in nodes:
            brief = node.brief()
            if self._nodes.get(node.id) != brief:
                self._nodes[node.id] = brief
                found.append(NodeChanged(node=brief))
        return found

    def _questions(self, nodes: Sequence[Node], waiting: Iterable[Kept]) -> list[RunEvent]:
        """Tell what is asked, and what was answered or passed over."""
        ids = {one.id for one in waiting}
        found: list[RunEvent] = []
        for node in nodes:
            if node.asking is None or node.found is None:
                continue
            is_open = not node.asking.answer and not node.asking.unattended
            key = f"{node.id} {is_open}"
            if key in self._asked or (is_open and node.found.checkpoint not in ids):
                continue
            self._asked.add(key)
            found.append(of(node))
        return found


def of(node: Node) -> Checkpoint:
    """Give the event that tells what a node asks, or how it was answered."""
    asking = node.asking
    return Checkpoint(
        node_id=node.id,
        id=node.found.checkpoint if node.found else "",
        question=asking.question if asking else "",
        options=asking.options if asking else (GO_ON, SKIP),
        answer=asking.answer if asking else "",
        unattended=asking.unattended if asking else False,
    )
