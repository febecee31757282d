"""Say what a sandbox is to those who have scripts to run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, Protocol

from knapper.jsontypes import JSONValue
from knapper.tools.cancelling import OnCancel, never

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
class Proposed:
    """Name a proposal that a script has left."""

    id: str
    vault: str


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
    proposals: tuple[Proposed, ...] = ()
    """What it has left for a person's word, however it ended."""

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
