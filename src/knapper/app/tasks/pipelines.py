"""Make what does tasks with several agents, as the configuration says."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from knapper.agents.pipeline import store
from knapper.agents.pipeline.context import TaskRequest
from knapper.agents.pipeline.orchestrator import Agents, OrchestratorSettings
from knapper.agents.pipeline.records import ResearchSettings, ScoutSettings
from knapper.agents.pipeline.scopes import UPDATE_SELECTION
from knapper.agents.pipeline.service import PipelineService
from knapper.app import chats
from knapper.app.acting import CLIENT
from knapper.app.chats import Chats
from knapper.app.closing import Closing
from knapper.app.tasks.presets import usual
from knapper.changes.writer import SubmitOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from knapper.agents.chat.turn import ChatConfig
    from knapper.agents.pipeline.store import PausedRuns, Preset, Presets
    from knapper.app.hub import Hub
    from knapper.config import Settings
    from knapper.tools.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelines(Closing):
    """Hold what the tasks of one vault are done with, beside its chats."""

    chats: Chats
    runs: PausedRuns
    presets: Presets
    hub: Hub
    vault: str
    owner: str = CLIENT
    """On whose behalf tasks are done, and in whose sessions they are kept."""
    open_chat: Callable[[Chats, str], ChatConfig] = Chats.chat
    """Opens a model by its name; empty for the configured one."""

    def answering(self, model: str = "", *, scout: ScoutSettings | None = None) -> PipelineService:
        """Open the models; nothing is sent yet.

        Args:
            model: The model's name; empty for the configured one.
            scout: How the scout works; None for as configured.

        Raises:
            SetupError: There is no such model, or no key for it.
        """
        settings = self.hub.settings
        chat = self.open_chat(self.chats, model)
        own = settings.agents.scout.model
        looking = self.open_chat(self.chats, own) if own else None
        agents = Agents(
            model=chat.model,
            name=chat.name,
            rows=chat.rows,
            prompts=chat.prompts,
            scout=scout or scout_settings(settings),
            web=web_settings(settings),
            orchestrator=OrchestratorSettings(
                steps=settings.agents.orchestrator_steps, tokens=settings.agents.orchestrator_tokens
            ),
            scout_model=looking.model if looking else None,
            scout_name=looking.name if looking else "",
        )
        conversations = self.chats.conversations
        return PipelineService(
            agents=agents,
            runs=self.runs,
            store=self.chats.store,
            folder=conversations.folder,
            now=chat.now,
            meter=self.chats.meter,
            owner="" if self.owner == CLIENT else self.owner,
        )

    def usual(self, preset: str = "") -> Preset:
        """Give what a task is done with where nothing else is said.

        Args:
            preset: A saved choice, by its name; empty for the configuration's, with the switches as they were last.

        Raises:
            NotFound: There is no such preset.
        """
        return usual(self.presets, self.hub.settings, preset)

    def request(self, task: str, chosen: Preset, *, current: str = "", session_id: str = "") -> TaskRequest:
        """Make a request of a choice."""
        own = self.hub.settings.agents
        return TaskRequest(
            task=task,
            current=current,
            toggles=chosen.toggles,
            scope=chosen.scope,
            rules=chosen.rules,
            added=chosen.added,
            chat_history_length=own.chat_history_length,
            token_limit=own.token_limit,
            orchestrate=own.orchestrate,
            session_id=session_id,
        )

    def context(self, run_id: str, client: str = CLIENT) -> Context:
        """Open the vault for a run, as the agents see it on behalf of a client."""
        return self.hub.context(client=client, vault=self.vault, asked=SubmitOptions(run=run_id))

    def close(self) -> None:
        """Close what was opened; the hub stays open."""
        self.runs.shut()
        self.presets.shut()
        self.chats.close()


def open_pipelines(hub: Hub, vault: str = "") -> Pipelines:
    """Open what the tasks of a vault are done with.

    Args:
        hub: Holds the vaults; it stays open as long as this is used.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: A file of the state folder can't be opened.
    """
    with ExitStack() as stack:
        opened = stack.enter_context(chats.open_chats(hub, vault))
        folder = opened.conversations.folder
        waiting = store.open_paused_runs(folder, chats.now)
        _ = stack.callback(waiting.shut)
        made = Pipelines(
            chats=opened,
            runs=waiting,
            presets=store.open_presets(folder),
            hub=hub,
            vault=opened.vault,
        )
        _ = stack.pop_all()
    return made


def scout_settings(settings: Settings) -> ScoutSettings:
    """Say how the scout works by the configuration."""
    own = settings.agents.scout
    return ScoutSettings(
        rounds=own.rounds,
        notes=own.notes,
        keyword_limit=own.keyword_limit,
        tools=frozenset({UPDATE_SELECTION, *own.tools}),
        show_tags=own.show_tags,
        timeout_s=own.timeout_s,
    )


def web_settings(settings: Settings) -> ResearchSettings:
    """Say how the web is searched by the configuration."""
    own = settings.web
    return ResearchSettings(
        snippet_limit=own.max_results,
        fetch_limit=own.max_pages,
        token_budget=own.token_budget,
        auto_search=settings.agents.auto_search,
    )
