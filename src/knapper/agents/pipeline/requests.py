"""Say what a person asks of the agents, and how."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from knapper.agents import presets
from knapper.agents.contexts import unified
from knapper.agents.presets import AgentToggles, Preset
from knapper.agents.scopes import ContextScopeConfig, EditRules
from knapper.agents.scout.records import check
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue

MAX_CHARS: Final = 200_000
TOKEN_LIMIT: Final = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Hold one task.

    Raises:
        BadInput: It says nothing or too much, or a number is out of its range.
    """

    task: str
    current: str = ""
    """The open note; empty for none."""
    toggles: AgentToggles = field(default_factory=AgentToggles)
    scope: ContextScopeConfig = field(default_factory=ContextScopeConfig)
    rules: EditRules = field(default_factory=EditRules)
    added: tuple[str, ...] = ()
    """Notes that the person added by hand."""
    chat_history_length: int = 10
    """Earlier messages that the agents are told of, 0 to 100."""
    token_limit: int = TOKEN_LIMIT
    """Tokens of notes that a task is done with at most, 3,000 or more."""
    orchestrate: bool = False
    """Let a model choose the agents among those that are switched on."""
    debug: bool = False
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    session_id: str = ""
    """The session that it goes on; empty for none."""

    def __post_init__(self) -> None:
        """Refuse what can't be asked."""
        if not self.task.strip():
            raise BadInput("the task is empty", hint="say what is to be done")
        if len(self.task) > MAX_CHARS:
            raise BadInput(f"the task has {len(self.task):,} characters", hint=f"give at most {MAX_CHARS:,}")
        check("chat_history_length", self.chat_history_length, (0, 100))
        unified.check_limit(self.token_limit)

    def settled(self) -> "Request":
        """Switch the scout on where there is nothing to do the task with: no open note, and none added."""
        alone = not self.current and not self.added and self.toggles.task and not self.toggles.scout
        return replace(self, toggles=replace(self.toggles, scout=True)) if alone else self

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as it is kept while it waits."""
        chosen = Preset(name="-", scope=self.scope, rules=self.rules, added=self.added, toggles=self.toggles)
        return {
            "task": self.task,
            "current": self.current,
            "chosen": chosen.as_dict(),
            "chat_history_length": self.chat_history_length,
            "token_limit": self.token_limit,
            "orchestrate": self.orchestrate,
            "debug": self.debug,
            "run_id": self.run_id,
            "session_id": self.session_id,
        }


def of(said: Mapping[str, JSONValue]) -> Request:
    """Read a request that was kept."""
    chosen = said["chosen"]
    preset = presets.of(chosen if isinstance(chosen, dict) else {})
    return Request(
        task=str(said["task"]),
        current=str(said["current"]),
        toggles=preset.toggles,
        scope=preset.scope,
        rules=preset.rules,
        added=preset.added,
        chat_history_length=int(str(said["chat_history_length"])),
        token_limit=int(str(said["token_limit"])),
        orchestrate=said["orchestrate"] is True,
        debug=said["debug"] is True,
        run_id=str(said["run_id"]),
        session_id=str(said["session_id"]),
    )
