"""Do with the vault's own agents what a client asks for by a tool."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from knapper.agents import offers
from knapper.agents.offers import AgentRequest
from knapper.agents.pipeline.records import PhaseProgress, PipelineEvent, PipelineOutcome
from knapper.agents.pipeline.store import AgentToggles
from knapper.app.acting import CLIENT
from knapper.app.tasks import choices, pipelines, presets, resuming
from knapper.app.tasks.choices import Choice
from knapper.changes.writer import SubmitOptions
from knapper.errors import RefusedError, SetupError
from knapper.tools import answers

if TYPE_CHECKING:
    from knapper.agents.pipeline.context import TaskRequest
    from knapper.agents.pipeline.service import PipelineService
    from knapper.app.hub import Hub
    from knapper.app.tasks.pipelines import Pipelines
    from knapper.tools.context import Context
    from knapper.tools.shapes import Answer
    from knapper.vault.access import Grants


_STEPS = 6.0
"""What progress is told as a share of; nobody knows how many steps there will be."""


def ask(hub: Hub, context: Context, asked: AgentRequest) -> Answer:
    """Carry a tool's call out, in the thread that calls.

    The model acts as the agent for the client that called: it sees and changes no more than both may.

    Raises:
        KnapError: As the tools say.
    """
    with pipelines.open_pipelines(hub, context.vault) as opened:
        own = pipelines.scout_settings(hub.settings)
        hints = asked.hints
        looking = replace(own, rounds=hints.get("rounds", own.rounds), notes=hints.get("notes", own.notes))
        request = None if asked.run_id else _request(opened, asked, context)
        acting, owner = _acting(hub, context, opened, request.run_id if request else asked.run_id)
        answering = replace(opened.answering(scout=looking), owner=owner)
        outcome = asyncio.run(_carried_out(answering, acting, request or asked, context.writer.grants))
        if acting.writer.mine(outcome.run_id).tainted:  # whoever hears the answer has read what went into it
            answers.mark_tainted(context, f"{asked.kind}_vault: run {outcome.run_id}")
    if outcome.error is not None and outcome.state in {"failed", "limit"}:
        kind = RefusedError if outcome.state == "limit" else SetupError
        raise kind(str(outcome.error["error"]), hint=str(outcome.error["hint"]), code=str(outcome.error["code"]))
    return offers.shape_outcome(outcome.as_dict())


async def _carried_out(
    answering: PipelineService, context: Context, work: TaskRequest | AgentRequest, by: Grants
) -> PipelineOutcome:
    heard: list[str] = []

    def tell(event: PipelineEvent) -> None:
        if isinstance(event, PhaseProgress):
            heard.append(event.text)
            context.progress(min(len(heard), _STEPS - 1), _STEPS, event.text)

    if isinstance(work, AgentRequest):
        return await answering.resume(work.run_id, work.answer, context, tell, by=by)
    return await answering.ask(work, context, tell)


def _acting(hub: Hub, context: Context, opened: Pipelines, run_id: str) -> tuple[Context, str]:
    """Open the vault as the agents see it that act for a client, and say whose run it is."""
    grants = context.writer.grants
    if grants.kind in {"agent", "script"}:  # it may be narrowed already
        return replace(context, asked=SubmitOptions(run=run_id)), grants.client
    waits = next((run.client for run in opened.runs.list() if run.id == run_id), "")
    owner = waits or (CLIENT if grants.is_person else grants.client)
    clients = (owner,) if grants.is_person else (owner, grants.client)
    acting = resuming.joined(hub, context.vault, run_id, clients)
    return replace(acting, progress=context.progress), owner


def _request(opened: Pipelines, asked: AgentRequest, context: Context) -> TaskRequest:
    """Make a request of what a client says, beside what is usual as far as the client may see and do that."""
    said = asked.choices
    preset = said.get("preset", "")
    is_own = bool(preset) or context.writer.grants.is_person  # the switches that are kept are persons'
    before = opened.usual(preset) if is_own else presets.configured(opened.hub.settings)
    usual = choices.seen(before, context.view)
    if asked.kind == "scout":
        chosen = replace(usual, toggles=AgentToggles(scout=True, task=False), added=())
        return opened.request(asked.task, chosen, current=asked.note)
    chosen = Choice(
        scout=said.get("scout"),
        web=said.get("web"),
        task=True,
        link_depth=said.get("link_depth"),
        same_folder=said.get("same_folder"),
        editable=said.get("editable"),
        can=said.get("can"),
        added=said.get("add", ()),
    )
    wanted = choices.allowed(chosen.applied(usual), context.writer.grants)
    return opened.request(asked.task, wanted, current=asked.note)
