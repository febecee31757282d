"""Find what of a draft a client may not do, each file with the first rule that it breaks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from knapper.changes.drafts import Capability, Draft, FileDraft
from knapper.changes.grounds import Ground
from knapper.vault import access
from knapper.vault.access import Grants, Scope
from knapper.vault.paths import NotePath

RefusalCode = Literal["untouchable", "outside_vault", "read_only", "not_writable", "capability", "outside_scope"]

_TRASH: Final = ".trash/"
_DEEDS: Final[dict[Capability, str]] = {
    "add": "add text to",
    "delete": "replace or delete text of, or trash,",
    "create": "create",
    "move": "move",
    "properties": "change properties of",
}


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


def enforce(draft: Draft, grants: Grants, ground: Ground, scope: Scope = access.EMPTY_SCOPE) -> tuple[Refusal, ...]:
    """Find the files that the client may not change so, each with the first rule that it breaks.

    Args:
        draft: What would happen.
        grants: The client's.
        ground: The vault as the client sees it.
        scope: The notes that the client's editable scope comes to right now.

    Returns:
        In the draft's order; empty where all is allowed.
    """
    return tuple(refusal for one in items(draft) if (refusal := _refusal(one, grants, ground, scope)))


def items(draft: Draft) -> Iterator[FileDraft]:
    """Give the files of a draft, and the folders that move as if they were files."""
    yield from draft.files
    for source, target in draft.folders:
        inside = (file.requests for file in draft.files if file.path.startswith(f"{source}/"))
        wanted = frozenset(number for requests in inside for number in requests)
        yield FileDraft(path=source, base=None, target=target, needs=frozenset({"move"}), requests=wanted)


def paths_of(file: FileDraft) -> tuple[NotePath, ...]:
    """Give the paths that a change of a file is about."""
    return (file.path,) if file.target is None else (file.path, file.target)


def _refusal(file: FileDraft, grants: Grants, ground: Ground, scope: Scope) -> Refusal | None:
    found = _first_refusal(file, grants, ground, scope)
    if found is None:
        return None
    return replace(found, path=NotePath("") if file.hidden else found.path, requests=file.requests)


def _first_refusal(file: FileDraft, grants: Grants, ground: Ground, scope: Scope) -> Refusal | None:
    restored = _is_restored(file)
    if restored and not ground.visible(NotePath(file.path.removeprefix(_TRASH))):
        return _untouchable(file.path, file)
    for path in paths_of(file)[restored:]:
        if found := _place_refusal(path, file, grants, ground):
            return found
    code = _deed_problem(file, grants)
    if code:
        hint = "a person can make this change, or the owner can allow it in the client's rules"
        reason = f"{shown(file.path, file)}: the client '{grants.client}' may not {_DEEDS[code]} files"
        return Refusal(path=file.path, code="capability", reason=reason, hint=hint)
    if _is_outside(file, grants, scope) and not restored:
        what = "no note is open" if scope.paths is None else f"it isn't in the scope '{grants.editable}'"
        reason = f"{shown(file.path, file)} may not be changed: {what}"
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
    real = ground.place(path)
    if real is None:
        reason = f"{shown(path, file)} is a symbolic link that leads out of the vault"
        return Refusal(path=path, code="outside_vault", reason=reason, hint="copy the file into the vault first")
    for place in dict.fromkeys((path, real)):
        if _is_dotted(place) or not (file.cause == "link" or ground.visible(place)):
            return _untouchable(path, file)
        if grants.is_read_only:
            reason = f"{shown(path, file)}: the client '{grants.client}' may only read"
            return Refusal(path=path, code="read_only", reason=reason, hint="a person can make this change")
        if not grants.writable(place):
            linked = "; it holds a link that would have to follow" if file.cause == "link" else ""
            reason = f"{shown(path, file)} may not be changed: the path rules of '{grants.client}' say so{linked}"
            return Refusal(path=path, code="not_writable", reason=reason, hint="a person can make this change")
    return None


def shown(path: NotePath, file: FileDraft) -> str:
    """Name a file, unless the client may not know of it."""
    return "a file that isn't shown here" if file.hidden else f"'{path}'"


def _untouchable(path: NotePath, file: FileDraft) -> Refusal:
    reason = f"{shown(path, file)} isn't a place for notes: hidden, ignored and system folders are never written"
    return Refusal(path=path, code="untouchable", reason=reason, hint="choose another path")


def _is_dotted(path: NotePath) -> bool:
    return path.startswith(".") or "/." in path


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
