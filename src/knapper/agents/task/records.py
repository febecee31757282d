"""Say what a task is done with: what other agents found, and what was said and edited before."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from knapper.agents.research.records import WebResult
from knapper.agents.scout.records import ScoutResult
from knapper.agents.task.replies import EditInstruction
from knapper.jsontypes import JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenAccounting:
    """Count tokens by phase; the orchestrator's own count into the total alone."""

    scout_tokens: int = 0
    web_tokens: int = 0
    task_tokens: int = 0
    orchestrator_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Give all of them."""
        return self.scout_tokens + self.web_tokens + self.task_tokens + self.orchestrator_tokens

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {
            "scout_tokens": self.scout_tokens,
            "web_tokens": self.web_tokens,
            "task_tokens": self.task_tokens,
            "orchestrator_tokens": self.orchestrator_tokens,
            "total_tokens": self.total_tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineContext:
    """Hold what the agents have found so far, and what that took."""

    scout: ScoutResult | None = None
    web: WebResult | None = None
    token_accounting: TokenAccounting = field(default_factory=TokenAccounting)

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        shown: dict[str, JSONValue] = {"token_accounting": self.token_accounting.as_dict()}
        if self.scout is not None:
            shown["scout"] = self.scout.as_dict()
        if self.web is not None:
            shown["web"] = self.web.as_dict()
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFailure:
    """Say why an edit can't be made."""

    file: str
    error: str
    code: str = ""
    position: str = ""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {"file": self.file, "error": self.error, "code": self.code, "position": self.position}


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResults:
    """Say how many edits could be made, and why others couldn't."""

    success: int = 0
    failures: tuple[EditFailure, ...] = ()

    @property
    def failed(self) -> int:
        """Count those that couldn't."""
        return len(self.failures)

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        failures: list[JSONValue] = [one.as_dict() for one in self.failures]
        return {"success": self.success, "failed": self.failed, "failures": failures}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """Hold a message of a conversation, as a later turn is told of it."""

    id: str
    role: Literal["user", "assistant"]
    content: str
    timestamp: datetime
    active_file: str = ""
    """The note that was open; empty for none."""
    proposed_edits: Sequence[EditInstruction] = ()
    edit_results: EditResults | None = None
    fate: str = ""
    """What the person decided on the edits since; empty where that isn't known."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        edits: list[JSONValue] = [one.as_dict() for one in self.proposed_edits]
        shown: dict[str, JSONValue] = {
            "id": self.id,
            "role": self.role,
            "content": self.content,
            "timestamp": self.timestamp.isoformat(timespec="seconds"),
            "active_file": self.active_file or None,
        }
        if edits or self.edit_results is not None:
            shown["proposed_edits"] = edits
            shown["edit_results"] = (self.edit_results or EditResults()).as_dict()
        return shown
