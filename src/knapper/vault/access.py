"""Access rules of a client: what it may read, and which changes it may apply, propose or accept."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal

from knapper.errors import SetupError
from knapper.jsontypes import JSONValue
from knapper.vault.paths import Globs, name_key, parse_globs

OWNER: Final = "owner"
"""The program itself, which reads all that it indexes."""
_WEB_ADDRESS: Final = re.compile(r"\bhttps?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one client; patterns are those of gitignore's syntax, a pattern an item.

    ``Policy(client="mcp", hidden=("Journal/", "*.secret.md"))`` shows all but these.

    Raises:
        SetupError: A pattern is invalid.
    """

    client: str = "cli"
    read: tuple[str, ...] = ()
    """What the client may see; empty for all. ``!`` isn't allowed here: use ``hidden``."""
    within: tuple[str, ...] = ()
    """An upper limit of what it may see, whatever ``read`` names; empty for none. ``!`` isn't allowed here either."""
    hidden: tuple[str, ...] = ()
    """What it may not see, even if ``read`` names it."""
    foreign_folders: tuple[str, ...] = ("Clippings/",)
    """Where notes written by others lie."""
    foreign_properties: tuple[str, ...] = ("source",)
    """Properties that mark a note as written by others where they hold a web address."""
    _read: Globs = field(init=False, repr=False, compare=False)
    _within: Globs = field(init=False, repr=False, compare=False)
    _hidden: Globs = field(init=False, repr=False, compare=False)
    _foreign: Globs = field(init=False, repr=False, compare=False)
    _foreign_names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the patterns once."""
        # A frozen instance can be completed only so.
        object.__setattr__(self, "_read", compile_patterns(self.client, "read", self.read, negation_rule="hidden"))
        object.__setattr__(
            self, "_within", compile_patterns(self.client, "within", self.within, negation_rule="hidden")
        )
        object.__setattr__(self, "_hidden", compile_patterns(self.client, "hidden", self.hidden))
        object.__setattr__(self, "_foreign", compile_patterns(self.client, "foreign_folders", self.foreign_folders))
        object.__setattr__(self, "_foreign_names", frozenset(map(name_key, self.foreign_properties)))

    @property
    def may_know_places(self) -> bool:
        """Return whether the client may know where on the disk the vault lies: a person, or the program itself."""
        return CLIENT_KINDS.get(self.client) == "person" or self.client == OWNER

    def visible(self, path: str) -> bool:
        """Return whether the client may know of a file; compared in any spelling of the path."""
        if self.hidden and self._hidden.match(path):
            return False
        if self.within and not self._within.match(path):
            return False
        return not self.read or self._read.match(path)

    def is_foreign(self, path: str, properties: Mapping[str, JSONValue]) -> bool:
        """Return whether others wrote a note: after reading it, a client may only propose changes."""
        if self._foreign.match(path):
            return True
        return any(
            _contains_address(value) for name, value in properties.items() if name_key(name) in self._foreign_names
        )

    @property
    def sees_all(self) -> bool:
        """Return whether the client may see every file."""
        return not (self.hidden or self.read or self.within)

    @property
    def fingerprint(self) -> str:
        """Identify the rules for caches, whoever the client is: 64 hexadecimal digits."""
        rules = [self.read, self.hidden, self.foreign_folders, self.foreign_properties]
        rules += [self.within] if self.within else []
        return hashlib.sha256(json.dumps(rules).encode()).hexdigest()


def compile_patterns(client: str, name: str, lines: tuple[str, ...], *, negation_rule: str = "") -> Globs:
    """Parse the patterns of a client's rule.

    Args:
        client: For the message.
        name: The rule's name, for the message.
        lines: A pattern an item.
        negation_rule: The rule to use in place of ``!``, where ``!`` isn't allowed; empty where it is.

    Raises:
        SetupError: A pattern is invalid or empty.
    """
    parsed_globs = parse_globs(lines)
    problems = list(parsed_globs.problems)
    if negation_rule and not all(rule.includes for rule in parsed_globs.rules):
        problems.append(f"a pattern with '!' doesn't take anything back here; name it in '{negation_rule}'")
    if len(parsed_globs.rules) + len(parsed_globs.problems) < len(lines):
        problems.append("an empty pattern, or a comment, says nothing")
    if problems:
        msg = f"the policy of {client!r} can't be used: {name}: {'; '.join(problems)}"
        raise SetupError(msg, hint="correct the pattern in the configuration")
    return parsed_globs


def _contains_address(value: JSONValue) -> bool:
    if isinstance(value, str):
        return _WEB_ADDRESS.search(value) is not None
    if isinstance(value, dict):
        return any(_contains_address(inner) for inner in value.values())
    return isinstance(value, list) and any(_contains_address(inner) for inner in value)


ClientKind = Literal["person", "mcp", "http", "agent", "script", "named"]
"""A person sits at the command line or the page. A named client is one that the owner's configuration adds."""
Capability = Literal["add", "delete", "create", "navigate", "move", "properties"]
EditableScope = Literal["all", "current", "linked", "context"]
"""Which notes may be changed: all, the open one, the open one and those it links to, or those given as context."""
Outcome = Literal["apply", "propose", "refuse"]
Confirmation = Literal["ask", "propose"]
"""Whether a person may be asked through the client's own program, or decides elsewhere."""
Acceptance = Literal["always", "own", "never"]
"""Which proposals a client may accept: all; those that its policy would apply directly; none."""

CAPABILITIES: Final[frozenset[Capability]] = frozenset({"add", "delete", "create", "navigate", "move", "properties"})
PREFERENCES_NOTE: Final = "Preferences.md"
"""The note whose text enters prompts as instructions."""
CLIENT_KINDS: Final[Mapping[str, ClientKind]] = {
    "cli": "person",
    "page": "person",
    "mcp": "mcp",
    "http": "http",
    "agent": "agent",
    "script": "script",
}
"""The clients that come with the program."""

DEFAULT_MAX_FILES: Final = 5
_STRICTNESS: Final[Sequence[Outcome]] = ("apply", "propose", "refuse")
_PROGRAM_KINDS: Final = frozenset({"mcp", "http"})
"""Programs whose user looks on: what they change is what that person asked for, and can be undone."""
_DEFAULT_OUTCOMES: Final[Mapping[ClientKind, tuple[Outcome, Outcome]]] = {
    "person": ("apply", "apply"),
    "mcp": ("apply", "apply"),
    "http": ("apply", "apply"),
    "agent": ("propose", "propose"),
    "script": ("propose", "propose"),
    "named": ("propose", "propose"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The notes that an editable scope covers right now; the caller determines them."""

    paths: frozenset[str] | None = None
    """None where no note is open or given; then nothing may be changed unless the scope is ``all``."""
    _keys: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Fold the paths once for comparisons."""
        # A frozen instance can be completed only so.
        object.__setattr__(self, "_keys", frozenset(map(name_key, self.paths or ())))

    def contains(self, path: str) -> bool:
        """Return whether a note is among them, in any spelling of its path."""
        return name_key(path) in self._keys


EMPTY_SCOPE: Final = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What one client may change; patterns are those of gitignore's syntax, a pattern an item.

    ``Grants(client="mcp", kind="mcp", small="apply", write=("Inbox/",))`` applies small changes in one folder, and
    proposes others there.

    Raises:
        SetupError: A pattern is invalid.
    """

    client: str
    """From the owner's configuration, or from the surface that the client uses; never from the client itself."""
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
    """Outcome of small changes: one file, an exactly named place, nothing overwritten, moved or trashed."""
    large: Outcome = "propose"
    """Outcome of all other changes."""
    max_files: int = DEFAULT_MAX_FILES
    """Largest number of files, named one by one, that it may change at once without a person's approval."""
    guarded: tuple[str, ...] = (PREFERENCES_NOTE,)
    """Files that change only with a person's approval."""
    confirm: Confirmation = "propose"
    """What becomes of a proposal where the client's program can ask a person: it asks, or the proposal only waits."""
    tainted: bool = False
    """Whether it has read text written by others (tainted)."""
    behalf: str = ""
    """The program that an agent acts for; empty where it acts for a person, and for all other clients."""
    _write: Globs = field(init=False, repr=False, compare=False)
    _read_only: Globs = field(init=False, repr=False, compare=False)
    _guarded: Globs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the patterns once."""
        object.__setattr__(
            self, "_write", compile_patterns(self.client, "write", self.write, negation_rule="read_only")
        )
        object.__setattr__(self, "_read_only", compile_patterns(self.client, "read_only", self.read_only))
        object.__setattr__(self, "_guarded", compile_patterns(self.client, "guarded", self.guarded))

    @property
    def is_person(self) -> bool:
        """Return whether the client is a person; persons aren't restricted by what they have read."""
        return self.kind == "person"

    @property
    def may_accept(self) -> Acceptance:
        """Return which proposals the client may accept."""
        if self.is_person:
            return "always"
        if self.kind in {"agent", "script"} or self.tainted or self.is_read_only:
            return "never"
        return "own" if "apply" in {self.small, self.large} else "never"

    @property
    def may_ask(self) -> bool:
        """Return whether a person may be asked about a proposal through the client's program.

        What a client that has read foreign text shows may have been made to deceive, so nobody is asked there.
        """
        return self.confirm == "ask" and not (self.is_person or self.tainted or self.is_read_only)

    @property
    def may_undo(self) -> bool:
        """Return whether the client may undo changes."""
        return self.may_accept != "never"

    def writable(self, path: str) -> bool:
        """Return whether the path rules let the client change a file; compared in any spelling of the path."""
        if self.is_read_only or (self.read_only and self._read_only.match(path)):
            return False
        return not self.write or self._write.match(path)

    def is_guarded(self, path: str) -> bool:
        """Return whether a file changes only with a person's approval."""
        return self._guarded.match(path)

    def editable_in(self, path: str, scope: Scope) -> bool:
        """Return whether the scope lets the client change a note."""
        return self.editable == "all" or scope.contains(path)


def default_outcomes(kind: ClientKind) -> tuple[Outcome, Outcome]:
    """Return the default outcomes of a client's small changes and of its others."""
    return _DEFAULT_OUTCOMES[kind]


def stricter(one: Outcome, other: Outcome) -> Outcome:
    """Return the outcome of two that lets a client do less."""
    return one if _STRICTNESS.index(one) >= _STRICTNESS.index(other) else other


def default_guarded(kind: ClientKind) -> tuple[str, ...]:
    """Return the files that a client of a kind changes only with a person's approval, by default."""
    return () if kind in _PROGRAM_KINDS else (PREFERENCES_NOTE,)


def default_confirmation(kind: ClientKind) -> Confirmation:
    """Return whether a person may be asked through a client of a kind, by default."""
    return "ask" if kind in _PROGRAM_KINDS else "propose"


@lru_cache(maxsize=64)
def default_grants(client: str, kind: ClientKind | None = None) -> Grants:
    """Return what a client may change by default.

    Args:
        client: Its name.
        kind: None for the built-in client of that name; an unknown name may only propose.
    """
    kind = kind or CLIENT_KINDS.get(client, "named")
    small, large = default_outcomes(kind)
    return Grants(
        client=client,
        kind=kind,
        small=small,
        large=large,
        guarded=default_guarded(kind),
        confirm=default_confirmation(kind),
    )


_MAX_READ_LISTS: Final = 2


def policy_covers(wider: Policy, narrower: Policy) -> bool:
    """Return whether one policy shows at least everything that another shows, judged by the text of their rules.

    Rules are compared, not what they match: the answer may be no where it could be yes, and never the other way round.
    """
    if any(pattern.startswith("!") for pattern in narrower.hidden):
        hides_no_more = wider.hidden == narrower.hidden
    else:
        hides_no_more = set(wider.hidden) <= set(narrower.hidden)
    narrower_lists = {narrower.read, narrower.within}
    return hides_no_more and all(lines in narrower_lists for lines in (wider.read, wider.within) if lines)


def join_policy(own: Policy, client: str, *, read: tuple[str, ...], hidden: tuple[str, ...]) -> Policy:
    """Narrow an agent's policy to what its client may see, too.

    Args:
        own: The agent's.
        client: The client's name, for the error.
        read: What the client may see; empty for all.
        hidden: What is hidden from it.

    Raises:
        SetupError: There are more different lists of what may be seen than can hold at once.
    """
    read_lists = list(dict.fromkeys(filter(None, (own.read, own.within, read))))
    if len(read_lists) > _MAX_READ_LISTS:
        raise _conflict_error("read", client)
    both_read, within = (*read_lists, (), ())[:_MAX_READ_LISTS]
    return replace(own, read=both_read, within=within, hidden=(*own.hidden, *hidden))


def join_grants(own: Grants, asker: Grants) -> Grants:
    """Combine the rights of an agent and its client: only what both may change, under the stricter rule.

    Raises:
        SetupError: Both restrict where they may write, and differ.
    """
    if own.write and asker.write and own.write != asker.write:
        raise _conflict_error("write", asker.client)
    # Neither of *linked* and *context* includes the other, but both include the open note.
    editable: EditableScope = "current"
    if own.editable == "all":
        editable = asker.editable
    elif asker.editable in {own.editable, "all"}:
        editable = own.editable
    return replace(
        own,
        capabilities=own.capabilities & asker.capabilities,
        write=own.write or asker.write,
        read_only=(*own.read_only, *asker.read_only),
        is_read_only=own.is_read_only or asker.is_read_only,
        editable=editable,
        small=stricter(own.small, asker.small),
        large=stricter(own.large, asker.large),
        max_files=min(own.max_files, asker.max_files),
        guarded=(*own.guarded, *asker.guarded),
        behalf=own.behalf or ("" if asker.is_person else asker.client),
    )


def _conflict_error(name: str, client: str) -> SetupError:
    return SetupError(
        f"chats of the client '{client}' can't hold to its own '{name}', the agent's and the vault's at once",
        hint=f"say '{name}' in [clients.{client}] or in [clients.agent], and take away with 'hidden' or 'read_only'",
        code="config_invalid",
    )
