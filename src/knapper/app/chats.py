"""The chats of a vault, and those of each client of a server."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from knapper.agents import work_store
from knapper.agents.chat.conversations import Conversations
from knapper.agents.chat.turn import SMALL_CONTEXT, ChatConfig, TurnCaps
from knapper.agents.events import TURN_END, BackgroundJobs, Error, ToolCall, TurnJobs
from knapper.agents.loop import QueryCache, Rewriter
from knapper.agents.model import names
from knapper.agents.prompting import Prompts
from knapper.agents.sessions import store
from knapper.app import clients, models
from knapper.app.hub import AGENT_CLIENT, local_now
from knapper.app.tables import AGENT_TOOLS
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, RefusedError, SetupError
from knapper.tools import answers, files

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from knapper.agents.events import Event
    from knapper.agents.model.names import ModelName
    from knapper.agents.model.usage import Meter
    from knapper.agents.sessions.store import Exchange, Session, SessionStore
    from knapper.agents.work_store import WorkStore
    from knapper.app.hub import Hub
    from knapper.tools.context import Context
    from knapper.tools.shapes import Answer
    from knapper.tools.shapes.write import WriteResult


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultModels:
    """The models that answer in one vault, and the account of what they use."""

    meter: Meter
    hub: Hub
    vault: str
    small_models: set[str] = field(default_factory=set[str])
    """Models that have refused a request for its length, or whose server says that they read little at once."""
    contexts: dict[str, int] = field(default_factory=dict[str, int])
    """How many tokens models read at once, as far as their servers say."""
    queries: QueryCache = field(default_factory=QueryCache)
    """What questions were rewritten into."""

    def chat(self, model: str = "") -> ChatConfig:
        """Open a model with the vault's tools; nothing is sent yet.

        Args:
            model: Its name; empty for the configured one.

        Raises:
            SetupError: There is no such model, or no key for it.
        """
        settings = self.hub.settings
        model_settings = settings.model
        opened_model, name = models.open_model(settings, model)
        prompt_file = Path(model_settings.prompt) if model_settings.prompt else None
        prompts = Prompts(own_file=prompt_file, folder=settings.config_file.parent / "prompts")
        rewriter = Rewriter(prompt=lambda: prompts.load("rewrite"), cache=self.queries)
        may_tell = model_settings.tools == "full" and name.provider in {"ollama", "compatible"}
        return ChatConfig(
            model=opened_model,
            name=str(name),
            rows=[row for row in self.hub.table.specs if row.name not in AGENT_TOOLS],
            prompts=prompts,
            now=local_now,
            meter=self.meter,
            context_tokens=model_settings.context_tokens,
            essential=model_settings.tools != "full" or model_settings.context_tokens < SMALL_CONTEXT,
            small_models=self.small_models,
            read_context=partial(self._read_context, name) if may_tell else None,
            telemetry=model_settings.telemetry,
            may_write=not settings.client(AGENT_CLIENT).grants.is_read_only,
            caps=TurnCaps(
                rounds=model_settings.turn_rounds,
                calls=model_settings.turn_calls,
                minutes=model_settings.turn_minutes,
                cents=model_settings.turn_cents,
            ),
            rewriter=rewriter if settings.search.rewrites else None,
        )

    def _read_context(self, model: ModelName) -> int:
        """Return how many tokens a model reads, by its own server, which is asked once; 0 where that doesn't say."""
        # Ollama says it once the model is loaded; other servers say it at once or never.
        if str(model) not in self.contexts or (model.provider == "ollama" and not self.contexts[str(model)]):
            key = models.configured_keys(self.hub.settings).find(model)
            self.contexts[str(model)] = names.read_context_tokens(model, key)
        return self.contexts[str(model)]

    def context(self, run: str) -> Context:
        """Open the vault as the agent sees it in a run or a turn."""
        return self.hub.open_as_agent(self.vault, run, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultChats(VaultModels):
    """The sessions of one vault, and the models that answer in them."""

    conversations: Conversations
    store: SessionStore
    work: WorkStore
    """Holds the sessions."""


@contextmanager
def open_models(hub: Hub, vault: str = "") -> Generator[VaultModels]:
    """Open what answers in a vault without a session; raises as `open_chats` does."""
    name = hub.open(vault).vault.name
    meter = hub.open_meter(name, has_turns=True)
    try:
        yield VaultModels(meter=meter, hub=hub, vault=name)
    finally:
        meter.shut()


@contextmanager
def open_chats(hub: Hub, vault: str = "") -> Generator[VaultChats]:
    """Open the sessions of a vault.

    Args:
        hub: Holds the vaults; it stays open as long as the chats are used.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: The sessions can't be opened.
    """
    name = hub.open(vault).vault.name
    with clients.open_work(hub, vault) as work, open_models(hub, vault) as opened:
        session_store = clients.open_sessions(hub, work)
        yield VaultChats(
            conversations=Conversations(
                store=session_store,
                context_of=partial(hub.open_as_agent, name, clients=()),
                stages=clients.open_stages(hub),
            ),
            store=session_store,
            work=work,
            meter=opened.meter,
            hub=hub,
            vault=name,
        )


OpenChat: TypeAlias = "Callable[[VaultChats, str], ChatConfig]"
"""Opens what answers in a vault, by a model's name; empty for the configured one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientChats:
    """The chats of one client in one vault."""

    client: str
    chats: VaultChats
    turns: TurnJobs = field(default_factory=lambda: BackgroundJobs(TURN_END))
    """Those that go on, or have ended a while ago; used from the server's event loop only."""
    open_chat: OpenChat = VaultChats.chat
    may_write: bool = True

    @property
    def store(self) -> SessionStore:
        """Return the client's sessions."""
        return self.chats.store

    @property
    def conversations(self) -> Conversations:
        """Return the service that answers messages in them."""
        return self.chats.conversations

    def open_note(self, active_file: str) -> str:
        """Return the path of the open note by its path or name; as given where the client sees none.

        Raises:
            RefusedError: It is hidden (code ``note_hidden``), whether it exists or not, or lies outside the vault.
            BadInput: The text can be no path.
            Ambiguous: Several notes have the name.
        """
        raw = active_file.strip()
        if not raw:
            return ""
        view = self.conversations.context_of("").view
        if not view.visible(view.parse(raw)):
            raise RefusedError(
                "the active file is hidden from this client, or from its agent",
                hint="ask without it, or have the owner show it: `knap config` tells what hides it",
                code="note_hidden",
            )
        return self.conversations.locate(raw)

    def chat(self, model: str = "") -> ChatConfig:
        """Open a model with the vault's tools.

        Args:
            model: Its name; empty for the configured one.

        Raises:
            SetupError: There is none, or no key for it.
            RefusedError: The client may not use it (code ``model_not_allowed``).
        """
        settings = self.chats.hub.settings
        models.check_model_allowed(settings, model, settings.client(self.client).grants)
        chat = self.open_chat(self.chats, "" if model == settings.model.name else model)
        return chat if self.may_write else replace(chat, may_write=False)

    def context(self, run: str) -> Context:
        """Open the vault as the client itself sees it, for its direct requests."""
        chats = self.chats
        return chats.hub.context(client=self.client, vault=chats.vault, submit_options=SubmitOptions(run=run))

    def fork(self, session_id: str, upto: int | None = None) -> Session:
        """Create a session that continues a copy of another one, and has read what that has read.

        Args:
            session_id: The session to copy.
            upto: The last turn to copy; None for all.

        Raises:
            NotFound: There is no such session.
        """
        context = self.conversations.context_of(session_id)
        return self.store.fork(session_id, upto=upto, before_commit=answers.taint_copier(context, session_id))

    def read(self, session_id: str) -> tuple[Session, Sequence[Exchange]]:
        """Return a session with its turns; the client that is shown them has read what went into them.

        Raises:
            NotFound: There is no such session.
        """
        session, turns = self.store.get(session_id), self.store.turns(session_id)
        self.mark_shown(session_id)
        return session, turns

    def mark_shown(self, *runs: str) -> None:
        """Record that the client is shown what came of runs or sessions."""
        answers.mark_if_derived(self.context(""), runs)

    def export(self, session_id: str, path: str = "") -> WriteResult:
        """Export a session as a note, at the client's request.

        Args:
            session_id: The session's.
            path: Of the new note; empty for one below Chats/.

        Raises:
            NotFound: There is no such session.
            BadInput: It has no messages yet (code ``session_empty``).
            KnapError: The note can't be created.
        """
        session, turns = self.store.get(session_id), self.store.turns(session_id)
        if not turns:
            raise BadInput("nothing was said in this session yet", hint="say something first", code="session_empty")
        text = store.write_session_markdown(session, turns)
        return files.create_file(self.context(session_id), path or store.export_path(session, turns), text)


@contextmanager
def open_client_chats(
    vault_chats: VaultChats, client: str, open_chat: OpenChat = VaultChats.chat
) -> Generator[ClientChats]:
    """Open the chats of a client in a vault, with sessions of its own.

    Args:
        vault_chats: What all clients of the vault share; the caller closes it.
        client: The client's name.
        open_chat: Opens what answers.

    Raises:
        StorageError: The sessions can't be opened.
        SetupError: The rules of the client and its agent can't be combined.
    """
    hub, vault = vault_chats.hub, vault_chats.vault
    hub.check_can_act(vault, client)

    def opened(run: str) -> Context:
        return hub.open_as_agent(vault, run, (client,))

    # Open once more for each client: one that looks through all of its sessions doesn't hold up the others.
    work = work_store.open_work(vault_chats.work.folder)
    try:
        session_store = clients.open_sessions(hub, work, client)
        conversations = replace(vault_chats.conversations, store=session_store, context_of=opened, wait_s=0)
        yield ClientChats(
            client=client,
            chats=replace(vault_chats, conversations=conversations, store=session_store, work=work),
            open_chat=open_chat,
            may_write=not hub.settings.client(client).grants.is_read_only,
        )
    finally:
        work.shut()


def answer_stage(hub: Hub, context: Context, name: str) -> Answer:
    """Carry out the call of an agent that has a task of its own, in the calling thread.

    It acts for the client that called, in a session of that client.

    Raises:
        KnapError: There is no model, or it fails.
    """
    errors: list[Error] = []
    calls: list[str] = []

    def tell(event: Event) -> None:
        if isinstance(event, Error):
            errors.append(event)
        elif isinstance(event, ToolCall):
            calls.append(event.name)
            context.progress(min(len(calls), stage.rounds - 1), stage.rounds, event.name)

    stage = clients.open_stages(hub).find(name)
    client, caller_run = context.rights.grants.client, context.submit_options.run if context.submit_options else ""

    def opened(run: str) -> Context:
        # The session that calls hears of the answer, and what it has read holds for the agent, too.
        return hub.open_as_agent(context.vault, run, (client,), caller_run)

    with open_chats(hub, context.vault) as vault_chats, open_client_chats(vault_chats, client) as client_chats:
        conversations = replace(client_chats.conversations, context_of=opened)
        done = asyncio.run(conversations.run_stage(client_chats.chat(), stage, tell))
    if errors and done.state in {"failed", "limit"}:
        kind = RefusedError if errors[0].code == "budget_spent" else SetupError
        raise kind(errors[0].error, hint=errors[0].hint, code=errors[0].code)
    fields = done.as_dict()
    optional = {key: fields[key] for key in ("citations", "proposals", "changes", "usage", "notes") if fields[key]}
    return {"success": True, "state": done.state, "answer": done.answer, "session_id": done.session_id, **optional}
