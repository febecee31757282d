"""Show a note."""

import hashlib
import re
import sys
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from knapper.cli import calls, options, output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.errors import BadInput
from knapper.tools import shapes

if TYPE_CHECKING:
    from knapper.tools.shapes.read import NoteText

_LINE_RANGE = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})?)?")
_LAST_LINE = 1_000_000_000


class ReadOptions(TypedDict):
    """The command's own options."""

    section: str
    lines: str
    numbers: bool


@click.command(
    "read",
    context_settings=options.CONTEXT_SETTINGS,
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
@options.shared_options
@click.pass_obj
def command(global_options: GlobalOptions, path: str, **own: Unpack[ReadOptions]) -> ExitCode:
    """Show a note or a part of it.

    When written to a pipe or a file, a whole note is copied byte for byte.
    """
    if not (global_options.as_json or own["section"] or own["lines"] or own["numbers"]) and _write_bytes(
        global_options, path
    ):
        return ExitCode.OK
    answer = _read_part(global_options, path, own)
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
    stream.write(_bytes_from_server(options, path) or _bytes_from_file(options, path))
    return True


def _bytes_from_server(options: GlobalOptions, path: str) -> bytes | None:
    """Return the note's bytes where the server's text, written as UTF-8, is what the whole file holds."""
    answer = calls.ask_server(options, "reading.read_file", {"path": path, "length": shapes.MAX_LENGTH})
    if answer is None:
        return None
    raw = str(answer["content"]).encode(errors="surrogatepass")
    return raw if answer["hash"] == f"sha256:{hashlib.sha256(raw).hexdigest()}" else None


def _bytes_from_file(options: GlobalOptions, path: str) -> bytes:
    from knapper.cli import setup  # noqa: PLC0415 - what a server answers needs no vault

    with setup.open_vault(options) as context:
        return context.view.read(context.view.locate(path)).raw


def _read_part(options: GlobalOptions, path: str, own: ReadOptions) -> "NoteText":
    if own["section"] and own["lines"]:
        raise BadInput("--section and --lines can't be given together", hint="give one of them", code="usage")
    if own["lines"]:
        first, last = _parse_lines(own["lines"])
        return calls.call(options, "reading.read_lines", path=path, first=first, last=last, line_numbers=own["numbers"])
    return calls.call(
        options,
        "reading.read_file",
        path=path,
        offset=0,
        length=shapes.MAX_LENGTH,
        heading=own["section"],
        line_numbers=own["numbers"],
    )


def _parse_lines(text: str) -> tuple[int, int]:
    match = _LINE_RANGE.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"'{text}' names no lines", hint="write them like 3-9, 3- or 3", code="usage")
    first = int(match["first"])
    if match["last"]:
        return first, int(match["last"])
    return first, _LAST_LINE if "-" in text else first
