"""Answer a question."""

import os
import select
import stat
import sys
from typing import Unpack

import click

from knapper import app
from knapper.cli import inputs, options, output, setup
from knapper.cli.options import CapOptions, GlobalOptions, PipelineOptions, select_pipeline_options
from knapper.cli.output import ExitCode
from knapper.cli.render import notes
from knapper.config import Settings
from knapper.errors import BadInput
from knapper.tools import search, shapes

_NO_MODEL = "These are the best passages. For an answer by a model, run `knap setup`, or name one in {file}."


class AskOptions(PipelineOptions, CapOptions):
    """The command's own options."""

    number: int
    model: str
    note: str
    passages_only: bool


@click.command(
    "ask",
    epilog=options.examples(
        ('knap ask "What did we decide about the garden?"', "an answer, or the passages that answer"),
        ('knap ask "What did we decide?" --model ollama:qwen3', "by this model"),
        ('knap ask "How do I undo a change?" --passages -n 3', "passages, even if a model is configured"),
        ('knap ask "Who is coming?" --json', "for programs"),
        ('knap ask "Sum this up" --note Plan.md --depth 1', "with the notes linked to it"),
        ('knap ask "Add the dates" --scout --can add', "look for the notes, then propose edits"),
        ("knap ask - < question.txt", "the question comes from the standard input"),
        ('git log -5 | knap ask "Which of this is planned in my notes?" -', "with piped text"),
    ),
)
@click.argument("question", nargs=-1, required=True, type=options.TEXT)
@options.limit_option(5, shapes.MAX_PASSAGES)
@click.option("--model", default="", metavar="NAME", help="Model to use, such as ollama:qwen3.")
@click.option("--note", default="", metavar="PATH", type=options.TEXT, help="Note that the question is about.")
@options.cap_options
@options.pipeline_options
@click.option("--passages", "passages_only", is_flag=True, help="Show passages even if a model is configured.")
@options.pass_options
def command(global_options: GlobalOptions, question: tuple[str, ...], **own: Unpack[AskOptions]) -> ExitCode:
    """Answer a question from the notes.

    A - alone reads the question from the standard input. After a question, it adds what is piped to the command: the
    model gets that as material, not as an order, and then only proposes changes. What isn't a terminal gets the answer
    alone; remarks go to the error stream.

    If a model is configured, it answers and cites its sources; the changes it makes are saved as proposals. Without a
    model, the command prints the passages that match best, each with its note, lines and heading.

    With --note, --add or an option that chooses agents, several agents share the work: one finds notes, one searches
    the web, one carries out the task. Without a note to start from, the first one searches the vault. With --remember,
    the choice of agents holds for later tasks too.
    """
    config = setup.read_settings(global_options)
    text, piped = _read_question(global_options, question)
    has_model = bool(own["model"] or config.model.name)
    if (
        options.wants_agents(select_pipeline_options(own), own["note"] if has_model else "")
        and not own["passages_only"]
    ):
        if piped:
            raise BadInput(
                "several agents can't be given piped text",
                hint="leave out - and what chooses agents, or save the text as a note and add it with --add",
                code="usage",
            )
        if options.select_caps(own):
            raise BadInput(
                "the limits of an answer aren't those of several agents",
                hint="leave --rounds, --calls, --tokens, --minutes and --cents out; the settings limit the agents",
                code="usage",
            )
        return _answer_by_agents(global_options, config, text, own)
    if has_model and not own["passages_only"]:
        from knapper.cli import chat  # noqa: PLC0415 - 2 s that passages needn't cost

        caps = chat.TurnCaps(**options.select_caps(own))
        return chat.answer_once(global_options, config, text, model=own["model"], caps=caps, piped=piped)
    if piped:
        output.note(
            global_options, "note: what is piped counts only where a model answers: these are passages of the vault"
        )
    if own["note"]:
        output.note(
            global_options, "note: --note counts only where a model answers: these are passages of the whole vault"
        )
    return _show_passages(global_options, config, text, own["number"])


def _read_question(options: GlobalOptions, words: tuple[str, ...]) -> tuple[str, str]:
    """Return the question, and the text that was piped to go with it.

    Raises:
        BadInput: One of the two is empty, or isn't text.
    """
    if words[-1] != inputs.STDIN:
        if _has_unread_pipe():
            output.note(options, "note: what is piped isn't read; add - after the question to give it to the model")
        return " ".join(words), ""
    text = inputs.read_text(options, inputs.STDIN, required=True).strip()
    if not text:
        raise BadInput(
            "the standard input holds nothing but space", hint="pipe a text, or leave - out", code="no_input"
        )
    return (" ".join(words[:-1]), text) if len(words) > 1 else (text, "")


def _has_unread_pipe() -> bool:
    """Return whether text waits in a pipe that the command doesn't read; False where that can't be told."""
    if os.name == "nt":
        return False
    import fcntl  # noqa: PLC0415 - Windows has none
    import termios  # noqa: PLC0415 - the same

    try:
        descriptor = sys.stdin.fileno()
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode) or not select.select([descriptor], [], [], 0)[0]:
            return False
        # The end of an empty pipe can be "read", too: asking how many bytes wait tells the two apart.
        return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder) > 0
    except (OSError, ValueError):
        return False


def _answer_by_agents(options: GlobalOptions, config: Settings, question: str, own: AskOptions) -> ExitCode:
    from knapper.cli import pipeline  # noqa: PLC0415 - as above
    from knapper.cli.pipeline import PipelineQuestion  # noqa: PLC0415 - as above

    pipeline_question = PipelineQuestion(
        question=question, note=own["note"], model=own["model"], options=select_pipeline_options(own)
    )
    return pipeline.run_pipeline(options, config, pipeline_question)


def _show_passages(options: GlobalOptions, config: Settings, text: str, number: int) -> ExitCode:
    with app.open_vault(config) as context:
        answer = search.search_vault(context, text, number)
    code = output.print_answer(
        options,
        answer,
        notes.render_passages(text, answer["results"]),
        nearest=notes.render_nearest(answer.get("nearest", ())),
    )
    if code is ExitCode.OK and not config.model.name:
        output.note(options, _NO_MODEL.format(file=config.config_file))
    return code
