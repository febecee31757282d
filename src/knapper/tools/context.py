"""Say on whose behalf, and over which vault, a tool works."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from knapper.errors import NotFound, SetupError
from knapper.index.filters import Filter
from knapper.jsontypes import JSONValue
from knapper.tools.cancelling import OnCancel, never
from knapper.tools.looking import SharedLook
from knapper.tools.profiles import Choice
from knapper.tools.sandboxes import Sandbox, Signature
from knapper.tools.shapes import Answer
from knapper.vault.paths import NotePath
from knapper.vault.view import View

if TYPE_CHECKING:
    from knapper.changes.reviewer import Reviewer
    from knapper.changes.writer import SubmitOptions, Writer
    from knapper.index.engine import Engine
    from knapper.index.status import Freshness
    from knapper.net.speech import Transcriber
    from knapper.net.web import Web


def _local_time() -> datetime:
    return datetime.now().astimezone()


def _unheard(_done: float, _total: float, _what: str) -> None:
    pass


def _closed() -> NoReturn:
    raise SetupError("this isn't set up here", hint="`knap config` shows the settings")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Hold a vault as one client sees it; the first parameter of every tool."""

    vault: str
    """The vault's name."""
    view: View
    """What the client may read."""
    index: "Engine"
    open_writer: "Callable[[], Writer]"
    """Opens what writing needs, once."""
    close: "Callable[[], None]"
    """Closes what the context holds open."""
    asked: "SubmitOptions | None" = None
    """How what is written is meant: why, in which run, only to be told; None for the usual."""
    open_web: "Callable[[], Web]" = _closed
    """Opens what searches the web and fetches pages, where the owner allows that."""
    open_transcriber: "Callable[[], Transcriber]" = _closed
    """Opens what turns audio into text, where the owner allows that."""
    open_sandbox: Callable[[], Sandbox] = _closed
    """Opens what runs scripts, once for all vaults."""
    scripting: Scripting = field(default_factory=Scripting)
    """What scripts may use beyond this vault."""
    progress: Callable[[float, float, str], None] = _unheard
    """Hears how much of how much is done of long work, and what is; may end the work by raising."""
    on_cancel: OnCancel = never
    """Tells work that can be ended at any time where nobody waits for it any more."""
    look: SharedLook | None = None
    """Brings the index up to date for calls that come together; None lets each look for itself."""
    offered: Choice = "full"
    """Which tools whoever calls can call."""
    now: Callable[[], datetime] = _local_time
    """Tells the time, with its zone."""

    @property
    def writer(self) -> "Writer":
        """Give the door through which the client writes; the journal is opened when it is first asked for."""
        return self.open_writer()

    @property
    def reviewer(self) -> "Reviewer":
        """Give the one who decides on proposals on the client's behalf."""
        from knapper.changes.reviewer import Reviewer  # noqa: PLC0415 - searching needn't pay for it

        return Reviewer(writer=self.writer)

    def sees(self, path: NotePath) -> bool:
        """Tell whether the client may know of a file in the index, and of what it leads to if it is a link."""
        if not self.view.visible(path):
            return False
        return self.view.policy.sees_all or self.view.visible(self.index.store.target_of(path))

    def freshen(self, *, meaning: bool = True) -> "Freshness":
        """Bring the index up to date where that is quick, and say what the client's answers may miss."""
        if self.look is not None:
            return self.look(self.view.policy, meaning=meaning)
        return self.index.freshen(meaning=meaning, policy=self.view.policy)

    def together(self) -> "Context":
        """Give a context for calls that come side by side, or right after one another: they share a look."""
        return self if self.look is not None else replace(self, look=SharedLook(self.index))

    def restrict(self, where: Filter) -> Filter:
        """Keep what the client may see out of what is asked for."""
        return replace(where, policy=self.view.policy)

    def __enter__(self) -> Self:
        """Use the context in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()
