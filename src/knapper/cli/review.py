"""Review a proposal at the terminal, part by part, and apply the decisions."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import click

from knapper.cli import output
from knapper.cli.options import GlobalOptions
from knapper.cli.output import ExitCode
from knapper.cli.render import changes
from knapper.tools import proposals
from knapper.tools.context import Context
from knapper.tools.shapes.write import ProposalAnswer, ProposalFile, ProposalHunk

Decision = Literal["yes", "no", "skip"]

REVIEW_HELP: Final = """\
y  accept this
n  reject this
e  edit the new text, then accept it
s  leave it waiting
a  accept this and all that follows
d  reject this and all that follows
q  stop here; what you said so far is done
?  show this"""
_DECISION_KEYS: Final[Mapping[str, Decision]] = {"y": "yes", "n": "no", "s": "skip"}
_REMAINDER_KEYS: Final[Mapping[str, Decision]] = {"a": "yes", "d": "no", "q": "skip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewTerminal:
    """The functions that show text to a person and read keys."""

    show: Callable[[str], None]
    read_key: Callable[[str], str]
    """Asks, and gives the key that was pressed; raises ``KeyboardInterrupt`` where the person ended all."""
    edit_text: Callable[[str], str | None]
    """Lets the person change a text; None where they left it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPart:
    """One part to decide on: a hunk, or files that belong together."""

    text: str
    hunk_id: str = ""
    """Its id; empty where it is about whole files."""
    paths: tuple[str, ...] = ()
    new_text: str | None = None
    """The text that can be edited; None where none can."""


@dataclass(slots=True, kw_only=True)
class Decisions:
    """The person's decisions."""

    accepted: list[ReviewPart] = field(default_factory=list[ReviewPart])
    rejected: list[ReviewPart] = field(default_factory=list[ReviewPart])
    edited: dict[str, str] = field(default_factory=dict[str, str])
    """New texts by the hunk's id."""
    skipped_count: int = 0

    def record(self, part: ReviewPart, answer: Decision) -> None:
        """Record a decision."""
        match answer:
            case "yes":
                self.accepted.append(part)
            case "no":
                self.rejected.append(part)
            case "skip":
                self.skipped_count += 1


def reviewable_parts(proposal: ProposalAnswer) -> Iterator[ReviewPart]:
    """Split a proposal into parts that can be decided separately; settled and stale ones are left out.

    Args:
        proposal: From the tool ``show_proposal``.
    """
    groups: dict[int, list[ProposalFile]] = {}
    for row in proposal["files"]:
        groups.setdefault(row["group"], []).append(row)
    for rows in groups.values():
        if len(rows) == 1 and rows[0]["kind"] == "edit":
            row = rows[0]
            for one in row["hunks"]:
                if one["state"] == "open" and not _is_stale(one):
                    file_with_hunk: ProposalFile = {**row, "hunks": [one]}
                    text = "\n".join(["", changes.render_file_head(row), *changes.render_file_body(file_with_hunk)])
                    yield ReviewPart(text=text, hunk_id=str(one["id"]), new_text=str(one["new"]))
        elif all(row["state"] == "open" and not _is_stale(row) for row in rows):
            lines = [
                line for row in rows for line in ("", changes.render_file_head(row), *changes.render_file_body(row))
            ]
            paths = tuple(row["path"] for row in rows if not row["follows"])
            yield ReviewPart(text="\n".join(lines), paths=paths)


def ask_decisions(proposal: ProposalAnswer, terminal: ReviewTerminal) -> Decisions:
    """Ask about each part of a proposal.

    Args:
        proposal: From the tool ``show_proposal``.
        terminal: The person's terminal.
    """
    decisions = Decisions()
    rest: Decision | None = None
    every = list(reviewable_parts(proposal))
    for number, part in enumerate(every, start=1):
        if rest is None:
            terminal.show(part.text)
            answer, rest = _ask_decision(part, f"({number}/{len(every)}) accept?", terminal, decisions)
        else:
            answer = rest
        decisions.record(part, answer)
    return decisions


def _ask_decision(
    part: ReviewPart, question: str, terminal: ReviewTerminal, decisions: Decisions
) -> tuple[Decision, Decision | None]:
    """Ask until there is an answer; return it, and the answer for all further parts if there is one."""
    keys = "y,n,e,s,a,d,q,?" if part.new_text is not None else "y,n,s,a,d,q,?"
    while True:
        key = terminal.read_key(f"{question} [{keys}] ").lower()
        if key in _DECISION_KEYS:
            return _DECISION_KEYS[key], None
        if key in _REMAINDER_KEYS:
            return _REMAINDER_KEYS[key], _REMAINDER_KEYS[key]
        if key == "e" and part.new_text is not None:
            text = terminal.edit_text(part.new_text)
            if text is not None and text != part.new_text:
                decisions.edited[part.hunk_id] = text
                return "yes", None
            terminal.show("the text is as it was")
            continue
        terminal.show(REVIEW_HELP)


def _is_stale(row: ProposalFile | ProposalHunk) -> bool:
    return "stale" in row


_CTRL_D = "\x04"


def review_proposal(options: GlobalOptions, context: Context, proposal: str) -> ExitCode:
    """Review a proposal at the terminal, and apply the decisions."""
    details = proposals.show_proposal(context, proposal)
    if not any(reviewable_parts(details)):
        output.write(options, changes.render_proposal(details))
        output.note(options, "nothing of it can be decided on now")
        return ExitCode.OK
    output.write(options, changes.render_proposal({**details, "files": []}))
    terminal = ReviewTerminal(
        show=lambda text: output.write(options, text),
        read_key=_read_key,
        edit_text=lambda text: click.edit(text, extension=".md", require_save=True),
    )
    for line in apply_decisions(context, details, ask_decisions(details, terminal)):
        output.write(options, line)
    return ExitCode.OK


def apply_decisions(context: Context, details: ProposalAnswer, decisions: Decisions) -> list[str]:
    """Apply the decisions: edits of hunks, then accepted parts, then rejected ones.

    Args:
        context: The vault; for a dry run, nothing is done, and the lines say what would be.
        details: The proposal as the person saw it.
        decisions: The decisions.

    Returns:
        Lines that describe the outcome.

    Raises:
        ConflictError: The proposal has changed since it was shown.
    """
    name, digest = str(details["id"]), str(details["digest"])
    is_dry = context.submit_options is not None and context.submit_options.dry_run
    lines: list[str] = []
    for hunk, text in decisions.edited.items():
        if is_dry:
            lines.append(f"hunk {hunk} would get the text that you wrote:\n{text}")
        else:
            digest = str(proposals.edit_proposal(context, name, digest, hunk, text)["digest"])
    if decisions.accepted:
        answer = proposals.accept_proposal(context, name, digest, *_paths_and_hunks(decisions.accepted))
        lines.append(changes.render_outcome(answer))
    if decisions.rejected:
        files, hunks = _paths_and_hunks(decisions.rejected)
        answer = proposals.reject_proposal(context, name, "", files, hunks)
        lines += [changes.render_rejection(answer)] if is_dry else []
    counts = {
        "accepted": len(decisions.accepted),
        "rejected": len(decisions.rejected),
        "left waiting": decisions.skipped_count,
    }
    would = "would be " if is_dry else ""
    lines.append(", ".join(f"{number} {would}{what}" for what, number in counts.items() if number))
    return lines


def _paths_and_hunks(parts: Sequence[ReviewPart]) -> tuple[list[str], list[str]]:
    return [path for part in parts for path in part.paths], [part.hunk_id for part in parts if part.hunk_id]


def _read_key(question: str) -> str:
    """Read a single key; Ctrl-C and Ctrl-D end the command."""
    click.echo(question, nl=False)
    try:
        key = click.getchar()
    except EOFError:
        raise click.Abort from None
    if key == _CTRL_D:
        raise click.Abort
    click.echo(key if key.isprintable() else json.dumps(key))
    return key
