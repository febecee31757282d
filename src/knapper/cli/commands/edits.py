"""List, show, review and decide on proposals."""

from dataclasses import replace
from typing import TypedDict, Unpack

import click

from knapper.changes.writer import SubmitOptions
from knapper.cli import options, output, setup, writing
from knapper.cli import review as reviewing
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.errors import BadInput
from knapper.tools import answers, proposals, shapes
from knapper.tools.context import Context
from knapper.tools.shapes.write import ProposalList


class ProposalPartOptions(TypedDict):
    """The options that select parts of a proposal, and the dry run."""

    file: tuple[str, ...]
    hunk: tuple[str, ...]
    dry_run: bool


class AcceptOptions(ProposalPartOptions):
    """The options of ``accept``."""

    digest: str
    yes: bool


_FILE_OPTION = click.option("--file", multiple=True, metavar="PATH", help="Only this file; repeatable.")
_HUNK_OPTION = click.option("--hunk", multiple=True, metavar="ID", help="Only this hunk, such as 2.1; repeatable.")
_MAX_CANDIDATES = 100
"""Proposals among which a review looks for one that can be decided."""
_DRY_RUN_OPTION = click.option("--dry-run", is_flag=True, help="Show what would be done without doing it.")


@click.group(
    "edits",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap edits", "pending proposals"),
        ("knap edits review", "review the newest with single keys"),
        ("knap edits show 1m81003qv-wahm1gf6", "what one would change, word by word"),
        ("knap edits accept 1m81003qv-wahm1gf6 --hunk 1.2", "a part of it"),
        ("knap edits reject 1m81003qv-wahm1gf6 -m 'not yet'", "it stays listed, with the reason"),
    ),
)
@options.shared_options
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """List, show, accept and reject proposed changes."""
    return None if ctx.invoked_subcommand else ctx.invoke(listed, number=shapes.MAX_RESULTS)


@command.command(
    "list",
    epilog=options.examples(
        ("knap edits list", "pending proposals"),
        ("knap edits list --all -n 50", "decided and expired ones, too"),
        ("knap edits list --path Projects", "about a note or a folder"),
    ),
)
@click.option("--all", "every", is_flag=True, help="Include decided and expired proposals.")
@click.option("--path", default="", metavar="PATH", help="Only proposals for this note or folder.")
@options.limit_option(20, shapes.MAX_RESULTS)
@options.pass_options
def listed(global_options: GlobalOptions, path: str, number: int, *, every: bool) -> ExitCode:
    """List pending proposals, newest first."""
    with setup.open_vault(global_options) as context:
        answer = (
            proposals.list_proposals(context, "", path, number) if every else _waiting_proposals(context, path, number)
        )
    return output.print_listing(global_options, answer, changes.render_proposals(answer), nothing="nothing waits")


@command.command(
    "show",
    epilog=options.examples(("knap edits show 1m81003qv-wahm1gf6", "by file and hunk, with the digest to accept it")),
)
@click.argument("proposal", metavar="ID")
@options.pass_options
def show(global_options: GlobalOptions, proposal: str) -> ExitCode:
    """Show a proposal against the current notes."""
    with setup.open_vault(global_options) as context:
        shown = proposals.show_proposal(context, proposal)
    if global_options.as_json:
        output.write_json(shown)
        return ExitCode.OK
    output.write(global_options, changes.render_proposal(shown))
    if shown["status"] == "open":
        output.note(global_options, f"\naccept just this: knap edits accept {proposal} --digest {shown['digest']}")
    return ExitCode.OK


@command.command(
    "accept",
    epilog=options.examples(
        ("knap edits accept 1m81003qv-wahm1gf6", "shows it, and asks"),
        ("knap edits accept 1m81003qv-wahm1gf6 --digest 5d…", "if it is what was shown with this digest"),
        ("knap edits accept 1m81003qv-wahm1gf6 --file A.md", "one file of it"),
        ("knap edits accept 1m81003qv-wahm1gf6 --dry-run", "what that would change"),
    ),
)
@click.argument("proposal", metavar="ID")
@_FILE_OPTION
@_HUNK_OPTION
@_DRY_RUN_OPTION
@click.option(
    "--digest",
    default="",
    metavar="DIGEST",
    help="Fail unless the proposal still has the digest that `knap edits show` printed.",
)
@click.option("-y", "--yes", is_flag=True, help="Accept without asking.")
@options.pass_options
def accept(global_options: GlobalOptions, proposal: str, **own: Unpack[AcceptOptions]) -> ExitCode:
    """Apply a proposal or a part of it.

    Only what you have seen is applied: the command shows the changes and asks, or you give the digest that `knap edits
    show` printed.
    """
    with _open_vault(global_options, dry_run=own["dry_run"]) as context:
        digest = own["digest"]
        if not digest:
            shown = proposals.show_proposal(context, proposal)
            digest = str(shown["digest"])
            if not (own["yes"] or own["dry_run"]):
                if global_options.as_json or not output.can_ask():
                    hint = f"give the --digest that `knap edits show {proposal}` shows, or --yes"
                    raise BadInput("accepting needs your word for what is accepted", hint=hint, code="digest_needed")
                output.write(global_options, changes.render_proposal(shown))
                if not output.confirm("Apply it?"):
                    output.note(global_options, "nothing is changed; it still waits")
                    return ExitCode.NOTHING
        answer = proposals.accept_proposal(context, proposal, digest, own["file"], own["hunk"])
    return writing.report_changes(global_options, answer)


@command.command(
    "reject",
    epilog=options.examples(
        ("knap edits reject 1m81003qv-wahm1gf6 -m 'not yet'", "all of it"),
        ("knap edits reject 1m81003qv-wahm1gf6 --hunk 2.1", "a part"),
    ),
)
@click.argument("proposal", metavar="ID")
@_FILE_OPTION
@_HUNK_OPTION
@_DRY_RUN_OPTION
@click.option("-m", "--reason", default="", metavar="TEXT", help="Reason to record with the proposal.")
@options.pass_options
def reject(global_options: GlobalOptions, proposal: str, reason: str, **own: Unpack[ProposalPartOptions]) -> ExitCode:
    """Reject a proposal or a part of it."""
    with _open_vault(global_options, dry_run=own["dry_run"]) as context:
        answer = proposals.reject_proposal(context, proposal, reason, own["file"], own["hunk"])
    return output.print_result(global_options, answer, changes.render_rejection(answer))


@command.command(
    "review",
    epilog=options.examples(
        ("knap edits review", "the newest pending one"),
        ("knap edits review 1m81003qv-wahm1gf6", "this one"),
        ("knap edits review --dry-run", "what your answers would do"),
    ),
)
@click.argument("proposal", default="", metavar="[ID]")
@_DRY_RUN_OPTION
@options.pass_options
def review(global_options: GlobalOptions, proposal: str, *, dry_run: bool) -> ExitCode:
    """Review a proposal change by change, with single keys.

    Decisions are applied at the end; Ctrl-C leaves everything as it was.
    """
    if global_options.as_json or not output.can_ask():
        hint = "use `knap edits show`, then `accept` or `reject` with --file or --hunk"
        raise BadInput("a review needs a terminal", hint=hint, code="no_terminal")
    with _open_vault(global_options, dry_run=dry_run) as context:
        name = proposal
        if not name:  # the newest with a part to decide; staleness shows only when it is read
            ids = [row["id"] for row in _waiting_proposals(context, "", _MAX_CANDIDATES)["results"]]
            fitting = (one for one in ids if any(reviewing.reviewable_parts(proposals.show_proposal(context, one))))
            name = next(fitting, ids[0] if ids else "")
        if not name:
            output.note(global_options, "nothing waits")
            return ExitCode.OK
        return reviewing.review_proposal(global_options, context, name)


@command.command(
    "draw",
    epilog=options.examples(("knap edits draw 1m81003qv-wahm1gf6", "see it where it would go, in any editor")),
)
@click.argument("proposal", metavar="ID")
@_DRY_RUN_OPTION
@options.pass_options
def draw(global_options: GlobalOptions, proposal: str, *, dry_run: bool) -> ExitCode:
    """Write a proposal's pending edits into its notes as blocks.

    Each edit becomes a block with the tag #ai_edit.
    """
    with _open_vault(global_options, dry_run=dry_run) as context:
        answer = proposals.show_proposal_in_notes(context, proposal)
    return writing.report_changes(global_options, answer)


@command.command(
    "blocks",
    epilog=options.examples(
        ("knap edits blocks Garden.md", "pending edits in the note"),
        ("knap edits blocks Garden.md --accept 1f2e3d4c-5b6a79", "one of them"),
        ("knap edits blocks Garden.md --reject all", "the note as it was, byte for byte"),
    ),
)
@click.argument("path")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="ID|all",
    help="Replace the block with the new text; an ID or all, repeatable.",
)
@click.option(
    "--reject",
    "rejected",
    multiple=True,
    metavar="ID|all",
    help="Replace the block with the old text; an ID or all, repeatable.",
)
@_DRY_RUN_OPTION
@options.pass_options
def blocks(
    global_options: GlobalOptions, path: str, accepted: tuple[str, ...], rejected: tuple[str, ...], *, dry_run: bool
) -> ExitCode:
    """List or resolve the pending edit blocks in a note."""
    with _open_vault(global_options, dry_run=dry_run) as context:
        if accepted or rejected:
            return writing.report_changes(
                global_options, proposals.resolve_blocks(context, path, accept=accepted, reject=rejected)
            )
        answer = proposals.list_blocks(context, path)
    return output.print_listing(
        global_options, answer, changes.render_blocks(answer), nothing="no edit waits in this note"
    )


def _open_vault(options: GlobalOptions, *, dry_run: bool) -> Context:
    return replace(setup.open_vault(options), submit_options=SubmitOptions(dry_run=dry_run))


def _waiting_proposals(context: Context, path: str, number: int) -> ProposalList:
    """List the open proposals, then the stale ones; those that apply again count as open."""
    wide = [proposals.list_proposals(context, status, path, number) for status in ("open", "stale")]
    rows = [row for answer in wide for row in answer["results"]]
    total = sum(answer["total"] for answer in wide)
    return answers.page_of(rows[:number], total, number, 0)
