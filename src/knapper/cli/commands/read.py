"""Show a note."""

import hashlib
import re
import sys
from typing import TypedDict, Unpack

import click

from knapper.cli import calls, options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput, NotFound
from knapper.tools import shapes

_LINE_RANGE = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})?)?")
_LAST_LINE = 1_000_000_000


class ReadOptions(TypedDict):
    """The command's own options."""

    section: str
    lines: str
    numbers: bool


@click.command(
    "read",
    epilog=options.examples(
        ("knap read Garden.md", "the note as it is"),
        ('knap read Garden.md --section "## Watering"', "one section"),
        ("knap read Garden.md --lines 3-9 --numbers", "some lines, each with its number"),
        ("knap read Garden.md --json", "with the hash that `knap write` asks for"),
    ),
)
@click.argument("path")
@click.option("-s", "--section", default="", metavar="HEADING", help="Only the section under this heading.")
@click.option("-l", "--lines", default="", metavar="A-B", help="Only these lines; A- means from A to the end.")
@click.option("-n", "--numbers", is_flag=True, help="Prefix each line with its number.")
@options.pass_options
def command(global_options: GlobalOptions, path: str, **own: Unpack[ReadOptions]) -> ExitCode:
    """Show a note or a part of it.

    When written to a pipe or a file, a whole note is copied byte for byte.
    """
    if own["section"] and own["lines"]:
        raise BadInput("--section and --lines can't be given together", hint="give one of them", code="usage")
    try:
        return _show(global_options, path, own)
    except NotFound as error:
        note, _, heading = path.removeprefix("[[").removesuffix("]]").partition("#")
        if note and heading and not own["section"]:
            error.hint = f"a section is named by itself: `knap read '{note}' --section '{heading}'`"
        raise


def _show(global_options: GlobalOptions, path: str, own: ReadOptions) -> ExitCode:
    if not (global_options.as_json or own["section"] or own["lines"] or own["numbers"]) and _write_bytes(
        global_options, path
    ):
        return ExitCode.OK
    if own["lines"]:
        match = _LINE_RANGE.fullmatch(own["lines"].strip())
        if match is None:
            raise BadInput(f"'{own['lines']}' names no lines", hint="write them like 3-9, 3- or 3", code="usage")
        first = int(match["first"])
        last = int(match["last"] or _LAST_LINE) if "-" in own["lines"] else first
        answer = calls.call(
            global_options, "reading.read_lines", path=path, first=first, last=last, line_numbers=own["numbers"]
        )
    else:
        answer = calls.call(
            global_options,
            "reading.read_file",
            path=path,
            offset=0,
            length=shapes.MAX_LENGTH,
            heading=own["section"],
            line_numbers=own["numbers"],
        )
    if global_options.as_json:
        output.write_json(answer)
        return ExitCode.OK
    text = answer["content"]
    click.echo(output.plain(text.replace("\r\n", "\n")), nl=not text.endswith("\n"))
    pending = answer.get("pending", [])
    if pending:
        output.note(global_options, f"note: edits wait in this note: `knap edits blocks {path}`")
    return ExitCode.OK


def _write_bytes(options: GlobalOptions, path: str) -> bool:
    """Write the note's bytes, unless the output is a terminal or a text stream."""
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None or sys.stdout.isatty():
        return False
    answer = calls.ask_server(options, "reading.read_file", {"path": path, "length": shapes.MAX_LENGTH})
    raw = str(answer["content"]).encode(errors="surrogatepass") if answer is not None else b""
    # The server's text counts where it is, written as UTF-8, what the whole file holds.
    if answer is None or answer["hash"] != f"sha256:{hashlib.sha256(raw).hexdigest()}":
        from knapper.cli import setup  # noqa: PLC0415 - what a server answers needs no vault

        with setup.open_vault(options) as context:
            raw = context.view.read(context.view.locate(path)).raw
    stream.write(raw)
    return True
