"""Begin runs, go on with them, and look after them, at the terminal."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

from knapper import app
from knapper.agents.runs import service
from knapper.agents.runs.model import RunLimits, RunOrder, RunRecord
from knapper.app import client_runs, runs
from knapper.app.runs import OpenedRuns
from knapper.changes.writer import SubmitOptions
from knapper.cli import output, running, settings, writing
from knapper.cli.codes import ExitCode
from knapper.cli.options import Options
from knapper.cli.render import runs as rendered
from knapper.cli.run_switches import Allowed, Given, Going
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue
from knapper.tools import answers


def start(said: Options, task: str, own: Given) -> ExitCode:
    """Carry out a task.

    Args:
        said: The shared options.
        task: What is to be done.
        own: The command's own options.
    """
    found = settings.read(said)
    order = RunOrder(
        task=task,
        strategy=own["strategy"] or found.runs.strategy,
        code_mode=found.runs.code_mode and not own["no_code_mode"],
        profile=own["profile"],
        fresh=own["fresh"],
        also=tuple(dict.fromkeys(own["also"])),
        limits=_limits(runs.configured_limits(found), own),
    )
    with _opened(said) as opened, asyncio.Runner() as runner:
        person = running.Person(opened.elsewhere) if running.is_attended(said) else None
        engine = opened.engine(own["model"], person=person, roots=own["fs_read"], hosts=own["net_allow"])
        if order.code_mode and not opened.is_ready():
            output.note(said, "preparing the sandbox; this is done once and takes some seconds")
        opened.check_vaults(order.also)
        run = service.create_run(engine, order)
        screen = running.Screen(said)
        code = running.carry_out(said, runner, service.carry_out_run(engine, run.id, screen.tell), screen)
        return _told(said, opened, run.id, code)


def resume(said: Options, run_id: str, own: Going) -> ExitCode:
    """Go on with a run.

    Args:
        said: The shared options.
        run_id: The run's, or as much of it as is unique.
        own: The command's own options.
    """
    with _opened(said) as opened, asyncio.Runner() as runner:
        run = opened.runs.show(run_id).run
        person = running.Person(opened.elsewhere) if running.is_attended(said) else None
        model = own["model"] or run.model
        engine = opened.engine(model, person=person, roots=own["fs_read"], hosts=own["net_allow"])
        screen = running.Screen(said)
        limits = _limits(run.order.limits, own)
        work = service.carry_out_run(engine, run.id, screen.tell, replay=own["replay"], limits=limits)
        return _told(said, opened, run.id, running.carry_out(said, runner, work, screen))


def status(said: Options, run_id: str) -> ExitCode:
    """Tell how a run stands, and its answer if there is one."""
    with _opened(said) as opened:
        shown = opened.runs.show(run_id)
        asked: list[JSONValue] = [one.as_dict() for one in client_runs.list_questions(opened, shown.run.id)]
    found = {**shown.as_dict(), "asks": len(asked), "checkpoints": asked}
    code = output.result(said, found, rendered.run(found))
    if found["answer"] and not said.as_json:
        output.write(said, "")
        running.show(said, str(found["answer"]))
    return code


def tree(said: Options, run_id: str) -> ExitCode:
    """Show a run's nodes."""
    found = _shown(said, run_id)
    return output.result(said, found, rendered.tree(cast("list[Mapping[str, JSONValue]]", found["nodes"])))


def node(said: Options, run_id: str, node_id: str) -> ExitCode:
    """Show one node."""
    with _opened(said) as opened:
        found = opened.runs.node(run_id, node_id).as_dict()
    return output.result(said, found, rendered.node(found))


def listed(said: Options, number: int) -> ExitCode:
    """List runs, the last begun first."""
    with _opened(said) as opened:
        found, total = opened.runs.runs(limit=number)
        asks = client_runs.count_questions(opened, found)
    rows: list[JSONValue] = [{**run.brief(), "asks": asks.get(run.id, 0)} for run in found]
    text = "\n".join(rendered.line(cast("Mapping[str, JSONValue]", row)) for row in rows)
    return output.listing(said, answers.page_of(rows, total, number, 0), text, nothing="nothing was run yet")


def strategies(said: Options) -> ExitCode:
    """List the strategies."""
    known = runs.configured_strategies(settings.read(said)).all()
    rows: list[JSONValue] = [one.as_dict() for one in known]
    text = "\n".join(f"{one.name:<12}  {one.summary}{' (your own)' if one.own else ''}" for one in known)
    return output.listing(said, answers.page_of(rows, len(rows), len(rows), 0), text, nothing="there are none")


def save(said: Options, run_id: str, path: str, *, yes: bool) -> ExitCode:
    """Propose a run's answer as a note or a folder.

    Args:
        said: The shared options.
        run_id: The run's.
        path: Where to.
        yes: Write it at once, on the person's word.
    """
    with _opened(said) as opened:
        shown = opened.runs.show(run_id)
        if not shown.run.answer:
            raise BadInput(f"the run {shown.run.id} has no answer yet", hint=f"`knap run resume {shown.run.id}`")
        asked = SubmitOptions(run=shown.run.id, propose=not yes, person_word=yes, reason=f"run {shown.run.id}")
        context = opened.hub.context(client="cli", asked=asked)
        return writing.tell(
            said, answers.submit_several(context, service.export_requests(shown.run, shown.nodes, path))
        )


def cancel(said: Options, run_id: str) -> ExitCode:
    """End a run that goes on, in whichever process."""
    with _opened(said) as opened:
        run = opened.runs.show(run_id).run
        asked = opened.runs.cancel(run.id)
    text = f"{run.id} is being ended" if asked else f"{run.id} doesn't go on: {run.state}"
    _ = output.result(said, {"id": run.id, "cancelling": asked}, text)
    return ExitCode.OK if asked else ExitCode.NOTHING


def delete(said: Options, run_id: str) -> ExitCode:
    """Forget a run."""
    with _opened(said) as opened:
        run = opened.runs.show(run_id).run
        opened.delete(run.id)
    return output.result(said, {"id": run.id, "deleted": True}, f"{run.id} deleted")


@contextmanager
def _opened(said: Options) -> Generator[OpenedRuns]:
    with app.open_hub(settings.read(said)) as hub, runs.open_runs(hub) as opened:
        yield opened


def _shown(said: Options, run_id: str) -> Mapping[str, JSONValue]:
    with _opened(said) as opened:
        return opened.runs.show(run_id).as_dict()


def _told(said: Options, opened: OpenedRuns, run_id: str, code: ExitCode) -> ExitCode:
    if said.as_json:
        found = opened.runs.show(run_id)
        output.write_json({"success": _has_answer(found.run), **found.as_dict()})
    return code


def _has_answer(run: RunRecord) -> bool:
    return run.state in {"complete", "partial"}


def _limits(usual: RunLimits, own: Allowed) -> RunLimits:
    """Give a run's limits, where options say otherwise than usual."""
    said: dict[str, float | int] = {}
    for name in ("depth", "nodes", "tokens", "cents", "parallel"):
        value = own[name]
        if value is not None:
            said[name] = value
    if own["minutes"] is not None:
        said["seconds"] = own["minutes"] * 60
    return replace(usual, **said)
