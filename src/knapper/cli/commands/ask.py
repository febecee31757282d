"""Answer a question."""

from typing import Unpack

import click

from knapper import app
from knapper.cli import ask_switches, options, output, settings
from knapper.cli.ask_switches import Switches
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import passages
from knapper.config import Settings
from knapper.tools import search

_NO_MODEL = "These are the best passages. For an answer by a model, set KNAP_MODEL, or name below [model] in {file}."


class Given(Switches):
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
        ('knap ask "Sum this up" --note Plan.md --depth 1', "with the notes that it links with"),
        ('knap ask "Add the dates" --scout --can add', "look for the notes, then propose edits"),
    ),
)
@click.argument("question", nargs=-1, required=True, type=options.TEXT)
@options.number(5, search.MAX_RESULTS)
@click.option("--model", default="", metavar="NAME", help="The model, such as ollama:qwen3.")
@click.option("--note", default="", metavar="PATH", type=options.TEXT, help="The note that it is about.")
@ask_switches.added
@click.option("--passages", "passages_only", is_flag=True, help="Show passages, even if a model is set.")
@options.shared
@click.pass_obj
def command(said: Options, question: tuple[str, ...], **own: Unpack[Given]) -> ExitCode:
    """Answer a question from the notes.

    A model answers, where one is set, and cites the places; what it changes waits for your word. Without one, these are
    the passages that answer best, each with its note, lines and heading.

    With --note, --add or any of the switches, several agents do it: one looks for notes, one searches the web, one does
    the task. Where there is no note to begin with, the notes are looked for. Which agents are on is remembered.
    """
    found = settings.read(said)
    text = " ".join(question)
    has_model = bool(own["model"] or found.model.name)
    if ask_switches.are_given(ask_switches.of(own), own["note"] if has_model else "") and not own["passages_only"]:
        return _by_agents(said, found, text, own)
    if has_model and not own["passages_only"]:
        from knapper.cli import asking_model  # noqa: PLC0415 - 2 s that passages needn't cost

        return asking_model.answer(said, found, text, model=own["model"], note="")
    if own["note"]:
        output.note(said, "note: --note counts only where a model answers: these are passages of the whole vault")
    return _passages(said, found, text, own["number"])


def _by_agents(said: Options, found: Settings, question: str, own: Given) -> ExitCode:
    from knapper.cli import pipeline_asking  # noqa: PLC0415 - as above
    from knapper.cli.pipeline_asking import Asked  # noqa: PLC0415 - as above

    asked = Asked(question=question, note=own["note"], model=own["model"], switches=ask_switches.of(own))
    return pipeline_asking.answer(said, found, asked)


def _passages(said: Options, found: Settings, text: str, number: int) -> ExitCode:
    with app.open_vault(found) as context:
        answer = search.search_vault(context, text, number)
    code = output.answer(said, answer, passages.reading(text, passages.of(answer)))
    if code is ExitCode.OK and not found.model.name:
        output.note(said, _NO_MODEL.format(file=found.config_file))
    return code
