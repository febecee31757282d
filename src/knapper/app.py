"""Wire the parts together: the only place that knows all of them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from knapper import config
from knapper.config import Settings, Vault
from knapper.errors import ConflictError, NotFound
from knapper.index.embed import EmbedSettings, open_embedder
from knapper.index.engine import Engine
from knapper.tools.context import Context
from knapper.vault.policy import Policy
from knapper.vault.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from knapper.changes.disk.state import State
    from knapper.changes.writer import Writer
    from knapper.vault.grants import Grants


def open_vault(settings: Settings, *, client: str = "cli") -> Context:
    """Open the chosen vault for *client*, with its index; what writing needs is opened when it is first asked for.

    Args:
        settings: What the configuration says.
        client: Whose policy holds.

    Raises:
        SetupError: No vault could be chosen, or the state folder lies inside it.
        StorageError: The index can't be opened.
    """
    vault = settings.vault
    # what the owner hides from everybody is kept out of the index too, and so from an embedder elsewhere
    owner = View.open(vault.path, Policy(client="owner", read=vault.read, hidden=vault.hidden))
    allowed = settings.client(client)
    policy = Policy(
        client=client,
        read=vault.read,
        within=allowed.read,
        hidden=vault.hidden + allowed.hidden,
        foreign_folders=vault.foreign_folders,
        foreign_properties=vault.foreign_properties,
    )
    view = owner.seen_by(policy)
    engine = _open_index(settings, vault, owner)
    stack = contextlib.ExitStack()
    stack.callback(engine.close)
    folder = config.state_folder(settings, vault)
    open_writer = _Once(lambda: _Writing(settings, view, engine, allowed.grants).open(folder, stack))
    return Context(vault=vault.name, view=view, index=engine, open_writer=open_writer, close=stack.close)


class _Once:
    """Make a writer when it is first asked for, and give the same one from then on."""

    def __init__(self, make: Callable[[], Writer]) -> None:
        self._make = make
        self._made: Writer | None = None

    def __call__(self) -> Writer:
        if self._made is None:
            self._made = self._make()
        return self._made


def _open_index(settings: Settings, vault: Vault, view: View) -> Engine:
    embeddings = settings.embeddings
    chosen = EmbedSettings(
        kind=embeddings.kind, model=embeddings.model, base_url=embeddings.base_url, api_key=embeddings.api_key
    )
    return Engine(
        config.state_folder(settings, vault) / "index",
        view,
        open_embedder=lambda: open_embedder(chosen),
        fusion=settings.search.fusion,
    )


class _Writing:
    """Open what writing to one vault needs."""

    def __init__(self, settings: Settings, view: View, engine: Engine, grants: Grants) -> None:
        self._settings = settings
        self._view = view
        self._engine = engine
        self._grants = grants

    def open(self, folder: Path, stack: contextlib.ExitStack) -> Writer:
        from knapper.changes import writer  # noqa: PLC0415 - searching needn't pay for it
        from knapper.changes.disk import recover  # noqa: PLC0415 - searching needn't pay for it
        from knapper.changes.drafting import Desk  # noqa: PLC0415 - the same
        from knapper.changes.linking.pasts import Pasts  # noqa: PLC0415 - the same
        from knapper.changes.review import proposals, taint  # noqa: PLC0415 - searching needn't pay for it

        state, recovered = recover.open_state(self._view.root, folder)
        stack.callback(state.journal.shut)
        waiting = proposals.open_proposals(folder)
        stack.callback(waiting.shut)
        taints = taint.open_taints(folder)
        stack.callback(taints.shut)
        _ = waiting.reconcile(state.journal)
        kept = self._settings.journal
        state.journal.prune(max_bytes=kept.max_mb * 1_000_000, max_age_days=kept.max_age_days)
        engine = self._engine
        return writer.Writer(
            desk=Desk(
                view=self._view,
                owner=engine.view,
                graph=engine.graph,
                version=_versions(state),
                catch_up=engine.catch_up,
                pasts=Pasts(state.journal),
            ),
            state=state,
            proposals=waiting,
            taints=taints,
            grants=self._grants,
            touched=lambda paths: _follow(engine, paths),
            proposal_days=self._settings.proposal_days,
            applied=_committer(state) if self._settings.commits_to_git else _untold,
            recovered=[f"a change that was cut short was {one.outcome}: {', '.join(one.paths)}" for one in recovered],
        )


def _untold(_: str) -> tuple[str, ...]:
    return ()


def _committer(state: State) -> Callable[[str], tuple[str, ...]]:
    from knapper.changes.disk import git  # noqa: PLC0415 - only where the owner wants it

    def commit(change_id: str) -> tuple[str, ...]:
        if not change_id:
            return ()
        outcome = git.commit(state.root, [state.journal.show(change_id)], env=config.environment_variables())
        return (f"git: {outcome.reason}",) if outcome.reason else ()

    return commit


def _versions(state: State) -> Callable[[str], bytes | None]:
    def version(name: str) -> bytes | None:
        try:
            return state.journal.content(name)
        except NotFound:
            return None

    return version


def _follow(engine: Engine, paths: Sequence[Path]) -> None:
    """Let the index follow a write; where another process writes it right now, the next look takes it in."""
    with contextlib.suppress(ConflictError):
        _ = engine.refresh_paths(paths)
