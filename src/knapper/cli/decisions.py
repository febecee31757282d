"""Carry out what a person decided in a review."""

import json
from collections.abc import Sequence

import click

from knapper.cli import output
from knapper.cli import review as reviewing
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import outcomes, waiting
from knapper.cli.render.outcomes import Row
from knapper.cli.review import Decisions, Part, Terminal
from knapper.tools import proposals
from knapper.tools.context import Context

_END = "\x04"


def review(said: Options, context: Context, proposal: str) -> ExitCode:
    """Go through a proposal at the terminal, and do what was decided."""
    shown = proposals.show_proposal(context, proposal)
    if not any(reviewing.parts(shown)):
        output.write(said, waiting.proposal(shown))
        output.note(said, "nothing of it can be decided on now")
        return ExitCode.OK
    output.write(said, waiting.proposal({**shown, "files": []}))
    made = reviewing.go_through(shown, _terminal(said))
    for line in carry_out(context, shown, made):
        output.write(said, line)
    return ExitCode.OK


def carry_out(context: Context, shown: Row, made: Decisions) -> list[str]:
    """Do what was decided: edits of hunks, then what was accepted, then what was rejected.

    Args:
        context: The vault; where it asks for a dry run, nothing is done, and the lines tell what would be.
        shown: The proposal as the person saw it.
        made: What they said.

    Returns:
        Lines that tell what became of it.

    Raises:
        ConflictError: The proposal isn't what was shown any more.
    """
    name, digest = str(shown["id"]), str(shown["digest"])
    is_dry = context.asked is not None and context.asked.dry_run
    lines: list[str] = []
    for hunk, text in made.edited.items():
        if is_dry:
            lines.append(f"hunk {hunk} would get the text that you wrote:\n{text}")
        else:
            digest = str(proposals.edit_proposal(context, name, digest, hunk, text)["digest"])
    if made.accepted:
        answer = proposals.accept_proposal(context, name, digest, *_named(made.accepted))
        lines.append(outcomes.text(answer))
    if made.rejected:
        files, hunks = _named(made.rejected)
        answer = proposals.reject_proposal(context, name, "", files, hunks)
        lines += [waiting.rejection(answer)] if is_dry else []
    counts = {"accepted": len(made.accepted), "rejected": len(made.rejected), "left waiting": made.skipped}
    lines.append(", ".join(f"{number} {what}" for what, number in counts.items() if number))
    return lines


def _named(parts: Sequence[Part]) -> tuple[list[str], list[str]]:
    return [path for part in parts for path in part.files], [part.hunk for part in parts if part.hunk]


def _terminal(said: Options) -> Terminal:
    return Terminal(show=lambda text: output.write(said, text), key=_key, edit=_edit)


def _key(question: str) -> str:
    """Ask for a single key; Ctrl-C and Ctrl-D end the command."""
    click.echo(question, nl=False)
    try:
        key = click.getchar()
    except EOFError:
        raise click.Abort from None
    if key == _END:
        raise click.Abort
    click.echo(key if key.isprintable() else json.dumps(key))
    return key


def _edit(text: str) -> str | None:
    return click.edit(text, extension=".md", require_save=True)
