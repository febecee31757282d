"""Make what answers messages: the model, the tools and the sessions of a vault, as the configuration says."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from knapper.agents.chat.conversations import Conversations
from knapper.agents.chat.turn import ChatConfig
from knapper.agents.model import providers, usage
from knapper.agents.model.providers import ModelTimeouts
from knapper.agents.offers import AGENT_TOOLS
from knapper.agents.prompting import Prompts
from knapper.app import acting, model_choice, sessions
from knapper.app.acting import CLIENT
from knapper.app.closing import Closing

if TYPE_CHECKING:
    from knapper.agents.model.usage import Meter
    from knapper.agents.sessions.store import SessionStore
    from knapper.app.hub import Hub


@dataclass(frozen=True, slots=True, kw_only=True)
class Chats(Closing):
    """Hold the sessions of one vault, and open the models that answer in them."""

    conversations: Conversations
    store: SessionStore
    meter: Meter
    hub: Hub
    vault: str

    def chat(self, model: str = "") -> ChatConfig:
        """Open a model with the vault's tools; nothing is sent yet.

        Args:
            model: Its name; empty for the configured one.

        Raises:
            SetupError: There is no such model, or no key for it.
        """
        settings = self.hub.settings
        own = settings.model
        wanted = model_choice.wanted(settings, model)
        prompt = Path(own.prompt) if own.prompt else None
        return ChatConfig(
            model=providers.open_model(
                wanted, model_choice.keys(settings).find, ModelTimeouts(timeout_s=own.timeout_s, retries=own.retries)
            ),
            name=str(wanted[0]),
            rows=[row for row in self.hub.table.rows if row.name not in AGENT_TOOLS],
            prompts=Prompts(own_file=prompt, folder=settings.config_file.parent / "prompts"),
            now=now,
            meter=self.meter,
            context_tokens=own.context_tokens,
            essential=own.tools == "essential",
            telemetry=own.telemetry,
            may_write=not settings.client(CLIENT).grants.is_read_only,
        )

    def close(self) -> None:
        """Close the sessions and the account; the hub stays open."""
        self.store.shut()
        self.meter.shut()


def open_chats(hub: Hub, vault: str = "") -> Chats:
    """Open the sessions of a vault.

    Args:
        hub: Holds the vaults; it stays open as long as the chats are used.
        vault: The vault's name; empty for the first.

    Raises:
        NotFound: There is no such vault.
        StorageError: The sessions can't be opened.
    """
    settings = hub.settings
    own = settings.model
    opened = hub.open(vault)
    folder = opened.folder
    limits = usage.SpendingLimits(
        turn_tokens=own.turn_tokens, run_tokens=own.run_tokens, day_tokens=own.day_tokens, day_cents=own.day_cents
    )
    name = opened.vault.name
    with ExitStack() as stack:
        kept = sessions.open_store(hub, vault)
        _ = stack.callback(kept.shut)
        made = Chats(
            conversations=Conversations(
                store=kept,
                folder=folder,
                context_of=lambda run: acting.opened(hub, name, run, ()),
            ),
            store=kept,
            meter=usage.open_meter(folder, limits, now),
            hub=hub,
            vault=name,
        )
        _ = stack.pop_all()
    return made


def now() -> datetime:
    """Tell the local time."""
    return sessions.now()
