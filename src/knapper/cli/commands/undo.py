"""Take changes back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final, Unpack

import click

from knapper.changes.disk import undo
from knapper.cli import inputs, options, output, writing
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.errors import BadInput, ConflictError
from knapper.tools import journal

if TYPE_CHECKING:
    from knapper.tools.context import Context
    from knapper.tools.shapes.write import UndoResult

_MAX_NAMED: Final = 5
"""Most files that the message names."""


class UndoOptions(writing.ChangeOptions):
    """The command's own options."""

    run: str | None
    proposal: str | None
    since: str | None
    partial: bool


@click.command(
    "undo",
    epilog=options.examples(
        ("knap undo", "the last change; again for the one before"),
        ("knap undo 1m80zgrw8-n0t5gkay", "one change, as `knap log` names it; an undo, too"),
        ("knap undo --proposal 1m80zgrxy-jesrk0k4", "all that accepting it changed"),
        ("knap undo --since 2h --dry-run", "only show what would be undone"),
    ),
)
@click.argument("change", required=False, metavar="[ID]")
@click.option("--run", metavar="ID", help="Undo everything that a run wrote.")
@click.option("--proposal", metavar="ID", help="Undo everything that accepting a proposal changed.")
@click.option("--since", metavar="TIME", help="Undo everything since then, such as 2026-01-31T18:30 or 2h.")
@click.option("--partial", is_flag=True, help="Skip files that have changed since, and undo the rest.")
@click.option("--dry-run", is_flag=True, help="Show what would be undone without changing anything.")
@click.option("-m", "--reason", default="", metavar="TEXT", help="Reason to record in the journal.")
@options.pass_options
def command(global_options: GlobalOptions, change: str | None, **own: Unpack[UndoOptions]) -> ExitCode:
    """Undo changes, byte for byte.

    Nothing is undone if a file has changed since, unless --partial is given. The undo is itself a change that can be
    undone.
    """
    which = (change, own["run"], own["proposal"], own["since"])
    if "" in which:  # such as a script's variable that isn't set, which means anything but the last change
        hint = "`knap log` lists the changes; `knap undo` alone takes back the last one"
        raise BadInput("the id or time is empty", hint=hint)
    change_id, run, proposal, since = (each or "" for each in which)
    since = inputs.parse_time(since).isoformat() if since else ""
    if "." in change_id:  # as in no id, but in most files' names
        hint = f"`knap log {shlex.quote(change_id)}` lists the changes of a file with their ids"
        raise BadInput(f"'{change_id}' isn't the id of a change", hint=hint)
    change_flags = {"yes": False, "propose": False, "dry_run": own["dry_run"], "reason": own["reason"]}
    with writing.open_vault(global_options, change_flags) as context:
        answer = journal.undo_change(context, change_id, run, proposal, since, partial=own["partial"])
        fails = own["dry_run"] and bool(answer.get("left")) and not (own["partial"] and answer["files"])
        hint = _explain_way(context, answer, partial=own["partial"]) if fails else ""
    if not fails:
        code = output.print_result(global_options, answer, changes.render_undo(answer, fails=False))
        for notice in () if global_options.as_json else answer.get("notes", ()):
            output.note(global_options, f"note: {output.plain(notice)}")
        return code
    if global_options.as_json:
        problems = list(dict.fromkeys(f"'{row['path']}' {row['problem']}" for row in answer.get("left", ())))
        more = f"; and {len(problems) - _MAX_NAMED} more" if len(problems) > _MAX_NAMED else ""
        message = f"undoing would fail: {'; '.join(problems[:_MAX_NAMED])}{more}"
        output.write_json(ConflictError(message, hint=hint, details=dict(answer)).as_dict())
    else:
        output.write(global_options, changes.render_undo(answer, fails=True))
        output.note(global_options, f"hint: {output.plain(hint)}")
    return ExitCode.CONFLICT


def _explain_way(context: Context, answer: UndoResult, *, partial: bool) -> str:
    """Return the hint that the undo itself would give."""
    undone = undo.read_newest_first(context.writer.state.journal, answer["undone"])
    current = {row["path"]: row["current_hash"] for row in answer.get("left", ())}
    return context.writer.explain_way(undone, current, partial=partial)
