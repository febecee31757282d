"""Render the state of an index, what a refresh did, and its progress."""

import datetime as dt
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from knapper.app.e5_model import EmbedTime
from knapper.cli import output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import (
    PHASE_NAMES,
    PHASE_UNITS,
    ProgressLines,
    format_duration,
    format_size,
    plain,
    pluralize,
)
from knapper.index.refresh import Progress, RefreshOutcome, RefreshPhase
from knapper.index.status import IndexStatus
from knapper.tools.shapes.read import VaultStatus

_MINUTE_S = 60
_MAX_PROBLEMS = 5
"""Problems that a summary shows."""


def describe_embed_time(time: EmbedTime) -> str:
    """Return how long a vault's passages take, in a sentence."""
    how = "as measured" if time.is_measured else "as this machine multiplies matrices"
    took = f"{max(time.seconds, 1):.0f} s" if time.seconds < _MINUTE_S else format_duration(time.seconds)
    rate = f"{time.per_second:.0f}" if time.per_second >= 10 else f"{time.per_second:.1f}"
    take = "takes" if time.passages == 1 else "take"
    return f"{pluralize(time.passages, 'passage')} of this vault {take} about {took}: {rate} a second, {how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What `knap index` did."""

    outcome: RefreshOutcome
    embedded: int
    status: IndexStatus
    seconds: float
    is_published: bool = False
    """Another machine has the files, and embeds them."""
    is_deriving: bool = False
    """Another process is computing vectors."""

    def text(self) -> str:
        """Format it for a person."""
        outcome = self.outcome
        lines = [
            f"{pluralize(self.status.notes, 'note')}, {pluralize(self.status.chunks, 'chunk')}"
            f" in {format_duration(self.seconds)}",
            f"read {outcome.indexed}, removed {outcome.removed}, unchanged {outcome.unchanged}; "
            + f"embedded {pluralize(self.embedded, 'chunk')}",
        ]
        if self.status.pending:
            why = ", as the embedding model changed" if self.status.replaced_model else ""
            chunks = pluralize(self.status.pending, "chunk")
            remedy = "`knap index`" + (" on the machine with the files" if self.is_published else "")
            remedy = "another process is at it; `knap status` counts" if self.is_deriving else remedy
            lines.append(f"{chunks} found by words only until embedded{why}: {remedy}")
        problems = outcome.problems
        if problems:
            lines.append(f"{pluralize(len(problems), 'problem')}:")
            lines += [f"  {plain(problem)}" for problem in problems[:_MAX_PROBLEMS]]
        if len(problems) > _MAX_PROBLEMS:
            lines.append(f"  and {len(problems) - _MAX_PROBLEMS} more: `knap status` lists them")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return it to a program."""
        return {
            "success": True,
            "indexed": self.outcome.indexed,
            "removed": self.outcome.removed,
            "unchanged": self.outcome.unchanged,
            "embedded": self.embedded,
            "notes": self.status.notes,
            "chunks": self.status.chunks,
            "pending": self.status.pending,
            "problems": self.outcome.problems,
            "seconds": round(self.seconds, 3),
        }


_FILLING: Final = "it is being filled right now; look again later"


def render_status(answer: VaultStatus, places: Mapping[str, str]) -> str:
    """Format the state of a vault's index.

    Args:
        answer: From the tool ``vault_status``.
        places: ``vault`` and ``index``: where they are; ``shared``, where other machines read the index;
            ``server``, where one answers.
    """
    others = answer["files"] - answer["notes"]
    replaced = answer["replaced_model"]
    suffix = f"; it replaces {replaced}, and words alone find what waits" if replaced else ""
    if answer["index_incomplete"]:
        state = f"incomplete: {_FILLING if answer['indexing'] else 'run `knap index`'}"
    else:
        built = dt.datetime.fromisoformat(answer["built"]).astimezone()
        now = "; it is being written right now" if answer["indexing"] else ""
        state = f"complete, last change taken in {built:%Y-%m-%d %H:%M}{now}"
    waiting = f"{answer['pending']} waiting" + (", being computed right now" if answer["embedding"] else "")
    rows = {
        "vault": places["vault"],
        "notes": f"{answer['notes']}, and {others} other files",
        "chunks": f"{answer['chunks']}: {answer['embedded']} embedded, {waiting}",
        "model": f"{answer['model']}{suffix}" if answer["model"] else "none: search goes by words only",
        # Where notes are hidden from everybody, its size isn't told.
        "index": places["index"] + (f", {format_size(answer['size_bytes'])}" if answer["size_bytes"] else ""),
        "state": state,
        **({"shared": places["shared"]} if "shared" in places else {}),
        **({"server": places["server"]} if "server" in places else {}),
    }
    lines = [f"{name:<7} {text}" for name, text in rows.items()]
    # Where the index is incomplete, the state says what to do, unless the watch that should fill it fails.
    has_remarks = not answer["index_incomplete"] or "watch_failed" in answer
    remarks = answer.get("remarks", []) if has_remarks else []
    lines += [f"{'note':<7} {plain(remark)}" for remark in remarks]
    if answer["skipped"]:
        lines.append(f"{pluralize(answer['problems'], 'file')} with problems:")
    for row in answer["skipped"]:
        line = f":{row['line']}" if row["line"] else ""
        lines.append(plain(f"  {row['path']}{line}  {row['problem']}"))
    return "\n".join(lines)


@contextmanager
def show_progress(options: GlobalOptions) -> Generator[Progress | None]:
    """Show progress on the error stream, unless the options turn it off."""
    if options.quiet or options.as_json:
        yield None
    elif output.stderr_is_terminal():
        with show_bars(colour=output.wants_colour(options)) as move:
            yield move
    else:
        yield ProgressLines()


@contextmanager
def show_bars(*, colour: bool) -> Generator[Progress]:
    """Draw progress bars on the terminal, one for each phase; they disappear at the end."""
    # rich takes 70 ms, which only a bar should cost
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.progress import (  # noqa: PLC0415 - see above
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        Task,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415 - see above

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} {task.fields['unit']}/s" if speed else "")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), RateColumn(), TimeRemainingColumn())
    tasks: dict[RefreshPhase, TaskID] = {}
    with Bars(*columns, console=Console(stderr=True, no_color=not colour), transient=True) as bars:

        def move(phase: RefreshPhase, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(PHASE_NAMES[phase], total=total or None, unit=PHASE_UNITS[phase])
            bars.update(tasks[phase], completed=done, total=total or None)

        yield move
