"""Read an owner's list of hosts that requests may go to."""

from collections.abc import Sequence
from dataclasses import dataclass

from knapper.errors import SetupError
from knapper.net import urls
from knapper.net.failures import BadAddress
from knapper.net.urls import Url


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Hold the list."""

    names: frozenset[str]
    """Hosts, at the usual ports, as long as they are public."""
    parents: tuple[str, ...]
    """What the names of such hosts may end in: ``.example.org``."""
    places: frozenset[tuple[str, int]]
    """Hosts with a port, wherever they stand, also on this machine."""

    def allow(self, url: Url) -> bool:
        """Tell whether the list names the host of an address."""
        return self.exempt(url) or url.host in self.names or url.host.endswith(self.parents)

    def exempt(self, url: Url) -> bool:
        """Tell whether the list names the very host and port, so that it needn't be public."""
        return (url.host, url.port) in self.places


def read(entries: Sequence[str]) -> Hosts:
    """Read a list such as ``["example.org", "*.example.org", "localhost:9000"]``.

    Raises:
        SetupError: An entry names no host.
    """
    names: set[str] = set()
    parents: list[str] = []
    places: set[tuple[str, int]] = set()
    for entry in entries:
        text = entry.strip()
        parent = text.removeprefix("*.")
        url = _host(parent, entry)
        if parent != text:
            parents.append(f".{url.host}")
        elif text.endswith(f":{url.port}") and not text.endswith("]"):
            places.add((url.host, url.port))
        else:
            names.add(url.host)
    return Hosts(names=frozenset(names), parents=tuple(parents), places=frozenset(places))


def _host(text: str, entry: str) -> Url:
    hint = "write example.org, *.example.org, or localhost:9000"
    try:
        url = urls.parse(f"http://{text}")
    except BadAddress as error:
        raise SetupError(f"'{entry}' in the list of hosts is no host", hint=hint, code="config_invalid") from error
    if url.target != "/" or "/" in text:
        raise SetupError(f"'{entry}' in the list of hosts is more than a host", hint=hint, code="config_invalid")
    return url
