"""Tell SQLite which files an asker may see, while it still looks for them."""

import sqlite3
from collections.abc import Callable
from typing import Final

from knapper.index.filters import Filter
from knapper.vault.paths import NotePath

SHOWN: Final = "knap_shows(f.path, f.target)"
"""The condition on ``files f``; `Sight.teach` says what it means."""
_MOST: Final = 300_000
"""Answers that are remembered; whether a path is visible doesn't change while the rules stay the same."""


class Sight:
    """Remember by rules which paths they show; any thread may ask."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self._known: dict[str, dict[str, bool]] = {}

    def teach(self, connection: sqlite3.Connection, wanted: Filter) -> str:
        """Teach a connection what the asker may see; gives the condition for it, empty where that is everything."""
        if is_open(wanted):
            return ""
        connection.create_function("knap_shows", 2, self.of(wanted))
        return SHOWN

    def of(self, wanted: Filter) -> Callable[[str, str], bool]:
        """Give what tells of a file, by its path and what it leads to if it is a link, whether the asker may see it."""
        if is_open(wanted):
            return lambda _path, _target: True
        rules = [rule.fingerprint for rule in (wanted.policy, wanted.ignore) if rule is not None]
        known = self._known.setdefault("|".join(rules), {})
        if len(known) > _MOST:
            known.clear()

        def shows(path: str, target: str) -> bool:
            return _shown(known, wanted, path) and (not target or _shown(known, wanted, target))

        return shows


def is_open(wanted: Filter) -> bool:
    """Tell whether the asker sees every file of the index."""
    return (wanted.policy is None or wanted.policy.sees_all) and wanted.ignore is None


def _shown(known: dict[str, bool], wanted: Filter, path: str) -> bool:
    shown = known.get(path)
    if shown is None:
        hidden = wanted.ignore is not None and wanted.ignore.hides(path)
        shown = not hidden and (wanted.policy is None or wanted.policy.visible(NotePath(path)))
        known[path] = shown
    return shown
