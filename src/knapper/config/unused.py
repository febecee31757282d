"""Name settings of other programs that mean nothing here, so that nobody waits for their effect."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from knapper.config.files import ConfigDocument

UNUSED_VARIABLES: Final[Mapping[str, str]] = {
    "CHROMA_PATH": "the index lies below `state_dir`, which KNAP_STATE_DIR sets",
    "EXCLUDED_DIRS": "the vault's .knapignore says what is left out",
    "PREFERENCES_FILE": "preferences are in Preferences.md at the vault's root",
    "ATTACHMENTS_DIR": "Obsidian's own setting of the folder for attachments counts",
    "MAX_TOOL_RESULT_CHARS": "a model is shown 4,000 characters of a result, and can ask for the rest",
    "SYSTEM_PROMPT_FILE": "the folder `prompts` beside the configuration file has the prompts",
}
"""Variables of the programs that Knapper follows, each with what to use instead."""
ALWAYS_MEANT: Final = ("CHROMA_PATH",)
"""Those that count in the environment too; other programs may have the rest there for themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedVariable:
    """A variable that is set and means nothing here."""

    name: str
    source: str
    """The environment, or a file and line."""
    instead: str
    """What to use in its place."""

    @property
    def message(self) -> str:
        """Return a sentence about it, without its value."""
        return f"{self.name} ({self.source}) means nothing here: {self.instead}"


def find_unused(environment: Mapping[str, str], env_file: ConfigDocument | None) -> Iterator[UnusedVariable]:
    """Yield the variables that are set and mean nothing here.

    Args:
        environment: The values of those of `ALWAYS_MEANT` that are set.
        env_file: The file of variables, if there is one.
    """
    for name, instead in UNUSED_VARIABLES.items():
        if env_file is not None and env_file.values.get(name):
            yield UnusedVariable(name=name, source=str(env_file.place(name)), instead=instead)
        elif environment.get(name):
            yield UnusedVariable(name=name, source="the environment", instead=instead)
