"""The shared state that writing to one vault needs, and the writers of its clients."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self

from knapper import config
from knapper.changes.disk import apply, storage
from knapper.changes.drafting import DraftContext
from knapper.changes.links.targets import LinkHistory
from knapper.changes.proposals import store, taint
from knapper.changes.writer import Writer
from knapper.errors import ConflictError, NotFound, StorageError
from knapper.system import private

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from knapper.changes.disk.apply import Recovered
    from knapper.changes.disk.transaction import State
    from knapper.changes.proposals.store import Proposals
    from knapper.changes.proposals.taint import Taints
    from knapper.config import Settings
    from knapper.index.engine import Engine
    from knapper.vault.access import Grants
    from knapper.vault.view import View


_RUN_TABLES: Final = {
    "sessions": ("sessions.db*",),
    "runs": ("task_runs.db*",),
    "paused": ("paused.db*",),
}
"""In which tables and files sessions and runs are stored, with their copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultWriters:
    """The state that the writers of one vault share."""

    settings: Settings
    engine: Engine
    state: State
    proposals: Proposals
    taints: Taints
    recovered: list[str] = field(default_factory=list[str])
    """Notices for the first writer that sees everything."""
    untold: list[Recovered] = field(default_factory=list["Recovered"])
    """Outcomes that no reader was told yet."""
    backup_days: list[date] = field(default_factory=list["date"])
    """The day of the last backup, if any."""

    @classmethod
    def open(cls, settings: Settings, engine: Engine, folder: Path, stack: contextlib.ExitStack) -> Self:
        """Open the journal and the proposals, and finish any write that was interrupted.

        Args:
            settings: What the configuration says.
            engine: The vault's index.
            folder: The vault's state folder.
            stack: Closes what is opened.

        Raises:
            StorageError: The state can't be opened.
        """
        state, recovered = apply.open_state(engine.view.root, folder)
        stack.callback(state.journal.shut)
        open_proposals = store.open_proposals(folder)
        stack.callback(open_proposals.shut)
        lifetime = timedelta(minutes=settings.taint_minutes) if settings.taint_minutes else None
        # Who read it in one vault, read it for all.
        taints = taint.open_taints(settings.state_dir, lifetime=lifetime)
        stack.callback(taints.shut)
        if not state.journal.is_read_only:
            _ = open_proposals.reconcile(state.journal)
            limits = settings.journal
            state.journal.limit(max_bytes=limits.max_mb * 1_000_000, max_age_days=limits.max_age_days)
            open_proposals.prune(max_age_days=limits.max_age_days)
        return cls(
            settings=settings,
            engine=engine,
            state=state,
            proposals=open_proposals,
            taints=taints,
            recovered=[_describe_recovery(recovery) for recovery in recovered],
            untold=recovered,
        )

    def _tidy(self) -> None:
        """Copy the state's databases and prune what ended, once a day, also in a server that runs for weeks."""
        today = datetime.now(UTC).date()
        if self.backup_days == [today]:
            return
        self.backup_days[:] = [today]
        # What couldn't be copied is told by `knap doctor`: writing goes on without.
        max_bytes = self.settings.journal.backup_mb * 1_000_000
        _ = storage.back_up_daily(self.state.folder, max_bytes=max_bytes, today=today)
        with contextlib.suppress(StorageError):  # one entry more takes nothing from anybody
            _ = self.taints.prune(lambda: find_stored_runs(self.settings.state_dir))

    def recover(self) -> None:
        """Finish or take back what was cut short since this was opened, unless its writer is still at work.

        Raises:
            StorageError: The disk refuses.
        """
        recovered = apply.recover_if_free(self.state)
        self.recovered.extend(_describe_recovery(recovery) for recovery in recovered)
        self.untold.extend(recovered)
        if recovered:
            _ = self.proposals.reconcile(self.state.journal)

    def writer(self, view: View, grants: Grants) -> Writer:
        """Create the writer of one client."""
        self._tidy()
        engine, state = self.engine, self.state
        return Writer(
            context=DraftContext(
                view=view,
                owner=engine.view,
                graph=engine.graph,
                read_version=_make_version_reader(state),
                catch_up=engine.catch_up,
                link_history=LinkHistory(state.journal),
            ),
            state=state,
            proposals=self.proposals,
            taints=self.taints,
            grants=grants,
            on_touched=lambda paths: _refresh_index(engine, paths),
            proposal_days=self.settings.proposal_days,
            on_applied=_make_committer(state) if self.settings.commits_to_git else _no_notices,
            recovered=self.recovered,
        )


def find_stored_runs(state_dir: Path) -> set[str] | None:
    """Return the ids of all sessions and runs that the vaults of a state folder hold, also in backups.

    They are what foreign text may have gone into that somebody may go on with. None where a file can't be read.
    """
    stored: set[str] = set()
    try:
        for table, names in _RUN_TABLES.items():
            for path in (path for name in names for path in (state_dir / "vaults").rglob(name)):
                if path.name.endswith(("-wal", "-shm", ".part")) or private.ASIDE_NAME in path.parts:
                    continue
                with contextlib.closing(storage.connect_to_read(path)) as database:
                    stored.update(str(row[0]) for row in database.execute(f"SELECT id FROM {table}"))  # noqa: S608  # constants
    except (OSError, sqlite3.Error):
        return None
    return stored


def _describe_recovery(recovery: Recovered) -> str:
    return f"a change that was cut short was {recovery.outcome}: {', '.join(recovery.paths)}"


def _no_notices(_: str) -> tuple[str, ...]:
    return ()


def _make_committer(state: State) -> Callable[[str], tuple[str, ...]]:
    from knapper.changes.disk import git  # noqa: PLC0415 - only where the owner wants it

    def commit(change_id: str) -> tuple[str, ...]:
        if not change_id:
            return ()
        outcome = git.commit(state.root, [state.journal.show(change_id)], env=config.environment_variables())
        return (f"git: {outcome.reason}",) if outcome.reason else ()

    return commit


def _make_version_reader(state: State) -> Callable[[str], bytes | None]:
    def version(name: str) -> bytes | None:
        try:
            return state.journal.content(name)
        except NotFound:
            return None

    return version


def _refresh_index(engine: Engine, paths: Sequence[Path]) -> None:
    """Refresh the index after a write; a failure here doesn't undo the write.

    If another process is writing the index, or it can't be written, the next refresh catches up or reports it.
    """
    with contextlib.suppress(ConflictError, StorageError, sqlite3.DatabaseError):
        _ = engine.refresh_paths(paths)
