"""Write what the code itself can tell: the reference pages, and the definitions of tools that MCP lists."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from knapper.app import tables
from knapper.cli import output
from knapper.cli.completion import answering
from knapper.cli.main import COMMANDS, knap
from knapper.config.declarations import Setting
from knapper.config.settings import CLIENT_SETTINGS, CONFIG_ENV, SETTINGS, VAULT_SETTINGS
from knapper.server.mcp import session as mcp_definitions
from scripts import completion_table, man_pages, tool_reference

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "reference"
SOURCE: Final = ROOT / "src" / "knapper"
DEFINITIONS: Final = SOURCE / "server" / "mcp" / mcp_definitions.FILE
_WRITTEN: Final = "`scripts/reference` writes this page from {what}; change it there."
_PACKAGES: Final = ("errors", "app", "config", "vault", "net", "index", "changes", "tools", "cli")
"""The order of the layers, from the ground up; others follow by name."""


def pages() -> dict[str, str]:
    """Give every page by its file's name."""
    return {
        "settings.md": settings(),
        "cli.md": commands(),
        "exit-codes.md": exit_codes(),
        "tools.md": tools(),
        "modules.md": modules(),
    }


def settings() -> str:
    """Write the page of settings from their tables."""
    rows = [(f"`{one.name}`", _default(one), _sources(one), _meaning(one)) for one in SETTINGS]
    return _page(
        title="Settings",
        aliases=["All settings", "Environment variables", "Configuration file"],
        description="Every setting, its default, and the variables that set it.",
        what="the tables in `knapper.config`",
        body=[
            "How they are used: [[configure]]. `knap config` shows each with its value and where that comes from.",
            "## Of the program",
            "`embeddings.kind` is `kind` in the section `[embeddings]` of the configuration file.",
            _table(("setting", "default", "set by", "meaning"), rows),
            "## Of one vault",
            "They stand in the section `[vaults.NAME]` of the configuration file.",
            _own(VAULT_SETTINGS),
            "## Of one client",
            "They stand in the section `[clients.NAME]` of the configuration file. What the words mean: "
            "[[say-what-a-client-may-do]].",
            _own(CLIENT_SETTINGS),
            "## Where the file is",
            f"`knap config path` tells. `{CONFIG_ENV}` or `--config` names another file, and `--env-file` a file of "
            "`NAME=value` lines.",
        ],
    )


def commands() -> str:
    """Write the page of commands from the program itself."""
    root = click.Context(knap, info_name="knap")
    shared = {parameter.name or "" for parameter in knap.params}
    found = list(_commands(root))
    return _page(
        title="Commands",
        aliases=["Command line", "knap"],
        description="Every command of knap with its options and examples.",
        what="the commands' own help",
        body=[
            "How a command ends: [[exit-codes]].",
            "## Options of every command",
            "They may stand before or after the command's name.",
            _options(knap),
            *(text for ctx in found for text in _command(ctx, shared)),
        ],
    )


def exit_codes() -> str:
    """Write the page of exit codes from their table."""
    special = [
        (f"`knap {name}`", str(int(code)), text) for name, rows in output.SPECIAL.items() for code, text in rows.items()
    ]
    return _page(
        title="Exit codes",
        aliases=["Exit codes of knap", "Return codes"],
        description="How a command ends, and who has to act.",
        what="`knapper.cli.output`",
        body=[
            "Every command of `knap` ends with one of these, so that a script can tell who must act. `knap --help` "
            "lists them, and a command's own help what is special about it.",
            _table(
                ("code", "means", "who acts"), [(str(int(code)), *texts) for code, texts in output.MEANINGS.items()]
            ),
            "## Of single commands",
            _table(("command", "code", "means"), special),
            "## What is printed",
            "An error is two lines on the error stream, `error:` and `hint:`. With `--json` it is an object on the "
            "output stream instead, with `success` (false), `error`, `code` and, where there is a next step, `hint`. "
            "Where Ctrl-C comes after a change was written, while its notes are indexed, the line names the change: "
            "don't run the command again then.",
            "`knap chat` ends with 0 for a person; for a program that writes its messages, with how the last one "
            "ended. `knap watch` ends with 0 when Ctrl-C stops it: that is how it is meant to end. A program that "
            "stops reading, such as `head`, ends a command with 0 and without a word.",
        ],
    )


def tools() -> str:
    """Write the page of tools from their table."""
    return _page(
        title="Tools",
        aliases=["Tool reference", "MCP tools"],
        description="Every tool that agents, MCP and HTTP clients and scripts can call.",
        what="the table of tools",
        body=[
            "The same tools stand behind `knap tool NAME`, MCP, `POST /tools/NAME`, agents and scripts. "
            "How to reach them: [[connect-an-mcp-client]], [[http-api]].",
            'Every answer holds `success`. A failure is `{"success": false, "error": …, "code": …, "hint": …}`. '
            "Lists stand under `results`, with `total`, `limit`, `offset`, and `next_offset` where more follows; "
            "of what is ranked, such as passages, only the best are told. "
            "Where several vaults are served, every tool takes `vault`. "
            "`null` stands for left out, unless the parameter is needed, or is one of any value.",
            *tool_reference.rows(),
        ],
    )


def modules() -> str:
    """Write the page of modules from their docstrings."""
    tops = sorted({_parts(path)[0] for path in _files()}, key=_place)
    body: list[str] = ["What the layers are for: [[architecture]]."]
    for top in tops:
        mine = [path for path in _files() if _parts(path)[0] == top]
        for package in sorted({path.parent for path in mine if path.parent != SOURCE}):
            body += [f"## {package.relative_to(SOURCE).as_posix()}", _says(package / "__init__.py")]
            rows = [(f"`{path.stem}`", _says(path)) for path in mine if path.parent == package]
            body += [_table(("module", "what it does"), [row for row in rows if row[0] != "`__init__`"])]
        alone = [path for path in mine if path.parent == SOURCE]
        body += [f"## {top}\n\n{_says(path)}" for path in alone]
    return _page(
        title="Modules",
        aliases=["Packages"],
        description="Every package and module of the source, with the first sentence of its docstring.",
        what="the modules' docstrings",
        body=body,
    )


def definitions() -> str:
    """Write what MCP lists of each tool, which a start reads in the place of building it."""
    return mcp_definitions.dump_definitions(tables.build_table().specs)


def files() -> dict[Path, str]:
    """Give every file that is written from the code: these pages, the man pages, and the table of completions."""
    return {
        **{FOLDER / name: text for name, text in pages().items()},
        **man_pages.files(),
        answering.TABLE: completion_table.table_json(),
        DEFINITIONS: definitions(),
    }


def write(texts: Mapping[Path, str]) -> None:
    """Write the files that changed, and name them."""
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            sys.stdout.write(f"reference: wrote {path.name}\n")


def main() -> None:
    """Write all of them, and remove the man pages of commands that are gone."""
    texts = files()
    write(texts)
    for path in man_pages.FOLDER.glob("*.1"):
        if path not in texts:
            path.unlink()


def _page(*, title: str, aliases: Sequence[str], description: str, what: str, body: Iterable[str]) -> str:
    head = (
        f"---\ntags: [knapper/reference]\naliases: [{', '.join(aliases)}]\ndescription: {description}\n---\n# {title}"
    )
    return "\n\n".join(part for part in (head, *body, _WRITTEN.format(what=what)) if part) + "\n"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _own(settings: Iterable[Setting]) -> str:
    rows = [(f"`{one.name}`", _default(one), _meaning(one)) for one in settings]
    return _table(("setting", "default", "meaning"), rows)


def _default(setting: Setting) -> str:
    if setting.name == "state_dir":
        return "the user's data folder"
    values = setting.default if isinstance(setting.default, tuple) else (setting.default,)
    return ", ".join(f"`{value}`" for value in values if value != "") or "none"


def _sources(setting: Setting) -> str:
    return ", ".join(f"`{name}`" for name in (setting.flag, *setting.env) if name) or "the file"


def _meaning(setting: Setting) -> str:
    choices = ", ".join(f"`{choice}`" for choice in setting.choices)
    return f"{setting.doc} One of {choices}." if choices else setting.doc


def _commands(root: click.Context) -> Iterator[click.Context]:
    """Give a context for every command, those of groups after their group."""
    group = root.command
    if not isinstance(group, click.Group):
        return
    names = [row.name for row in COMMANDS] if group is knap else group.list_commands(root)
    for name in names:
        command = group.get_command(root, name)
        if command is not None:
            ctx = click.Context(command, info_name=name, parent=root)
            yield ctx
            yield from _commands(ctx)


def _command(ctx: click.Context, shared: set[str]) -> Iterator[str]:
    command = ctx.command
    yield f"## {ctx.command_path}"
    words = [text for parameter in command.params if (text := _argument(ctx, parameter))]
    yield f"`{' '.join([ctx.command_path, *words])}`"
    yield from _paragraphs(command.help or "")
    yield _options(command, without=shared)
    lines = [line.strip() for line in (command.epilog or "").partition(output.TITLE)[0].splitlines()]
    examples = [_comment(line) for line in lines if line and line not in {"\b", "Examples:"}]
    yield "\n".join(["```sh", *examples, "```"]) if examples else ""


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.replace("\b\n", "").split("\n\n"):
        yield " ".join(paragraph.split())


def _comment(example: str) -> str:
    """Set what an example is for apart as the shell's comment."""
    return re.sub(r"( {2,})(?=\S)", r"\1# ", example, count=1)


def _argument(ctx: click.Context, parameter: click.Parameter) -> str:
    if not isinstance(parameter, click.Argument):
        return ""
    return parameter.make_metavar(ctx)


def _options(command: click.Command, *, without: Iterable[str] = ()) -> str:
    left = set(without) | {"help"}
    wanted = [one for one in command.params if isinstance(one, click.Option) and one.name not in left]
    rows = [(_spelled(option), _explained(option)) for option in wanted if not option.hidden]
    return _table(("option", "meaning"), rows) if rows else ""


def _spelled(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.is_flag or option.count:
        return names
    kind = option.type
    value = "|".join(map(str, kind.choices)) if isinstance(kind, click.Choice) else option.metavar
    return f"{names} `{value or 'N'}`"


def _explained(option: click.Option) -> str:
    shown = f" Default: `{option.default}`." if option.show_default and option.default not in {None, ""} else ""
    return f"{option.help}{shown}"


def _files() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py" and path.stem != "__main__")


def _parts(path: Path) -> tuple[str, ...]:
    return path.relative_to(SOURCE).with_suffix("").parts


def _place(top: str) -> tuple[int, str]:
    return _PACKAGES.index(top) if top in _PACKAGES else len(_PACKAGES), top


def _says(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("``", "`")


if __name__ == "__main__":
    main()
