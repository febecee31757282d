"""Keep to the server where things lie on its machine: clients are told files as their vault or the state names them."""

import copy
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.types import Scope

from knapper.config import Settings
from knapper.errors import KnapError
from knapper.jsontypes import JSONValue
from knapper.server import tracing

LOG: Final = logging.getLogger("knapper.server.places")
_HIDDEN: Final = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Hold the folders of which clients are told only what lies in them."""

    pattern: re.Pattern[str] | None = None

    def without(self, text: str) -> str:
        """Take the folders out of a text: ``/home/me/Notes/A.md`` is ``A.md``, and the folder alone is ``…``."""
        return self.pattern.sub(_inside, text) if self.pattern else text

    def told(self, error: KnapError) -> KnapError:
        """Give an error as clients are told it."""
        shown = copy.copy(error)
        shown.message, shown.hint = self.without(error.message), self.without(error.hint)
        return shown


def of_settings(settings: Settings) -> Places:
    """Name the folders of the vaults, the state and the configuration."""
    vaults = [vault.path for vault in (settings.choice, *settings.vaults) if not isinstance(vault, Exception)]
    files = [settings.config_file, *([settings.env_file] if settings.env_file else [])]
    return of_folders([*vaults, settings.state_dir, *(file.parent for file in files)])


def of_folders(folders: Iterable[Path]) -> Places:
    """Name folders; the root of a disk is none."""
    known = {str(each) for folder in folders for each in (folder, folder.resolve()) if each != Path(each.anchor)}
    found = sorted(known, key=len, reverse=True)
    if not found:
        return Places()
    either = "|".join(re.escape(one).replace(r"\\", r"\\+") for one in found)
    return Places(pattern=re.compile(rf"(?<![\w/\\])(?:{either})(?:(?P<inside>[/\\]+(?=[^\s'\"/\\]))|(?![\w.-]))"))


def of(scope: Scope) -> Places:
    """Give what a request's client isn't told, as the app that answers has it in its state."""
    found: object = getattr(scope["app"].state, "places", None) if "app" in scope else None
    return found if isinstance(found, Places) else Places()


def told_event(scope: Scope, data: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
    """Give the event that tells an error, as `knapper.agents.events.Error` shows itself, as a client is told it."""
    error = KnapError(str(data["error"]), hint=str(data["hint"]), code=str(data["code"]))
    shown = told(scope, error)
    return {**data, "error": shown.message, "hint": shown.hint}


def told(scope: Scope, error: KnapError) -> KnapError:
    """Give an error as a request's client is told it; what that leaves out stands in the log, for the owner."""
    shown = of(scope).told(error)
    if (shown.message, shown.hint) != (error.message, error.hint):
        LOG.warning("%s %s: %r", tracing.id_of(scope), error.code, error.message)
    return shown


def _inside(found: re.Match[str]) -> str:
    return "" if found["inside"] else _HIDDEN
