"""Redaction of proposals, drafts and errors: files that a client may not know of are left out."""

import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, cast

from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.proposals import tables
from knapper.changes.proposals.model import Proposal, ProposedFile
from knapper.errors import KnapError
from knapper.vault.paths import NotePath

_NOTICE_PATHS: Final = re.compile(
    r"(?P<page>.+), line \d+: .+ can't be written so that it leads to (?P<end>.+); mend it by hand"
    r"|(?P<lost>.+) can't be read, so its links stay as they are",
    re.DOTALL,
)
"""Notices of a move that may name files which it doesn't change."""
_KEPT_FIELDS: Final = ("problem", "code")
"""Fields that are kept of a conflict with a hidden file: `writer` decides by ``problem`` whether to try again."""


def visible_part(proposal: Proposal, visible: Callable[[NotePath], bool]) -> Proposal:
    """Return a proposal as a client sees it that may not know of every file.

    Raises:
        NotFound: The proposal changes such a file itself; one whose links only follow a move is left out.
    """
    hidden = hidden_paths(proposal.files, visible)
    if any(file.cause == "asked" and file.path in hidden for file in proposal.files):
        raise tables.proposal_not_found(proposal.id)
    return replace(
        proposal,
        files=tuple(file for file in proposal.files if file.path not in hidden),
        rewritten=tuple(one for one in proposal.rewritten if one.path not in hidden),
        notices=_visible_notices(proposal.notices, visible),
    )


def mark_hidden(draft: Draft, visible: Callable[[NotePath], bool]) -> Draft:
    """Mark the files of a draft that its client may not know of, so that nothing names them."""
    hidden = hidden_paths(draft.files, visible)
    return replace(
        draft,
        files=tuple(replace(file, hidden=file.path in hidden) for file in draft.files),
        rewritten=tuple(one for one in draft.rewritten if one.path not in hidden),
        notices=_visible_notices(draft.notices, visible),
    )


def hidden_paths(
    files: Iterable[FileDraft] | Iterable[ProposedFile], visible: Callable[[NotePath], bool]
) -> frozenset[NotePath]:
    """Return the old and new paths of the files that may not be known of."""
    hidden_files = (file for file in files if not (visible(file.path) and visible(file.place)))
    return frozenset(path for file in hidden_files for path in (file.path, file.place))


@contextmanager
def hiding_errors(hidden: Collection[NotePath]) -> Generator[None]:
    """Replace errors about hidden files by ones that neither name them nor show their content.

    Raises:
        KnapError: As raised in the block, with the same class and code.
    """
    try:
        yield
    except KnapError as error:
        if not hidden or not _mentions_any(error, hidden):
            raise
        message = "a file that isn't shown here stands in the way; nothing was changed"
        details = {name: redacted for name, rows in error.details.items() if (redacted := _redact_rows(rows, hidden))}
        hint = "try it again later, or ask a person, who sees that file"
        # Without the cause: a log or traceback of it would name the hidden file again.
        raise type(error)(message, hint=hint, code=error.code, details=details) from None


def _mentions_any(error: KnapError, hidden: Collection[NotePath]) -> bool:
    error_text = f"{error.message}\n{error.hint}\n{error.details}"
    return any(path in error_text or repr(path)[1:-1] in error_text for path in hidden)


def _redact_rows(rows: object, hidden: Collection[NotePath]) -> list[object]:
    """Return the rows, with only the kind of problem for those about hidden files."""
    redacted: list[object] = []
    for row in cast("list[object]", rows) if isinstance(rows, list) else ():
        if isinstance(row, Mapping):
            facts = cast("Mapping[str, object]", row)
            is_hidden = facts.get("path") in hidden
            redacted.append(
                {"path": "", **{name: facts[name] for name in _KEPT_FIELDS if name in facts}} if is_hidden else facts
            )
    return redacted


def _visible_notices(notices: Iterable[str], visible: Callable[[NotePath], bool]) -> tuple[str, ...]:
    return tuple(notice for notice in notices if all(visible(NotePath(path)) for path in _notice_paths(notice)))


def _notice_paths(notice: str) -> list[str]:
    match = _NOTICE_PATHS.fullmatch(notice)
    return [path for path in match.groups() if path] if match else []
