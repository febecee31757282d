"""Chat with a model about the notes."""

from typing import Unpack

import click

from knapper.cli import options, start
from knapper.cli.options import CapOptions, GlobalOptions
from knapper.cli.output import ExitCode


class ChatOptions(CapOptions):
    """The command's own options."""

    model: str
    note: str
    session: str
    new: bool


@click.command(
    "chat",
    epilog=options.examples(
        ("knap chat", "continue where you left off"),
        ("knap chat --note Projects/Garden.md", "about one note"),
        ("knap chat --model ollama:qwen3 --new", "another model, in a new session"),
    ),
)
@click.option("--model", default="", metavar="NAME", help="Model to use, such as ollama:qwen3.")
@click.option("--note", default="", metavar="PATH", type=options.TEXT, help="Note that the chat is about.")
@click.option("--session", default="", metavar="ID", help="Continue this session.")
@click.option("--new", is_flag=True, help="Start a new session.")
@options.cap_options
@options.pass_options
def command(global_options: GlobalOptions, **own: Unpack[ChatOptions]) -> ExitCode:
    """Chat with a model about the notes.

    Changes by the model are saved as proposals. Each note has its own session, and so has the vault as a whole.
    """
    from knapper.cli import chat  # noqa: PLC0415 - 2 s that `knap chat --help` needn't cost

    start.collect_garbage_as_usual()
    return chat.run_chat(global_options, **own)
