"""Write the man pages of `knap` and its commands, from their help."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from knapper import __version__
from knapper.cli import output
from knapper.cli.main import COMMANDS, knap

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "man"
_CODE: Final = re.compile(r"``?([^`]+)``?")
_SECTION: Final = "1"


def files() -> dict[Path, str]:
    """Give every page by its path: one for the program, and one for each command with its subcommands."""
    root = click.Context(knap, info_name="knap")
    pages = {FOLDER / f"knap.{_SECTION}": _program_page(root)}
    for row in COMMANDS:
        command = knap.get_command(root, row.name)
        if command is not None and not command.hidden:
            ctx = click.Context(command, info_name=row.name, parent=root)
            pages[FOLDER / f"knap-{row.name}.{_SECTION}"] = _command_page(ctx)
    return pages


def _program_page(ctx: click.Context) -> str:
    groups: list[str] = []
    for group in dict.fromkeys(row.group for row in COMMANDS):
        rows = [(f"{_bold('knap ' + row.name)}", render_text(row.summary)) for row in COMMANDS if row.group == group]
        groups += [f".SS {_quoted(group)}", *_list(rows)]
    return _page(
        ctx,
        [
            *_options(".SH OPTIONS OF EVERY COMMAND", ctx, ()),
            ".SH COMMANDS",
            *groups,
            ".SH FILES",
            ".PP",
            render_text(
                "`knap config path` prints where the configuration file is; `knap config` shows the state folder."
            ),
        ],
        see=[row.name for row in COMMANDS],
    )


def _command_page(ctx: click.Context) -> str:
    below = [text for each in _subcommands(ctx) for text in _subcommand(each)]
    shared = _shared()
    return _page(ctx, [*_options(".SH OPTIONS", ctx, shared), *([".SH SUBCOMMANDS", *below] if below else [])], see=())


def _page(ctx: click.Context, body: Sequence[str], *, see: Sequence[str]) -> str:
    name = ctx.command_path.replace(" ", "-")
    paragraphs = list(_paragraphs(ctx.command.help or ""))
    lines = [
        ".\\\" scripts/man writes this page from the command's own help; change it there.",
        f'.TH {name.upper()} {_SECTION} "" "Knapper {__version__}" "Knapper"',
        ".SH NAME",
        f"{_escape(name)} \\- {render_text(paragraphs[0].rstrip('.'))}",
        ".SH SYNOPSIS",
        ".PP",
        _synopsis(ctx),
        *([".SH DESCRIPTION", *_joined(paragraphs[1:])] if len(paragraphs) > 1 else []),
        *body,
        *_examples(ctx.command, ".SH EXAMPLES"),
        ".SH EXIT STATUS",
        *_list([(str(int(code)), render_text(meaning)) for code, meaning in output.meanings(ctx.command_path)]),
        ".SH SEE ALSO",
        ".PP",
        ",\n".join(f".BR {_escape('knap-' + each)} (1)" for each in see).replace(",\n", " ,\n")
        if see
        else ".BR knap (1)",
    ]
    return "\n".join(lines) + "\n"


def _subcommands(ctx: click.Context) -> Iterator[click.Context]:
    group = ctx.command
    if not isinstance(group, click.Group):
        return
    for word in group.list_commands(ctx):
        command = group.get_command(ctx, word)
        if command is not None and not command.hidden:
            below = click.Context(command, info_name=word, parent=ctx)
            yield below
            yield from _subcommands(below)


def _subcommand(ctx: click.Context) -> Iterator[str]:
    yield f".SS {_quoted(ctx.command_path)}"
    yield ".PP"
    yield _synopsis(ctx)
    yield from _joined(list(_paragraphs(ctx.command.help or "")))
    yield from _options("", ctx, _shared())
    yield from _examples(ctx.command, "")


def _shared() -> list[str]:
    return [each.name or "" for each in knap.params]


def _synopsis(ctx: click.Context) -> str:
    words = [_bold(ctx.command_path)]
    words += [
        f"\\fI{_escape(each.make_metavar(ctx))}\\fR" for each in ctx.command.params if isinstance(each, click.Argument)
    ]
    if isinstance(ctx.command, click.Group):
        words.append(
            "\\fICOMMAND\\fR" if ctx.parent is None or not ctx.command.invoke_without_command else "[\\fICOMMAND\\fR]"
        )
    return " ".join([*words, "[\\fIOPTIONS\\fR]"])


def _options(title: str, ctx: click.Context, without: Iterable[str]) -> list[str]:
    left = {*without, "help"}
    found = [
        each
        for each in ctx.command.params
        if isinstance(each, click.Option) and each.name not in left and not each.hidden
    ]
    rows = [(_spelling(each, ctx), render_text(each.help or "")) for each in found]
    return [*([title] if title else []), *_list(rows)] if rows else []


def _spelling(option: click.Option, ctx: click.Context) -> str:
    names = ", ".join(_bold(name) for name in (*option.opts, *option.secondary_opts))
    if option.is_flag or option.count:
        return names
    return f"{names} \\fI{_escape(option.make_metavar(ctx))}\\fR"


def _examples(command: click.Command, title: str) -> list[str]:
    rows = [line.strip() for line in (command.epilog or "").partition(output.TITLE)[0].splitlines()]
    rows = [row for row in rows if row and row not in {"\b", "Examples:"}]
    if not rows:
        return []
    pairs = [re.split(r" {2,}", row, maxsplit=1) for row in rows]
    return [*([title] if title else []), *_list([(_bold(pair[0]), render_text(pair[-1])) for pair in pairs])]


def _list(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [text for head, body in rows for text in (".TP", head, body)]


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.replace("\b\n", "").split("\n\n"):
        if joined := " ".join(paragraph.split()):
            yield joined


def _joined(paragraphs: Sequence[str]) -> list[str]:
    return [line for paragraph in paragraphs for line in (".PP", render_text(paragraph))]


def render_text(text: str) -> str:
    """Return a paragraph; what stands between backquotes is set in bold."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(_bold(part) if at % 2 else _protect(_escape(part) if part else "") for at, part in enumerate(parts))


def _bold(text: str) -> str:
    return f"\\fB{_escape(text)}\\fR"


def _quoted(text: str) -> str:
    return '"' + _escape(text).replace('"', "\\(dq") + '"'


def _escape(text: str) -> str:
    """Return text that roff prints as it is: hyphens that can be copied, and no requests."""
    escaped = (
        text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    )
    escaped = escaped.replace("`", "\\(ga")
    return "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in escaped)


def _protect(text: str) -> str:
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main() -> None:
    """Write the pages, and remove those of commands that are gone."""
    FOLDER.mkdir(exist_ok=True)
    pages = files()
    for path in FOLDER.glob(f"*.{_SECTION}"):
        if path not in pages:
            path.unlink()
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
