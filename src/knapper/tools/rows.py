"""Say of a tool what its signature can't say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from knapper.tools.shapes import Answer

Effect = Literal["read", "write", "destructive"]
"""What a call does to the vault: nothing, something new, or something in the place of what was there."""
Profile = Literal["essential", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Hold one tool: a typed function whose first parameter is the context.

    Its signature is the schema, its docstring the description, its name the tool's.
    """

    function: Callable[..., Answer]
    effect: Effect = "read"
    profile: Profile = "full"
    alias: str = ""
    """The tool's name, where one function stands under several."""
    shown: tuple[str, ...] = ()
    """The parameters that the essential choice shows; empty for all. A call may give the others too."""
    open_world: bool = False
    """Whether it reaches beyond the vault."""
    takes_long: bool = False
    """Whether a call may go on for a minute or more; it holds up no other tools then."""
    asked: bool = True
    """Whether a tool that writes takes a reason, and can be asked what it would do."""
    repeatable: bool = False
    """Whether a second call of a tool that writes, with the same arguments, changes nothing more."""

    @property
    def name(self) -> str:
        """Give the tool's name."""
        return self.alias or self.function.__name__

    @property
    def title(self) -> str:
        """Give the name as a person reads it: ``Find backlinks``."""
        return self.name.replace("_", " ").capitalize()

    @property
    def is_asked(self) -> bool:
        """Tell whether a call may carry a reason, and be a dry run."""
        return self.asked and self.effect != "read"
