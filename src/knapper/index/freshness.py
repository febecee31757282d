"""Say whether what the index answers may miss something."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Say whether answers may miss something."""

    stale: int = 0
    """Files that are known to differ from the index."""
    unchecked: bool = False
    """The vault is too large to be looked through before each search, and nobody watches it."""
    incomplete: bool = False
    """The vault hasn't been read from end to end yet."""
    filling: bool = False
    """Somebody is just taking in what is missing."""
    pending: int = 0
    """Chunks that search by meaning doesn't know yet."""
