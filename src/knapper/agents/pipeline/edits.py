"""Read the edits that a model replies with, check them against the rules, and propose them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

import json_repair

from knapper.agents.model import replies
from knapper.agents.pipeline import context as pipeline_context
from knapper.agents.pipeline.scopes import EditableScope, EditRules
from knapper.changes.drafts import AtPosition
from knapper.changes.proposals.store import ProposalFilter
from knapper.changes.text import positions
from knapper.changes.text.positions import BeforeLine, LineSpan, Position
from knapper.changes.writer import Submission, SubmitOptions
from knapper.errors import BadInput, KnapError, RefusedError
from knapper.jsontypes import JSONValue, Record, is_list, is_object, list_or_empty, objects_in
from knapper.tools.context import Context
from knapper.vault import paths, pending
from knapper.vault.access import Scope
from knapper.vault.paths import NotePath
from knapper.vault.source import Lines

MAX_EDITS: Final = 200
_FENCED_REPLY: Final = re.compile(r"\A\s*```[a-z]*[ \t]*\n(.*)\n[ \t]*```\s*\Z", re.DOTALL)
_LINE_NUMBER_PREFIX: Final = re.compile(r"\A\d+: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class EditInstruction(Record):
    """One edit in the form in which a model writes it."""

    file: str
    position: str
    content: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReply:
    """A model's reply to a task."""

    summary: str
    edits: tuple[EditInstruction, ...] = ()


def parse_reply(text: str) -> TaskReply:
    r"""Parse a reply.

    A fence around the whole is removed; fences inside ``content`` stay. A text without an object is an answer. Broken
    JSON is repaired only where every edit stays as it was written: a reply that was cut short is refused.

    Raises:
        BadInput: It is meant as JSON but can't be parsed (code ``bad_reply``).
    """
    text = replies.join_surrogates(text)
    fenced = _FENCED_REPLY.match(text)
    bare = (fenced[1] if fenced else text).strip()
    if not bare:
        raise BadInput("the reply is empty", hint="reply with the JSON object", code="bad_reply")
    start = bare.find("{")
    if start < 0 or ('"summary"' not in bare and '"edits"' not in bare):
        return TaskReply(summary=bare)
    reply_object = _read_object(bare[start:])
    if replies.is_too_deep(reply_object):
        raise BadInput("the reply nests too deep", hint='give "summary" and "edits" alone', code="bad_reply")
    edits = reply_object.get("edits")
    if edits is None:
        edits = []
    if not isinstance(edits, list):
        raise BadInput("edits isn't a list", hint='give "edits": [] where nothing changes', code="bad_reply")
    if len(edits) > MAX_EDITS:
        raise BadInput(f"there are {len(edits)} edits", hint=f"give at most {MAX_EDITS}", code="bad_reply")
    value = reply_object.get("summary")
    if value is None:
        value = ""
    summary = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    summary = replies.join_surrogates(summary).strip()
    if not summary and not edits:
        raise BadInput("the reply says nothing", hint='give the answer as "summary"', code="bad_reply")
    return TaskReply(summary=summary, edits=tuple(map(_read_edit, edits)))


def _read_object(text: str) -> Mapping[str, JSONValue]:
    """Read the object that a text begins with, and repair small faults, such as an extra comma."""
    decoded: object
    try:
        decoded, _ = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        decoded = None
    if is_object(decoded):
        return decoded
    # A text that is cut off isn't repaired, since its end is unknown.
    if not text.rstrip().rstrip("`").rstrip().endswith("}"):
        raise BadInput("the reply ends in the middle", hint="reply again, and shorter", code="bad_reply")
    try:
        decoded = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        decoded = None
    # json_repair guesses at broken strings; a guess must not end up as an edit of somebody's note.
    if not is_object(decoded) or not _keeps_edits(text, decoded):
        raise BadInput("the reply can't be read as JSON", hint="escape quotes and line ends", code="bad_reply")
    return decoded


def _keeps_edits(text: str, reply_object: Mapping[str, object]) -> bool:
    """Return whether the repair kept every edit: all its texts occur in the reply as they were parsed."""
    edits = reply_object.get("edits", [])
    if not is_list(edits):
        return False
    for edit in edits:
        if not is_object(edit) or not {"file", "position"} <= edit.keys():
            return False
        for value in edit.values():
            if not isinstance(value, str):
                return False
            quoted = json.dumps(value, ensure_ascii=False)
            if quoted not in text and json.dumps(value) not in text and f'"{value}"' not in text:
                return False
    return text.count('"position"') == len(edits)


def _read_edit(value: JSONValue) -> EditInstruction:
    if not isinstance(value, dict):
        raise BadInput("an edit isn't an object", hint='give {"file", "position", "content"}', code="bad_reply")
    file, position, content = value.get("file"), value.get("position"), value.get("content", "")
    if not isinstance(file, str) or not isinstance(position, str) or not file.strip() or not position.strip():
        raise BadInput("an edit names no file or no position", hint="give both as texts", code="bad_reply")
    if content is None:
        content = ""
    if not isinstance(content, str):
        raise BadInput(f"the content for {file} isn't text", hint="give a text", code="bad_reply")
    if any(replies.join_surrogates(one) != one for one in (file, position, content)):
        hint = "write each character whole"
        raise BadInput(
            f"an edit of {replies.join_surrogates(file)} holds half a character", hint=hint, code="bad_reply"
        )
    return EditInstruction(file=file.strip(), position=position.strip(), content=content)


def has_line_numbers(edit: EditInstruction) -> bool:
    """Return whether every line of an edit's text begins with a line number, in the way the notes were shown."""
    rows = [row for row in edit.content.splitlines() if row.strip()]
    return len(rows) > 1 and all(_LINE_NUMBER_PREFIX.match(row) for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFailure(Record):
    """The reason why an edit can't be made."""

    file: str
    error: str
    code: str = ""
    position: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResults(Record):
    """The number of edits that could be made, and the failures of the others."""

    shown = ("success", "failed", "failures")
    success: int = 0
    failures: tuple[EditFailure, ...] = ()

    @property
    def failed(self) -> int:
        """Return the number of edits that couldn't be made."""
        return len(self.failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """A message of a conversation in the form in which later turns see it."""

    id: str
    role: Literal["user", "assistant"]
    content: str
    timestamp: datetime
    active_file: str = ""
    """The note that was open; empty for none."""
    proposed_edits: Sequence[EditInstruction] = ()
    edit_results: EditResults | None = None
    fate: str = ""
    """The person's decision on the edits since then; empty where it isn't known."""

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it in the shape that every surface shows."""
        edits: list[JSONValue] = [one.as_dict() for one in self.proposed_edits]
        row: dict[str, JSONValue] = {
            "id": self.id,
            "role": self.role,
            "content": self.content,
            "timestamp": self.timestamp.isoformat(timespec="seconds"),
            "active_file": self.active_file or None,
        }
        if edits or self.edit_results is not None:
            row["proposed_edits"] = edits
            row["edit_results"] = (self.edit_results or EditResults()).as_dict()
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedEdit:
    """An edit with the result of its check."""

    instruction: EditInstruction
    path: NotePath
    """The path of its file; as given, where there is no such file."""
    kind: positions.PositionKind = "add"
    error: KnapError | None = None
    """The reason why it can't be made; None where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditConstraints:
    """What edits are checked against."""

    context: Context
    """The vault, with a writer that allows no more than the rules; from `narrow_context`."""
    rules: EditRules
    shown_hashes: Mapping[NotePath, str]
    """Hashes of the notes that the model was shown."""
    whole_lines: Mapping[NotePath, int] = field(default_factory=dict[NotePath, int])
    """For notes that were shown in part: the number of lines that were shown whole."""


def editable_paths(
    context: Context, editable: EditableScope, current: str, shown: frozenset[NotePath]
) -> frozenset[NotePath] | None:
    """Return the notes that an editable scope covers now; None where it depends on the open note and none is open."""
    if editable == "context":
        return shown
    if not current:
        return None
    return (
        frozenset({context.view.locate(current)})
        if editable == "current"
        else pipeline_context.list_linked_notes(context, current)
    )


def narrow_context(context: Context, rules: EditRules, current: str, shown: frozenset[NotePath]) -> Context:
    """Narrow a context's writer to what the rules and the owner's grants for the client both allow.

    Args:
        context: The vault, as the agent sees it.
        rules: What the model may do.
        current: The open note; empty for none.
        shown: The notes that the model was shown.
    """
    allowed = editable_paths(context, rules.editable, current, shown)
    rights = context.rights
    owner_scope = rights.grants.editable
    if owner_scope != "all":
        owner_paths = editable_paths(context, owner_scope, current, shown)
        allowed = None if allowed is None or owner_paths is None else allowed & owner_paths
    # The scope is also enforced in the writer, so an edit that slips through these checks is refused there.
    grants = replace(rights.grants, editable=rules.editable, capabilities=rights.grants.capabilities & rules.can)
    narrowed = replace(rights, grants=grants)
    narrowed_request = replace(context.submit_options or SubmitOptions(), scope=Scope(paths=allowed), propose=True)
    return replace(context, open_rights=lambda: narrowed, submit_options=narrowed_request)


def check_edits(constraints: EditConstraints, edits: Sequence[EditInstruction]) -> list[ValidatedEdit]:
    """Check whether each edit can be made, without writing anything."""
    checked: list[ValidatedEdit] = []
    created: set[str] = set()
    for edit in edits:
        one = _check_edit(constraints, edit)
        if one.kind == "create" and one.error is None:
            key = paths.name_key(one.path)
            if key in created:
                twice = BadInput(f"{one.path} is created twice", hint="give its whole text once", code="overlap")
                one = replace(one, error=twice)
            created.add(key)
        checked.append(one)
    requests = [(number, _make_request(constraints, one)) for number, one in enumerate(checked) if _is_change(one)]
    if not requests:
        return checked
    for number, error in _dry_run(constraints, requests).items():
        checked[number] = replace(checked[number], error=error)
    return checked


def propose_edits(constraints: EditConstraints, edits: Sequence[ValidatedEdit], reason: str) -> Submission | None:
    """Make one proposal of the edits that can be made; None where there are none.

    Raises:
        KnapError: The notes have changed since they were checked.
    """
    request_options = constraints.context.submit_options or SubmitOptions()
    requests = [_make_request(constraints, one) for one in edits if _is_change(one)]
    if not requests:
        return None
    submission = constraints.context.writer.submit(
        requests, replace(request_options, reason=reason, dry_run=False, propose=True)
    )
    return submission if submission.proposal_id else None


def list_opened_notes(edits: Sequence[ValidatedEdit]) -> list[NotePath]:
    """Return the notes to open for the person, each once."""
    note_paths = (one.path for one in edits if one.kind == "navigate" and one.error is None)
    return list(dict.fromkeys(note_paths))


def _is_change(one: ValidatedEdit) -> bool:
    return one.error is None and one.kind != "navigate"


def _check_edit(constraints: EditConstraints, edit: EditInstruction) -> ValidatedEdit:
    """Check an edit on its own."""
    path = NotePath(edit.file)
    kind: positions.PositionKind = "add"
    try:
        position = positions.parse_position(edit.position)
        kind = positions.position_kind(position)
        # Replacing lines takes the old ones away, so it needs the right to delete.
        needed = "delete" if kind == "replace" else kind
        if needed not in constraints.rules.can or needed not in constraints.context.rights.grants.capabilities:
            allowed = ", ".join(sorted(constraints.rules.can)) or "nothing"
            message = f"'{edit.position}' of {edit.file}: {needed} is switched off"
            raise RefusedError(message, hint=f"allowed: {allowed}", code="capability")
        if kind == "create":
            path = constraints.context.view.new_path(edit.file)
        else:
            path = constraints.context.view.locate(edit.file, certain=True)
            _check_lines_shown(constraints, path, position)
        if has_line_numbers(edit):
            hint = "give the text alone"
            raise BadInput(f"the content for {path} has line numbers in front", hint=hint, code="line_numbers")
    except KnapError as error:
        return ValidatedEdit(instruction=edit, path=path, kind=kind, error=error)
    return ValidatedEdit(instruction=edit, path=path, kind=kind)


def _check_lines_shown(constraints: EditConstraints, path: NotePath, position: Position) -> None:
    """Refuse line numbers that the model wasn't shown: it guessed them, or saw only the beginning of the line."""
    if not isinstance(position, BeforeLine | LineSpan):
        return
    hint = "use start, end or after:## Heading, or have the note added to the context"
    if path not in constraints.shown_hashes:
        raise BadInput(f"{path} wasn't shown, so its lines aren't known", hint=hint, code="not_shown")
    whole = constraints.whole_lines.get(path)
    last = position.last if isinstance(position, LineSpan) else position.line - 1
    if whole is not None and last > whole:
        message = (
            f"only lines 1 to {whole} of {path} were shown whole" if whole else f"no line of {path} was shown whole"
        )
        raise BadInput(message, hint="use start, end, after:## Heading or lines that were shown", code="not_shown")


def _make_request(constraints: EditConstraints, one: ValidatedEdit) -> AtPosition:
    edit = one.instruction
    return AtPosition(
        path=one.path, position=edit.position, content=edit.content, base=constraints.shown_hashes.get(one.path, "")
    )


def _dry_run(constraints: EditConstraints, requests: Sequence[tuple[int, AtPosition]]) -> dict[int, KnapError]:
    """Return the errors of a dry run of all requests together, by the edits' numbers."""
    request_options = replace(constraints.context.submit_options or SubmitOptions(), dry_run=True)
    numbers = [number for number, _ in requests]
    try:
        submission = constraints.context.writer.submit([request for _, request in requests], request_options)
    except KnapError as error:
        # An error about all requests, which may tell those that caused it.
        errors: dict[int, KnapError] = dict.fromkeys(numbers, error)
        for one in objects_in(error.details.get("failures")):
            errors[numbers[int(str(one["request"]))]] = _make_error(one, type(error))
        for one in objects_in(error.details.get("refusals")):
            for number in list_or_empty(one.get("requests")):
                errors[numbers[int(str(number))]] = _make_error({**one, "error": one["reason"]}, RefusedError)
        return errors
    errors = {numbers[one.number]: one.error for one in submission.failures}
    for refusal in submission.refusals:
        refused = RefusedError(refusal.reason, hint=refusal.hint, code=refusal.code)
        errors |= {numbers[number]: refused for number in refusal.requests}
    return errors


def _make_error(row: Mapping[str, object], kind: type[KnapError]) -> KnapError:
    return kind(str(row["error"]), hint=str(row.get("hint", "")), code=str(row["code"]))


_MAX_PROPOSALS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEdit:
    """An edit of a pending block, with the hunk of a proposal that the block shows."""

    instruction: EditInstruction
    path: NotePath
    proposal_id: str
    hunk: str
    text: str
    """The hunk's new text."""


def split_block_edits(
    constraints: EditConstraints, edits: Sequence[EditInstruction]
) -> tuple[list[EditInstruction], list[BlockEdit]]:
    """Separate edits of the agent's own pending blocks from all other edits.

    Only a replacement of all lines of a block counts; an edit of a part is refused like anyone's.
    """
    others: list[EditInstruction] = []
    block_edits: list[BlockEdit] = []
    for edit in edits:
        one = _match_block(constraints, edit)
        if one is None:
            others.append(edit)
        else:
            block_edits.append(one)
    return others, block_edits


def change_blocks(
    constraints: EditConstraints, edits: Sequence[BlockEdit]
) -> tuple[tuple[str, ...], list[ValidatedEdit]]:
    """Change the text of pending edits, and return the ids of the changed proposals with each edit's result."""
    reviewer = constraints.context.reviewer
    run = constraints.context.submit_options.run if constraints.context.submit_options else ""
    changed: dict[str, None] = {}
    results: list[ValidatedEdit] = []
    for edit in edits:
        error: KnapError | None = None
        try:
            # Refitting moves the proposal to the note as it is now; the digest guards against a change in between.
            digest = reviewer.refit(edit.proposal_id).digest
            _ = reviewer.edit(edit.proposal_id, digest, edit.hunk, edit.text, run=run)
            changed[edit.proposal_id] = None
        except KnapError as raised:
            error = raised
        results.append(ValidatedEdit(instruction=edit.instruction, path=edit.path, kind="replace", error=error))
    return tuple(changed), results


def _match_block(constraints: EditConstraints, edit: EditInstruction) -> BlockEdit | None:
    try:
        position = positions.parse_position(edit.position)
        if not isinstance(position, LineSpan) or position.word != "replace":
            return None
        note = constraints.context.view.read(constraints.context.view.locate(edit.file, certain=True))
        lines = Lines(starts=note.outline.line_starts, size=len(note.raw))
        # Only a block whose lines are exactly those of the position.
        block = next(
            (
                one
                for one in pending.find_pending(note.raw, note.outline)
                if one.problem is None
                and one.line == position.first
                and lines.line_number(max(one.tag_stop - 1, one.start)) == position.last
            ),
            None,
        )
        request_scope = constraints.context.submit_options
        if (
            block is None
            or request_scope is None
            or not request_scope.scope.contains(note.path)
            or "delete" not in constraints.rules.can
        ):
            return None
    except KnapError:
        return None
    # Only where this client made its proposal, and the block shows a single hunk of it.
    writer = constraints.context.writer
    for one in writer.proposals.find(ProposalFilter(path=note.path), limit=_MAX_PROPOSALS).proposals:
        if one.client != writer.grants.client:
            continue
        hunks = writer.proposals.note_blocks.get(one.id).get(note.path, {}).get(block.id, ())
        if len(hunks) == 1:
            return BlockEdit(instruction=edit, path=note.path, proposal_id=one.id, hunk=hunks[0], text=edit.content)
    return None
