"""Chat with a model at the terminal, and answer single questions."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
import uuid
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

import click

from knapper import app
from knapper.agents import prompting
from knapper.agents.chat.turn import ChatConfig, ChatTurn, EventSink, Message, TurnCaps
from knapper.agents.events import Done, Error, Event, Notice, ProposalEvent, QuestionEvent, Text, ToolCall, ToolResult
from knapper.agents.sessions import store as sessions_store
from knapper.agents.sessions.store import Session
from knapper.app import chats, schedules
from knapper.app.chats import VaultChats
from knapper.cli import output, review, setup
from knapper.cli.options import CapOptions, GlobalOptions
from knapper.cli.output import ExitCode, pluralize
from knapper.cli.render import changes
from knapper.config import Settings
from knapper.errors import BadInput, KnapError, NotFound, RefusedError, SetupError
from knapper.jsontypes import objects_in
from knapper.system import private
from knapper.tools import answers, files, journal, proposals

if TYPE_CHECKING:
    from knapper.tools.context import Context


try:
    import readline
except ImportError:  # Windows has its own line editing
    readline = None

_MAX_HISTORY: Final = 1_000


def stdin_is_terminal() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()


def read_line(prompt: str) -> str | None:
    """Read a line; Ctrl-C discards it, and the end of input returns None."""
    while True:
        try:
            if stdin_is_terminal():
                return input(prompt)
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            click.echo("\nCtrl-D ends the chat", err=True)
            continue
        except EOFError:
            click.echo(err=True)
            return None
        return line.rstrip("\r\n") if line else None


@contextlib.contextmanager
def line_history(file: Path) -> Generator[None]:
    """Provide the history of typed lines, in a file that only the person can read."""
    if readline is None or not stdin_is_terminal():
        yield
        return
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        readline.set_history_length(_MAX_HISTORY)
        with contextlib.suppress(OSError):
            private.create_file(file)
            readline.write_history_file(file)


_CORRECTED: Final = "*Changed after the citations were checked:*"
_MAX_ARGUMENT = 60
_MAX_STEP = 160


@dataclass(slots=True)
class AnswerDisplay:
    """The display of events: the answer on the output stream, the steps on the error stream.

    A person sees the answer while it is written, and then what the check of its citations changed. A file or another
    program gets the checked answer alone.
    """

    options: GlobalOptions
    show: Callable[[str], None]
    """Shows text of the answer."""
    flush: Callable[[], None]
    is_live: bool = False
    """Whether the answer is shown while it is written."""
    is_chat: bool = False
    """Whether the person goes on typing, and can decide on changes by ``/edits``."""
    step: int = 0
    text: str = ""
    """What was shown of the last reply."""
    done: Done | None = None
    error: Error | None = None
    proposals: list[str] = field(default_factory=list[str])
    open_calls: int = 0
    is_parallel: bool = False
    """Whether several calls ran at once, whose results then name their tools."""
    notices: set[str] = field(default_factory=set[str])
    """Notices that were shown as they came; the outcome repeats some of them."""

    def handle(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Text():
                self._show_text(event)
            case ToolCall():
                self.flush()
                self.is_parallel = self.open_calls > 0
                self.open_calls += 1
                pairs = [f"{name}={str(value)[:_MAX_ARGUMENT]!r}" for name, value in event.arguments.items()]
                self._note(f"→ {event.name}({', '.join(pairs)})")
            case ToolResult():
                self.open_calls -= 1
                name = f"{event.name}: " if self.is_parallel else ""
                self._note(f"  {'✓' if event.success else '✗'} {name}{event.summary}")
            case ProposalEvent():
                self.proposals.append(str(event.proposal["id"]))
            case QuestionEvent():
                choices = "".join(f"\n  - {one}" for one in event.options)
                output.note(self.options, output.plain(f"? {event.question}{choices}"))
            case Notice():
                self.flush()
                self.notices.add(event.text)
                self._note(f"! {event.text}")
            case Error():
                self.error = event
            case Done():
                self.done = event
            case _:
                pass

    def _show_text(self, event: Text) -> None:
        if event.step != self.step:
            self.flush()
            self.step, self.text = event.step, ""
        if self.is_live:
            self.text += event.text
            self.show(event.text)

    def announce_model(self, model: str) -> None:
        """Print the model's name, as its first word may take a while."""
        self._note(f"asking {model} …")

    def finish(self) -> None:
        """Show the turn's outcome after its text."""
        self.flush()
        done = self.done
        if done is None:
            return
        is_shown = done.state == "cancelled" or done.answer.strip() == self.text.strip()
        if not is_shown and (self.is_live or self.error is None):  # what was written before an error is no answer
            if done.answer.startswith(self.text):
                self.show(done.answer[len(self.text) :])
            else:
                self.show(f"\n{_CORRECTED}\n\n{output.diff_block(self.text, done.answer)}\n")
            self.flush()
        for text in output.describe_dropped(objects_in(done.removed)):
            self._note(text)
        for note in done.notes:
            if str(note) not in self.notices:
                self._note(str(note))
        if self.is_chat and self.proposals:
            self._note(f"{pluralize(len(self.proposals), 'change')} for your decision: /edits")
        for proposal in () if self.is_chat else self.proposals:
            self._note(f"waits for your decision: `knap edits show {proposal}`")
        self._note(usage_footer(done))

    def _note(self, text: str) -> None:
        if text:
            line = output.plain(text).replace("\n", " ")
            clipped = line if len(line) <= _MAX_STEP else f"{line[:_MAX_STEP]}…"
            output.note(self.options, click.style(clipped, dim=True) if output.wants_colour(self.options) else clipped)


def open_display(options: GlobalOptions) -> AnswerDisplay:
    """Create the display for this terminal, or for a file."""
    if sys.stdout.isatty():
        width = min(shutil.get_terminal_size().columns, 100)
        blocks = output.MarkdownBlocks(output.markdown_printer(width, colour=output.wants_colour(options)))
        return AnswerDisplay(options=options, show=blocks.feed, flush=blocks.flush, is_live=True)
    plain = PlainWriter()
    return AnswerDisplay(options=options, show=plain.feed, flush=plain.flush)


class PlainWriter:
    """Writes an answer unchanged, with a line break after it."""

    def __init__(self) -> None:
        """Begin with nothing written."""
        self._is_line_ended = True

    def feed(self, text: str) -> None:
        """Write a piece."""
        if text:
            click.echo(output.plain(text), nl=False)
            self._is_line_ended = text.endswith("\n")

    def flush(self) -> None:
        """End the line."""
        if not self._is_line_ended:
            click.echo()
        self._is_line_ended = True


def run_turn(
    runner: asyncio.Runner, work: Callable[[EventSink], Coroutine[Any, Any, object]], display: AnswerDisplay
) -> bool:
    """Run a turn; Ctrl-C cancels it, but doesn't end the program.

    Returns:
        Whether the turn ran to its end.
    """
    try:
        runner.run(work(display.handle))
    except KeyboardInterrupt:
        display.finish()
        output.note(display.options, "stopped")
        return False
    display.finish()
    return True


def turn_error(display: AnswerDisplay) -> KnapError | None:
    """Return the error that ended a turn; None if there is an answer."""
    if display.error is None or (display.done is not None and display.done.state not in {"failed", "limit"}):
        return None
    kind = RefusedError if display.error.code == "budget_spent" else SetupError
    return kind(display.error.error, hint=display.error.hint, code=display.error.code)


def turn_exit_code(display: AnswerDisplay) -> ExitCode:
    """Return the exit code for the end of a turn."""
    error = turn_error(display)
    return output.exit_code(error) if error else ExitCode.OK


def usage_footer(done: Done) -> str:
    """Format the turn's usage as one line."""
    usage = done.usage
    parts = [done.model]
    if usage.get("total_tokens"):
        parts.append(f"{usage['input_tokens']} + {usage['output_tokens']} tokens")
    if usage.get("cost_usd") is not None:
        parts.append(f"${float(str(usage['cost_usd'])):.4f}")
    if done.tools:
        parts.append(pluralize(len(done.tools), "tool call"))
    return ", ".join(parts)


_SESSION_FIELDS: Final = frozenset({"type", "session_id"})


PIPED_SOURCE: Final = "standard input"
"""Names piped text, where a model reads it and where the list of restricted clients says why."""


def quote_piped(text: str) -> str:
    """Return piped text as material for a model, in a block that it can't end: who wrote it isn't known."""
    return prompting.enclose(PIPED_SOURCE, prompting.escape(text), prompting.new_mark())


def answer_once(
    options: GlobalOptions, config: Settings, question: str, *, model: str, caps: TurnCaps, piped: str = ""
) -> ExitCode:
    """Answer a question in one turn, without a session.

    Args:
        options: The shared options.
        config: What the configuration says.
        question: The question.
        model: The model's name; empty for the configured one.
        caps: Limits that only lower those of the settings.
        piped: Text that goes with the question, as material; the model then only proposes changes.

    Raises:
        SetupError: The model can't answer.
        RefusedError: A limit is reached.
    """
    with app.open_hub(config, only=True) as hub, chats.open_models(hub) as models, asyncio.Runner() as runner:
        chat = models.chat(model)
        run = str(uuid.uuid4())
        context = models.context(run)
        if piped:
            answers.mark_tainted(context, PIPED_SOURCE)
            question = f"{question}\n\n{quote_piped(piped)}"
        turn = ChatTurn(chat, context, Message(text=question, run=run, caps=caps))
        display = _open_answer_display(options, chat)

        async def work(emit: EventSink) -> None:
            await turn.run(emit)

        try:
            finished = run_turn(runner, work, display)
        finally:
            models.meter.record(run, chat.name, turn.spent)
    return _print_end(options, display, _SESSION_FIELDS, finished=finished)


def run_agent(
    options: GlobalOptions, config: Settings, name: str, *, model: str, may_apply: bool, caps: TurnCaps
) -> ExitCode:
    """Set an agent to work that has a task of its own, in a new session.

    Args:
        options: The shared options.
        config: What the configuration says.
        name: The agent's.
        model: The model's name; empty for the configured one.
        may_apply: Whether it may apply changes, as far as the rules allow.
        caps: Limits that only lower those of the settings.

    Raises:
        SetupError: The model can't answer.
        RefusedError: A limit is reached.
    """
    with app.open_hub(config, only=True) as hub, chats.open_chats(hub) as client_chats, asyncio.Runner() as runner:
        stage = client_chats.conversations.stages.find(name)
        chat = client_chats.chat(model)
        display = _open_answer_display(options, chat)

        async def work(emit: EventSink) -> None:
            _ = await client_chats.conversations.run_stage(chat, stage, emit, may_apply=may_apply, caps=caps)

        finished = run_turn(runner, work, display)
    done = display.done
    if done is not None and done.session_id and not options.as_json:
        output.note(options, f"`knap chat --session {done.session_id}` continues")
        if done.changes:
            output.note(options, f"`knap undo --run {done.session_id}` takes back what was applied")
    return _print_end(options, display, frozenset({"type"}), finished=finished)


def _open_answer_display(options: GlobalOptions, chat: ChatConfig) -> AnswerDisplay:
    if options.as_json:
        return AnswerDisplay(options=options, show=lambda _: None, flush=lambda: None)
    display = open_display(options)
    display.announce_model(chat.name)
    return display


def _print_end(options: GlobalOptions, display: AnswerDisplay, hidden: frozenset[str], *, finished: bool) -> ExitCode:
    """Print the outcome as JSON where that is asked for, and return the exit code; raise what ended the turn."""
    error = turn_error(display)
    if error is not None:
        raise error
    if options.as_json and display.done is not None:
        fields = display.done.as_dict()
        output.write_json({"success": True, **{name: fields[name] for name in fields if name not in hidden}})
    return ExitCode.OK if finished else ExitCode.INTERRUPTED


@dataclass(slots=True, kw_only=True)
class ChatState:
    """The state of a chat at the terminal."""

    options: GlobalOptions
    chats: VaultChats
    chat: ChatConfig
    session: Session
    note: str
    runner: asyncio.Runner
    caps: TurnCaps = field(default_factory=TurnCaps)

    def reply(self, text: str) -> ExitCode:
        """Answer a message; return the exit code for its end."""

        async def work(emit: EventSink) -> Done:
            message = Message(text=text, active_file=self.note, caps=self.caps)
            return await self.chats.conversations.reply(self.chat, self.session.id, message, emit)

        display = open_display(self.options)
        display.is_chat = stdin_is_terminal()
        try:
            finished = run_turn(self.runner, work, display)
        except (NotFound, SetupError) as error:  # an agent that the message names has nothing to do, or can't
            output.print_error(error.message, error.hint)
            return output.exit_code(error)
        if display.error is not None:
            output.print_error(display.error.error, display.error.hint)
        return turn_exit_code(display) if finished else ExitCode.INTERRUPTED


SLASH_HELP: Final = """\
/help            this list
/model [NAME]    the model that answers, or another one
/edits           what waits for your decision in this session, to be accepted or rejected
/undo            take back what was last changed in this session
/clear           start over; what was said isn't sent to the model again
/save [PATH]     keep the conversation as a note
/exit            end the chat"""


def run_slash_command(state: ChatState, text: str) -> bool:
    """Run a slash command; return whether the chat continues."""
    name, _, rest = text[1:].partition(" ")
    if name in {"exit", "quit", "q"}:
        return False
    handler = _SLASH_COMMANDS.get(name)
    if handler is None:
        output.note(state.options, f"there is no /{output.plain(name)}; /help lists what there is")
        return True
    try:
        handler(state, rest.strip())
    except KnapError as error:
        output.print_error(error.message, error.hint)
    return True


def _show_help(state: ChatState, rest: str) -> None:
    del rest
    stages, problems = state.chats.conversations.stages.all()
    rows = [(f"/{stage.name}", stage.summary or stage.title) for stage in stages]
    rows += [(f"/{name}", error.message) for name, error in problems.items()]
    output.write(state.options, "\n".join([SLASH_HELP, *(output.plain(f"{name:<17}{text}") for name, text in rows)]))


def _switch_model(state: ChatState, name: str) -> None:
    if name:
        state.chat = state.chats.chat(name)
    output.write(state.options, state.chat.name)


def _review_edits(state: ChatState, rest: str) -> None:
    del rest
    with _open_vault(state) as context:
        open_proposals = proposals.list_proposals(context, "open")
        rows = [row for row in open_proposals["results"] if row.get("run") == state.session.id]
        if not rows:
            output.note(state.options, "nothing waits in this session; `knap edits` lists all that waits")
        for row in rows:
            if stdin_is_terminal():
                review.review_proposal(state.options, context, row["id"])
            else:
                output.write(state.options, changes.render_proposal(proposals.show_proposal(context, row["id"])))


def _undo_last_change(state: ChatState, rest: str) -> None:
    del rest
    with _open_vault(state) as context:
        # Find the session's last change that isn't undone, by the model or accepted by the person.
        entries = journal.list_changes(context, run=state.session.id)["results"]
        change_id = next((row["id"] for row in entries if not row.get("undone") and not row.get("undoes")), "")
        if not change_id:
            output.note(state.options, "nothing was changed in this session that isn't undone")
            return
        output.write(state.options, changes.render_undo(journal.undo_change(context, change_id), fails=False))


def _clear_session(state: ChatState, rest: str) -> None:
    del rest
    state.session = state.chats.store.clear(state.session.id)
    output.note(state.options, "started over")


def _save_note(state: ChatState, path: str) -> None:
    store = state.chats.store
    session = store.get(state.session.id)
    turns = store.turns(session.id)
    if not turns:
        output.note(state.options, "nothing was said yet")
        return
    path = path or sessions_store.export_path(session, turns)
    with _open_vault(state) as context:
        answer = files.create_file(context, path, sessions_store.write_session_markdown(session, turns))
    output.write(state.options, changes.render_outcome(answer))


def _open_vault(state: ChatState) -> Context:
    """Open the vault as the person at the terminal, who may accept and undo."""
    return state.chats.hub.context(client="cli", vault=state.chats.vault)


_SLASH_COMMANDS: Final[Mapping[str, Callable[[ChatState, str], None]]] = {
    "help": _show_help,
    "model": _switch_model,
    "edits": _review_edits,
    "undo": _undo_last_change,
    "clear": _clear_session,
    "save": _save_note,
}

_WELCOME = "{model} on the vault '{vault}'. /help lists the commands, Ctrl-C stops an answer, Ctrl-D ends the chat."


def run_chat(
    options: GlobalOptions, *, model: str, note: str, session: str, new: bool, **caps: Unpack[CapOptions]
) -> ExitCode:
    """Run the chat until the person ends it.

    Args:
        options: The shared options.
        model: The model's name; empty for the configured one.
        note: The note that it is about; empty for none.
        session: The session to continue; empty for the note's last one.
        new: Begin a new session.
        caps: Limits of each answer, which only lower those of the settings.

    Raises:
        BadInput: JSON is wanted.
        SetupError: The model can't answer.
        NotFound: There is no such session, or no such note.
    """
    if options.as_json:
        raise BadInput("a chat isn't told as JSON", hint="`knap ask --json` answers one question", code="usage")
    config = setup.read_settings(options)
    with (
        app.open_hub(config, only=True) as hub,
        chats.open_chats(hub) as own_chats,
        _open_chats_of(own_chats, session) as client_chats,
        asyncio.Runner() as runner,
    ):
        chat = client_chats.chat(model)
        # Before a session is chosen, so that a mistyped name begins none of its own.
        note_path = client_chats.conversations.context_of("").view.locate(note) if note else ""
        if session:
            chosen = client_chats.store.get(session)
        elif new:
            chosen = client_chats.store.begin(file=note_path)
        else:
            chosen = client_chats.conversations.route(note_path)
        state = ChatState(
            options=options,
            chats=client_chats,
            chat=chat,
            session=chosen,
            note=note_path,
            runner=runner,
            caps=TurnCaps(**caps),
        )
        output.note(options, _WELCOME.format(model=chat.name, vault=client_chats.vault))
        code = ExitCode.OK
        with line_history(state.chats.store.folder / "chat_history"):
            while (text := read_line("> ")) is not None:
                if not text.strip():
                    continue
                if text.startswith("/") and not _names_agent(state, text):
                    if not run_slash_command(state, text):
                        break
                    continue
                code = state.reply(text)
        return ExitCode.OK if stdin_is_terminal() else code


@contextlib.contextmanager
def _open_chats_of(own_chats: VaultChats, session: str) -> Generator[VaultChats]:
    """Open the chats to which a session belongs: those of a schedule's client, or the agent's own."""
    for client in schedules.list_clients(own_chats.hub) if session else ():
        if own_chats.work.has_sessions(client):
            with chats.open_client_chats(own_chats, client) as client_chats:
                if client_chats.store.has(session):
                    yield client_chats.chats
                    return
    yield own_chats


def _names_agent(state: ChatState, text: str) -> bool:
    try:
        return state.chats.conversations.stages.named_by(text) is not None
    except KnapError:  # there is one of that name, and the answer says what is wrong with it
        return True
