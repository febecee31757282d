"""The pipelines of several agents: opened for a vault and for each client, previewed, resumed and offered as tools."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from knapper.agents import prompting
from knapper.agents.events import BackgroundJobs, FinalEventSpec
from knapper.agents.pipeline import context as pipeline_context
from knapper.agents.pipeline import records, store
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.orchestrator import Agents
from knapper.agents.pipeline.records import (
    PhaseProgress,
    PipelineEvent,
    PipelineOutcome,
    ScoutResult,
    TaskLimits,
)
from knapper.agents.pipeline.scopes import OPTIONAL_SCOUT_TOOLS
from knapper.agents.pipeline.service import PipelineService
from knapper.agents.pipeline.store import AgentToggles, PausedRuns, Preset, Presets
from knapper.agents.sessions.store import SessionStore
from knapper.app import chats, models, tables
from knapper.app import clients as app_clients
from knapper.app.chats import VaultChats
from knapper.app.clients import PresetOverrides, default_preset
from knapper.app.hub import AGENT_CLIENT, local_now
from knapper.app.tables import AgentRequest
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, NotFound, RefusedError
from knapper.jsontypes import objects_in
from knapper.tools import answers
from knapper.vault import parser

if TYPE_CHECKING:
    from collections.abc import Generator

    from knapper.agents.pipeline.store import PausedRun
    from knapper.app.chats import ClientChats, OpenChat
    from knapper.app.clients import TaskOrder
    from knapper.app.hub import Hub
    from knapper.config import ClientSettings, Settings
    from knapper.jsontypes import JSONValue
    from knapper.tools.context import Context
    from knapper.tools.shapes import Answer
    from knapper.vault.access import Grants


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultPipelines:
    """The pipelines of one vault, beside its chats."""

    chats: VaultChats
    runs: PausedRuns
    presets: Presets
    owner: str = AGENT_CLIENT
    """On whose behalf tasks are done, and in whose sessions they are kept."""
    open_chat: OpenChat = VaultChats.chat

    def answering(self, model: str = "", *, limits: TaskLimits | None = None) -> PipelineService:
        """Open the models; nothing is sent yet.

        Args:
            model: The model's name; empty for the configured one.
            limits: Limits of the agents in place of the configured ones; None for those.

        Raises:
            SetupError: There is no such model, or no key for it.
            BadInput: A limit is out of its range.
        """
        settings = self.chats.hub.settings
        scout_model = settings.agents.scout.model
        agents = Agents(
            chat=self.open_chat(self.chats, model),
            scout_chat=self.open_chat(self.chats, scout_model) if scout_model else None,
        )
        return PipelineService(
            agents=agents.within(configured_task_limits(settings)).within(limits or TaskLimits()),
            runs=self.runs,
            store=self.chats.store,
            owner="" if self.owner == AGENT_CLIENT else self.owner,
        )

    def request(self, task: str, preset: Preset, *, current: str = "", session_id: str = "") -> TaskRequest:
        """Build a request from a preset."""
        agent_settings = self.chats.hub.settings.agents
        return TaskRequest(
            task=task,
            current=current,
            toggles=preset.toggles,
            scope=preset.scope,
            rules=preset.rules,
            added=preset.added,
            chat_history_length=agent_settings.chat_history_length,
            token_limit=agent_settings.token_limit,
            linked_notes=agent_settings.linked_notes,
            semantic_notes=agent_settings.semantic_notes,
            semantic_similarity=agent_settings.semantic_similarity,
            orchestrate=agent_settings.orchestrate,
            session_id=session_id,
        )


@contextmanager
def open_pipelines(hub: Hub, vault: str = "") -> Generator[VaultPipelines]:
    """Open the pipelines of a vault.

    Args:
        hub: Holds the vaults; it stays open as long as the pipelines are used.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: A file of the state folder can't be opened.
    """
    with chats.open_chats(hub, vault) as vault_chats:
        work = vault_chats.work
        yield VaultPipelines(chats=vault_chats, runs=PausedRuns(work, local_now), presets=Presets(work))


def configured_task_limits(settings: Settings) -> TaskLimits:
    """Return the configured limits of a task's agents."""
    scout, web, agent_settings = settings.agents.scout, settings.web, settings.agents
    return TaskLimits(
        rounds=scout.rounds,
        notes=scout.notes,
        keyword_limit=scout.keyword_limit,
        tools=tuple(tool for tool in OPTIONAL_SCOUT_TOOLS if tool in scout.tools),
        show_tags=scout.show_tags,
        timeout_s=scout.timeout_s,
        snippet_limit=web.max_results,
        fetch_limit=web.max_pages,
        token_budget=web.token_budget,
        auto_search=agent_settings.auto_search,
        orchestrator_steps=agent_settings.orchestrator_steps,
        orchestrator_tokens=agent_settings.orchestrator_tokens,
    )


def _check_limits(settings: Settings, limits: TaskLimits, grants: Grants) -> None:
    """Check that a client takes no more than the owner configured, where that isn't bounded otherwise.

    Raises:
        RefusedError: It does (code ``over_limit``).
    """
    usual = configured_task_limits(settings)
    most_tokens = usual.orchestrator_tokens
    # Whoever asks, the web gives no more results than configured; the rest a person may exceed.
    exceeding = {"snippet_limit": (limits.snippet_limit or 0) > settings.web.max_results}
    exceeding |= (
        {}
        if grants.is_person
        else {
            "tools": bool(limits.tools) and not {*(limits.tools or ())} <= {*(usual.tools or ())},
            "auto_search": limits.auto_search is True and not usual.auto_search,
            "timeout_s": (limits.timeout_s or 0) > (usual.timeout_s or 0),
            "orchestrator_tokens": bool(most_tokens)
            and limits.orchestrator_tokens is not None
            and not 0 < limits.orchestrator_tokens <= (most_tokens or 0),
        }
    )
    for name, is_exceeding in exceeding.items():
        if is_exceeding:
            raise RefusedError(
                f"'{name}' is more than the owner allows",
                hint="give less, or leave it out; the owner's settings say how much at most",
                code="over_limit",
            )


MOST_PRESETS: Final = 500
TASK_ENDING: Final = FinalEventSpec(
    kind=PipelineOutcome, make=lambda state, run_id: PipelineOutcome(run_id=run_id, state=state, answer="", pipeline={})
)
"""What ends a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPipelines:
    """The pipelines of one client in one vault."""

    chats: ClientChats
    pipelines: VaultPipelines
    switches: Presets
    """Keeps the switches as the client set them last; those of persons are the vault's own."""
    jobs: BackgroundJobs[PipelineOutcome] = field(default_factory=lambda: BackgroundJobs(TASK_ENDING))
    """Tasks that go on, or have ended a while ago; used from the server's event loop only."""

    @property
    def client(self) -> ClientSettings:
        """Return the client's rights."""
        return self.chats.chats.hub.settings.client(self.chats.client)

    def agent_context(self, run_id: str) -> Context:
        """Open the vault as the agents that act for the client see it."""
        return self.chats.conversations.context_of(run_id)

    def default_preset(self, preset: str = "") -> Preset:
        """Return the defaults of a task, as far as the client may see and use them.

        Raises:
            NotFound: There is no such preset.
        """
        return self._restrict(default_preset(self.switches, self.chats.chats.hub.settings, preset))

    def configured(self) -> Preset:
        """Return the configured preset, as far as the client may see and use it.

        Raises:
            SetupError: All agents are switched off.
        """
        return self._restrict(app_clients.configured_preset(self.chats.chats.hub.settings))

    def presets(self) -> list[Preset]:
        """List the presets as the client may see them."""
        view = self.agent_context("").view
        return [app_clients.restrict_to_visible(preset, view) for preset in self.pipelines.presets.list()]

    def answering(self, model: str = "") -> PipelineService:
        """Open the models; nothing is sent yet.

        Raises:
            SetupError: There is no such model, or no key for it.
            RefusedError: The client may not use it.
        """
        return replace(self.pipelines.answering(self.model(model)), wait_s=0)

    def model(self, name: str) -> str:
        """Return the name of the model that a client may use; empty for the configured one.

        Raises:
            RefusedError: The client may not use it.
        """
        settings = self.chats.chats.hub.settings
        models.check_model_allowed(settings, name, self.client.grants)
        return "" if name == settings.model.name else name

    def request(self, order: TaskOrder) -> TaskRequest:
        """Build a request from the client's order; nothing of it is remembered.

        Raises:
            NotFound: There is no such note, preset or session.
            SetupError: Only the web would be searched, and the owner doesn't allow it.
            BadInput: No agent would work, or a value is out of its range.
            RefusedError: The client asks for more than the owner allows it.
        """
        request = self._build_request(order)
        context = self.agent_context(request.run_id)
        locate = context.view.locate
        request = replace(
            request,
            current=locate(request.current) if request.current else "",
            added=tuple(map(locate, request.added)),
        )
        if request.toggles.web and not (request.toggles.scout or request.toggles.task):
            _ = context.open_web()
        if request.session_id:
            _ = self.chats.store.get(request.session_id)
        return request

    def save_switches(self, choice: PresetOverrides) -> AgentToggles:
        """Remember the choice of agents for the next task; agents not named keep theirs.

        Raises:
            BadInput: No agent would work (code ``no_agent``).
        """
        toggles = choice.apply_to(self.default_preset()).toggles
        self.switches.set_toggles(toggles)
        return toggles

    def preview_request(self, order: TaskOrder) -> TaskRequest:
        """Build the request whose context is previewed; nothing is saved, and the task may be empty.

        Raises:
            NotFound: There is no such preset.
            BadInput: A value is out of its range.
        """
        return self._build_request(replace(order, task=order.task or "-"))

    def save(self, preset: Preset) -> tuple[Preset, list[str]]:
        """Save a preset; parts of an existing one that the client can't see stay.

        Returns:
            The preset as the client sees it, and a remark for each folder that it excludes in vain.

        Raises:
            NotFound: A note that it adds doesn't exist.
            BadInput: It can't be saved.
        """
        context = self.agent_context("")
        store, view = self.pipelines.presets, context.view
        for note in preset.added:
            _ = view.locate(note)
        try:
            complete_preset = app_clients.keep_hidden_parts(preset, store.find(preset.name), view)
        except NotFound:
            complete_preset = preset
            if len(store.list()) >= MOST_PRESETS:
                raise BadInput(f"there are {MOST_PRESETS} presets", hint="delete one", code="too_many") from None
        store.save(complete_preset)
        saved = app_clients.restrict_to_visible(store.find(preset.name), view)
        return saved, app_clients.excluded_in_vain(context, preset.scope.excluded_folders)

    def _build_request(self, order: TaskOrder) -> TaskRequest:
        _check_limits(self.chats.chats.hub.settings, order.limits, self.client.grants)
        chosen_preset = order.choice.apply_to(self.default_preset(order.preset))
        chosen_preset = app_clients.restrict_to_grants(chosen_preset, self.client.grants)
        request = self.pipelines.request(
            order.task, chosen_preset, current=order.note.strip(), session_id=order.session_id
        )
        return replace(
            request,
            debug=order.debug,
            limits=order.limits,
            **records.set_fields(order, "token_limit", "chat_history_length", "orchestrate"),
            **records.set_fields(order.limits, "linked_notes", "semantic_notes", "semantic_similarity"),
        ).settled()

    def _restrict(self, preset: Preset) -> Preset:
        return app_clients.restrict_to_grants(
            app_clients.restrict_to_visible(preset, self.agent_context("").view), self.client.grants
        )


def open_client_pipelines(client_chats: ClientChats) -> ClientPipelines:
    """Return the pipelines of a client beside its chats, which the caller closes.

    Raises:
        StorageError: What they keep can't be read.
    """
    client, vault_chats = client_chats.client, client_chats.chats
    work, presets = vault_chats.work, Presets(vault_chats.work)
    is_person = vault_chats.hub.settings.client(client).grants.is_person
    return ClientPipelines(
        chats=client_chats,
        pipelines=VaultPipelines(
            chats=vault_chats,
            runs=PausedRuns(work, local_now),
            presets=presets,
            owner=client,
            open_chat=client_chats.open_chat,
        ),
        switches=presets if is_person else Presets(work, client),
    )


_CHARS_PER_TOKEN = 4
"""Characters of a token, roughly."""


def preview_context(
    context: Context, reader: Context, request: TaskRequest, *, texts: bool = False
) -> dict[str, JSONValue]:
    """Return the notes that a request would use, each with its reason and tokens, and what the limit leaves out.

    The scout's choice can't be known in advance: then the open note and the added ones are shown.

    Args:
        context: The vault, as the agents that act for the client see it.
        reader: The vault, as the client sees it; the texts count as read by it.
        request: The task; its text isn't used.
        texts: Whether to include the notes' texts.

    Raises:
        NotFound: The open note or an added one doesn't exist.
    """
    scout_result = ScoutResult() if request.toggles.scout else None
    unified_context = pipeline_context.gather_context(
        context, request, scout_result, mark=prompting.new_mark(), reader=pipeline_context.read_for_person
    )
    context_data = unified_context.as_dict()
    for row, context_note in zip(objects_in(context_data["notes"]), unified_context.notes, strict=True):
        row["foreign"] = context_note.foreign
        if texts:
            _ = answers.mark_if_foreign(reader, context_note.note)
            text = parser.decode_text(context_note.note.raw)
            is_cut = context_note.note.path == unified_context.cut
            row["text"] = text[: unified_context.tokens * _CHARS_PER_TOKEN] if is_cut else text
    return {
        **context_data,
        "cut": unified_context.cut,
        "limit": request.token_limit,
        "explored": scout_result is not None,
    }


def find_paused_run(vault_pipelines: VaultPipelines, run_id: str, answering_client: ClientSettings) -> PausedRun:
    """Return a paused run that a client may resume.

    Raises:
        NotFound: There is no such paused run, or it is another client's (code ``no_run``).
    """
    paused_run = vault_pipelines.runs.find(run_id)
    if not app_clients.may_see_paused(paused_run, answering_client):
        raise store.missing_paused_run(run_id)
    return paused_run


@contextmanager
def open_paused_run(
    vault_pipelines: VaultPipelines, run: PausedRun, by: ClientSettings, model: str = ""
) -> Generator[tuple[PipelineService, Context]]:
    """Open the pipeline that resumes a run: its owner's sessions, and what both owner and answering client see.

    Args:
        vault_pipelines: The vault's.
        run: The paused run.
        by: The client that answers.
        model: The model's name; empty for the configured one.

    Raises:
        SetupError: There is no model, or the rules of both can't be combined.
    """
    owner = "" if run.client == AGENT_CLIENT else run.client
    answering = replace(vault_pipelines.answering(model), owner=owner)
    askers = [name for name in (run.client, by.name) if name != AGENT_CLIENT]
    context = vault_pipelines.chats.hub.open_as_agent(vault_pipelines.chats.vault, run.id, askers)
    if run.client == vault_pipelines.owner:
        yield answering, context
        return
    yield replace(answering, store=SessionStore(vault_pipelines.chats.work, local_now, owner)), context


_PROGRESS_STEPS = 6.0
"""What progress is told as a share of; nobody knows how many steps there will be."""


def answer_offer(hub: Hub, context: Context, agent_request: AgentRequest) -> Answer:
    """Carry out a tool call, in the calling thread.

    The model acts as the agent for the client that called: it sees and changes no more than both may.

    Raises:
        KnapError: As the tools raise.
    """
    if agent_request.kind == "stage":
        return chats.answer_stage(hub, context, agent_request.task)
    with open_pipelines(hub, context.vault) as vault_pipelines:
        hints = agent_request.hints
        limits = TaskLimits(rounds=hints.get("rounds"), notes=hints.get("notes"))
        request = None if agent_request.run_id else _build_request(vault_pipelines, agent_request, context)
        agent_context, owner = _open_agent_context(
            hub, context, vault_pipelines, request.run_id if request else agent_request.run_id
        )
        answering = replace(vault_pipelines.answering(limits=limits), owner=owner)
        progress_texts: list[str] = []

        def tell(event: PipelineEvent) -> None:
            if isinstance(event, PhaseProgress):
                progress_texts.append(event.text)
                told = min(len(progress_texts), _PROGRESS_STEPS - 1)
                agent_context.progress(told, _PROGRESS_STEPS, event.text)

        if request is None:
            by = context.rights.grants
            work = answering.resume(agent_request.run_id, agent_request.answer, agent_context, tell, by=by)
        else:
            work = answering.ask(request, agent_context, tell)
        outcome = asyncio.run(work)
    outcome.check()
    return tables.shape_outcome(outcome.as_dict())


def _open_agent_context(
    hub: Hub, context: Context, vault_pipelines: VaultPipelines, run_id: str
) -> tuple[Context, str]:
    """Open the vault as the agents that act for a client see it, with the run's owner."""
    grants = context.rights.grants
    if grants.kind in {"agent", "script"}:  # it may be narrowed already
        own_context = replace(context, submit_options=SubmitOptions(run=run_id))
        return answers.within_caller(own_context, context), grants.client
    run_owner = next((run.client for run in vault_pipelines.runs.list() if run.id == run_id), "")
    owner = run_owner or (AGENT_CLIENT if grants.is_person else grants.client)
    clients = [owner] if grants.is_person else [owner, grants.client]
    caller_run = context.submit_options.run if context.submit_options else ""
    askers = [one for one in clients if one != AGENT_CLIENT]
    agent_context = hub.open_as_agent(context.vault, run_id, askers, caller_run)
    return replace(agent_context, progress=context.progress), owner


def _build_request(vault_pipelines: VaultPipelines, agent_request: AgentRequest, context: Context) -> TaskRequest:
    """Build a request from a client's overrides and the defaults that the client may see and use."""
    requested_choices = agent_request.choices
    preset = requested_choices.get("preset", "")
    uses_own_preset = bool(preset) or context.rights.grants.is_person  # the switches that are kept are persons'
    base_preset = (
        default_preset(vault_pipelines.presets, vault_pipelines.chats.hub.settings, preset)
        if uses_own_preset
        else app_clients.configured_preset(vault_pipelines.chats.hub.settings)
    )
    visible_preset = app_clients.restrict_to_visible(base_preset, context.view)
    if agent_request.kind == "scout":
        overrides = replace(visible_preset, toggles=AgentToggles(scout=True, task=False), added=())
        return vault_pipelines.request(agent_request.task, overrides, current=agent_request.note)
    overrides = PresetOverrides(
        scout=requested_choices.get("scout"),
        web=requested_choices.get("web"),
        task=True,
        link_depth=requested_choices.get("link_depth"),
        same_folder=requested_choices.get("include_same_folder"),
        editable=requested_choices.get("editable"),
        can=requested_choices.get("can"),
        added=requested_choices.get("added", ()),
    )
    allowed_preset = app_clients.restrict_to_grants(overrides.apply_to(visible_preset), context.rights.grants)
    return vault_pipelines.request(agent_request.task, allowed_preset, current=agent_request.note)
