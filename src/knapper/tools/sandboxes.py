"""Say what a sandbox is to those who have scripts to run, and what they may use in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from knapper.errors import NotFound, SetupError
from knapper.tools.cancelling import OnCancel, never
from knapper.tools.shapes import Answer
from knapper.vault.outline import JSONValue

if TYPE_CHECKING:
    from knapper.tools.context import Context

Profile = Literal["strict", "local", "extended"]
"""The vaults only; the owner's folders as well, to read; the owner's hosts as well, to read."""
Kind = Literal["ok", "syntax", "error", "refused", "result", "timeout", "memory", "crash"]
"""How a script ended: well, or it never began, it raised, it asked for what it can't have, its result can't be taken,
it took too long, it needed too much memory, or it broke its interpreter."""
Host = Callable[[str, Mapping[str, JSONValue]], JSONValue]
"""Carries out a method that a script called; what is wrong is raised as a `KnapError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Say how much a script may take."""

    timeout_s: float = 60
    """From start to result, with all that it asked for."""
    memory_mb: int = 512
    result_bytes: int = 200_000
    """Of the result as JSON."""
    stdout_bytes: int = 64_000
    """What is printed beyond that is dropped."""
    script_bytes: int = 200_000
    calls: int = 10_000
    """How often it may ask for something."""
    request_bytes: int = 1_000_000
    """Of one call, as JSON."""
    reply_bytes: int = 16_000_000
    """Of one answer, as JSON."""

    def within(self, most: "Limits") -> "Limits":
        """Give these limits, each no higher than another's."""
        return Limits(**{one.name: min(getattr(self, one.name), getattr(most, one.name)) for one in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Tell what became of a script."""

    kind: Kind
    result: JSONValue = None
    """What `__result__` held."""
    stdout: str = ""
    error: str = ""
    """The line and the cause; empty where it went well."""
    wall_s: float = 0.0
    peak_mb: float = 0.0
    """Of the worker process; 0 where the system doesn't tell."""
    calls: int = 0
    """How often it asked for something."""

    @property
    def ok(self) -> bool:
        """Tell whether it ran to its end."""
        return self.kind == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Say what a script is given beside its text."""

    now: float = 0.0
    """The time that it is told, in seconds since 1970, UTC; it stands still."""
    offset_s: int = 0
    """Of local time from UTC."""
    methods: tuple[str, ...] = ()
    """Methods of its object beyond those that it always has."""


class Sandbox(Protocol):
    """Run scripts where they can reach nothing but a host function."""

    @property
    def limits(self) -> Limits:
        """Give what the owner allows."""
        ...

    def run(
        self,
        script: str,
        host: Host,
        *,
        limits: Limits | None = None,
        given: Given | None = None,
        on_cancel: OnCancel = never,
    ) -> Outcome:
        """Run one script; limits above the owner's have no effect, and what *on_cancel* tells of ends it.

        Raises:
            SetupError: Scripts can't be run here.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Show a tool to those who write scripts."""

    name: str
    summary: str = ""
    parameters: Mapping[str, JSONValue] = field(default_factory=dict[str, JSONValue])
    """A JSON schema of the arguments."""


def _own_only(vault: str) -> "Context":
    raise NotFound(f"there is no vault '{vault}'", code="no_vault")


def _no_tools() -> "Sequence[Signature]":
    return ()


def _no_tool(context: "Context", name: str, arguments: Mapping[str, JSONValue]) -> Answer:
    del context, arguments
    raise SetupError(f"the tool '{name}' can't be called from scripts here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripting:
    """Hold what scripts may use beyond their vault, as the owner allows it; by default nothing."""

    roots: tuple[Path, ...] = ()
    """Folders that the profiles local and extended may read."""
    http_get: Callable[[str], str] | None = None
    """Gets the text at an address, through the guard, of the owner's hosts only; for the profile extended."""
    hosts: tuple[str, ...] = ()
    """Those hosts."""
    open_vault: "Callable[[str], Context]" = _own_only
    """Opens another vault for the same client, by its name."""
    tools: Callable[[], Sequence[Signature]] = _no_tools
    """Lists the reading tools that scripts can call."""
    call: "Callable[[Context, str, Mapping[str, JSONValue]], Answer]" = _no_tool
    """Calls one of them by name."""
