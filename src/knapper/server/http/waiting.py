"""List what tasks and runs ask a person, for those who listen to a vault's news."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from knapper.agents.pipeline import store
from knapper.errors import NotFound
from knapper.server.http import tasks
from knapper.server.http.binding import RequestArguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from knapper.app import Hub
    from knapper.app.client_runs import ClientRuns
    from knapper.jsontypes import JSONValue
    from knapper.server.http.feed import WaitingSource
    from knapper.server.http.runs import RunService
    from knapper.server.http.tasks import TaskService


_CHECKPOINTS_FILE: Final = "checkpoints.db"


def task_source(hub: Hub, service: TaskService) -> WaitingSource:
    """Return a function that lists the tasks which wait for an answer: rows of the kind ``task``."""

    async def source(client: str, vault: str) -> Sequence[Mapping[str, JSONValue]]:
        if not await service.run_blocking(lambda: _has_file(hub, vault, store.PAUSED_FILE)):
            return []
        client_pipelines = await service.client_pipelines(client, vault)
        listing = await tasks.list_waiting_runs(service, client_pipelines, RequestArguments(values={}))
        rows = cast("list[dict[str, JSONValue]]", listing["results"])
        return [{"kind": "task", "id": row["run_id"], **row} for row in rows]

    return source


def run_source(hub: Hub, service: RunService) -> WaitingSource:
    """Return a function that lists the questions of runs which nobody has answered: rows of the kind ``run``."""

    async def source(client: str, vault: str) -> Sequence[Mapping[str, JSONValue]]:
        if not await service.run_blocking(lambda: _has_file(hub, vault, _CHECKPOINTS_FILE)):
            return []
        client_runs = await service.client_runs(client, vault)
        return await service.run_blocking(lambda: _list_questions(client_runs))

    return source


def _has_file(hub: Hub, vault: str, name: str) -> bool:
    """Return whether there is a state file: without one there is nothing to import what reads it for."""
    return (hub.open(vault).folder / name).exists()


def _list_questions(client_runs: ClientRuns) -> list[dict[str, JSONValue]]:
    rows: list[dict[str, JSONValue]] = []
    run_ids = dict.fromkeys(checkpoint.run for checkpoint in client_runs.opened_runs.checkpoints.waiting())
    for run_id in run_ids:
        try:
            questions = client_runs.questions(run_id)
            if questions:
                _ = client_runs.show(run_id)  # whoever is told what a tainted run asks has read what it read
        except NotFound:  # another client's
            continue
        for question in questions:
            row = {**question.as_dict(), "kind": "run", "run_id": run_id}
            del row["type"]
            rows.append(row)
    return rows
