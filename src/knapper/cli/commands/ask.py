"""Answer a question."""

import click

from knapper import app
from knapper.cli import options, output, settings
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import passages
from knapper.tools import search

_NO_MODEL = "These are the best passages. For an answer by a model, set KNAP_MODEL, or name below [model] in {file}."
_NO_CHAT = (
    "The model {model} is set, but answering with it isn't part of this version yet. These are the best passages."
)


@click.command(
    "ask",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ('knap ask "What did we decide about the garden?"', "the passages that answer"),
        ('knap ask "How do I undo a change?" -n 3', "fewer of them"),
        ('knap ask "Who is coming?" --json', "for programs"),
    ),
)
@click.argument("question", nargs=-1, required=True, type=options.TEXT)
@options.number(5, search.MAX_RESULTS)
@options.shared
@click.pass_obj
def command(said: Options, question: tuple[str, ...], number: int) -> ExitCode:
    """Answer a question from the notes.

    Without a model, these are the passages that answer best, each with its note, lines and heading.
    """
    found = settings.read(said)
    text = " ".join(question)
    with app.open_vault(found) as context:
        answer = search.search_vault(context, text, number)
    code = output.answer(said, answer, passages.reading(text, passages.of(answer)))
    if code is ExitCode.OK:
        told = _NO_CHAT.format(model=found.model.name) if found.model.name else None
        output.note(said, told or _NO_MODEL.format(file=found.config_file))
    return code
