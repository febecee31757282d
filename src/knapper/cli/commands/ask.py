"""Answer a question."""

from typing import TypedDict, Unpack

import click

from knapper import app
from knapper.cli import options, output, settings
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import passages
from knapper.config import Settings
from knapper.tools import search

_NO_MODEL = "These are the best passages. For an answer by a model, set KNAP_MODEL, or name below [model] in {file}."


class Given(TypedDict):
    """Hold the command's own options."""

    number: int
    model: str
    note: str
    passages_only: bool


@click.command(
    "ask",
    context_settings=options.CONTEXT,
    epilog=options.examples(
        ('knap ask "What did we decide about the garden?"', "an answer, or the passages that answer"),
        ('knap ask "What did we decide?" --model ollama:qwen3', "by this model"),
        ('knap ask "How do I undo a change?" --passages -n 3', "passages, even if a model is set"),
        ('knap ask "Who is coming?" --json', "for programs"),
    ),
)
@click.argument("question", nargs=-1, required=True, type=options.TEXT)
@options.number(5, search.MAX_RESULTS)
@click.option("--model", default="", metavar="NAME", help="The model, such as ollama:qwen3.")
@click.option("--note", default="", metavar="PATH", type=options.TEXT, help="The note that it is about.")
@click.option("--passages", "passages_only", is_flag=True, help="Show passages, even if a model is set.")
@options.shared
@click.pass_obj
def command(said: Options, question: tuple[str, ...], **own: Unpack[Given]) -> ExitCode:
    """Answer a question from the notes.

    A model answers, where one is set, and cites the places; what it changes waits for your word. Without one, these are
    the passages that answer best, each with its note, lines and heading.
    """
    found = settings.read(said)
    text = " ".join(question)
    if (own["model"] or found.model.name) and not own["passages_only"]:
        from knapper.cli import asking_model  # noqa: PLC0415 - 2 s that passages needn't cost

        return asking_model.answer(said, found, text, model=own["model"], note=own["note"])
    return _passages(said, found, text, own["number"])


def _passages(said: Options, found: Settings, text: str, number: int) -> ExitCode:
    with app.open_vault(found) as context:
        answer = search.search_vault(context, text, number)
    code = output.answer(said, answer, passages.reading(text, passages.of(answer)))
    if code is ExitCode.OK and not found.model.name:
        output.note(said, _NO_MODEL.format(file=found.config_file))
    return code
