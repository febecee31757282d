"""Find the keys of models: from the configuration, else from the system's keyring; never logged, never in a vault."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from knapper.agents.names import ModelName, Provider
from knapper.errors import SetupError

SERVICE: Final = "knapper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Hold the keys that the configuration gives; the keyring is asked for others."""

    by_provider: Mapping[Provider, str] = field(default_factory=dict[Provider, str], repr=False)
    own: str = field(default="", repr=False)
    """The key of the configured model, and of no other server."""
    owner: ModelName | None = None
    """The configured model."""
    ring: Callable[[str], str] = field(default_factory=lambda: stored, repr=False)
    """Asks the system's keyring."""

    def find(self, wanted: ModelName) -> str:
        """Give the key for a model; empty where there is none.

        A key goes to the provider that it was given for, and a server at an address of its own gets only the key that
        was given with that address.
        """
        if self.own and self.owner and _place(self.owner) == _place(wanted):
            return self.own
        if wanted.provider == "ollama":
            return ""
        if wanted.base_url:
            return self.ring(wanted.base_url)
        return self.by_provider.get(wanted.provider, "") or self.ring(wanted.provider)


def stored(name: str) -> str:
    """Ask the system's keyring; empty where it has none, or there is no keyring."""
    import keyring  # noqa: PLC0415 - it looks for the system's service, which most keys don't need
    from keyring.errors import KeyringError  # noqa: PLC0415 - the same

    try:
        return keyring.get_password(SERVICE, name) or ""
    except KeyringError:
        return ""


def store(name: str, key: str) -> None:
    """Put a key into the system's keyring; an empty one is taken out of it.

    Raises:
        SetupError: There is no keyring that works.
    """
    import keyring  # noqa: PLC0415 - as above
    from keyring.errors import KeyringError  # noqa: PLC0415 - as above

    try:
        if key:
            keyring.set_password(SERVICE, name, key)
        elif keyring.get_password(SERVICE, name):
            keyring.delete_password(SERVICE, name)
    except KeyringError as error:
        raise SetupError(
            "the system's keyring can't be used",
            code="no_keyring",
            hint="set the key as an environment variable, or in the .env beside the configuration file",
        ) from error


def _place(name: ModelName) -> tuple[str, str]:
    return name.provider, name.base_url
