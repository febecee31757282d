"""Derive the table of commands, options and arguments that completions are read from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from knapper.app import tables
from knapper.cli.completion.answering import FLAG, NAMES
from knapper.cli.main import knap
from knapper.config.settings import CLIENT_SETTINGS, SETTINGS, VAULT_SETTINGS
from knapper.server.mcp import clients

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

KINDS: Final[Mapping[str, str]] = {
    "path": "note",
    "note": "note",
    "added": "note",
    "folder": "folder",
    "exclude_folder": "folder",
    "excluded": "folder",
    "vault": "vault",
    "also": "vault",
    "tag": "tag",
    "exclude_tag": "tag",
    "property_test": "property",
    "field": "property",
    "run_id": "run",
    "resume": "run",
    "run": "run",
    "session": "session",
    "proposal": "proposal",
    "change": "change",
    "preset": "preset",
    "save_preset": "preset",
    "client": "client",
    "heading": "heading",
    "section": "heading",
    "config": "files",
    "env_file": "files",
    "log_file": "files",
    "file": "files",
    "fs_read": "folders",
}
"""What a parameter of a name takes, in every command that isn't named in `OWN_KINDS`."""
OWN_KINDS: Final[Mapping[str, str]] = {
    "new path": "folder",
    "log path": "file",
    "history note": "file",
    "move sources": "file",
    "move destination": "file",
    "rm paths": "file",
    "props words": "note",
    "tags list prefix": "tag",
    "tags rename old": "tag",
    "tags rename new": "tag",
    "edits accept proposal": "open-proposal",
    "edits reject proposal": "open-proposal",
    "edits draw proposal": "open-proposal",
    "edits review proposal": "open-proposal",
    "edits accept file": "note",
    "edits reject file": "note",
    "edits blocks accept": "",
    "edits blocks reject": "",
    "presets show name": "preset",
    "presets delete name": "preset",
    "presets save name": "preset",
    "sessions export path": "files",
    "run export path": "files",
    "config set name": "setting",
    "config unset name": "setting",
    "mcp install client": "mcp-client",
    "setup clients": "mcp-client",
    "setup vault": "vault",
    "tool name": "tool",
    "tools name": "tool",
    "eval folder": "folders",
    "eval against": "files",
    "search exclude_folder": "folder",
    "write file": "files",
}
"""What the parameters of single commands take: a command's words and the parameter's name."""


def table_json() -> str:
    """Return the table as its file holds it: a command a line."""
    rows = [f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in make_table().items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def make_table() -> dict[str, Any]:
    """Return a row for every command, by its words; the program's own is the first, and `NAMES` has what is fixed."""
    root = click.Context(knap, info_name="knap")
    shared = {parameter.name for parameter in knap.params}
    rows = {"": _row("", knap, (), root)}
    rows |= {name: _row(name, command, shared, root) for name, command in _walk("", root)}
    return rows | {NAMES: _fixed_names()}


def _walk(name: str, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
    group = ctx.command
    if not isinstance(group, click.Group):
        return
    for word in group.list_commands(ctx):
        command = group.get_command(ctx, word)
        if command is None or command.hidden:
            continue
        full_name = f"{name} {word}".strip()
        yield full_name, command
        yield from _walk(full_name, click.Context(command, info_name=word, parent=ctx))


def _row(name: str, command: click.Command, without: Collection[str | None], ctx: click.Context) -> dict[str, Any]:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option)]
    is_group = isinstance(command, click.Group)
    own_options = [each for each in options if each.name not in without and not each.hidden]
    return {
        "about": (command.help or "").split("\n\n")[0].replace("\n", " "),
        "arguments": [_kind(name, each) for each in arguments],
        "repeats": bool(arguments) and any(each.nargs != 1 for each in arguments),
        "options": {
            spelling: _option_row(name, each, spelling)
            for each in own_options
            for spelling in (*each.opts, *each.secondary_opts)
        }
        | ({} if name else {"--help": [FLAG, "Show this message and exit."]}),
        "commands": command.list_commands(ctx) if is_group else [],
    }


def _option_row(command: str, option: click.Option, spelling: str) -> list[Any]:
    kind = FLAG if option.is_flag or option.count else _kind(command, option)
    row = [kind, (option.help or "").split(".  [")[0].rstrip(".")]
    long_name = next((each for each in option.opts if each.startswith("--")), spelling)
    return row if spelling.startswith("--") else [*row, long_name]


def _kind(command: str, parameter: click.Parameter) -> str | Sequence[str]:
    if isinstance(parameter.type, click.Choice):
        return [str(each) for each in parameter.type.choices]
    name = parameter.name or ""
    return OWN_KINDS.get(f"{command} {name}", KINDS.get(name, ""))


def _fixed_names() -> dict[str, list[str]]:
    """Return the names that don't depend on a vault or on the configuration."""
    return {
        "setting": [each.name for each in SETTINGS],
        "vaults": [each.name for each in VAULT_SETTINGS],
        "clients": [each.name for each in CLIENT_SETTINGS],
        "mcp-client": [each.name for each in clients.CLIENTS],
        "tool": sorted(each.name for each in tables.build_table().listed_tools("full")),
    }
