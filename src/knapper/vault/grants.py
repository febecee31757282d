"""Say what a client may change, and whether it is done at once, proposed or refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from knapper.vault.globs import Globs
from knapper.vault.paths import key
from knapper.vault.policy import patterns

ClientKind = Literal["person", "mcp", "http", "agent", "script", "named"]
"""A person sits at the command line or the page. A named client is one that the owner's configuration adds."""
Capability = Literal["add", "delete", "create", "navigate", "move", "properties"]
EditableScope = Literal["all", "current", "linked", "context"]
"""Which notes may be changed: any, the one that is open, that and those it links to, or those given as context."""
Outcome = Literal["apply", "propose", "refuse"]
Acceptance = Literal["always", "own", "never"]
"""Whose proposals a client may accept: any; those with what its policy would apply at once; none."""

CAPABILITIES: Final[frozenset[Capability]] = frozenset({"add", "delete", "create", "navigate", "move", "properties"})
PREFERENCES: Final = "Preferences.md"
"""The note that enters prompts as orders."""
KINDS: Final[Mapping[str, ClientKind]] = {
    "cli": "person",
    "page": "person",
    "mcp": "mcp",
    "http": "http",
    "agent": "agent",
    "script": "script",
}
"""The clients that come with the program."""

_OUTCOMES: Final[Mapping[ClientKind, tuple[Outcome, Outcome]]] = {
    "person": ("apply", "apply"),
    "mcp": ("apply", "propose"),
    "http": ("apply", "propose"),
    "agent": ("propose", "propose"),
    "script": ("propose", "propose"),
    "named": ("propose", "propose"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Hold the notes that an editable scope comes to right now; the caller finds them."""

    paths: frozenset[str] | None = None
    """None where no note is open and none was given; then nothing may be changed unless the scope is ``all``."""
    _keys: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Take the form that paths compare by once; a frozen instance lets itself be completed only so."""
        object.__setattr__(self, "_keys", frozenset(map(key, self.paths or ())))

    def holds(self, path: str) -> bool:
        """Tell whether a note is among them, in any spelling of its path."""
        return key(path) in self._keys


NOTHING_OPEN: Final = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """Hold what one client may change; patterns are those of gitignore's syntax, a pattern an item.

    ``Grants(client="mcp", kind="mcp", small="apply", write=("Inbox/",))`` applies small changes in one folder, and
    proposes others there.

    Raises:
        SetupError: A pattern isn't one.
    """

    client: str
    """From the owner's configuration, or from where the client comes in; never what it says of itself."""
    kind: ClientKind
    capabilities: frozenset[Capability] = CAPABILITIES
    write: tuple[str, ...] = ()
    """Where it may change files; empty for anywhere. ``!`` isn't allowed here: use ``read_only``."""
    read_only: tuple[str, ...] = ()
    """What it may not change, even if ``write`` names it."""
    is_read_only: bool = False
    """Whether it may change nothing at all."""
    editable: EditableScope = "all"
    small: Outcome = "propose"
    """For one file, in a place that was named exactly, with nothing overwritten, moved or trashed."""
    large: Outcome = "propose"
    """For all else."""
    guarded: tuple[str, ...] = (PREFERENCES,)
    """What changes only with a person's word."""
    tainted: bool = False
    """Whether it has read text that others wrote."""
    behalf: str = ""
    """The program for which an agent acts; empty where it acts for persons, and for all others."""
    _write: Globs = field(init=False, repr=False, compare=False)
    _read_only: Globs = field(init=False, repr=False, compare=False)
    _guarded: Globs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the patterns once; a frozen instance lets itself be completed only so."""
        object.__setattr__(self, "_write", patterns(self.client, "write", self.write, only="read_only"))
        object.__setattr__(self, "_read_only", patterns(self.client, "read_only", self.read_only))
        object.__setattr__(self, "_guarded", patterns(self.client, "guarded", self.guarded))

    @property
    def is_person(self) -> bool:
        """Tell whether a person gives the word; what a person has read doesn't bind them."""
        return self.kind == "person"

    @property
    def may_accept(self) -> Acceptance:
        """Tell whose proposals the client may accept."""
        if self.is_person:
            return "always"
        if self.kind in {"agent", "script"} or self.tainted or self.is_read_only:
            return "never"
        return "own" if "apply" in {self.small, self.large} else "never"

    @property
    def may_undo(self) -> bool:
        """Tell whether the client may take changes back."""
        return self.may_accept != "never"

    def writable(self, path: str) -> bool:
        """Tell whether the path rules let the client change a file; compared in any spelling of the path."""
        if self.is_read_only or (self.read_only and self._read_only.match(path)):
            return False
        return not self.write or self._write.match(path)

    def is_guarded(self, path: str) -> bool:
        """Tell whether a file changes only with a person's word."""
        return self._guarded.match(path)

    def editable_in(self, path: str, scope: Scope) -> bool:
        """Tell whether a note is among those that may be changed now."""
        return self.editable == "all" or scope.holds(path)


def usual_outcomes(kind: ClientKind) -> tuple[Outcome, Outcome]:
    """Give what becomes of a client's small changes, and of its others, unless the owner says otherwise."""
    return _OUTCOMES[kind]


@lru_cache(maxsize=64)
def usual(client: str, kind: ClientKind | None = None) -> Grants:
    """Give what a client may change unless the owner says otherwise.

    Args:
        client: Its name.
        kind: None for what the name tells; a name that comes with no kind only proposes.
    """
    kind = kind or KINDS.get(client, "named")
    small, large = usual_outcomes(kind)
    return Grants(client=client, kind=kind, small=small, large=large)
