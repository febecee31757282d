"""Write the system prompt: the person's own or the built-in text, their preferences, and today's date."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Final, Literal

from knapper.agents import untrusted
from knapper.errors import NotFound, SetupError, StorageError
from knapper.tools.context import Context
from knapper.vault import parser
from knapper.vault.access import PREFERENCES_NOTE

PromptName = Literal["chat", "repair", "summary", "scout", "web", "task", "orchestrator", "rewrite", "stage"]
_MAX_PREFERENCES: Final = 4_000
"""Characters of the preferences that go into the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """The prompts of the agents: the person's own files before the built-in ones."""

    own_file: Path | None = None
    """The person's own prompt file for the chat."""
    folder: Path | None = None
    """A folder with the person's own prompts, by name: ``chat.md``."""

    def load(self, name: PromptName) -> str:
        """Return a prompt; the person's own file goes before the built-in one.

        Raises:
            SetupError: The configured file doesn't exist.
            StorageError: The file can't be read.
        """
        if name == "chat" and self.own_file is not None:
            if not self.own_file.is_file():
                raise SetupError(
                    f"there is no prompt '{self.own_file}'",
                    code="no_prompt",
                    hint="model.prompt names it; correct that setting",
                )
            return _read_prompt_file(self.own_file)
        return self.own_text(name) or read_built_in(name)

    def own_text(self, name: str) -> str:
        """Return the person's own prompt in the folder; empty where there is none.

        Raises:
            StorageError: The file can't be read.
        """
        own_prompt = self.folder / f"{name}.md" if self.folder else None
        return _read_prompt_file(own_prompt) if own_prompt and own_prompt.is_file() else ""


def read_built_in(name: PromptName) -> str:
    """Return a built-in prompt."""
    return resources.files("knapper.agents").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def write_system_prompt(base: str, context: Context, now: datetime, *, active_file: str = "") -> str:
    """Write the system prompt of one turn.

    Args:
        base: The prompt that it begins with.
        context: The vault, as the agent sees it; the preferences are read now.
        now: The local time.
        active_file: The note that is open; empty for none.
    """
    parts = [base.strip(), f"## Today\n\n{now:%A}, {now.date().isoformat()}, {now:%H:%M}."]
    if active_file:
        escaped_path = untrusted.escape(active_file)
        parts.append(f'## The open note\n\nThe person looks at {escaped_path}. "This note" means that file.')
    preferences = _read_preferences(context)
    if preferences:
        parts.append(
            "## User Preferences\n\nThe person saved these; follow them where they don't go against the rules above."
            f"\n\n{preferences}"
        )
    return "\n\n".join(parts)


def _read_preferences(context: Context) -> str:
    """Return the person's preferences; agents can't change that note, so it is trusted text."""
    try:
        note = context.view.read(PREFERENCES_NOTE)
    except NotFound:
        return ""
    text = parser.decode_text(note.raw).strip()[:_MAX_PREFERENCES]
    return untrusted.escape_plain(text)


def _read_prompt_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"the prompt '{path}' can't be read", hint="it has to be a text in UTF-8") from error


Clock = Callable[[], datetime]
"""Returns the local time."""
