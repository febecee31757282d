"""Run the agents of schedules: when they are due, within their limits, and held while too much waits for a person."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from knapper.agents import schedules
from knapper.agents.schedules import Schedule, ScheduledRun, ScheduleStore
from knapper.changes.proposals.tables import ProposalFilter
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, ConflictError, KnapError
from knapper.tools import files

if TYPE_CHECKING:
    from knapper.agents.events import Done, Event
    from knapper.app.chats import ClientChats
    from knapper.app.hub import Hub
    from knapper.app.open_clients import OpenClients
    from knapper.tools.context import Context

LOG: Final = logging.getLogger("knapper.app.schedules")


def check_client(hub: Hub, schedule: Schedule, vault: str) -> None:
    """Check that an agent can work on behalf of a schedule's client.

    Raises:
        BadInput: The client is a person, whose word the agent would have.
        SetupError: The rules of client and agent can't be combined.
    """
    from knapper.app import clients  # noqa: PLC0415 - only who adds a schedule needs it

    if hub.settings.client(schedule.client).grants.is_person:
        hint = f"name a client of its own; '{schedules.DEFAULT_CLIENT}' is used otherwise"
        raise BadInput(f"the client '{schedule.client}' is a person, and nobody is there", hint=hint)
    clients.check_can_act(hub, vault, schedule.client)


def check_can_fire(schedule: Schedule) -> None:
    """Check that a change of a schedule's folder can be seen: what happens among its own reports doesn't count.

    Raises:
        BadInput: Its folder is that of its reports, or lies in it.
    """
    # By whichever case: where the file system tells none apart, the reports come into that folder.
    folder, results = f"{schedule.folder}/".casefold(), f"{schedule.results}/".casefold()
    if schedule.cadence == "changed" and schedule.results and folder.startswith(results):
        hint = "take another folder for the reports by --results, or none by --results ''"
        raise BadInput(f"nothing in '{schedule.folder}' would set it to work: its reports go there", hint=hint)


def open_schedules(hub: Hub, vault: str = "") -> ScheduleStore:
    """Open the schedules of a vault.

    Raises:
        NotFound: There is no such vault.
    """
    return ScheduleStore(folder=hub.open(vault).folder)


def take_fingerprint(context: Context, schedule: Schedule) -> str:
    """Return the fingerprint of a schedule's folder as its client sees it, without the reports."""
    prefix, own = f"{schedule.folder}/" if schedule.folder else "", f"{schedule.results}/"
    return schedules.make_fingerprint(
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
    """What runs the schedules of a hub's vaults, one at a time."""

    clients: OpenClients
    """Has the chats that answer; the caller closes it."""
    now: Callable[[], datetime] = schedules.wall_clock

    @property
    def hub(self) -> Hub:
        """Return what holds the vaults."""
        return self.clients.hub

    async def run_due(self) -> None:
        """Run what is due in all vaults; what goes wrong with one doesn't stop the others."""
        for vault in self.hub.vaults:
            try:
                store = open_schedules(self.hub, vault)
                due = await asyncio.to_thread(self._list_due, store, vault)
            except KnapError as error:
                LOG.warning("the schedules of a vault can't be read: %s", error.code)
                continue
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
    ) -> Schedule:
        """Run a schedule, and store what became of it however it ends.

        Args:
            store: The vault's schedules.
            vault: The vault's name.
            name: The schedule's.
            is_due: Returns the time that is due, which only one process takes; None to run it now.

        Raises:
            ConflictError: It is at work, here or in another process (code ``schedule_busy``).
            NotFound: There is no such schedule.
        """
        now = self.now()
        with store.working(name):
            if not await asyncio.to_thread(store.claim, name, is_due or (lambda one: max(one.handled, now)), now):
                return await asyncio.to_thread(store.find, name)
            schedule, run = store.find(name), ScheduledRun(at=now, state="interrupted", reason="the server stopped")
            outcomes: list[Done] = []
            try:
                run = await self._work(vault, schedule, now, outcomes)
            finally:
                # This block runs for a cancelled task, too: then the run was interrupted, and what it proposed counts.
                run = _with_outcome(run, outcomes)
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
            # What it changed itself in the folder is no reason to begin anew.
            with contextlib.suppress(KnapError):
                fingerprint = take_fingerprint(self._context(vault, schedule), schedule)
        return store.end(schedule.name, run, fingerprint)

    async def _work(self, vault: str, schedule: Schedule, now: datetime, outcomes: list[Done]) -> ScheduledRun:
        try:
            waiting = await asyncio.to_thread(lambda: count_open(self._context(vault, schedule), schedule))
            if waiting >= schedule.max_open:
                reason = f"{waiting} of its proposals wait for review: `knap edits review`"
                return ScheduledRun(at=now, state="held", reason=reason)
            client_chats = await asyncio.to_thread(self.clients.chats, schedule.client, vault)
            error = await _answer(client_chats, schedule, outcomes)
            done = outcomes[-1]
            if not done.session_id:
                return ScheduledRun(at=now, state="nothing", reason=done.answer)
            note = await asyncio.to_thread(self._report, vault, schedule, done, now)
        except KnapError as failure:
            return ScheduledRun(at=now, state="failed", reason=_describe(failure.message, failure.hint))
        state = "interrupted" if done.state == "cancelled" else done.state
        return ScheduledRun(at=now, state=state, note=note, reason=error)

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


async def _answer(client_chats: ClientChats, schedule: Schedule, outcomes: list[Done]) -> str:
    """Have the agent work, add its outcome however it ends, and return the error that ended it, if one did."""
    from knapper.agents.chat.conversations import STAGES  # noqa: PLC0415 - as above
    from knapper.agents.events import Done, Error  # noqa: PLC0415 - as above

    errors: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, Error):
            errors.append(_describe(event.error, event.hint))
        elif isinstance(event, Done):
            outcomes.append(event)

    chat = replace(client_chats.chat(), max_tokens=schedule.max_tokens)
    stage = STAGES[schedule.agent]
    _ = await client_chats.conversations.run_stage(chat, stage, hear, may_apply=schedule.may_apply)
    return "; ".join(errors)


def _with_outcome(run: ScheduledRun, outcomes: Sequence[Done]) -> ScheduledRun:
    """Return a run with what its agent came to; as it is where the agent wasn't begun."""
    if not outcomes:
        return run
    done = outcomes[-1]
    tokens = done.usage.get("total_tokens", 0)
    return replace(
        run,
        session_id=done.session_id,
        proposals=len(done.proposals),
        changes=len(done.changes),
        tokens=tokens if isinstance(tokens, int) else 0,
    )


def _describe(message: str, hint: str) -> str:
    return f"{message} ({hint})" if hint else message
