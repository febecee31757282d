"""Hold the nodes of a run while it goes on; every change is kept at once, and told."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from knapper.agents.run import sums
from knapper.agents.run.events import NodeChanged, RunEvent, TellRun
from knapper.agents.run.nodes import ENDED, ROOT, Node, NodeState
from knapper.agents.run.records import Run
from knapper.agents.run.store import Store
from knapper.codemode.model import ModelSpend


class Tree:
    """Hold them; for one event loop."""

    def __init__(self, store: Store, run: Run, nodes: Iterable[Node], tell: TellRun) -> None:
        """Take a run's nodes; each is to be worked on, though what it was before is remembered."""
        self._store = store
        self._run = run
        self._tell = tell
        before = list(nodes)
        self._were: dict[str, NodeState] = {node.id: node.state for node in before}
        self._nodes = {node.id: replace(node, state="pending", reason="") for node in before}

    @property
    def all(self) -> list[Node]:
        """List all nodes, parents before children."""
        return list(self._nodes.values())

    @property
    def root(self) -> Node:
        """Give the root."""
        return self._nodes[ROOT]

    @property
    def spent(self) -> ModelSpend:
        """Add up what the nodes cost: each counts itself alone, so nothing counts twice."""
        return sums.spent(self._nodes.values())

    def get(self, node_id: str) -> Node:
        """Give a node as it is now."""
        return self._nodes[node_id]

    def some(self, ids: Iterable[str]) -> list[Node]:
        """Give nodes as they are now."""
        return [self._nodes[one] for one in ids]

    def children(self, node: Node) -> list[Node]:
        """Give the nodes right below one."""
        return self.some(node.children)

    def below(self, node_id: str) -> list[Node]:
        """Give a node and all below it."""
        node = self._nodes[node_id]
        return [node, *(one for child in node.children for one in self.below(child))]

    def was(self, node_id: str) -> NodeState:
        """Tell how a node stood when the run went on."""
        return self._were.get(node_id, "pending")

    def change(self, node_id: str, doing: str = "", /, **changes: Any) -> Node:  # noqa: ANN401 - fields of a node
        """Change a node: keep it, and tell.

        Args:
            node_id: Which.
            doing: What it is at now.
            changes: Its fields.
        """
        node = self._nodes[node_id] = replace(self._nodes[node_id], **changes)
        self._store.put(self._run.id, node)
        self._tell(NodeChanged(node=node.brief(), doing=doing))
        return node

    def grow(self, node: Node, children: Sequence[Node]) -> None:
        """Put children below a node; all or none are kept."""
        self._nodes[node.id] = node
        self._nodes |= {child.id: child for child in children}
        self._store.put(self._run.id, node, *children)
        for one in (node, *children):
            self._tell(NodeChanged(node=one.brief()))

    def forget(self, *ids: str) -> None:
        """Take nodes' answers away, so that they are worked on again; plans stay."""
        for node_id in ids:
            node = self._nodes[node_id]
            self._were[node_id] = "pending"
            self._nodes[node_id] = replace(node, found=None, answer="", inputs="", asking=None, cached=False)

    def cut(self, reason: str) -> None:
        """End all nodes that haven't ended, but the root."""
        for node in self.all:
            if node.id != ROOT and node.state not in ENDED:
                _ = self.change(node.id, state="cut", reason=reason)

    def lost(self) -> list[Node]:
        """List the nodes below the root without an answer, or with half of one for a reason of their own."""
        return sums.lost(self._nodes.values())

    def tell(self, event: RunEvent) -> None:
        """Tell something else."""
        self._tell(event)

    def tell_usage(self) -> None:
        """Tell what was used so far."""
        self._tell(sums.used(self._nodes.values()))
