"""Start, resume, show and manage runs at the terminal."""

import asyncio
import contextlib
import shutil
import sys
import threading
from collections.abc import Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from knapper import app
from knapper.agents.events import Error, Notice, Usage
from knapper.agents.runs import executor, export
from knapper.agents.runs.model import (
    ENDED,
    CheckpointEvent,
    NodeChanged,
    NodeDetails,
    NodeRow,
    RunDone,
    RunEvent,
    RunLimits,
    RunOrder,
    RunRecord,
    RunRow,
    RunStarted,
    RunState,
    RunWithNodes,
)
from knapper.app import runs
from knapper.app.runs import OpenedRuns
from knapper.changes.writer import SubmitOptions
from knapper.cli import output, setup, writing
from knapper.cli.options import GlobalOptions, RunLimitOptions, RunResumeOptions, RunStartOptions
from knapper.cli.output import ExitCode, plain, pluralize
from knapper.cli.render import changes
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue, object_or_empty, objects_in, strings_in
from knapper.tools import answers

if TYPE_CHECKING:
    from knapper.agents.runs.engine import AskPerson


JSONRow = Mapping[str, JSONValue]
_SIGNS = {
    "done": "✓",
    "partial": "~",
    "failed": "✗",
    "blocked": "⊘",
    "cut": "✂",
    "running": "…",
    "pending": "·",
}
_COLOURS = {"done": "green", "partial": "yellow", "failed": "red", "blocked": "red", "cut": "yellow"}
_MAX_TITLE = 100


def render_run_line(row: RunRow, *, asks: bool) -> str:
    """Format a run as one line; *asks* says whether it waits for an answer of the person."""
    head = click.style(row["id"], fg="yellow")
    question = click.style("? asks you  ", fg="yellow") if asks else ""
    return f"{head}  {changes.format_time(row['created'])}  {row['state']:<11}  {question}{_shorten(row['task'])}"


def render_tree(rows: Sequence[NodeRow]) -> str:
    """Format nodes as a tree."""
    by_id = {row["id"]: row for row in rows}
    lines: list[str] = []

    def add(row: NodeRow, depth: int) -> None:
        lines.append(render_node_line(row, depth))
        for child in row["children"]:
            if child in by_id:
                add(by_id[child], depth + 1)

    for row in rows:
        if not row["parent"]:
            add(row, 0)
    return "\n".join(lines)


def render_node_line(row: NodeRow, depth: int) -> str:
    """Format a node as one line."""
    parts: list[str] = []
    if row["score"] is not None:
        tier = f", tier {row['tier']}" if row["tier"] in {"A", "B", "C"} else ""
        parts.append(f"score {row['score']:.2f}{tier}")
    if row["citation_count"]:
        parts.append(pluralize(row["citation_count"], "citation"))
    if row["tokens"]:
        parts.append(f"{row['tokens']} tokens")
    if row["cached"]:
        parts.append("from the cache")
    if row["reason"]:
        parts.append(plain(row["reason"]))
    details = f"  {click.style(', '.join(parts), dim=True)}" if parts else ""
    sign = click.style(_SIGNS[row["state"]], fg=_COLOURS.get(row["state"]))
    return f"{'  ' * depth}{sign} {row['id']}  {_shorten(row['title'])}{details}"


def render_run(row: RunWithNodes, questions: Sequence[CheckpointEvent]) -> str:
    """Format the state of a run, and what it asks the person."""
    usage = row["usage"]
    lines = [
        render_run_line(row, asks=bool(questions)),
        f"model {row['model']}, strategy {row['strategy']}, Code Mode {'on' if row['code_mode'] else 'off'}",
        f"{pluralize(row['node_count'], 'node')}, {row['cached']} from the cache, "
        f"{usage['total_tokens']} of {row['limits']['tokens'] or 'any number of'} tokens{_cost_suffix(usage)}",
    ]
    lines += [f"- {plain(reason)}" for reason in row["reasons"]]
    lines += [f"? {one.node_id}  {plain(one.question)}" for one in questions]
    return "\n".join(lines)


def render_node(row: NodeDetails) -> str:
    """Format everything that a node did."""
    lines = [render_node_line(row, 0), "", plain(row["task"]), ""]
    lines += [f"why it is {'split' if row['children'] else 'one piece'}: {plain(row['why'])}"] if row["why"] else []
    lines += [f"needs: {', '.join(row['hard'])}"] if row["hard"] else []
    lines += [f"uses: {', '.join(row['soft'])}"] if row["soft"] else []
    if row["retrieval"] is not None:
        lines += _retrieval_lines(row["retrieval"])
    checkpoint = row["checkpoint"]
    if checkpoint:
        answer = "nobody was there" if checkpoint["unattended"] else checkpoint["answer"] or "waits for an answer"
        lines.append(plain(f"checkpoint: {checkpoint['question']} -> {answer}"))
    lines += ["", "## Answer", "", plain(row["answer"])] if row["answer"] else []
    lines += [f"cites {_location(one)}" for one in row["citations"]]
    lines += [f"dropped: {plain(str(one['citation']))}: {plain(str(one['reason']))}" for one in row["removed"]]
    lines += [f"note: {plain(one)}" for one in row["notes"]]
    usage = row["usage"]
    lines.append(f"{usage['input_tokens']} + {usage['output_tokens']} tokens{_cost_suffix(usage)}")
    return "\n".join(lines)


def render_progress(event: NodeChanged) -> str:
    """Format a step of a run; empty for steps of no interest."""
    row = event.node
    if row["state"] in ENDED:
        return render_node_line(row, row["depth"])
    if event.doing in {"", "waiting"}:
        return ""
    return click.style(f"{'  ' * row['depth']}… {row['id']}  {event.doing}: {_shorten(row['title'])}", dim=True)


def render_footer(done: RunDone) -> str:
    """Format a run's outcome and usage as one line."""
    usage = done.usage
    parts = [done.state, pluralize(done.nodes, "node")]
    if done.cached:
        parts.append(f"{done.cached} from the cache")
    parts.append(f"{usage['input_tokens']} + {usage['output_tokens']} tokens{_cost_suffix(usage)}")
    return f"{', '.join(parts)}; `knap run trace tree {done.run_id}` shows how"


def _retrieval_lines(retrieval: JSONRow) -> list[str]:
    parts = object_or_empty(retrieval["parts"])
    part_scores = ", ".join(f"{name} {float(str(value)):.2f}" for name, value in parts.items())
    lines = [
        f"retrieval: score {float(str(retrieval['score'])):.2f} ({part_scores})",
        f"tier: {retrieval['tier'] or 'first script'}",
    ]
    for number, one in enumerate(objects_in(retrieval["attempts"]), 1):
        result = f"{one.get('kind', '')} {one.get('error', '')}".strip()
        lines.append(f"attempt {number}: " + ", ".join(filter(None, (str(one.get("step", "")), result))))
        script = str(one.get("script") or "")
        lines += [f"    {plain(text)}" for text in script.splitlines()]
    lines += [f"found {_location(one)}" for one in objects_in(retrieval["sources"])]
    return lines + [f"note: {plain(str(one))}" for one in strings_in(retrieval["notes"])]


def _location(row: JSONRow) -> str:
    vault = f"{row['vault']}:" if row.get("vault") else ""
    return plain(f"{vault}{row['path']}, lines {row['start_line']}-{row['end_line']}")


def _cost_suffix(usage: JSONRow) -> str:
    cost = usage.get("cost_usd")
    return f", ${float(str(cost)):.4f}" if cost is not None else ""


def _shorten(text: str) -> str:
    flat = plain(" ".join(text.split()))
    return flat if len(flat) <= _MAX_TITLE else f"{flat[:_MAX_TITLE].rstrip()}…"


_EXIT_CODES: dict[RunState, ExitCode] = {
    "complete": ExitCode.OK,
    "partial": ExitCode.PARTIAL,
    "failed": ExitCode.FAILED,
    "cancelled": ExitCode.INTERRUPTED,
}


@dataclass(slots=True)
class RunDisplay:
    """The display of a run's events, on the error stream."""

    options: GlobalOptions
    done: RunDone | None = None
    _last_lines: dict[str, str] = field(default_factory=dict[str, str])

    def handle(self, event: RunEvent) -> None:
        """Show an event; what a node has shown before isn't repeated."""
        match event:
            case RunStarted():
                self._note(f"{'going on with' if event.resumed else 'run'} {event.run['id']}")
            case NodeChanged():
                text = render_progress(event)
                if text and self._last_lines.get(event.node["id"]) != text:
                    self._last_lines[event.node["id"]] = text
                    self._note(text)
            case CheckpointEvent():
                if event.unattended:
                    self._note(f"? {event.question} Nobody is here to answer; the run continues without.")
            case Notice():
                self._note(f"! {plain(event.text)}")
            case RunDone():
                self.done = event
            case Error() | Usage():
                pass

    def finish(self) -> None:
        """Show what the run used."""
        if self.done is not None:
            self._note(render_footer(self.done))

    def _note(self, text: str) -> None:
        output.note(self.options, text if output.wants_colour(self.options) else click.unstyle(text))


class TerminalPrompt:
    """Asks the person at the terminal, one question at a time; a faster answer from another surface counts."""

    def __init__(self, elsewhere: "AskPerson | None" = None) -> None:
        """Start without an open question.

        Args:
            elsewhere: Waits for an answer from another surface; None if there is no other.
        """
        self._lock = asyncio.Lock()
        self._ask_elsewhere = elsewhere
        self._pending_line: asyncio.Future[str] | None = None
        """What is being typed; one that nobody has finished belongs to the next question."""

    async def __call__(self, point: CheckpointEvent) -> str:
        """Ask, and wait for the answer while other nodes continue."""
        async with self._lock:
            choices = ", ".join([*point.options, "or in your own words"])
            click.echo(f"? {output.plain(point.question)}\n  ({choices}): ", err=True, nl=False)
            if self._ask_elsewhere is None or not point.id:
                return await self._read_typed()
            typed_answer, remote_answer = (
                asyncio.create_task(self._read_typed()),
                asyncio.ensure_future(self._ask_elsewhere(point)),
            )
            try:
                _ = await asyncio.wait({typed_answer, remote_answer}, return_when=asyncio.FIRST_COMPLETED)
                if typed_answer.done():
                    return typed_answer.result()
                click.echo(f"\n  answered elsewhere: {output.plain(remote_answer.result())}", err=True)
                return remote_answer.result()
            finally:
                _ = typed_answer.cancel()
                _ = remote_answer.cancel()

    async def _read_typed(self) -> str:
        """Return the next line that is typed."""
        self._pending_line = self._pending_line or _read_line_in_thread()
        text = await asyncio.shield(self._pending_line)
        self._pending_line = None
        return text


def run_to_end(
    options: GlobalOptions, runner: asyncio.Runner, work: Coroutine[Any, Any, RunRecord], display: RunDisplay
) -> ExitCode:
    """Run to the end; Ctrl-C cancels the run, and finished work is kept.

    Args:
        options: The shared options.
        runner: The event loop's runner.
        work: The run.
        display: The display that received its events.

    Returns:
        The exit code for its end.
    """
    try:
        run = runner.run(work)
    except KeyboardInterrupt:
        display.finish()
        if display.done is not None:
            output.note(options, f"stopped; `knap run resume {display.done.run_id}` continues it")
        return ExitCode.INTERRUPTED
    if not options.as_json and run.answer:
        print_answer(options, run.answer)
    elif not options.as_json:  # even with --quiet
        why = "; ".join(run.reasons) or run.state
        click.echo(output.plain(f"error: the run {run.id} has no answer: {why}"), err=True)
    display.finish()
    return _EXIT_CODES.get(run.state, ExitCode.FAILED)


def print_answer(options: GlobalOptions, answer: str) -> None:
    """Print an answer: rendered Markdown on a terminal, plain text elsewhere."""
    if sys.stdout.isatty():
        width = min(shutil.get_terminal_size().columns, 100)
        output.markdown_printer(width, colour=output.wants_colour(options))(answer)
    else:
        click.echo(output.plain(answer))


def is_attended(options: GlobalOptions) -> bool:
    """Return whether a person can be asked."""
    return output.can_ask() and not options.as_json


def _read_line_in_thread() -> asyncio.Future[str]:
    """Read a line in a daemon thread, so that the program can exit without waiting for it."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def give(text: str) -> None:
        if not answer.done():
            answer.set_result(text)

    def read() -> None:
        text = sys.stdin.readline()
        with contextlib.suppress(RuntimeError):  # the run has ended meanwhile
            loop.call_soon_threadsafe(give, text.strip())

    threading.Thread(target=read, daemon=True, name="question").start()
    return answer


def start_run(options: GlobalOptions, task: str, own: RunStartOptions) -> ExitCode:
    """Start a run.

    Args:
        options: The shared options.
        task: The task.
        own: The command's own options.
    """
    config = setup.read_settings(options)
    order = RunOrder(
        task=task,
        strategy=own["strategy"] or config.runs.strategy,
        code_mode=config.runs.code_mode and not own["no_code_mode"],
        profile=own["profile"],
        fresh=own["fresh"],
        also=tuple(dict.fromkeys(own["also"])),
        limits=_apply_limits(runs.configured_limits(config), own),
    )
    with _open_runs(options) as client_runs, asyncio.Runner() as runner:
        person = TerminalPrompt(client_runs.wait_for_answer) if is_attended(options) else None
        engine = client_runs.engine(own["model"], person=person, roots=own["fs_read"], hosts=own["net_allow"])
        if order.code_mode and not client_runs.is_ready():
            output.note(options, "preparing the sandbox; this is done once and takes some seconds")
        client_runs.check_vaults(order.also)
        run = executor.create_run(engine, order)
        display = RunDisplay(options)
        code = run_to_end(options, runner, executor.carry_out_run(engine, run.id, display.handle), display)
        return _report_run(options, client_runs, run.id, code)


def resume_run(options: GlobalOptions, run_id: str, own: RunResumeOptions) -> ExitCode:
    """Resume a run.

    Args:
        options: The shared options.
        run_id: The run's id, or a unique prefix of it.
        own: The command's own options.
    """
    with _open_runs(options) as client_runs, asyncio.Runner() as runner:
        run = client_runs.store.show(run_id).run
        person = TerminalPrompt(client_runs.wait_for_answer) if is_attended(options) else None
        model = own["model"] or run.model
        engine = client_runs.engine(model, person=person, roots=own["fs_read"], hosts=own["net_allow"])
        display = RunDisplay(options)
        limits = _apply_limits(run.order.limits, own)
        work = executor.carry_out_run(engine, run.id, display.handle, replay=own["replay"], limits=limits)
        return _report_run(options, client_runs, run.id, run_to_end(options, runner, work, display))


def show_status(options: GlobalOptions, run_id: str) -> ExitCode:
    """Show the state of a run, and its answer if there is one."""
    with _open_runs(options) as client_runs:
        run_view = client_runs.store.show(run_id)
        questions = client_runs.questions(run_view.run.id)
    row = run_view.as_dict()
    checkpoints = [one.as_dict() for one in questions]
    result = {**row, "asks": len(checkpoints), "checkpoints": checkpoints}
    code = output.print_result(options, result, render_run(row, questions))
    if row["answer"] and not options.as_json:
        output.write(options, "")
        print_answer(options, row["answer"])
    return code


def show_tree(options: GlobalOptions, run_id: str) -> ExitCode:
    """Show a run's nodes."""
    with _open_runs(options) as client_runs:
        row = client_runs.store.show(run_id).as_dict()
    return output.print_result(options, row, render_tree(row["nodes"]))


def show_node(options: GlobalOptions, run_id: str, node_id: str) -> ExitCode:
    """Show one node."""
    with _open_runs(options) as client_runs:
        row = client_runs.store.node(run_id, node_id).as_dict()
    return output.print_result(options, row, render_node(row))


def list_runs(options: GlobalOptions, number: int) -> ExitCode:
    """List runs, newest first."""
    with _open_runs(options) as client_runs:
        newest, total = client_runs.store.runs(limit=number)
        asks = client_runs.count_questions(newest)
    rows = [{**run.brief(), "asks": asks.get(run.id, 0)} for run in newest]
    text = "\n".join(render_run_line(run.brief(), asks=run.id in asks) for run in newest)
    return output.print_listing(options, answers.page_of(rows, total, number, 0), text, nothing="nothing was run yet")


def list_strategies(options: GlobalOptions) -> ExitCode:
    """List the strategies."""
    available = runs.configured_strategies(setup.read_settings(options)).all()
    rows: list[JSONValue] = [one.as_dict() for one in available]
    text = "\n".join(f"{one.name:<12}  {one.summary}{' (your own)' if one.own else ''}" for one in available)
    return output.print_listing(options, answers.page_of(rows, len(rows), len(rows), 0), text, nothing="there are none")


def save_answer(options: GlobalOptions, run_id: str, path: str, *, yes: bool) -> ExitCode:
    """Propose a run's answer as a note or a folder.

    Args:
        options: The shared options.
        run_id: The run's.
        path: The note's or the folder's path.
        yes: Write it at once instead of proposing.
    """
    with _open_runs(options) as client_runs:
        run_view = client_runs.store.show(run_id)
        if not run_view.run.answer:
            raise BadInput(f"the run {run_view.run.id} has no answer yet", hint=f"`knap run resume {run_view.run.id}`")
        intent = SubmitOptions(
            run=run_view.run.id, propose=not yes, approved_by_person=yes, reason=f"run {run_view.run.id}"
        )
        context = client_runs.hub.context(client="cli", submit_options=intent)
        return writing.report_changes(
            options, answers.submit_several(context, export.export_requests(run_view.run, run_view.nodes, path))
        )


def cancel_run(options: GlobalOptions, run_id: str) -> ExitCode:
    """Cancel a running run, whichever process runs it."""
    with _open_runs(options) as client_runs:
        run = client_runs.store.show(run_id).run
        is_cancelling = client_runs.store.cancel(run.id)
    text = f"{run.id} is being ended" if is_cancelling else f"{run.id} doesn't go on: {run.state}"
    _ = output.print_result(options, {"id": run.id, "cancelling": is_cancelling}, text)
    return ExitCode.OK if is_cancelling else ExitCode.NOTHING


def delete_run(options: GlobalOptions, run_id: str) -> ExitCode:
    """Delete a run."""
    with _open_runs(options) as client_runs:
        run = client_runs.store.show(run_id).run
        client_runs.delete(run.id)
    return output.print_result(options, {"id": run.id, "deleted": True}, f"{run.id} deleted")


@contextmanager
def _open_runs(options: GlobalOptions) -> Generator[OpenedRuns]:
    with app.open_hub(setup.read_vault_settings(options)) as hub, runs.open_runs(hub) as client_runs:
        yield client_runs


def _report_run(options: GlobalOptions, client_runs: OpenedRuns, run_id: str, code: ExitCode) -> ExitCode:
    if options.as_json:
        run_view = client_runs.store.show(run_id)
        output.write_json({"success": run_view.run.state in {"complete", "partial"}, **run_view.as_dict()})
    return code


def _apply_limits(usual: RunLimits, own: RunLimitOptions) -> RunLimits:
    """Return the default limits of a run with the options applied."""
    overrides: dict[str, float | int] = {}
    for name in ("depth", "nodes", "tokens", "cents", "parallel"):
        value = own[name]
        if value is not None:
            overrides[name] = value
    if own["minutes"] is not None:
        overrides["seconds"] = own["minutes"] * 60
    return replace(usual, **overrides)
