"""Rules that decide whether a change is applied, proposed or refused, by its client, its size and its paths."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.errors import RefusedError
from knapper.vault import access, files, parser
from knapper.vault.access import Grants, Outcome, Scope
from knapper.vault.paths import NotePath
from knapper.vault.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultFacts:
    """What the rules need to know of a vault, as functions, so that a test can answer without one."""

    visible: Callable[[NotePath], bool]
    """Whether the client may know of a path; ignored ones count as not visible."""
    resolve: Callable[[NotePath], NotePath]
    """Where the bytes of a path lie, links followed; raises `RefusedError` where that is outside the vault."""
    foreign: Callable[[NotePath, bytes | None], bool] = lambda _path, _raw: False
    """Whether a file counts as written by others, by its path and by its text where that is known."""

    def resolve_inside(self, path: NotePath) -> NotePath | None:
        """Return where the bytes of a path lie; None where that is outside the vault."""
        try:
            return self.resolve(path)
        except RefusedError:
            return None


def facts_of(view: View) -> VaultFacts:
    """Return the facts of a vault as the client sees it, for one draft: each folder is looked up once."""
    folders = files.KnownFolders(view.root)

    def real(path: NotePath) -> NotePath:
        return files.find_path(view.root, path, must_exist=False, known=folders).target

    def foreign(path: NotePath, raw: bytes | None) -> bool:
        block = parser.parse_head(raw).frontmatter if raw is not None else None
        return view.policy.is_foreign(path, block.values if block else {})

    return VaultFacts(visible=view.visible, resolve=real, foreign=foreign)


_COMMON_LINES: Final = re.compile(rb"-{3,}|`{3,}.*|\xef\xbb\xbf")
"""Lines that nearly any two notes have in common."""
_FEW_LINES: Final = 2
_LOOKED_AT_BYTES: Final = 65_536
"""Of what a change keeps at the start; a line of it answers for a long note."""


def why_large(draft: Draft) -> str:
    """Return why a draft isn't small; empty where it is.

    A small draft changes one file at an exactly named place, and overwrites, moves and trashes nothing. Such places are
    text that occurs once, a unique heading's section, a property, the start or end, and a new note. It takes out at
    most `MOST_TAKEN_OUT` characters more than it puts in.
    """
    if draft.by_query or draft.folders:
        return why_unnamed(draft)
    named_files = [file for file in draft.files if file.cause == "asked"]
    if len(named_files) != 1:
        return f"it changes {len(named_files)} files"
    return _why_file_is_large(named_files[0])


def why_unnamed(draft: Draft) -> str:
    """Return why the files of a draft count as not named one by one; empty where they were.

    The reason is the same for a folder that moves file by file and for one that moves as a whole: a difference would
    reveal that the folder has hidden files.
    """
    named_files = [file for file in draft.files if file.cause == "asked"]
    if draft.folders or (draft.by_query and named_files and all(file.target is not None for file in named_files)):
        return "it moves a folder"
    return "its files were chosen by a query" if draft.by_query else ""


def _why_file_is_large(file: FileDraft) -> str:
    if file.target is not None:
        return f"it moves '{file.path}'"
    if file.trash is not None:
        return f"it trashes '{file.path}'"
    if file.before is None:
        return ""
    if not file.anchored:
        return f"it doesn't name the exact place in '{file.path}'"
    after = file.after or b""
    if overwrites(file.before, after):
        return f"it replaces what '{file.path}' holds"
    taken_out = count_taken_out(file.before, after)
    return f"it takes {taken_out:,} characters out of '{file.path}'" if taken_out > MOST_TAKEN_OUT else ""


MOST_TAKEN_OUT: Final = 1_000
"""Characters, spaces not counted, by which a small change may make a note shorter."""


def count_taken_out(before: bytes, after: bytes) -> int:
    """Return by how many characters a change makes a note shorter, spaces and line ends not counted; 0 for longer.

    Filling the place with spaces, or with text that is shorter than what was there, is taking out, too.
    """
    head, tail = _common_lines(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    return max(_count_characters(old) - _count_characters(new), 0)


def _common_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """Return how many bytes of whole lines two states of a note have in common, at the start and at the end."""
    most = min(len(before), len(after))
    head = _count_while(most, lambda low, high: before[low:high] == after[low:high])
    head = before.rfind(b"\n", 0, head) + 1
    old, new = len(before), len(after)
    tail = _count_while(most - head, lambda low, high: before[old - high : old - low] == after[new - high : new - low])
    line_end = before.find(b"\n", old - tail)
    return head, 0 if line_end < 0 else old - line_end - 1


def _count_while(most: int, is_same: Callable[[int, int], bool]) -> int:
    """Return how many of *most* bytes are the same from the first one on; each is compared twice on average."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        low, most = (middle, most) if is_same(low, middle) else (low, middle - 1)
    return low


def _count_characters(raw: bytes) -> int:
    return sum(map(len, raw.decode(errors="replace").split()))


def overwrites(before: bytes, after: bytes) -> bool:
    """Return whether a change keeps no line of a note that had several."""
    head, _ = _common_lines(before, after)
    kept = before[: before.rfind(b"\n", 0, min(head, _LOOKED_AT_BYTES)) + 1]
    if any(True for _ in _significant_lines(kept)):
        return False
    old = set(_significant_lines(before))
    return len(old) >= _FEW_LINES and old.isdisjoint(_significant_lines(after))


def _significant_lines(raw: bytes) -> Iterator[bytes]:
    rows = (row.strip() for row in raw.splitlines())
    return (row for row in rows if row and not _COMMON_LINES.fullmatch(row))


RefusalCode = Literal["untouchable", "outside_vault", "read_only", "not_writable", "capability", "outside_scope"]

_TRASH_PREFIX: Final = ".trash/"
_CAPABILITY_PHRASES: Final[dict[Capability, str]] = {
    "add": "add text to",
    "delete": "replace or delete text of, or trash,",
    "create": "create",
    "move": "move",
    "properties": "change properties of",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Reason why one file of a draft may not be changed."""

    path: NotePath
    """Empty for a file that the client may not know of."""
    code: RefusalCode
    reason: str
    """Names the file and the rule."""
    hint: str
    requests: frozenset[int] = frozenset()
    """Numbers of the batch's requests that want the change; the others may be carried out without them."""


def find_refusals(
    draft: Draft, grants: Grants, facts: VaultFacts, scope: Scope = access.EMPTY_SCOPE
) -> tuple[Refusal, ...]:
    """Return the files that the client may not change in this way, each with the first rule that it breaks.

    Args:
        draft: What would happen.
        grants: The client's.
        facts: The vault as the client sees it.
        scope: The notes in the client's editable scope right now.

    Returns:
        In the draft's order; empty where all is allowed.
    """
    refusals: list[Refusal] = []
    for file in changed_items(draft):
        refusal = _first_refusal(file, grants, facts, scope)
        if refusal is not None:
            path = NotePath("") if file.hidden else refusal.path
            refusals.append(replace(refusal, path=path, requests=file.requests))
    return tuple(refusals)


def changed_items(draft: Draft) -> Iterator[FileDraft]:
    """Return the files of a draft, and the folders that move as if they were files."""
    yield from draft.files
    for source, target in draft.folders:
        inside = (file.requests for file in draft.files if file.path.startswith(f"{source}/"))
        numbers = frozenset(number for requests in inside for number in requests)
        yield FileDraft(path=source, base=None, target=target, needs=frozenset({"move"}), requests=numbers)


def paths_of(file: FileDraft) -> tuple[NotePath, ...]:
    """Return the paths that a change of a file is about."""
    return (file.path,) if file.target is None else (file.path, file.target)


def _first_refusal(file: FileDraft, grants: Grants, facts: VaultFacts, scope: Scope) -> Refusal | None:
    restored = _is_restored(file)
    if restored and not facts.visible(NotePath(file.path.removeprefix(_TRASH_PREFIX))):
        return _untouchable(file.path, file)
    for path in paths_of(file)[restored:]:
        if refusal := _path_refusal(path, file, grants, facts):
            return refusal
    code = _missing_capability(file, grants)
    if code:
        hint = "a person can make this change, or the owner can allow it in the client's rules"
        reason = (
            f"{display_name(file.path, file)}: the client '{grants.client}' may not {_CAPABILITY_PHRASES[code]} files"
        )
        return Refusal(path=file.path, code="capability", reason=reason, hint=hint)
    is_new = file.before is None and file.base is None and file.target is None and file.trash is None
    # Links that follow a move are exempt.
    if file.cause == "asked" and not (is_new or restored) and not grants.editable_in(file.path, scope):
        what = "no note is open" if scope.paths is None else f"it isn't in the scope '{grants.editable}'"
        reason = f"{display_name(file.path, file)} may not be changed: {what}"
        hint = "open the note, or add it to the context, or choose a wider editable scope"
        return Refusal(path=file.path, code="outside_scope", reason=reason, hint=hint)
    return None


def _missing_capability(file: FileDraft, grants: Grants) -> Capability | None:
    """Return the first capability that a change needs and the client lacks.

    What a change does adds to the needs that it declares, so that a draft can't understate them.
    """
    needs: set[Capability] = set(file.needs)
    if file.target is not None and not _is_restored(file):
        needs.add("move")
    if file.trash is not None:
        needs.add("delete")
    if file.before is None and file.after is not None and file.target is None:
        needs.add("create")
    missing = needs - grants.capabilities
    return next((need for need in _CAPABILITY_PHRASES if need in missing), None)


def _is_restored(file: FileDraft) -> bool:
    """Return whether a change only moves a file out of the vault's trash."""
    return (
        file.path.startswith(_TRASH_PREFIX)
        and file.target is not None
        and not file.target.startswith(_TRASH_PREFIX)
        and file.before == file.after
    )


def _path_refusal(path: NotePath, file: FileDraft, grants: Grants, facts: VaultFacts) -> Refusal | None:
    real = facts.resolve_inside(path)
    if real is None:
        reason = f"{display_name(path, file)} is a symbolic link that leads out of the vault"
        return Refusal(path=path, code="outside_vault", reason=reason, hint="copy the file into the vault first")
    # A link's own path and its target both have to be allowed: either alone could be made to lead past the rules.
    for place in dict.fromkeys((path, real)):
        is_dotted = place.startswith(".") or "/." in place
        if is_dotted or not (file.cause == "link" or facts.visible(place)):
            return _untouchable(path, file)
        if grants.is_read_only:
            reason = f"{display_name(path, file)}: the client '{grants.client}' may only read"
            return Refusal(path=path, code="read_only", reason=reason, hint="a person can make this change")
        if not grants.writable(place):
            linked = "; it holds a link that would have to follow" if file.cause == "link" else ""
            reason = (
                f"{display_name(path, file)} may not be changed: the path rules of '{grants.client}' say so{linked}"
            )
            return Refusal(path=path, code="not_writable", reason=reason, hint="a person can make this change")
    return None


def display_name(path: NotePath, file: FileDraft) -> str:
    """Return how a message names a file: not by its path where the client may not know of it."""
    return "a file that isn't shown here" if file.hidden else f"'{path}'"


def _untouchable(path: NotePath, file: FileDraft) -> Refusal:
    reason = f"{display_name(path, file)} isn't a place for notes: hidden, ignored and system folders are never written"
    return Refusal(path=path, code="untouchable", reason=reason, hint="choose another path")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTarget:
    """Note in which the program keeps its own log, and what the note begins with if it is new."""

    path: NotePath
    opening: bytes = b""
    """Only for a new note; an existing one is compared with its own content."""

    def is_only_entry(self, draft: Draft) -> bool:
        """Return whether all that a draft does is to add one entry at the end of this note."""
        if len(draft.files) != 1 or draft.folders or draft.by_query:
            return False
        (file,) = draft.files
        if file.path != self.path or file.target is not None or file.trash is not None or file.after is None:
            return False
        if file.before is None and file.base is not None:
            return False
        from knapper.changes.text import log_entries  # noqa: PLC0415 - 4 ms that only such a note should cost

        before = self.opening if file.before is None else file.before
        return file.needs <= {"add", "create"} and log_entries.is_entry(before, file.after)


PERSON_NEEDED: Final = "person_needed"
"""The code of the error that only a person can accept a proposal."""


def person_needed_error(why: str) -> RefusedError:
    """Build the error that only a person can accept a proposal."""
    reason = f"only a person can accept this: {why}"
    return RefusedError(reason, code=PERSON_NEEDED, hint="a person can: `knap edits review`, or the page")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Decision on a draft."""

    kind: Outcome
    reason: str = ""
    """Why it isn't applied; empty where it is."""
    refusals: tuple[Refusal, ...] = ()
    needs_person: bool = False
    """It is refused to this client alone: a person may do it."""

    def raise_if_refused(self) -> None:
        """Raise an error if the draft is refused.

        Raises:
            RefusedError: The draft is refused; ``details["refusals"]`` has each file with its rule.
        """
        if self.kind != "refuse":
            return
        first = self.refusals[0] if self.refusals else None
        listed = [
            {"path": one.path, "code": one.code, "reason": one.reason, "requests": sorted(one.requests)}
            for one in self.refusals
        ]
        hint = "ask the owner to change the client's rules in the configuration"
        if self.needs_person:
            raise person_needed_error(self.reason)
        raise RefusedError(
            self.reason,
            code=first.code if first else None,
            hint=first.hint if first else hint,
            details={"refusals": listed} if listed else None,
        )


def judge(
    draft: Draft,
    grants: Grants,
    facts: VaultFacts,
    scope: Scope = access.EMPTY_SCOPE,
    *,
    person_word: bool = False,
    log: LogTarget | None = None,
) -> Verdict:
    """Return whether a draft is applied, kept as a proposal, or refused.

    Args:
        draft: What would happen.
        grants: The client's.
        facts: The vault as the client sees it.
        scope: The notes that the client's editable scope comes to right now.
        person_word: A person has seen this very draft and approved it.
        log: Where the draft adds an entry to the program's own log; it counts only if the draft does nothing else.
    """
    # Refusals come before all else: neither a small size nor a person's approval lifts a path rule.
    refused = find_refusals(draft, grants, facts, scope)
    if refused:
        first, *others = refused
        more = f" (and {len(others)} more)" if others else ""
        return Verdict(kind="refuse", reason=f"{first.reason}{more}", refusals=refused)
    is_entry = log is not None and log.is_only_entry(draft)
    large = "" if is_entry else why_large(draft)
    outcome = grants.large if large else grants.small
    if outcome == "refuse":
        return Verdict(kind="refuse", reason=f"the client '{grants.client}' may not: {large or 'change notes'}")
    if person_word:
        return Verdict(kind="apply")
    why = _why_many_files(draft, grants) or _why_person_needed(draft, grants, facts)
    if why or (outcome == "propose" and not is_entry):
        return Verdict(kind="propose", reason=why or large or f"the client '{grants.client}' only proposes")
    return Verdict(kind="apply")


def judge_acceptance(
    draft: Draft, grants: Grants, facts: VaultFacts, scope: Scope = access.EMPTY_SCOPE, *, tainted: bool = False
) -> Verdict:
    """Return whether a client may accept what was proposed: it is applied or refused.

    Args:
        draft: What accepting would do.
        grants: Those of the client that accepts.
        facts: The vault as that client sees it.
        scope: The notes in its editable scope right now.
        tainted: The proposing client had read untrusted content.
    """
    allowed = grants.may_accept
    if allowed == "never":
        return _refuse_to_non_person(f"the client '{grants.client}' may not accept proposals")
    if allowed == "own":
        if tainted:
            return _refuse_to_non_person("who proposed this had read untrusted content")
        large = why_large(draft)
        if (grants.large if large else grants.small) != "apply":
            return _refuse_to_non_person(
                f"the client '{grants.client}' may not apply this by itself: {large or 'small change'}"
            )
        if why := _why_many_files(draft, grants) or _why_person_needed(draft, grants, facts):
            return _refuse_to_non_person(why)
    return judge(draft, grants, facts, scope, person_word=True)


def judge_confirmation(
    draft: Draft, grants: Grants, facts: VaultFacts, scope: Scope = access.EMPTY_SCOPE, *, tainted: bool = False
) -> Verdict:
    """Return whether a proposal that a person approved through the client's program is applied or refused.

    Args:
        draft: What accepting would do.
        grants: Those of the client, which also proposed it.
        facts: The vault as that client sees it.
        scope: The notes in its editable scope when it proposed.
        tainted: It had read untrusted content when it proposed.
    """
    if tainted or grants.tainted:
        return _refuse_to_non_person("who proposed this had read untrusted content")
    if not grants.may_ask:
        return _refuse_to_non_person(f"nobody may be asked through the client '{grants.client}'")
    return judge(draft, grants, facts, scope, person_word=True)


def _refuse_to_non_person(why: str) -> Verdict:
    return Verdict(kind="refuse", reason=why, needs_person=True)


def _why_many_files(draft: Draft, grants: Grants) -> str:
    if draft.named > grants.max_files:
        return f"it changes {draft.named} files; more than {grants.max_files} are always a proposal"
    return why_unnamed(draft)


def _why_person_needed(draft: Draft, grants: Grants, facts: VaultFacts) -> str:
    """Return why a draft of any size needs a person's approval; empty where it doesn't."""
    if grants.is_person:
        return ""
    if grants.tainted:
        return f"the client '{grants.client}' has read untrusted content"
    for file in changed_items(draft):
        for path in paths_of(file):
            if grants.is_guarded(path) or grants.is_guarded(facts.resolve_inside(path) or path):
                return f"{display_name(path, file)} changes only with a person's word"
        # Otherwise a client could move such a note away by its name, and then read it without being tainted.
        is_foreign = file.trash is None and facts.foreign(file.path, file.before)
        if is_foreign and not facts.foreign(file.place, file.after):
            return f"{display_name(file.path, file)} is untrusted content, and would no longer count as such"
    return ""
