"""Agents with a task of their own, each one Markdown file: those that come with Knapper, and the owner's.

A file's properties say which tools the agent has and its task; its text is the prompt. Importing this needs no model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knapper.changes.writer import SubmitOptions
from knapper.errors import KnapError, NotFound, SetupError
from knapper.index.documents import Filter
from knapper.vault import frontmatter

if TYPE_CHECKING:
    from knapper.tools.context import Context

BUILT_IN_FOLDER: Final = "builtin"
"""Of the agents that come with Knapper, in this package."""
OWN_FOLDER: Final = "agents"
"""Of the owner's, beside the configuration file."""
TASK: Final = "Do your task now."
"""The message that an agent works on where its file has none."""
NOTHING: Final = "There is nothing to do."
_NAME: Final = re.compile(r"[a-z][a-z-]{0,39}")
_RESERVED: Final = frozenset({"help", "model", "edits", "undo", "clear", "save", "exit", "quit", "q"})
"""What a slash before it means something else at the terminal."""
_OPEN_ENDED_TOOLS: Final = frozenset({"find_tool", "call_tool", "run_script"})
"""Tools that call others, so that a list with them would say nothing."""
_MAX_BYTES: Final = 100_000
_LINE: Final = r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*"
"""Text that shows as it is on a terminal."""
Need = Literal["orphans"]
"""What there has to be before a model is asked."""


def count_orphans(context: Context) -> str:
    """Return how many notes have no link in either direction, as a sentence; empty for none.

    Names of notes aren't told here: they are others' text, and the tool that lists them marks them so.

    Args:
        context: The vault, as the agent sees it.
    """
    _ = context.freshen(meaning=False)
    total = len(context.index.catalog.orphans(context.restrict(Filter())))
    if not total:
        return ""
    return f"{'1 note has' if total == 1 else f'{total:,} notes have'} no link in either direction. "


NEEDS: Final[Mapping[Need, Callable[[Context], str]]] = {"orphans": count_orphans}
"""For each: says what there is, as the beginning of the task; empty where there is nothing."""


class _StageFile(BaseModel):
    """The properties of an agent's file."""

    model_config = ConfigDict(extra="forbid", strict=True)
    title: Annotated[str, Field(min_length=1, max_length=80, pattern=f"^{_LINE}$")]
    summary: Annotated[str, Field(max_length=200, pattern=f"^{_LINE}$")] = ""
    tools: Annotated[list[str], Field(min_length=1, max_length=100)]
    rounds: Annotated[int, Field(ge=1, le=100)] = 20
    task: Annotated[str, Field(min_length=1, max_length=4_000)] = TASK
    needs: Need | None = None
    nothing: Annotated[str, Field(min_length=1, max_length=200, pattern=f"^{_LINE}$")] = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """An agent with a task of its own, which a session answers in the place of the chat."""

    name: str
    title: str
    """For the session, and for the proposals."""
    summary: str
    """What it does, in a few words."""
    prompt: str
    tools: frozenset[str]
    """The table's tools that it is offered."""
    rounds: int
    """How many rounds of calls it may make; they end it, or its own word that it is done."""
    task: str
    """The message that it works on."""
    needs: Need | None
    nothing: str
    """What is said where there is nothing of what it needs."""

    def write_task(self, context: Context) -> str:
        """Return the message that it works on; empty where there is nothing to do.

        Args:
            context: The vault, as the agent sees it.
        """
        if self.needs is None:
            return self.task
        there_is = NEEDS[self.needs](context)
        return there_is and f"{there_is}{self.task}"

    def hold_to_proposals(self, context: Context) -> Context:
        """Return the vault in which every change waits for a person, whatever the client may do otherwise."""
        options = context.submit_options or SubmitOptions()
        return replace(context, submit_options=replace(options, propose=True, reason=options.reason or self.title))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The agents that a message, a command or a schedule may name."""

    folder: Path | None = None
    """The owner's; None for none."""
    vaults: tuple[Path, ...] = ()
    """The vaults' folders: a file in one of them is a note, which others may have written, and never an agent."""

    def names(self) -> list[str]:
        """List the names: first those that come with Knapper; of the owner's, some files may have mistakes."""
        own = sorted(file.stem for file in self.folder.glob("*.md")) if self.folder is not None else []
        return [*built_in_names(), *(name for name in own if name not in built_in_names())]

    def all(self) -> tuple[list[Stage], dict[str, KnapError]]:
        """Return the agents, and what is wrong with the files of others, by their names."""
        stages, problems = list[Stage](), dict[str, KnapError]()
        for name in self.names():
            try:
                stages.append(self.find(name))
            except KnapError as error:
                problems[name] = error
        return stages, problems

    def find(self, name: str) -> Stage:
        """Return an agent; its file is read anew.

        Raises:
            NotFound: There is none of that name (code ``no_agent``).
            SetupError: Its file has a mistake, or lies in a vault (code ``agent_invalid``).
        """
        if name in built_in_names():
            return parse(name, _built_in_file(name))
        file = self.folder / f"{name}.md" if self.folder is not None and "/" not in name else None
        if file is None or not file.is_file():
            hint = f"there are: {', '.join(self.names())}"
            raise NotFound(f"there is no agent '{name[:40]}'", hint=hint, code="no_agent")
        if not _NAME.fullmatch(name) or name in _RESERVED:
            raise _mistake(name, "its name", "take small letters and hyphens, and no command of the chat")
        # Where it leads in the end: a link could lead into a vault.
        target = file.resolve()
        if any(target.is_relative_to(vault.resolve()) for vault in self.vaults):
            raise _mistake(name, "its place", "it lies in a vault, where notes are data and give no orders")
        try:
            raw = target.read_bytes()
        except OSError as error:
            raise _mistake(name, "the file", error.strerror or "it can't be read") from error
        return parse(name, raw)

    def named_by(self, text: str) -> Stage | None:
        """Return the agent that a message names, as in ``/weekly-review``; None for a message to the chat.

        Raises:
            SetupError: The agent's file has a mistake.
        """
        name = text.strip().removeprefix("/")
        if f"/{name}" != text.strip() or not _NAME.fullmatch(name) or name in _RESERVED:
            return None
        try:
            return self.find(name)
        except NotFound:
            return None


def parse(name: str, raw: bytes) -> Stage:
    """Return an agent from its file.

    Raises:
        SetupError: The file has a mistake (code ``agent_invalid``).
    """
    if len(raw) > _MAX_BYTES:
        raise _mistake(name, "the file", f"it has more than {_MAX_BYTES:,} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _mistake(name, "the file", "it has to be a text in UTF-8") from None
    properties, span = frontmatter.read_properties(raw), frontmatter.find_frontmatter(raw)
    if properties is None or span is None or properties.problems:
        raise _mistake(name, "its properties", "begin it with title and tools between two lines of ---")
    try:
        fields = _StageFile.model_validate(properties.frontmatter.values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise _mistake(name, f"'{'.'.join(map(str, first['loc']))}'", first["msg"]) from None
    prompt = raw[span[3] :].decode("utf-8").strip()
    if not prompt or "\0" in text:
        raise _mistake(name, "its text", "say below the properties what the agent does, and how")
    tools = frozenset(fields.tools)
    if tools & _OPEN_ENDED_TOOLS:
        raise _mistake(name, "'tools'", f"name each tool; not {', '.join(sorted(tools & _OPEN_ENDED_TOOLS))}")
    return Stage(
        name=name,
        title=fields.title,
        summary=fields.summary,
        prompt=prompt,
        tools=tools,
        rounds=fields.rounds,
        task=fields.task,
        needs=fields.needs,
        nothing=fields.nothing,
    )


@cache
def built_in_names() -> tuple[str, ...]:
    """Return the names of the agents that come with Knapper."""
    folder = resources.files("knapper.agents").joinpath(BUILT_IN_FOLDER)
    return tuple(sorted(file.name.removesuffix(".md") for file in folder.iterdir() if file.name.endswith(".md")))


def _built_in_file(name: str) -> bytes:
    return resources.files("knapper.agents").joinpath(BUILT_IN_FOLDER, f"{name}.md").read_bytes()


def _mistake(name: str, where: str, what: str) -> SetupError:
    message = f"the agent '{name[:40]}' can't be used: {where} is wrong"
    return SetupError(
        message, hint=f"{what} (agents/{name[:40]}.md beside the configuration file)", code="agent_invalid"
    )
