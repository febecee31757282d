"""Hold drafts to what a client may do: which are applied, which wait for a person, which are refused and why.

Nothing is asked of a model here, and nothing depends on which surface a draft comes from.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from knapper.changes import sizes
from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.changes.text import log_entries
from knapper.errors import RefusedError
from knapper.vault import grants as granted
from knapper.vault import lookup
from knapper.vault.grants import Grants, Outcome, Scope
from knapper.vault.paths import NotePath
from knapper.vault.view import View

RefusalCode = Literal["untouchable", "outside_vault", "read_only", "not_writable", "capability", "outside_scope"]

MOST_FILES: Final = 5
"""More that the caller named are always a proposal."""
_TRASH: Final = ".trash/"
_DEEDS: Final[dict[Capability, str]] = {
    "add": "add text to",
    "delete": "replace or delete text of, or trash,",
    "create": "create",
    "move": "move",
    "properties": "change properties of",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Answer what the rules have to know of the vault."""

    visible: Callable[[NotePath], bool]
    """Whether the client may know of a path; ignored ones count as not visible."""
    real: Callable[[NotePath], NotePath]
    """Where the bytes of a path lie, links followed; raises `RefusedError` where that is outside the vault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """Say where the program adds an entry to its own log, and what a note that is made for it begins with."""

    path: NotePath
    opening: bytes = b""
    """Of a new note; what is in one that exists counts itself."""

    def holds(self, draft: Draft) -> bool:
        """Tell whether a draft does nothing else than to put one entry at the end of this note."""
        if len(draft.files) != 1 or draft.folders or draft.by_query:
            return False
        (file,) = draft.files
        if file.path != self.path or file.target is not None or file.trash is not None or file.after is None:
            return False
        if file.before is None and file.base is not None:
            return False
        before = self.opening if file.before is None else file.before
        return file.needs <= {"add", "create"} and log_entries.is_entry(before, file.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Say why one file of a draft may not be changed."""

    path: NotePath
    """Empty for a file that the client may not know of."""
    code: RefusalCode
    reason: str
    """Names the file and the rule."""
    hint: str
    requests: frozenset[int] = frozenset()
    """Numbers of the batch's requests that want it; the others may go on without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Say what becomes of a draft."""

    kind: Outcome
    reason: str = ""
    """Why it isn't applied; empty where it is."""
    refusals: tuple[Refusal, ...] = ()

    def raise_if_refused(self) -> None:
        """Turn a refusal into an error.

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
        raise RefusedError(
            self.reason,
            code=first.code if first else None,
            hint=first.hint if first else "ask the owner to change the client's rules in the configuration",
            details={"refusals": listed} if listed else None,
        )


def ground(view: View) -> Ground:
    """Answer from a vault as the client sees it."""

    def real(path: NotePath) -> NotePath:
        return lookup.find(view.root, path, must_exist=False).target

    return Ground(visible=view.visible, real=real)


def enforce(draft: Draft, grants: Grants, ground: Ground, scope: Scope = granted.NOTHING_OPEN) -> tuple[Refusal, ...]:
    """Find the files that the client may not change so, each with the first rule that it breaks.

    Args:
        draft: What would happen.
        grants: The client's.
        ground: The vault as the client sees it.
        scope: The notes that the client's editable scope comes to right now.

    Returns:
        In the draft's order; empty where all is allowed.
    """
    return tuple(refusal for one in _items(draft) if (refusal := _refusal(one, grants, ground, scope)))


def verdict(
    draft: Draft,
    grants: Grants,
    ground: Ground,
    scope: Scope = granted.NOTHING_OPEN,
    *,
    person_word: bool = False,
    log: LogPlace | None = None,
) -> Verdict:
    """Decide whether a draft is applied, waits as a proposal, or is refused.

    Args:
        draft: What would happen.
        grants: The client's.
        ground: The vault as the client sees it.
        scope: The notes that the client's editable scope comes to right now.
        person_word: A person has seen this very draft and said yes.
        log: Where the draft adds an entry to the program's own log; it counts only if the draft does nothing else.
    """
    refusals = enforce(draft, grants, ground, scope)
    if refusals:
        return Verdict(kind="refuse", reason=_told(refusals), refusals=refusals)
    is_entry = log is not None and log.holds(draft)
    large = "" if is_entry else sizes.why_large(draft)
    outcome = grants.large if large else grants.small
    if outcome == "refuse":
        return Verdict(kind="refuse", reason=f"the client '{grants.client}' may not: {large or 'change notes'}")
    if person_word:
        return Verdict(kind="apply")
    why = _many(draft) or _wary(draft, grants, ground)
    if why or (outcome == "propose" and not is_entry):
        return Verdict(kind="propose", reason=why or large or f"the client '{grants.client}' only proposes")
    return Verdict(kind="apply")


def acceptance(
    draft: Draft, grants: Grants, ground: Ground, scope: Scope = granted.NOTHING_OPEN, *, tainted: bool = False
) -> Verdict:
    """Decide whether a client may accept what was proposed; it is applied or refused.

    Args:
        draft: What accepting would do.
        grants: Those of the client that accepts.
        ground: The vault as that client sees it.
        scope: The notes that its editable scope comes to right now.
        tainted: Whether whoever proposed it had read text that others wrote.
    """
    allowed = grants.may_accept
    if allowed == "never":
        return _only_a_person(f"the client '{grants.client}' may not accept proposals")
    if allowed == "own":
        if tainted:
            return _only_a_person("who proposed this had read text that others wrote")
        large = sizes.why_large(draft)
        if (grants.large if large else grants.small) != "apply":
            return _only_a_person(
                f"the client '{grants.client}' may not apply this by itself: {large or 'small change'}"
            )
        if why := _many(draft) or _wary(draft, grants, ground):
            return _only_a_person(why)
    return verdict(draft, grants, ground, scope, person_word=True)


def _only_a_person(why: str) -> Verdict:
    return Verdict(kind="refuse", reason=f"only a person can accept this: {why}")


def _told(refusals: tuple[Refusal, ...]) -> str:
    more = len(refusals) - 1
    return refusals[0].reason + (f" (and {more} more)" if more else "")


def _many(draft: Draft) -> str:
    if draft.named > MOST_FILES:
        return f"it changes {draft.named} files; more than {MOST_FILES} are always a proposal"
    if draft.folders:
        return "it moves a whole folder"
    return "its files were chosen by a query" if draft.by_query else ""


def _wary(draft: Draft, grants: Grants, ground: Ground) -> str:
    """Tell what about a draft wants a person's word, whatever its size."""
    if grants.is_person:
        return ""
    if grants.tainted:
        return f"the client '{grants.client}' has read text that others wrote"
    for file in _items(draft):
        for path in _paths(file):
            if grants.is_guarded(path) or grants.is_guarded(_real(ground, path) or path):
                return f"{_shown(path, file)} changes only with a person's word"
    return ""


def _items(draft: Draft) -> Iterator[FileDraft]:
    """Give the files, and the folders that move as if they were files."""
    yield from draft.files
    for source, target in draft.folders:
        inside = (file.requests for file in draft.files if file.path.startswith(f"{source}/"))
        wanted = frozenset(number for requests in inside for number in requests)
        yield FileDraft(path=source, base=None, target=target, needs=frozenset({"move"}), requests=wanted)


def _paths(file: FileDraft) -> tuple[NotePath, ...]:
    return (file.path,) if file.target is None else (file.path, file.target)


def _refusal(file: FileDraft, grants: Grants, ground: Ground, scope: Scope) -> Refusal | None:
    found = _first_refusal(file, grants, ground, scope)
    if found is None:
        return None
    return replace(found, path=NotePath("") if file.hidden else found.path, requests=file.requests)


def _first_refusal(file: FileDraft, grants: Grants, ground: Ground, scope: Scope) -> Refusal | None:
    restored = _is_restored(file)
    if restored and not ground.visible(NotePath(file.path.removeprefix(_TRASH))):
        return _untouchable(file.path)
    for path in _paths(file)[restored:]:
        if found := _place_refusal(path, file, grants, ground):
            return found
    code = _deed_problem(file, grants)
    if code:
        hint = "a person can make this change, or the owner can allow it in the client's rules"
        reason = f"{_shown(file.path, file)}: the client '{grants.client}' may not {_DEEDS[code]} files"
        return Refusal(path=file.path, code="capability", reason=reason, hint=hint)
    if _is_outside(file, grants, scope) and not restored:
        what = "no note is open" if scope.paths is None else f"it isn't in the scope '{grants.editable}'"
        reason = f"'{file.path}' may not be changed: {what}"
        hint = "open the note, or add it to the context, or choose a wider editable scope"
        return Refusal(path=file.path, code="outside_scope", reason=reason, hint=hint)
    return None


def _is_restored(file: FileDraft) -> bool:
    """Tell whether a file only comes back out of the vault's trash."""
    return (
        file.path.startswith(_TRASH)
        and file.target is not None
        and not file.target.startswith(_TRASH)
        and file.before == file.after
    )


def _place_refusal(path: NotePath, file: FileDraft, grants: Grants, ground: Ground) -> Refusal | None:
    real = _real(ground, path)
    if real is None:
        reason = f"{_shown(path, file)} is a symbolic link that leads out of the vault"
        return Refusal(path=path, code="outside_vault", reason=reason, hint="copy the file into the vault first")
    for place in dict.fromkeys((path, real)):
        if _is_dotted(place) or not (file.cause == "link" or ground.visible(place)):
            return _untouchable(path)
        if grants.is_read_only:
            reason = f"{_shown(path, file)}: the client '{grants.client}' may only read"
            return Refusal(path=path, code="read_only", reason=reason, hint="a person can make this change")
        if not grants.writable(place):
            linked = "; it holds a link that would have to follow" if file.cause == "link" else ""
            reason = f"{_shown(path, file)} may not be changed: the path rules of '{grants.client}' say so{linked}"
            return Refusal(path=path, code="not_writable", reason=reason, hint="a person can make this change")
    return None


def _shown(path: NotePath, file: FileDraft) -> str:
    """Name a file, unless the client may not know of it."""
    return "a file that isn't shown here" if file.hidden else f"'{path}'"


def _untouchable(path: NotePath) -> Refusal:
    reason = f"'{path}' isn't a place for notes: hidden, ignored and system folders are never written"
    return Refusal(path=path, code="untouchable", reason=reason, hint="choose another path")


def _is_dotted(path: NotePath) -> bool:
    return path.startswith(".") or "/." in path


def _real(ground: Ground, path: NotePath) -> NotePath | None:
    try:
        return ground.real(path)
    except RefusedError:
        return None


def _deed_problem(file: FileDraft, grants: Grants) -> Capability | None:
    """Find what a change needs and the client may not do; what the change is counts, whatever it says it needs."""
    needs: set[Capability] = set(file.needs)
    if file.target is not None and not _is_restored(file):
        needs.add("move")
    if file.trash is not None:
        needs.add("delete")
    if file.before is None and file.after is not None and file.target is None:
        needs.add("create")
    missing = needs - grants.capabilities
    return next((need for need in _DEEDS if need in missing), None)


def _is_outside(file: FileDraft, grants: Grants, scope: Scope) -> bool:
    """Tell whether a note that exists may not be changed now; links that follow a move go where the move goes."""
    is_new = file.before is None and file.base is None and file.target is None and file.trash is None
    return file.cause == "asked" and not is_new and not grants.editable_in(file.path, scope)
