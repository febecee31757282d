"""Hold drafts to what a client may do: which are applied, which wait for a person, which are refused and why.

Nothing is asked of a model here, and nothing depends on which surface a draft comes from.
"""

from dataclasses import dataclass
from typing import Final

from knapper.changes import refusals, sizes
from knapper.changes.drafts import Draft
from knapper.changes.grounds import Ground
from knapper.changes.refusals import Refusal
from knapper.changes.text import log_entries
from knapper.errors import RefusedError
from knapper.vault import access
from knapper.vault.access import Grants, Outcome, Scope
from knapper.vault.paths import NotePath

MOST_FILES: Final = 5
"""More that the caller named are always a proposal."""


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


def verdict(
    draft: Draft,
    grants: Grants,
    ground: Ground,
    scope: Scope = access.EMPTY_SCOPE,
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
    refused = refusals.enforce(draft, grants, ground, scope)
    if refused:
        return Verdict(kind="refuse", reason=_told(refused), refusals=refused)
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
    draft: Draft, grants: Grants, ground: Ground, scope: Scope = access.EMPTY_SCOPE, *, tainted: bool = False
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


def _told(refused: tuple[Refusal, ...]) -> str:
    more = len(refused) - 1
    return refused[0].reason + (f" (and {more} more)" if more else "")


def _many(draft: Draft) -> str:
    if draft.named > MOST_FILES:
        return f"it changes {draft.named} files; more than {MOST_FILES} are always a proposal"
    return sizes.why_unnamed(draft)


def _wary(draft: Draft, grants: Grants, ground: Ground) -> str:
    """Tell what about a draft wants a person's word, whatever its size."""
    if grants.is_person:
        return ""
    if grants.tainted:
        return f"the client '{grants.client}' has read text that others wrote"
    for file in refusals.items(draft):
        for path in refusals.paths_of(file):
            if grants.is_guarded(path) or grants.is_guarded(ground.place(path) or path):
                return f"{refusals.shown(path, file)} changes only with a person's word"
    return ""
