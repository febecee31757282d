"""Make vaults in which files move, and tell what their links mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from knapper.changes.disk import apply
from knapper.changes.disk.plan import ChangeMeta
from knapper.changes.disk.transaction import State
from knapper.changes.drafts import Draft, Move
from knapper.changes.links import moving
from knapper.changes.links.rewriting import PARSERS
from knapper.changes.links.targets import LinkHistory
from knapper.index.engine import Engine
from knapper.vault import links, paths, walk
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from tests.index import worlds

OWNER = Policy(client="owner")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Hold a vault with its index and its state."""

    root: Path
    engine: Engine
    state: State

    def view(self, policy: Policy = OWNER) -> View:
        return View.open(self.root, policy)

    def draft(self, *moves: tuple[str, str], policy: Policy = OWNER, owner: Policy = OWNER) -> Draft:
        wanted = [Move(source=source, destination=destination) for source, destination in moves]
        return moving.draft_moves(self.view(policy), self.view(owner), self.engine.graph, wanted)

    def move(self, *moves: tuple[str, str]) -> Draft:
        """Move files, and bring the index up to date."""
        return self.do(self.draft(*moves))

    def remember(self, *moves: tuple[str, str]) -> Draft:
        """Move files as one does who has the journal to ask."""
        wanted = [Move(source=source, destination=destination) for source, destination in moves]
        pasts = LinkHistory(self.state.journal)
        return self.do(moving.draft_moves(self.view(), self.view(), self.engine.graph, wanted, pasts))

    def do(self, draft: Draft) -> Draft:
        apply.apply_effects(self.state, list(draft.effects()), ChangeMeta(client="test"))
        self.engine.refresh()
        return draft

    def files(self) -> dict[str, bytes]:
        """Read all files that may hold links."""
        return {file.path: (self.root / file.path).read_bytes() for file in self.view().list_files()}

    def text(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def meanings(self) -> dict[str, list[tuple[str, str | None]]]:
        """Tell of each file what its links say, and the file that each leads to; from the disk, not from the index."""
        files = self.files()
        by_key: dict[str, list[NotePath]] = {}
        for path in sorted(files):
            by_key.setdefault(paths.lookup_key(path.rpartition("/")[2]), []).append(NotePath(path))
        found: dict[str, list[tuple[str, str | None]]] = {}
        for path, raw in files.items():
            kind = walk.kind_of(path)
            outline = PARSERS[kind](raw) if kind in PARSERS else None
            found[path] = [
                (link.target, links.resolve(link.target, NotePath(path), lambda key: by_key.get(key, ())).path)
                for link in (outline.links if outline else ())
                if link.kind != "external"
            ]
        return found


def make(folder: Path, files: Mapping[str, str]) -> World:
    """Make a vault of files, and index it."""
    root = worlds.fill(folder / "vault", dict(files))
    root.mkdir(exist_ok=True)
    engine = worlds.engine(root, folder / "index")
    engine.refresh()
    state, _ = apply.open_state(root, folder / "state")
    return World(root=root, engine=engine, state=state)
