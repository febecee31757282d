"""Say what a client may see, and whose text it must not trust."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from knapper.errors import SetupError
from knapper.jsontypes import JSONValue
from knapper.vault import globs
from knapper.vault.globs import Globs
from knapper.vault.paths import key

_ADDRESS: Final = re.compile(r"\bhttps?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Hold the rules of one client; patterns are those of gitignore's syntax, a pattern an item.

    ``Policy(client="mcp", hidden=("Journal/", "*.secret.md"))`` shows all but these.

    Raises:
        SetupError: A pattern isn't one.
    """

    client: str = "cli"
    read: tuple[str, ...] = ()
    """What the client may see; empty for all. ``!`` isn't allowed here: use ``hidden``."""
    within: tuple[str, ...] = ()
    """What it may see at most, whatever ``read`` names; empty for no such limit. ``!`` isn't allowed here either."""
    hidden: tuple[str, ...] = ()
    """What it may not see, even if ``read`` names it."""
    foreign_folders: tuple[str, ...] = ("Clippings/",)
    """Where text lies that others wrote."""
    foreign_properties: tuple[str, ...] = ("source",)
    """Properties that, where they hold a web address, say that others wrote the note."""
    _read: Globs = field(init=False, repr=False, compare=False)
    _within: Globs = field(init=False, repr=False, compare=False)
    _hidden: Globs = field(init=False, repr=False, compare=False)
    _foreign: Globs = field(init=False, repr=False, compare=False)
    _foreign_names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the patterns once; a frozen instance lets itself be completed only so."""
        object.__setattr__(self, "_read", patterns(self.client, "read", self.read, only="hidden"))
        object.__setattr__(self, "_within", patterns(self.client, "within", self.within, only="hidden"))
        object.__setattr__(self, "_hidden", patterns(self.client, "hidden", self.hidden))
        object.__setattr__(self, "_foreign", patterns(self.client, "foreign_folders", self.foreign_folders))
        object.__setattr__(self, "_foreign_names", frozenset(map(key, self.foreign_properties)))

    def visible(self, path: str) -> bool:
        """Tell whether the client may know of a file; compared in any spelling of the path."""
        if self.hidden and self._hidden.match(path):
            return False
        if self.within and not self._within.match(path):
            return False
        return not self.read or self._read.match(path)

    def is_foreign(self, path: str, properties: Mapping[str, JSONValue]) -> bool:
        """Tell whether others wrote a note, so that whoever reads it should only propose changes from then on."""
        if self._foreign.match(path):
            return True
        return any(_holds_address(value) for name, value in properties.items() if key(name) in self._foreign_names)

    @property
    def sees_all(self) -> bool:
        """Tell whether no file is kept from the client."""
        return not (self.hidden or self.read or self.within)

    @property
    def fingerprint(self) -> str:
        """Identify the rules, whoever the client is, for what is kept by them: 64 hexadecimal digits."""
        rules = [self.read, self.hidden, self.foreign_folders, self.foreign_properties]
        rules += [self.within] if self.within else []
        return hashlib.sha256(json.dumps(rules).encode()).hexdigest()


def patterns(client: str, name: str, lines: tuple[str, ...], *, only: str = "") -> Globs:
    """Read the patterns of a client's rule.

    Args:
        client: For the message.
        name: The rule's name, for the message.
        lines: A pattern an item.
        only: The rule that takes something back from this one, where ``!`` mustn't; empty where it may.

    Raises:
        SetupError: One isn't a pattern, or says nothing.
    """
    compiled = globs.parse(lines)
    problems = list(compiled.problems)
    if only and not all(rule.includes for rule in compiled.rules):
        problems.append(f"a pattern with '!' doesn't take anything back here; name it in '{only}'")
    if len(compiled.rules) + len(compiled.problems) < len(lines):
        problems.append("an empty pattern, or a comment, says nothing")
    if problems:
        msg = f"the policy of {client!r} can't be used: {name}: {'; '.join(problems)}"
        raise SetupError(msg, hint="mend the pattern in the configuration")
    return compiled


def _holds_address(value: JSONValue) -> bool:
    if isinstance(value, str):
        return _ADDRESS.search(value) is not None
    if isinstance(value, dict):
        return any(_holds_address(inner) for inner in value.values())
    return isinstance(value, list) and any(_holds_address(inner) for inner in value)
