"""Pass taint on to what is derived from foreign text: runs, sessions, and clients that are shown these."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from knapper.tools import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from knapper.changes.proposals.taint import Reader, Taints
    from knapper.changes.writer import Writer
    from knapper.tools.context import Context


def within_session(context: Context, session_id: str) -> Context:
    """Return the vault for a run that goes on in a session, whose turns it is told of and which keeps its own.

    Args:
        context: The vault, as the run sees it.
        session_id: The session's id; empty for none.
    """
    if not session_id:
        return context
    return _with_taints(context, lambda taints, client: taints.within(_reader(client, session_id)))


def within_caller(context: Context, caller: Context) -> Context:
    """Return the vault for a run that an agent or a script begins in a run of its own, and whose answer it hears."""
    client, run = caller.writer.grants.client, _run_of(caller)
    return _with_taints(context, lambda taints, _: taints.shared_with(_reader(client, run)))


def begin_run(context: Context) -> None:
    """Let a run that begins or goes on take over the taint of its session and of the client that it works for.

    Raises:
        StorageError: That can't be stored.
    """
    writer = context.writer
    writer.taints.begin(writer.grants.client, _run_of(context))


def end_run(context: Context) -> None:
    """Let those who hear of a run's answer take over what it has read.

    Raises:
        StorageError: That can't be stored.
    """
    writer = context.writer
    writer.taints.end(writer.grants.client, _run_of(context))


def taint_copier(context: Context, session_id: str) -> Callable[[str], None]:
    """Return a function that gives a copy of a session, by its id, the session's taint.

    Args:
        context: The vault, as the session's agent sees it.
        session_id: The session to copy.
    """
    writer = context.writer
    return lambda copy_id: writer.taints.copy(session_id, _reader(writer.grants.client, copy_id))


def mark_if_derived(context: Context, runs: Iterable[str]) -> None:
    """Taint a client that is shown what came of runs or sessions in which foreign text was read.

    Args:
        context: The vault, as the client sees it.
        runs: The ids of the runs and sessions.
    """
    writer = context.writer
    if writer.grants.is_person:
        return
    for run in runs:
        if writer.taints.keeps(run):
            answers.mark_tainted(context, f"what came of {run}")
            return


def _with_taints(context: Context, link: Callable[[Taints, str], Taints]) -> Context:
    open_writer, open_vault = context.open_writer, context.scripting.open_vault

    def linked_writer() -> Writer:
        writer = open_writer()
        return replace(writer, taints=link(writer.taints, writer.grants.client))

    def open_other(name: str) -> Context:
        return _with_taints(open_vault(name), link)

    scripting = replace(context.scripting, open_vault=open_other)
    return replace(context, open_writer=linked_writer, scripting=scripting)


def _run_of(context: Context) -> str:
    return context.submit_options.run if context.submit_options else ""


def _reader(client: str, run: str) -> Reader:
    from knapper.changes.proposals.taint import Reader  # noqa: PLC0415 - a search needn't pay for what writes

    return Reader(client=client, run=run)
