"""Say what became of what a caller asked for, in a shape that every surface shows."""

from dataclasses import dataclass
from typing import Literal

from knapper.changes import failures as failing
from knapper.changes.drafts import Draft, FileDraft, Rewritten
from knapper.changes.failures import Failure
from knapper.changes.refusals import Refusal
from knapper.changes.text import diff
from knapper.jsontypes import JSONValue
from knapper.vault import parser
from knapper.vault.paths import NotePath

Status = Literal["applied", "proposed", "refused", "planned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """Say what happened, or would happen, to one file."""

    path: NotePath
    target: NotePath | None
    """The new path of a moved file."""
    action: Literal["edited", "created", "moved", "trashed", "linked"]
    """``linked``: only links in it follow a move."""
    before_hash: str | None
    after_hash: str | None
    """None for what is trashed, and for moved files that aren't notes."""
    diff: str
    """Unified; empty where no text changes."""

    @property
    def place(self) -> NotePath:
        """Give the path that the file has afterwards."""
        return self.target or self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Say what became of a batch of requests."""

    status: Status
    reason: str = ""
    """Why it was proposed or refused; empty where it was applied."""
    change_id: str = ""
    proposal_id: str = ""
    files: tuple[FileReport, ...] = ()
    hidden: int = 0
    """How many files changed that the caller may not see."""
    failures: tuple[Failure, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    notices: tuple[str, ...] = ()
    rewritten: tuple[Rewritten, ...] = ()

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape the answer as every surface shows it; empty parts are left out."""
        shown: dict[str, JSONValue] = {"success": self.status != "refused", "status": self.status}
        files: list[JSONValue] = [_file(report) for report in self.files]
        failures: list[JSONValue] = [failing.row(one) for one in self.failures]
        refusals: list[JSONValue] = [
            {"path": one.path, "error": one.reason, "code": one.code, "hint": one.hint} for one in self.refusals
        ]
        rewritten: list[JSONValue] = [
            {"path": one.path, "line": one.line, "old": one.old, "new": one.new} for one in self.rewritten
        ]
        notices: list[JSONValue] = [*self.notices]
        parts: dict[str, JSONValue] = {
            "reason": self.reason,
            "change_id": self.change_id,
            "proposal_id": self.proposal_id,
            "files": files,
            "hidden_files": self.hidden,
            "failures": failures,
            "refusals": refusals,
            "links_rewritten": rewritten,
            "notes": notices,
        }
        if len(self.files) == 1 and self.status == "applied":
            shown |= {"path": self.files[0].target or self.files[0].path, "hash": self.files[0].after_hash}
        return shown | {name: value for name, value in parts.items() if value}


def reports(draft: Draft) -> tuple[tuple[FileReport, ...], int]:
    """Report the files of a draft that its caller may see, and count the others."""
    shown = tuple(_report(file) for file in draft.files if not file.hidden)
    return shown, len(draft.files) - len(shown)


def _report(file: FileDraft) -> FileReport:
    text = file.after is not None and file.after != file.before
    return FileReport(
        path=file.path,
        target=file.target,
        action=_action(file),
        before_hash=file.base,
        after_hash=None if file.trash or file.after is None else parser.content_hash(file.after),
        diff=diff.unified(file.before or b"", file.after or b"", file.place) if text else "",
    )


def _action(file: FileDraft) -> Literal["edited", "created", "moved", "trashed", "linked"]:
    if file.trash is not None:
        return "trashed"
    if file.target is not None:
        return "moved"
    if file.before is None and file.base is None:
        return "created"
    return "linked" if file.cause == "link" else "edited"


def _file(report: FileReport) -> JSONValue:
    shown: dict[str, JSONValue] = {"path": report.path, "action": report.action}
    parts: dict[str, JSONValue] = {
        "target": report.target,
        "before_hash": report.before_hash,
        "hash": report.after_hash,
        "diff": report.diff,
    }
    return shown | {name: value for name, value in parts.items() if value}
