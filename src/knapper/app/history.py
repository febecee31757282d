"""One history of a vault: what was asked, found, proposed, decided, changed, undone and refused, the latest first.

It is read from where each of these is stored: sessions, runs, schedules, proposals and the journal. Each of them gives
its entries lazily, so a page reads little more than what it shows, and shows a client no more than it sees of each.
"""

from __future__ import annotations

import heapq
from bisect import insort
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from knapper.agents import work_store
from knapper.agents.sessions.store import SessionStore
from knapper.app import clients, schedules
from knapper.app.hub import AGENT_CLIENT, local_now
from knapper.changes.disk import undo
from knapper.changes.disk.undo import ChangeFilter
from knapper.changes.proposals.store import ProposalFilter
from knapper.errors import Ambiguous, BadInput, NotFound
from knapper.jsontypes import is_sequence, object_or_empty, objects_in, strings_in
from knapper.tools import answers, journal, proposals
from knapper.tools.context import resolve_filter, resolve_folder
from knapper.vault.paths import name_key

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from knapper.agents.pipeline.store import PausedRun
    from knapper.agents.runs.model import RunRecord
    from knapper.agents.runs.store import RunStore
    from knapper.agents.sessions.store import Exchange
    from knapper.agents.stages import Schedule
    from knapper.app.hub import Hub
    from knapper.changes.disk.journal import Change
    from knapper.changes.proposals.model import Summary
    from knapper.changes.proposals.refusals import LoggedRefusal
    from knapper.errors import KnapError, StorageError
    from knapper.jsontypes import JSONValue
    from knapper.tools.context import Context

    RowT = TypeVar("RowT")

EntryKind = Literal["asked", "found", "scheduled", "proposed", "accepted", "rejected", "changed", "undone", "refused"]
"""A question or task; what came of it; a schedule's latest time; a proposal; its acceptance or rejection; a change that
was applied at once; an undo; what a program's rules refused it, which only a person is shown."""
KINDS: Final[tuple[EntryKind, ...]] = get_args(EntryKind)
LIMIT: Final = 20
MAX_NOTES: Final = 20
"""Notes that an entry names in JSON; all are counted."""
MAX_TEXT: Final = 300
"""Characters of an entry's text."""
TERMINAL_CLIENT: Final = "cli"
_BATCH_SIZE: Final = 50
_USUAL_UNDO: Final = "undo of "
"""How the reason of an undo begins for which nobody gave one; `changes` says the same."""
_MAX_UNDOS: Final = 20
"""How many undos of undos are followed back to what was changed."""
_WISHES: Final = {
    "edited": "edit",
    "created": "create",
    "moved": "move",
    "trashed": "move to the trash",
    "linked": "edit",
}
_LATER_KINDS: Final = frozenset({"found", "rejected"})
"""Kinds that come after another entry of the same time and id."""
SortKey: TypeAlias = tuple[datetime, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One step of a piece of work; what is empty is left out of JSON."""

    at: datetime
    """In UTC; a turn's is when it ended."""
    kind: EntryKind
    id: str
    """Of what it is about; together with the kind there is no other."""
    work: str
    """What it belongs to: the id of a run or a session, of a proposal that none of these made, or of a change."""
    client: str
    """Who did it; empty where that isn't recorded."""
    text: str = ""
    """The question, the beginning of the answer, or the reason."""
    state: str = ""
    """How a turn or run ended, what became of a proposal, ``undone`` of a change, or what was refused."""
    undated: bool = False
    """Whether the time is the proposal's, since an earlier version didn't record that of its rejection."""
    notes: tuple[str, ...] = ()
    """Paths of the notes that it is about, as far as the reader may know of them; JSON has 20 at most."""
    note_count: int = 0
    """Of all, also those of a proposal that ``notes`` doesn't name."""
    session_id: str = ""
    run_id: str = ""
    schedule: str = ""
    proposal_id: str = ""
    change_id: str = ""
    proposals: tuple[str, ...] = ()
    """Ids of what a turn proposed."""
    changes: tuple[str, ...] = ()
    """Ids of what a turn changed, or an undo took back."""
    model: str = ""
    tokens: int = 0
    cost_usd: float = 0
    """Left out where it isn't known, which is 0."""
    times: int = 0
    """How often the same was refused, the last time at this one; left out for once."""

    @property
    def key(self) -> SortKey:
        """Return what entries are sorted by."""
        return self.at, self.id, int(self.kind in _LATER_KINDS)

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows, without what is empty."""
        shape: dict[str, JSONValue] = {}
        for each in fields(self):
            value: object = getattr(self, each.name)
            if isinstance(value, datetime):
                shape[each.name] = value.isoformat(timespec="milliseconds")
            elif is_sequence(value):
                shown = value[:MAX_NOTES] if each.name == "notes" else value
                shape |= {each.name: [*map(str, shown)]} if shown else {}
            elif isinstance(value, bool | int | float | str) and (value or each.name == "client"):
                shape[each.name] = value
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """Which entries are wanted; what is empty is no condition."""

    limit: int = LIMIT
    before: str = ""
    """A time, or the ``next`` of another page."""
    since: str = ""
    """A time, as `journal.parse_moment` takes it."""
    client: str = ""
    work: str = ""
    kinds: frozenset[EntryKind] = frozenset(KINDS)
    note: str = ""
    """A note's path or name, or a folder's path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPage:
    """One page of the history, the latest first."""

    entries: Sequence[Entry]
    limit: int
    next: str = ""
    """What to give as ``before`` for the next page; empty where there is none."""
    unread: Sequence[KnapError] = ()
    """What couldn't be read, so that the page may lack something of it."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        rows: list[JSONValue] = [one.as_dict() for one in self.entries]
        texts = ("; ".join(filter(None, (one.message, one.hint))) for one in self.unread)
        notes: list[JSONValue] = [f"this may lack something: {text}" for text in texts]
        shape: dict[str, JSONValue] = {"success": True, "results": rows, "limit": self.limit}
        return {**shape, "more": bool(self.next), "next": self.next, "notes": notes}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySources:
    """What a history is read from, as one client sees it."""

    context: Context
    sessions: Mapping[str, SessionStore]
    """By the names of the clients who asked."""
    runs: RunStore | None = None
    """None where there are none."""
    run_clients: Sequence[str] | None = None
    """The clients whose runs the client sees; None for all."""
    schedules: Sequence[Schedule] = ()
    paused: Sequence[PausedRun] = ()
    """Tasks that wait for an answer; once they have it, they are turns of a session."""
    unread: Sequence[StorageError] = ()
    """Why files of earlier versions couldn't be migrated; what they hold is missing, or there already."""


@contextmanager
def open_at_terminal(hub: Hub) -> Generator[HistorySources]:
    """Open what the person at the terminal sees: what `knap sessions`, `run`, `schedule`, `edits` and `log` list.

    Raises:
        StorageError: Something of it can't be opened.
    """
    with clients.open_work(hub) as opened:
        work = replace(opened, is_partial=True)
        sessions = schedules.list_sessions(hub, work)
        context = hub.context(client=TERMINAL_CLIENT)
        runs: RunStore | None = None
        if has_runs(hub):
            from knapper.agents.runs import store  # noqa: PLC0415 - seconds that only a vault with runs should cost

            runs = store.RunStore(work)
        yield HistorySources(
            context=context,
            sessions={client or TERMINAL_CLIENT: kept for client, kept in sessions.items()},
            runs=runs,
            schedules=schedules.open_schedules(hub).all(),
            paused=clients.list_paused(hub, TERMINAL_CLIENT, work),
            unread=_find_unread(work, sessions),
        )


def _find_unread(work: work_store.WorkStore, seen: Iterable[str]) -> list[StorageError]:
    """List why files of earlier versions couldn't be migrated that a history is read from."""
    failures = [work.find_failure("sessions", client) for client in seen]
    failures += [work.find_failure("runs"), work.find_failure("paused")]
    return [failure for failure in failures if failure]


@contextmanager
def open_for_client(
    hub: Hub,
    client: str,
    vault: str = "",
    *,
    runs: RunStore | None = None,
    run_clients: Sequence[str] = (),
    run_error: StorageError | None = None,
) -> Generator[HistorySources]:
    """Open what a client of a server sees: its own sessions and runs, and a person those of schedules, too.

    Args:
        hub: Holds the vault.
        client: The client's name.
        vault: The vault's name; empty for the first.
        runs: The vault's runs; None where there are none.
        run_clients: The clients whose runs it sees.
        run_error: Why the runs couldn't be opened; those that can be read are shown all the same.

    Raises:
        NotFound: There is no such vault.
        StorageError: Something of it can't be opened.
    """
    name = hub.name_for(client, vault)
    work = replace(work_store.open_work(hub.open(name).folder), is_partial=True)
    with ExitStack() as stack:
        _ = stack.callback(work.shut)
        seen = schedules.list_seen_clients(hub, client, name, lambda _: work)
        unread = _find_unread(work, seen)
        if run_error is not None:
            from knapper.agents.runs import store  # noqa: PLC0415 - as above
            from knapper.app import client_runs  # noqa: PLC0415 - the same

            runs = store.RunStore(work)
            run_clients = client_runs.list_seen_clients(hub, client, name, runs)
            unread += [run_error] if work.find_failure("runs") is None else []
        yield HistorySources(
            context=hub.context(client=client, vault=name),
            sessions={other: SessionStore(work, local_now, other) for other in seen},
            runs=runs,
            run_clients=run_clients,
            schedules=schedules.list_visible(hub, client, name),
            paused=clients.list_paused(hub, client, work),
            unread=unread,
        )


def has_runs(hub: Hub, vault: str = "") -> bool:
    """Return whether a vault has runs, whose reader takes long to import."""
    return work_store.has_any(hub.open(vault).folder, "runs")


def read_page(sources: HistorySources, query: HistoryQuery) -> HistoryPage:
    """Read a page of the history.

    Raises:
        BadInput: The limit, a time, the cursor or the path isn't valid.
        Ambiguous: Several files have the name.
        RefusedError: The path leads outside the vault.
    """
    answers.check_page(query.limit, 0)
    cut = _parse_cursor(query.before) if query.before else None
    since = journal.parse_moment(query.since) if query.since else None
    note = _resolve_note(sources.context, query.note)
    if note and not journal.may_see(sources.context, note):
        return HistoryPage(entries=(), limit=query.limit, unread=sources.unread)
    reading = _Reading(
        sources=sources,
        query=query,
        note=note,
        since=since,
        until=cut[0] if cut else None,
        shows_answers=sources.context.rights.grants.is_person,
    )
    every = heapq.merge(*reading.streams(), key=lambda entry: entry.key, reverse=True)
    recent = takewhile(lambda entry: reading.since is None or entry.at >= reading.since, every)
    wanted = (entry for entry in recent if (cut is None or entry.key < cut) and reading.wants(entry))
    found = list(islice(wanted, query.limit + 1))
    entries = found[: query.limit]
    following = ""
    if len(found) > query.limit:
        at, entry_id, rank = entries[-1].key
        following = f"{at.isoformat().replace('+00:00', 'Z')}/{rank}/{entry_id}"
    return HistoryPage(entries=entries, limit=query.limit, next=following, unread=sources.unread)


def group_by_work(entries: Iterable[Entry]) -> list[tuple[str, list[Entry]]]:
    """Return entries by pieces of work, that with the latest entry first, each told from its beginning.

    What a turn proposed or changed comes after its question, which is stored with the answer at the turn's end.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.work, []).append(entry)
    return [(work, _tell(steps)) for work, steps in groups.items()]


def _tell(steps: Sequence[Entry]) -> list[Entry]:
    asked_at = {one.at for one in steps if one.kind == "asked"}
    ends = sorted(one.at for one in steps if one.kind == "found" and one.at in asked_at)
    turn_ends = {made: one.at for one in steps if one.kind == "found" for made in (*one.proposals, *one.changes)}

    def order(step: Entry) -> tuple[datetime, bool, SortKey]:
        turn_end = step.at
        if step.kind == "refused":
            turn_end = next((end for end in ends if end >= step.at), step.at)
        elif step.kind in {"proposed", "rejected", "changed"}:
            turn_end = turn_ends.get(step.proposal_id or step.id, step.at)
        return max(step.at, turn_end), turn_end > step.at, step.key

    return sorted(steps, key=order)


def _parse_cursor(text: str) -> SortKey:
    moment, _, rest = text.partition("/")
    rank, _, entry_id = rest.partition("/")
    if rank not in {"", "0", "1"}:
        raise BadInput(f"'{text[:MAX_TEXT]}' is no place in the history", hint="give a time, or the page's `next`")
    # A time alone is before everything of that time.
    return journal.parse_moment(moment).astimezone(UTC), entry_id, int(rank or -1)


def _resolve_note(context: Context, raw: str) -> str:
    def has_rows(path: str) -> bool:
        if not journal.may_see(context, path):
            return False
        if undo.read_latest(context.writer.state.journal, ChangeFilter(path=path), limit=1):
            return True
        if not context.writer.proposals.latest(ProposalFilter(path=path), limit=1):
            return False
        # Proposals are found in any spelling of the path, and all else in the vault's alone.
        for resolve in (context.view.locate, partial(resolve_folder, context)):
            with suppress(NotFound, Ambiguous):
                if name_key(resolve(path)) == name_key(path):
                    return False
        return True

    return resolve_filter(context, raw, has_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A page that is being read; each of its streams is sorted like the page."""

    sources: HistorySources
    query: HistoryQuery
    note: str
    since: datetime | None
    until: datetime | None
    shows_answers: bool
    """Not to programs: whom reading an answer would taint isn't shown it in a list."""

    def streams(self) -> list[Iterator[Entry]]:
        """Return the streams of the wanted kinds."""
        streams: list[tuple[set[EntryKind], Iterator[Entry]]] = [
            *(({"asked", "found"}, self._turns(client, kept)) for client, kept in self.sources.sessions.items()),
            ({"asked", "found"}, self._runs()),
            ({"asked", "found"}, self._paused()),
            ({"scheduled"}, self._schedules()),
            ({"proposed", "rejected"}, self._proposals()),
            ({"rejected"}, self._rejections()),
            ({"refused"}, self._refusals()),
            ({"accepted", "changed", "undone"}, self._changes()),
        ]
        return [stream for kinds, stream in streams if kinds & self.query.kinds]

    def wants(self, entry: Entry) -> bool:
        """Return whether an entry fits what the streams don't look at."""
        return entry.kind in self.query.kinds and self.query.client in {"", entry.client}

    def _is_about_note(self, *entries: Entry) -> bool:
        if not self.note:
            return True
        paths = (path for entry in entries for path in entry.notes)
        return any(path == self.note or path.startswith(f"{self.note}/") for path in paths)

    def _turns(self, client: str, kept: SessionStore) -> Iterator[Entry]:
        def read(limit: int, offset: int) -> Sequence[tuple[str, Exchange]]:
            work = self.query.work
            return kept.latest_turns(until=self.until, work=work, path=self.note, limit=limit, offset=offset)

        for session_id, turn in _read_in_batches(read):
            run_id, notes = str(turn.outcome.get("run_id") or ""), self._visible([turn.file])
            asked = Entry(
                at=turn.at.astimezone(UTC),
                kind="asked",
                id=f"{session_id}/{turn.number:06}",
                work=run_id or session_id,
                client=client,
                text=_shorten(turn.question),
                notes=notes,
                note_count=len(notes),
                session_id=session_id,
                run_id=run_id,
            )
            found = self._found(asked, turn.outcome)
            if self._is_about_note(asked, found):
                yield from (found, asked)

    def _found(self, asked: Entry, outcome: Mapping[str, JSONValue]) -> Entry:
        selected = objects_in(object_or_empty(outcome.get("context")).get("notes"))
        own_vault = {None, "", self.sources.context.vault}
        used = [one for one in (*objects_in(outcome.get("citations")), *selected) if one.get("vault") in own_vault]
        notes = self._visible(str(one.get("path") or "") for one in used)
        error, usage = object_or_empty(outcome.get("error")), object_or_empty(outcome.get("usage"))
        tokens, cost = usage.get("total_tokens"), usage.get("cost_usd")
        return replace(
            asked,
            kind="found",
            client=AGENT_CLIENT,
            text=self._answer(str(outcome.get("answer") or error.get("error") or "")),
            state=str(outcome.get("state") or ""),
            notes=notes,
            note_count=len(notes),
            proposals=tuple(strings_in(outcome.get("proposals"))),
            changes=tuple(strings_in(outcome.get("changes"))),
            model=str(outcome.get("model") or ""),
            tokens=tokens if isinstance(tokens, int) else 0,
            cost_usd=float(cost) if isinstance(cost, int | float) else 0,
        )

    def _runs(self) -> Iterator[Entry]:
        store = self.sources.runs
        if store is None:
            return
        waiting: list[tuple[SortKey, RunRecord]] = []

        def read(limit: int, offset: int) -> list[RunRecord]:
            return store.latest(
                until=self.until,
                clients=self.sources.run_clients,
                run_id=self.query.work,
                limit=limit,
                offset=offset,
            )

        for run in _read_in_batches(read):
            # A run was asked before it was updated, so its question waits for runs that were updated in between.
            while waiting and waiting[-1][0][0] > run.updated:
                yield from self._run_entries(store, *waiting.pop())
            for rank, at in enumerate((run.created, run.updated)):
                insort(waiting, ((at, run.id, rank), run), key=lambda row: row[0])
        while waiting:
            yield from self._run_entries(store, *waiting.pop())

    def _run_entries(self, store: RunStore, key: SortKey, run: RunRecord) -> Iterator[Entry]:
        from knapper.agents.runs import model  # noqa: PLC0415 - it is imported by now, as there is a store

        is_question = key[2] == 0
        run = store.mark_interrupted(run)
        if not is_question and run.state in {"pending", "running"}:
            return
        nodes = store.nodes(run.id) if self.note or not is_question else []
        used = [one.path for one in model.list_used_notes(nodes) if not one.vault and one.use != "read"]
        asked = Entry(
            at=run.created.astimezone(UTC),
            kind="asked",
            id=run.id,
            work=run.id,
            client=run.order.client,
            text=_shorten(run.order.task),
            run_id=run.id,
        )
        notes, spent = self._visible(used), model.total_spent(nodes)
        found = replace(
            asked,
            at=run.updated.astimezone(UTC),
            kind="found",
            client=AGENT_CLIENT,
            text=self._answer(run.answer or "; ".join(run.reasons)),
            state=run.state,
            notes=notes,
            note_count=len(notes),
            model=run.model,
            tokens=spent.tokens,
            cost_usd=float(spent.cost_usd or 0),
        )
        if self._is_about_note(found):
            yield asked if is_question else found

    def _paused(self) -> Iterator[Entry]:
        entries: list[Entry] = []
        for run in self.sources.paused:
            session_id, notes = (
                str(run.request.get("session_id") or ""),
                self._visible([str(run.request.get("current"))]),
            )
            asked = Entry(
                at=run.at.astimezone(UTC),
                kind="asked",
                id=run.id,
                work=run.id,
                client=TERMINAL_CLIENT if run.client == AGENT_CLIENT else run.client,
                text=_shorten(str(run.request.get("task") or "")),
                notes=notes,
                note_count=len(notes),
                session_id=session_id,
                run_id=run.id if session_id else "",
            )
            question = self._answer(str(run.question.get("question") or ""))
            entries += [replace(asked, kind="found", client=AGENT_CLIENT, text=question, state="asked"), asked]
        for entry in sorted(entries, key=lambda entry: entry.key, reverse=True):
            if self.query.work in {"", entry.work, entry.session_id} and self._is_about_note(entry):
                yield entry

    def _schedules(self) -> Iterator[Entry]:
        entries = [
            Entry(
                at=one.last.at.astimezone(UTC),
                kind="scheduled",
                id=one.name,
                work=one.last.session_id or one.name,
                client=one.client,
                text=_shorten(one.last.reason),
                state=one.last.state,
                notes=(notes := self._visible([one.last.note])),
                note_count=len(notes),
                session_id=one.last.session_id,
                schedule=one.name,
                tokens=one.last.tokens,
            )
            for one in self.sources.schedules
            if one.last is not None
        ]
        for entry in sorted(entries, key=lambda entry: entry.key, reverse=True):
            if self.query.work in {"", entry.work} and self._is_about_note(entry):
                yield entry

    def _proposals(self) -> Iterator[Entry]:
        criteria = ProposalFilter(
            path=self.note, work=self.query.work, since=self.since, until=self.until, client=self.query.client
        )
        for summary, row in proposals.iterate_proposals(self.sources.context, criteria):
            state = summary.status.replace("_", " ")
            if "undone" in row:
                state += ", part of it undone" if row["undone"] == "part" else ", undone"
            proposed = Entry(
                at=summary.created.astimezone(UTC),
                kind="proposed",
                id=summary.id,
                work=summary.run or summary.id,
                client=summary.client,
                text=_shorten(row.get("reason", "")),
                state=state,
                notes=(summary.path,) if summary.path else (),
                note_count=summary.files,
                proposal_id=summary.id,
            )
            if summary.has_undated_rejection:
                reason = self._reason(summary, summary.rejection)
                yield replace(proposed, kind="rejected", client="", text=reason, state="", undated=True)
            yield proposed

    def _rejections(self) -> Iterator[Entry]:
        criteria = ProposalFilter(
            path=self.note, work=self.query.work, since=self.since, until=self.until, client=self.query.client
        )
        for one in proposals.iterate_rejections(self.sources.context, criteria):
            yield Entry(
                at=one.at.astimezone(UTC),
                kind="rejected",
                id=f"{one.proposal.id}/{one.number:03}",
                work=one.proposal.run or one.proposal.id,
                client=one.client,
                text=self._reason(one.proposal, one.reason),
                notes=one.paths,
                note_count=len(one.paths),
                proposal_id=one.proposal.id,
            )

    def _refusals(self) -> Iterator[Entry]:
        if not self.shows_answers:
            return
        context = self.sources.context
        refusals = context.writer.proposals.refusals

        def read(limit: int, offset: int) -> Sequence[LoggedRefusal]:
            return refusals.latest(
                since=self.since, until=self.until, client=self.query.client, limit=limit, offset=offset
            )

        for one in _read_in_batches(read):
            notes = self._visible([one.request.path])
            name = f"refused-{one.id:08}"  # of the same length, so that ids sort like the rows
            entry = Entry(
                at=one.at.astimezone(UTC),
                kind="refused",
                id=name,
                work=one.run or name,
                client=one.client,
                text=_shorten(one.request.reason),
                state=f"wanted to {wish}" if (wish := _WISHES.get(one.request.action)) else "",
                notes=notes,
                note_count=len(notes),
                times=one.request.times if one.request.times > 1 else 0,
            )
            # Who sees all is told of folders that hold no notes, too.
            is_shown = bool(entry.notes) or not one.request.path or context.view.policy.sees_all
            if is_shown and self.query.work in {"", entry.work} and self._is_about_note(entry):
                yield entry

    def _reason(self, proposal: Summary, reason: str) -> str:
        """Return why a proposal was rejected; of a tainted one, only to whom it wouldn't taint."""
        return _shorten(reason) if self.shows_answers or not proposal.tainted else ""

    def _changes(self) -> Iterator[Entry]:
        criteria = ChangeFilter(
            path=self.note, work=self.query.work, since=self.since, until=self.until, client=self.query.client
        )
        for change, row in journal.iterate_changes(self.sources.context, criteria):
            files, reason = row["files"], row.get("reason", "")
            yield Entry(
                at=change.at.astimezone(UTC),
                kind="undone" if change.undoes else "accepted" if change.proposal else "changed",
                id=change.id,
                work=self._work_of(change),
                client=change.client,
                text="" if change.undoes and reason.startswith(_USUAL_UNDO) else _shorten(reason),
                state="undone" if change.undone else "",
                notes=tuple(
                    file["path"] if file["action"] == "trashed" else file.get("target") or file["path"]
                    for file in files
                ),
                note_count=len(files) + row.get("hidden_files", 0),
                proposal_id=change.proposal,
                change_id=change.id,
                changes=tuple(row.get("undoes", ())),
            )

    def _work_of(self, change: Change) -> str:
        """Return the piece of work that a change belongs to; an undo belongs to that of what it took back."""
        for _ in range(_MAX_UNDOS):
            undone = journal.seen_undoes(self.sources.context, change)
            if not undone:
                break
            try:
                change = self.sources.context.writer.state.journal.show(undone[0])
            except NotFound:  # the journal had to drop it
                break
        return change.run or change.proposal or change.id

    def _visible(self, paths: Iterable[str]) -> tuple[str, ...]:
        view = self.sources.context.view
        return tuple(path for path in dict.fromkeys(paths) if path and clients.is_visible(view, path))

    def _answer(self, text: str) -> str:
        return _shorten(text) if self.shows_answers else ""


def _read_in_batches(read: Callable[[int, int], Sequence[RowT]]) -> Iterator[RowT]:
    """Yield rows of a function that takes a limit and an offset, reading only as many as are asked for."""
    offset = 0
    while rows := read(_BATCH_SIZE, offset):
        yield from rows
        offset += len(rows)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…"
