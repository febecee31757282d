"""Run the agents of schedules: when they are due, within their limits, and held while too much waits for a person."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from knapper.agents import stages, work_store
from knapper.agents.stages import Schedule, ScheduledRun, ScheduleStore
from knapper.app.hub import local_now
from knapper.changes.proposals.store import ProposalFilter
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, ConflictError, KnapError
from knapper.tools import files

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from datetime import datetime

    from knapper.agents.events import Done, JobEventSink, JobFunction, TurnJob
    from knapper.agents.sessions.store import SessionStore
    from knapper.agents.stages import RunState, Stage
    from knapper.agents.work_store import WorkStore
    from knapper.app.chats import ClientChats
    from knapper.app.hub import Hub
    from knapper.app.open_clients import OpenClients
    from knapper.tools.context import Context

    BeginTurn = Callable[[ClientChats, str, JobFunction, str], TurnJob]

LOG: Final = logging.getLogger("knapper.app.schedules")
_TIMES: Final = ("cadence", "at", "weekday", "folder", "results", "client")
"""What decides when a schedule is due; by results and client, which changes of its folder it sees."""
CANCEL_POLL_S: Final = 1.0
"""Pause between two looks at whether a run is to end."""


def check_client(hub: Hub, schedule: Schedule, vault: str) -> None:
    """Check that an agent can work on behalf of a schedule's client.

    Raises:
        BadInput: The client is a person, whose word the agent would have.
        SetupError: The rules of client and agent can't be combined.
    """
    if hub.settings.client(schedule.client).grants.is_person:
        hint = f"name a client of its own; '{stages.DEFAULT_CLIENT}' is used otherwise"
        raise BadInput(f"the client '{schedule.client}' is a person, and nobody is there", hint=hint)
    hub.check_can_act(vault, schedule.client)


def check_can_fire(schedule: Schedule) -> None:
    """Check that a change of a schedule's folder can be seen: what happens among its own reports doesn't count.

    Raises:
        BadInput: Its folder is that of its reports, or lies in it.
    """
    # By whichever case: where the file system tells none apart, the reports come into that folder.
    folder, results = f"{schedule.folder}/".casefold(), f"{schedule.results}/".casefold()
    if schedule.cadence == "changed" and schedule.results and folder.startswith(results):
        hint = "take another folder for the reports, or none"
        raise BadInput(f"nothing in '{schedule.folder}' would set it to work: its reports go there", hint=hint)


def prepare(hub: Hub, schedule: Schedule, vault: str, by: str) -> Schedule:
    """Return a new or changed schedule as it can be stored, after all that it names was looked up.

    Args:
        hub: Holds the vault.
        schedule: As a person wants it.
        vault: The vault's name.
        by: The client of the person, by whose view its folders are looked up.

    Raises:
        NotFound: There is no such agent or folder.
        BadInput: A folder can't be one, its reports would hide its changes, or its client is a person.
        SetupError: The agent's file has a mistake, or the rules of client and agent can't be combined.
    """
    from knapper.app import clients  # noqa: PLC0415 - a look at schedules needn't wait for it
    from knapper.tools.context import resolve_folder  # noqa: PLC0415 - the same

    context = hub.context(client=by, vault=vault)
    prepared = replace(
        schedule,
        agent=clients.open_stages(hub).find(schedule.agent).name,
        folder=resolve_folder(context, schedule.folder) if schedule.folder.strip() else "",
        results=context.view.parse(schedule.results) if schedule.results.strip() else "",
    )
    check_client(hub, prepared, vault)
    check_can_fire(prepared)
    seen = take_fingerprint(hub.context(client=prepared.client, vault=vault), prepared)
    return replace(prepared, fingerprint=seen, changed="", changed_at=None)


def edit(
    hub: Hub, store: ScheduleStore, vault: str, by: str, name: str, change: Callable[[Schedule], Schedule]
) -> Schedule:
    """Change or resume a schedule; what it would have missed by other times, or while it was paused, isn't caught up.

    Args:
        hub: Holds the vault.
        store: The vault's schedules.
        vault: The vault's name.
        by: The client of the person, by whose view its folders are looked up.
        name: The schedule's.
        change: Returns the schedule as the person wants it.

    Raises:
        NotFound: There is no such schedule, or as for `prepare`, like all else.
    """
    prepared, now = prepare(hub, change(store.find(name)), vault, by), stages.wall_clock()

    def edited(one: Schedule) -> Schedule:
        made = replace(change(one), agent=prepared.agent, folder=prepared.folder, results=prepared.results)
        is_resumed = one.is_paused and not made.is_paused
        if not is_resumed and all(getattr(one, field) == getattr(made, field) for field in _TIMES):
            return made
        return replace(made, handled=now, fingerprint=prepared.fingerprint, changed="", changed_at=None)

    return store.change(name, edited)


def list_visible(hub: Hub, client: str, vault: str = "") -> list[Schedule]:
    """List the schedules that a client may see: those of a person from whom nothing is hidden that their agents see.

    Raises:
        NotFound: There is no such vault.
        StorageError: The schedules can't be read.
    """
    if not hub.settings.client(client).grants.is_person:
        return []
    name = hub.name_for(client, vault)
    stored = open_schedules(hub, name).all()
    seen = {other for other in {one.client for one in stored} if hub.covers_agent_view(client, other, name)}
    return [one for one in stored if one.client in seen]


def open_schedules(hub: Hub, vault: str = "") -> ScheduleStore:
    """Open the schedules of a vault.

    Raises:
        NotFound: There is no such vault.
    """
    return ScheduleStore(folder=hub.open(vault).folder)


def list_clients(hub: Hub, vault: str = "") -> list[str]:
    """List the clients for whom the agents of a vault's schedules work, or have worked.

    Raises:
        NotFound: There is no such vault.
    """
    opened = hub.open(vault)
    store = ScheduleStore(folder=opened.folder)
    names = dict.fromkeys((stages.DEFAULT_CLIENT, *(one.client for one in store.all())))
    settings = [hub.settings.client(name) for name in names]
    return [one.name for one in settings if not one.grants.is_person and one.may_open(opened.vault.name)]


def list_seen_clients(
    hub: Hub, client: str, vault: str, find_work: Callable[[str], WorkStore | None] = lambda _: None
) -> list[str]:
    """List the clients whose sessions a client sees: itself, and for a person those that schedules work for.

    Only those from whom nothing is hidden that is hidden from the person.

    Args:
        hub: Holds the vault.
        client: Who asks.
        vault: The vault's name; empty for the first.
        find_work: Returns the sessions of a vault by its name, if they are open.

    Raises:
        NotFound: There is no such vault.
    """
    if not hub.settings.client(client).grants.is_person or vault not in {"", *hub.names_for(client)}:
        return [client]
    name = hub.name_for(client, vault)
    work = find_work(name)
    has_sessions = work.has_sessions if work else partial(work_store.has_sessions, hub.open(name).folder)
    others = [
        other for other in list_clients(hub, name) if has_sessions(other) and hub.covers_agent_view(client, other, name)
    ]
    return [client, *others]


@contextlib.contextmanager
def open_sessions(hub: Hub, session_id: str = "") -> Generator[Mapping[str, SessionStore]]:
    """Open the sessions of a vault: the agent's own under an empty name, and those of its schedules by their clients.

    Args:
        hub: Holds the vault.
        session_id: Open only those among which this one is; empty for all.

    Raises:
        NotFound: There is no such session (code ``no_session``).
        StorageError: The sessions can't be opened.
    """
    from knapper.app import clients  # noqa: PLC0415 - a look at schedules needn't wait for it

    with clients.open_work(hub) as work:
        opened = list_sessions(hub, work)
        if session_id:
            own = next((name for name, kept in opened.items() if kept.has(session_id)), "")
            _ = opened[own].get(session_id)
            opened = {own: opened[own]}
        yield opened


def list_sessions(hub: Hub, work: WorkStore) -> dict[str, SessionStore]:
    """Return the sessions of a vault as `open_sessions` does.

    Raises:
        StorageError: Some of them can't be read.
    """
    from knapper.agents.sessions.store import SessionStore  # noqa: PLC0415 - a look at schedules needn't wait for it
    from knapper.app import clients  # noqa: PLC0415 - the same

    others = {client: SessionStore(work, local_now, client) for client in list_clients(hub)}
    return {"": clients.open_sessions(hub, work), **others}


def take_fingerprint(context: Context, schedule: Schedule) -> str:
    """Return the fingerprint of a schedule's folder as its client sees it, without the reports."""
    prefix, own = f"{schedule.folder}/" if schedule.folder else "", f"{schedule.results}/"
    return stages.make_fingerprint(
        [
            file
            for file in context.view.list_files()
            if file.path.startswith(prefix) and not (schedule.results and file.path.startswith(own))
        ]
    )


def count_open(context: Context, schedule: Schedule) -> int:
    """Return how many proposals of a schedule's runs wait for a person."""
    store = context.writer.proposals
    return sum(store.find(ProposalFilter(status="open", run=run), limit=1).total for run in schedule.runs)


@dataclass(slots=True, kw_only=True)
class ScheduleRunner:
    """What runs the schedules of a hub's vaults, those of a vault one after the other."""

    clients: OpenClients
    """Has the chats that answer; the caller closes it."""
    begin: BeginTurn = lambda client_chats, session_id, work, text: client_chats.turns.start(session_id, work, text)
    """Starts the turn of a session, which others can then follow and cancel; for a server's, among its jobs."""
    now: Callable[[], datetime] = stages.wall_clock

    @property
    def hub(self) -> Hub:
        """Return what holds the vaults."""
        return self.clients.hub

    async def run_due(self, vault: str) -> None:
        """Run what is due in a vault; what goes wrong with one doesn't stop the others."""
        try:
            store = open_schedules(self.hub, vault)
            due = await asyncio.to_thread(self._list_due, store, vault)
        except KnapError as error:
            LOG.warning("the schedules of a vault can't be read: %s", error.code)
            return
        for schedule in due:
            try:
                _ = await self.run(store, vault, schedule.name, is_due=self._due_at)
            except ConflictError:
                continue  # another process was first
            except KnapError as error:
                LOG.warning("the schedule '%s' can't be run: %s", schedule.name, error.code)

    async def run(
        self,
        store: ScheduleStore,
        vault: str,
        name: str,
        *,
        is_due: Callable[[Schedule], datetime | None] | None = None,
        on_start: Callable[[], None] | None = None,
    ) -> Schedule:
        """Run a schedule, and store what became of it however it ends.

        Args:
            store: The vault's schedules.
            vault: The vault's name.
            name: The schedule's.
            is_due: Returns the time that is due, which only one process takes; None to run it now.
            on_start: Called once it is this process that runs it.

        Raises:
            ConflictError: It is at work, here or in another process (code ``schedule_busy``).
            NotFound: There is no such schedule.
        """
        now = self.now()
        with store.working(name):
            if not await asyncio.to_thread(store.claim, name, is_due or (lambda one: max(one.handled, now)), now):
                return await asyncio.to_thread(store.find, name)
            if on_start is not None:
                on_start()
            schedule, run = store.find(name), ScheduledRun(at=now, state="interrupted", reason="the server stopped")
            outcomes: list[Done] = []
            try:
                run = await self._work(store, vault, schedule, outcomes)
            finally:
                # This block runs for a cancelled task, too: then the run was interrupted, and what it proposed counts.
                if outcomes:
                    done = outcomes[-1]
                    tokens = done.usage.get("total_tokens", 0)
                    run = replace(
                        run,
                        session_id=done.session_id,
                        proposals=len(done.proposals),
                        changes=len(done.changes),
                        tokens=tokens if isinstance(tokens, int) else 0,
                    )
                ended = await asyncio.shield(asyncio.to_thread(self._end, store, vault, schedule, run))
        return ended

    def _list_due(self, store: ScheduleStore, vault: str) -> list[Schedule]:
        now, due = self.now(), list[Schedule]()
        for schedule in store.all():
            one = schedule
            if one.handled > now:  # the clock was ahead once, which must not silence it until then
                one = store.change(one.name, lambda stored: replace(stored, handled=min(stored.handled, now)))
            if one.cadence == "changed" and not one.is_paused:
                looked = one.look(take_fingerprint(self._context(vault, one), one), now)
                if looked != one:
                    fingerprint = looked.changed or looked.fingerprint
                    one = store.change(one.name, lambda stored: stored.look(fingerprint, now))  # noqa: B023  # called at once
            if self._due_at(one) is not None:
                due.append(one)
        return due

    def _due_at(self, schedule: Schedule) -> datetime | None:
        now = self.now()
        return now if schedule.is_settled(now) else schedule.due_at(now)

    def _context(self, vault: str, schedule: Schedule, run: str = "") -> Context:
        options = SubmitOptions(run=run, propose=not schedule.may_apply, reason=f"schedule {schedule.name}")
        return self.hub.context(client=schedule.client, vault=vault, submit_options=options)

    def _end(self, store: ScheduleStore, vault: str, schedule: Schedule, run: ScheduledRun) -> Schedule:
        fingerprint = ""
        if schedule.cadence == "changed":
            # What it changed itself in the folder is no reason to start over.
            with contextlib.suppress(KnapError):
                fingerprint = take_fingerprint(self._context(vault, schedule), schedule)
        return store.end(schedule.name, run, fingerprint)

    async def _work(self, store: ScheduleStore, vault: str, schedule: Schedule, outcomes: list[Done]) -> ScheduledRun:
        from knapper.agents.events import Error  # noqa: PLC0415 - 2 s that a server without schedules needn't wait for

        now = self.now()
        try:
            waiting = await asyncio.to_thread(lambda: count_open(self._context(vault, schedule), schedule))
            if waiting >= schedule.max_open:
                reason = f"{waiting} of its proposals wait for review: `knap edits review`"
                return ScheduledRun(at=now, state="held", reason=reason)
            client_chats = await asyncio.to_thread(self.clients.chats, schedule.client, vault)
            stage = await asyncio.to_thread(client_chats.conversations.stages.find, schedule.agent)
            job = await self._begin_stage(client_chats, schedule, stage)
            if job is None:
                return ScheduledRun(at=now, state="nothing", reason=stage.nothing)
            await asyncio.to_thread(store.tell_session, schedule.name, job.subject_id)
            done = await _follow(job, lambda: store.is_cancelled(schedule.name), outcomes)
            note = await asyncio.to_thread(self._report, vault, schedule, done, now)
        except KnapError as failure:
            return ScheduledRun(at=now, state="failed", reason=_describe(failure.message, failure.hint))
        errors = [event for event in job.events if isinstance(event, Error)]
        state: RunState = done.state
        if any(error.code == "stopping" for error in errors):
            state = "interrupted"
        reason = "; ".join([*(_describe(error.error, error.hint) for error in errors), *map(str, done.notes)])
        return ScheduledRun(at=now, state=state, note=note, reason=reason)

    async def _begin_stage(self, client_chats: ClientChats, schedule: Schedule, stage: Stage) -> TurnJob | None:
        """Start the schedule's agent in a session of its own; None where there is nothing to do."""
        from knapper.agents.chat.turn import Message, TurnCaps  # noqa: PLC0415 - as above

        conversations = client_chats.conversations
        chat = await asyncio.to_thread(client_chats.chat)
        session = await asyncio.to_thread(conversations.begin_stage, chat, stage)
        if session is None:
            return None
        caps = TurnCaps(tokens=schedule.max_tokens, minutes=schedule.max_minutes)
        message = Message(text=f"/{stage.name}", may_apply=schedule.may_apply, caps=caps)

        async def work(emit: JobEventSink) -> None:
            _ = await conversations.reply(chat, session.id, message, emit)

        return self.begin(client_chats, session.id, work, message.text)

    def _report(self, vault: str, schedule: Schedule, done: Done, now: datetime) -> str:
        """Write the report as a note in the results folder, by the client's own rules; empty where it can't be."""
        if not schedule.results or not done.answer.strip():
            return ""
        path = f"{schedule.results}/{now:%Y-%m-%d %H%M} {schedule.name}.md"
        properties = {"agent": schedule.agent, "run": done.session_id, "proposals": len(done.proposals)}
        try:
            _ = files.create_file(self._context(vault, schedule, done.session_id), path, done.answer, properties)
        except KnapError as error:
            LOG.warning("a report of the schedule '%s' can't be written: %s", schedule.name, error.code)
            return ""
        return path


async def _follow(job: TurnJob, is_cancelled: Callable[[], bool], outcomes: list[Done]) -> Done:
    """Wait for the end of a turn, which somebody may cancel meanwhile, and add its outcome."""
    ending = asyncio.ensure_future(job.wait())
    try:
        while not (await asyncio.wait([ending], timeout=CANCEL_POLL_S))[0]:
            if await asyncio.to_thread(is_cancelled):
                _ = job.cancel()
    except asyncio.CancelledError:
        _ = job.cancel()
        outcomes.append(await asyncio.shield(ending))  # it keeps first what it has
        raise
    outcomes.append(ending.result())
    return outcomes[-1]


def _describe(message: str, hint: str) -> str:
    return f"{message} ({hint})" if hint else message
