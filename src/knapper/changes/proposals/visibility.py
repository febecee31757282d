"""Leave out of proposals, drafts and errors what their reader may not know of."""

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
"""Notices of a move that name files which needn't be among those that it changes."""
_KEPT_FIELDS: Final = ("problem", "code")
"""What is told of a hidden file that stands in the way; programs try again by it."""


def visible_part(proposal: Proposal, visible: Callable[[NotePath], bool]) -> Proposal:
    """Show a proposal to somebody who may not know of every file.

    Raises:
        NotFound: It is about such a file; a link in one that only follows is left out.
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
    """Mark the files of a draft that whoever it is made for may not know of, so that nothing names them."""
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
    """Return the paths of files, before and after, that may not be known of."""
    hidden_files = (file for file in files if not (visible(file.path) and visible(file.place)))
    return frozenset(path for file in hidden_files for path in (file.path, file.place))


@contextmanager
def hiding_errors(hidden: Collection[NotePath]) -> Generator[None]:
    """Turn errors about hidden files into such that name none of them, and show nothing of what they hold.

    Raises:
        KnapError: As the block does, of the same class and code.
    """
    try:
        yield
    except KnapError as error:
        if not hidden or not _mentions_any(error, hidden):
            raise
        message = "a file that isn't shown here stands in the way; nothing was changed"
        details = {name: redacted for name, rows in error.details.items() if (redacted := _redact_rows(rows, hidden))}
        hint = "try it again later, or ask a person, who sees that file"
        raise type(error)(message, hint=hint, code=error.code, details=details) from None


def _mentions_any(error: KnapError, hidden: Collection[NotePath]) -> bool:
    error_text = f"{error.message}\n{error.hint}\n{error.details}"
    return any(path in error_text or repr(path)[1:-1] in error_text for path in hidden)


def _redact_rows(rows: object, hidden: Collection[NotePath]) -> list[object]:
    """Keep the rows about other files, and of those about hidden ones only the kind of problem."""
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
