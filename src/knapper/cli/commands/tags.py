"""List and rename tags."""

from typing import Unpack

import click

from knapper.cli import calls, options, output, writing
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.tools import shapes


@click.group(
    "tags",
    invoke_without_command=True,
    epilog=options.examples(
        ("knap tags", "the most used first"),
        ("knap tags list project/", "those nested below it"),
        ("knap tags rename todo task", "in text and properties; becomes a proposal"),
    ),
)
@options.shared_options
@click.pass_context
def command(ctx: click.Context) -> ExitCode | None:
    """List and rename tags."""
    return None if ctx.invoked_subcommand else ctx.invoke(listed)


@command.command(
    "list",
    epilog=options.examples(
        ("knap tags list", "the most used first"), ("knap tags list project/ -n 10", "the ten most used of some")
    ),
)
@click.argument("prefix", default="")
@options.limit_option(shapes.MAX_RESULTS, shapes.MAX_RESULTS)
@options.pass_options
def listed(global_options: GlobalOptions, prefix: str, number: int) -> ExitCode:
    """List tags and the number of notes with each.

    PREFIX limits the list to tags that begin with it.
    """
    answer = calls.call(global_options, "notes.list_tags", prefix=prefix, limit=number)
    return output.print_listing(global_options, answer, changes.render_tags(answer), nothing="no tags")


@command.command(
    "rename",
    epilog=options.examples(
        ("knap tags rename todo task", "#todo/home becomes #task/home, too"),
        ("knap tags rename todo task --dry-run", "only show what would change"),
        ("knap tags rename todo task --yes", "at once"),
    ),
)
@click.argument("old")
@click.argument("new")
@click.option("--path", "paths", multiple=True, metavar="PATH", help="Only in this note; repeatable.")
@writing.change_options
@options.pass_options
def rename(
    global_options: GlobalOptions, old: str, new: str, paths: tuple[str, ...], **own: Unpack[writing.ChangeOptions]
) -> ExitCode:
    """Rename a tag and the tags nested below it.

    Renaming a tag in all notes becomes a proposal unless --yes is given.
    """
    from knapper.tools import notes  # noqa: PLC0415 - only what writes needs the tools here

    with writing.open_vault(global_options, own) as context:
        writing.complete_index(global_options, context)
        answer = notes.rename_tag(context, old, new, paths)
    return writing.report_changes(global_options, answer)
