"""Open a small vault for writing, as the program does."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from knapper.changes.disk import apply
from knapper.changes.drafting import DraftContext
from knapper.changes.drafts import Request
from knapper.changes.proposals import store, taint
from knapper.changes.reviewer import Reviewer
from knapper.changes.writer import Submission, SubmitOptions, Writer
from knapper.errors import ConflictError, NotFound
from knapper.index.engine import Engine
from knapper.vault import access
from knapper.vault.access import Policy
from knapper.vault.paths import NotePath
from knapper.vault.view import View
from tests.index import worlds


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Hold a vault, its index and the door to write through."""

    root: Path
    index: Engine
    writer: Writer

    @property
    def reviewer(self) -> Reviewer:
        return Reviewer(writer=self.writer)

    def submit(self, *requests: Request, asked: SubmitOptions | None = None) -> Submission:
        return self.writer.submit(requests, asked)

    def text(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def tree(self) -> dict[str, bytes]:
        """Give every file's bytes, the vault's own trash included."""
        files = (file for file in self.root.rglob("*") if file.is_file())
        return {file.relative_to(self.root).as_posix(): file.read_bytes() for file in files}


@contextmanager
def world(base: Path, notes: dict[str, str], *, client: str = "cli", policy: Policy | None = None) -> Generator[World]:
    """Write notes, index them, and open the door for *client*."""
    root = worlds.fill(base / "vault", notes)
    state, _ = apply.open_state(root, base / "state")
    waiting = store.open_proposals(base / "state")
    taints = taint.open_taints(base / "state")

    def version(name: str) -> bytes | None:
        try:
            return state.journal.content(name)
        except NotFound:
            return None

    def follow(paths: Sequence[Path]) -> tuple[NotePath, ...]:
        with suppress(ConflictError):  # another thread takes its changes in right now
            _ = index.refresh_paths(paths)
        return ()

    owner = View.open(root, Policy(client="owner"))
    with worlds.engine(root, base / "state" / "index") as index:
        index.refresh()
        view = owner.with_policy(policy or Policy(client=client))
        desk = DraftContext(view=view, owner=owner, graph=index.graph, read_version=version, catch_up=index.catch_up)
        writer = Writer(
            context=desk,
            state=state,
            proposals=waiting,
            taints=taints,
            grants=access.default_grants(client),
            on_touched=follow,
        )
        try:
            yield World(root=root, index=index, writer=writer)
        finally:
            taints.shut()
            waiting.shut()
            state.journal.shut()
