"""Call a tool that only reads: in the server that runs where there is one, else in this process.

Both give the same answer, notices, errors and exit code. A command that a server answers takes a fifth of the processor
time, so this imports nothing that knows the index or the configuration until it is needed.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from knapper.cli import output, places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from knapper.cli.options import GlobalOptions
    from knapper.server.terminal import TerminalQuestion
    from knapper.tools.shapes.read import (
        BacklinkPage,
        BrokenLinkPage,
        FoundNotePage,
        NoteInfo,
        NoteText,
        OutlinkPage,
        PassageHits,
        PathPage,
        TagPage,
    )
    from knapper.tools.shapes.write import ChangeList

ToolAnswer = dict[str, Any]
"""What a tool answers: JSON."""
USE_VARIABLE: Final = "KNAP_USE_SERVER"
"""The variable of the setting server.answers_commands, which a command reads before it reads the configuration."""
_OFF_WORDS: Final = frozenset({"no", "off", "false", "0"})


@overload
def call(options: GlobalOptions, tool: Literal["search.search_vault"], **arguments: object) -> PassageHits: ...
@overload
def call(options: GlobalOptions, tool: Literal["notes.find_notes"], **arguments: object) -> FoundNotePage: ...
@overload
def call(options: GlobalOptions, tool: Literal["notes.note_info"], **arguments: object) -> NoteInfo: ...
@overload
def call(options: GlobalOptions, tool: Literal["notes.list_tags"], **arguments: object) -> TagPage: ...
@overload
def call(options: GlobalOptions, tool: Literal["reading.read_file"], **arguments: object) -> NoteText: ...
@overload
def call(options: GlobalOptions, tool: Literal["reading.read_lines"], **arguments: object) -> NoteText: ...
@overload
def call(options: GlobalOptions, tool: Literal["links.find_backlinks"], **arguments: object) -> BacklinkPage: ...
@overload
def call(options: GlobalOptions, tool: Literal["links.find_outlinks"], **arguments: object) -> OutlinkPage: ...
@overload
def call(options: GlobalOptions, tool: Literal["links.broken_links"], **arguments: object) -> BrokenLinkPage: ...
@overload
def call(options: GlobalOptions, tool: Literal["links.orphans"], **arguments: object) -> PathPage: ...
@overload
def call(options: GlobalOptions, tool: Literal["journal.list_changes"], **arguments: object) -> ChangeList: ...
def call(options: GlobalOptions, tool: str, **arguments: object) -> object:
    """Call a tool on the chosen vault.

    Args:
        options: Which vault, among others.
        tool: The module and the function of a tool that only reads: ``search.search_vault``.
        arguments: What the function takes beside the context.

    Raises:
        KnapError: As the tool raises, or the vault can't be opened.
    """
    answer = ask_server(options, tool, arguments)
    return call_here(options, tool, arguments) if answer is None else answer


def call_here(options: GlobalOptions, tool: str, arguments: Mapping[str, object]) -> ToolAnswer:
    """Call a tool in this process; see `call`."""
    from knapper.cli import setup  # noqa: PLC0415 - what a server answers needs no vault

    with setup.open_vault(options) as context:
        return find_function(tool)(context, **arguments)


def find_function(tool: str) -> Callable[..., ToolAnswer]:
    """Return a tool's function."""
    module, _, name = tool.rpartition(".")
    function: Callable[..., ToolAnswer] = getattr(import_module(f"knapper.tools.{module}"), name)
    return function


def call_named(options: GlobalOptions, name: str, arguments: Mapping[str, object], client: str) -> ToolAnswer:
    """Call any tool by its name, with its arguments checked, as one of the clients.

    Raises:
        KnapError: There is no such tool, an argument can't be used, or the tool fails.
    """
    answer = ask_server(options, name, arguments, by_name=True) if client == "cli" else None
    if answer is not None:
        return answer
    from knapper.app import open_hub  # noqa: PLC0415 - as above
    from knapper.cli import setup  # noqa: PLC0415 - the same

    with open_hub(setup.read_settings(options), only=bool(options.vault)) as hub:
        return dict(hub.table.call(name, arguments, lambda vault: hub.context(client=client, vault=vault)))


def ask_server(
    options: GlobalOptions, tool: str, arguments: Mapping[str, object], *, by_name: bool = False
) -> ToolAnswer | None:
    """Return what the server that runs answers; None where this process has to find the answer.

    Args:
        options: The shared options.
        tool: As for `call`; or a tool's name.
        arguments: What the tool is given.
        by_name: Whether *tool* is a name, and its arguments are checked as any client's.
    """
    environment = os.environ  # noqa: TID251 - `knapper.config` takes longer to import than all of this
    if options.no_server or environment.get(USE_VARIABLE, "").strip().lower() in _OFF_WORDS:
        return None
    try:
        given = {"--config": options.config, "--env-file": options.env_file}
        folder = os.getcwd()
        state_dir = places.ConfigPlaces(given, environment, folder).find_state()
        if not os.path.exists(os.path.join(state_dir, "server", "server.json")):
            return None
    except (OSError, ValueError):  # it is told by whoever needs the folder
        return None
    from knapper.server import terminal  # noqa: PLC0415 - most have no server, and needn't wait 10 ms

    question: TerminalQuestion = {
        "tool": tool,
        "arguments": arguments,
        "by_name": by_name,
        "only": by_name and bool(options.vault),
        "keeps_notices": options.as_json,
        "is_quiet": options.quiet,
        "options": {"vault": options.vault, "config": options.config, "env_file": options.env_file},
        "folder": folder,
    }
    reply = terminal.ask(state_dir, question, environment)
    if reply is None:
        return None
    for notice in reply.notices:
        output.warn(notice)
    return reply.answer
