"""Say which notes a question is about, as data that every engine can push into its query."""

from dataclasses import dataclass, fields
from typing import Final, Literal

from knapper.vault.access import Policy
from knapper.vault.walk import IgnoreRules

_NOT_ABOUT_FILES: Final = frozenset({"include_log", "policy", "ignore"})
PropertyOp = Literal["contains", "equals", "exists", "is", "missing", "not_contains", "not_equals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyTest:
    """Test one property; names and values compare without case."""

    name: str
    op: PropertyOp = "exists"
    value: str = ""
    """A whole value or a list's element for ``equals``; the whole property for ``is``, a list of one element included;
    an element of a list or a part of a text for ``contains``, with a link's brackets or without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Restrict a question to some notes; empty fields restrict nothing, all given ones must hold.

    ``Filter(folders=("Projects",), tags=("idea",))`` keeps notes below it with the tag ``#idea`` or ``#idea/x``.
    """

    folders: tuple[str, ...] = ()
    """Any of these, with all below."""
    exclude_folders: tuple[str, ...] = ()
    directly_in: tuple[str, ...] = ()
    """Any of these folders, without those below."""
    paths: tuple[str, ...] = ()
    """Any of these files."""
    exclude_paths: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """All of these, or tags nested below them."""
    exclude_tags: tuple[str, ...] = ()
    properties: tuple[PropertyTest, ...] = ()
    modified_from: str = ""
    """ISO date, inclusive; so are the other three."""
    modified_to: str = ""
    created_from: str = ""
    created_to: str = ""
    kinds: tuple[str, ...] = ()
    """Kinds of file: note, canvas, base, attachment."""
    include_log: bool = False
    """Passages of the program's own log may be found too."""
    policy: Policy | None = None
    """The asker's; what it may not see isn't there."""
    ignore: IgnoreRules | None = None
    """The vault's rules, where the index was made by others; what they hide isn't there either."""

    @property
    def trivial(self) -> bool:
        """Tell whether every file passes."""
        open_policy = self.policy is None or self.policy.sees_all
        return open_policy and self.ignore is None and not any(self._said())

    @property
    def cache_key(self) -> str:
        """Name the filter for caches, by what it says."""
        policy = self.policy.fingerprint if self.policy else ""
        said = map(repr, self._said())
        return "|".join([*said, policy, self.ignore.fingerprint if self.ignore else ""])

    def _said(self) -> list[object]:
        return [getattr(self, f.name) for f in fields(self) if f.name not in _NOT_ABOUT_FILES]
