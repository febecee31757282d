"""Hold a model's edits to what is there, and to what may be edited, before anything is kept of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from knapper.agents.contexts import gather
from knapper.agents.scopes import EditableScope, EditRules
from knapper.agents.task import replies
from knapper.agents.task.replies import EditInstruction
from knapper.changes.requests import AtPosition
from knapper.changes.text import positions
from knapper.changes.text.positions import BeforeLine, LineSpan, Position
from knapper.changes.writer import Submission, SubmitOptions
from knapper.errors import BadInput, KnapError, RefusedError
from knapper.tools.context import Context
from knapper.vault import paths
from knapper.vault.access import Scope
from knapper.vault.paths import NotePath


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedEdit:
    """Hold an edit with what came of checking it."""

    instruction: EditInstruction
    path: NotePath
    """Of the file that is meant; as given, where there is none."""
    kind: positions.PositionKind = "add"
    error: KnapError | None = None
    """Why it can't be made; None where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """Say what edits are held to."""

    context: Context
    """The vault, with a writer that allows no more than the rules; from `narrowed`."""
    rules: EditRules
    known: Mapping[NotePath, str]
    """Hashes of the notes that the model was shown."""
    whole_lines: Mapping[NotePath, int] = field(default_factory=dict[NotePath, int])
    """Of notes of which only the beginning was shown: how many lines were, to their end."""


def editable_paths(
    context: Context, editable: EditableScope, current: str, shown: frozenset[NotePath]
) -> frozenset[NotePath] | None:
    """Give the notes that an editable scope comes to now; None where it goes by the open note, and none is open."""
    if editable == "context":
        return shown
    if not current:
        return None
    return frozenset({context.view.path(current)}) if editable == "current" else gather.linked(context, current)


def narrowed(context: Context, rules: EditRules, current: str, shown: frozenset[NotePath]) -> Context:
    """Give the context with a writer that allows no more than the rules, and no more than the owner allows the client.

    Args:
        context: The vault, as the agent sees it.
        rules: What the model may do.
        current: The open note; empty for none.
        shown: The notes that the model was given.
    """
    allowed = editable_paths(context, rules.editable, current, shown)
    writer = context.writer
    own = writer.grants.editable
    if own != "all":
        owners = editable_paths(context, own, current, shown)
        allowed = None if allowed is None or owners is None else allowed & owners
    grants = replace(writer.grants, editable=rules.editable, capabilities=writer.grants.capabilities & rules.can)
    held = replace(writer, grants=grants)
    asked = replace(context.asked or SubmitOptions(), scope=Scope(paths=allowed), propose=True)
    return replace(context, open_writer=lambda: held, asked=asked)


def check(grounds: Grounds, edits: Sequence[EditInstruction]) -> list[ValidatedEdit]:
    """Tell of each edit whether it can be made; nothing is kept or written."""
    looked = _once([_look(grounds, edit) for edit in edits])
    requests = [(number, _request(grounds, one)) for number, one in enumerate(looked) if _is_change(one)]
    if not requests:
        return looked
    for number, error in _tried(grounds, requests).items():
        looked[number] = replace(looked[number], error=error)
    return looked


def propose(grounds: Grounds, edits: Sequence[ValidatedEdit], reason: str) -> Submission | None:
    """Keep what can be made as one proposal; None where there is nothing.

    Raises:
        KnapError: The notes changed since they were checked.
    """
    asked = grounds.context.asked or SubmitOptions()
    requests = [_request(grounds, one) for one in edits if _is_change(one)]
    if not requests:
        return None
    done = grounds.context.writer.submit(requests, replace(asked, reason=reason, dry_run=False, propose=True))
    return done if done.proposal_id else None


def opened(edits: Sequence[ValidatedEdit]) -> list[NotePath]:
    """Give the notes that are to be opened for the person, each once."""
    found = (one.path for one in edits if one.kind == "navigate" and one.error is None)
    return list(dict.fromkeys(found))


def _is_change(one: ValidatedEdit) -> bool:
    return one.error is None and one.kind != "navigate"


def _look(grounds: Grounds, edit: EditInstruction) -> ValidatedEdit:
    """Check what can be checked of an edit by itself."""
    path = NotePath(edit.file)
    kind: positions.PositionKind = "add"
    try:
        position = positions.parse_position(edit.position)
        kind = positions.position_kind(position)
        _check_ability(grounds, kind, edit)
        if kind == "create":
            path = grounds.context.view.new_path(edit.file)
        else:
            path = grounds.context.view.path(edit.file)
            _check_seen(grounds, path, position)
        if replies.numbered_lines(edit):
            hint = "give the text alone"
            raise BadInput(f"the content for {path} has line numbers in front", hint=hint, code="line_numbers")
    except KnapError as error:
        return ValidatedEdit(instruction=edit, path=path, kind=kind, error=error)
    return ValidatedEdit(instruction=edit, path=path, kind=kind)


def _once(edits: Sequence[ValidatedEdit]) -> list[ValidatedEdit]:
    """Let each new note be made once."""
    seen: set[str] = set()
    checked: list[ValidatedEdit] = []
    for one in edits:
        key = paths.name_key(one.path)
        if one.kind == "create" and one.error is None:
            if key in seen:
                error = BadInput(f"{one.path} is made twice", hint="give its whole text once", code="overlap")
                checked.append(replace(one, error=error))
                continue
            seen.add(key)
        checked.append(one)
    return checked


def _check_ability(grounds: Grounds, kind: positions.PositionKind, edit: EditInstruction) -> None:
    needed = "delete" if kind == "replace" else kind
    if needed not in grounds.rules.can or needed not in grounds.context.writer.grants.capabilities:
        allowed = ", ".join(sorted(grounds.rules.can)) or "nothing"
        message = f"'{edit.position}' of {edit.file}: {needed} is switched off"
        raise RefusedError(message, hint=f"allowed: {allowed}", code="capability")


def _check_seen(grounds: Grounds, path: NotePath, position: Position) -> None:
    """Refuse line numbers that the model was never shown: it made them up, or knows no more than a line's beginning."""
    if not isinstance(position, BeforeLine | LineSpan):
        return
    hint = "use start, end or after:## Heading, or have the note added to the context"
    if path not in grounds.known:
        raise BadInput(f"{path} wasn't shown, so its lines aren't known", hint=hint, code="not_shown")
    whole = grounds.whole_lines.get(path)
    last = position.last if isinstance(position, LineSpan) else position.line - 1
    if whole is not None and last > whole:
        message = (
            f"only lines 1 to {whole} of {path} were shown whole" if whole else f"no line of {path} was shown whole"
        )
        raise BadInput(message, hint="use start, end, after:## Heading or lines that were shown", code="not_shown")


def _request(grounds: Grounds, one: ValidatedEdit) -> AtPosition:
    edit = one.instruction
    return AtPosition(path=one.path, position=edit.position, content=edit.content, base=grounds.known.get(one.path, ""))


def _tried(grounds: Grounds, requests: Sequence[tuple[int, AtPosition]]) -> dict[int, KnapError]:
    """Try what can be made together; gives why the others can't."""
    asked = replace(grounds.context.asked or SubmitOptions(), dry_run=True)
    numbers = [number for number, _ in requests]
    try:
        done = grounds.context.writer.submit([request for _, request in requests], asked)
    except KnapError as error:
        return _told(error, numbers)
    errors: dict[int, KnapError] = {numbers[one.number]: one.error for one in done.failures}
    for refusal in done.refusals:
        refused = RefusedError(refusal.reason, hint=refusal.hint, code=refusal.code)
        errors |= {numbers[number]: refused for number in refusal.requests}
    return errors


def _told(error: KnapError, numbers: Sequence[int]) -> dict[int, KnapError]:
    """Read out of an error about all which request failed why."""
    told: dict[int, KnapError] = {}
    failures = cast("list[dict[str, object]]", error.details.get("failures", []))
    for one in failures:
        told[numbers[cast("int", one["request"])]] = _error(one, type(error))
    refusals = cast("list[dict[str, object]]", error.details.get("refusals", []))
    for one in refusals:
        for number in cast("list[int]", one.get("requests", [])):
            told[numbers[number]] = _error({**one, "error": one["reason"]}, RefusedError)
    return told | {number: error for number in numbers if number not in told}


def _error(row: Mapping[str, object], kind: type[KnapError]) -> KnapError:
    return kind(str(row["error"]), hint=str(row.get("hint", "")), code=str(row["code"]))
