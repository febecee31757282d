"""What is shown of proposals, drafts and errors: no file that the client may not know of; and proposals in words."""

import re
import unicodedata
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, cast

from knapper.changes.drafts import Draft, FileDraft
from knapper.changes.proposals import tables
from knapper.changes.proposals.model import Proposal, ProposedFile
from knapper.changes.text.diff import Hunk
from knapper.errors import KnapError
from knapper.jsontypes import is_list
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
    for row in rows if is_list(rows) else ():
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


MAX_CHARS: Final = 6_000
"""Longest description; what is left out is counted."""
_MAX_HUNK_CHARS: Final = 1_000
_MAX_LINE_CHARS: Final = 500
_MAX_NAMES: Final = 10
"""Files with one and the same change that are named."""
_EDGE_CHARS: Final = 40
"""Characters of unchanged text that stand on each side of a change."""

_VERBS: Final = {"create": "create", "move": "move", "trash": "move to the trash"}
_MARKS: Final = re.compile(r"\[-|-\]|\{\+|\+\}")
_SHOWN_FORMATS: Final = frozenset("\t\u200c\u200d")
"""Characters of formatting that words and emojis need."""
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})


def describe(proposal: Proposal) -> str:
    """Describe all that accepting a proposal would do now, file by file, with differences by words.

    ``[-…-]`` is text that goes, ``{+…+}`` text that comes. Nothing in a note can look like such a mark, begin a line of
    the description, or hide another part of it.
    """
    facts = [f"why it waits: {one_line(proposal.why)}"] if proposal.why else []
    facts += [f"why it is made: {one_line(proposal.reason)}"] if proposal.reason else []
    facts += [f"move the folder {one_line(source)} to {one_line(target)}" for source, target in proposal.folders]
    return _fit([*facts, *_file_parts(proposal.acceptable())])


def one_line(text: str) -> str:
    """Return a name or a sentence as one line without anything invisible, and not endless."""
    line = " ".join(_visible(text).splitlines())
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}… ({len(line):,} characters)"


def _file_parts(files: Iterable[ProposedFile]) -> Iterator[str]:
    """Describe each file; those with the same edit, and those in which only links follow, are named together."""
    edited: dict[str, list[str]] = {}
    following: list[str] = []
    for file in files:
        if file.cause == "link":
            following.append(one_line(file.path))
        elif file.kind == "edit":
            edited.setdefault(_hunks_text(one.hunk for one in file.waiting), []).append(one_line(file.path))
        else:
            target = f" to {one_line(file.target)}" if file.target else ""
            text = "" if file.kind == "trash" else _hunks_text(one.hunk for one in file.hunks)
            yield f"{_VERBS[file.kind]} {one_line(file.path)}{target}{text}"
    yield from (f"change {_join_names(names)}{text}" for text, names in edited.items())
    if following:
        yield f"let links follow in {_join_names(following)}"


def _join_names(names: list[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more:,} more files" if more > 0 else "")


def _hunks_text(hunks: Iterable[Hunk]) -> str:
    return "".join(f"\n{_hunk_text(hunk)}" for hunk in hunks)


def _hunk_text(hunk: Hunk) -> str:
    parts = [_word_part(mark.side, mark.text) for mark in hunk.words]
    text = "".join(parts).strip("\n")
    if len(text) > _MAX_HUNK_CHARS:
        text = f"{text[:_MAX_HUNK_CHARS]}… ({len(text) - _MAX_HUNK_CHARS:,} characters more)"
    return "\n".join(f"    {line}" for line in text.splitlines())


def _word_part(side: str, raw: str) -> str:
    text = _MARKS.sub(lambda found: " ".join(found[0]), _visible(raw))
    if side == "removed":
        return f"[-{text}-]"
    if side == "added":
        return f"{{+{text}+}}"
    return text if len(text) <= 2 * _EDGE_CHARS else f"{text[:_EDGE_CHARS]} … {text[-_EDGE_CHARS:]}"


def _visible(text: str) -> str:
    """Replace what a person wouldn't see, or what would turn other text around."""
    return "".join(sign if _is_shown(sign) else "\ufffd" for sign in text)


def _is_shown(sign: str) -> bool:
    if sign in _SHOWN_FORMATS or sign.splitlines() == [""]:
        return True
    return unicodedata.category(sign) not in _HIDDEN_CATEGORIES


def _fit(parts: list[str]) -> str:
    """Join parts while there is room, and count the others."""
    shown: list[str] = []
    length = 0
    for number, part in enumerate(parts):
        length += len(part) + 1
        if length > MAX_CHARS and shown:
            return "\n".join([*shown, f"and {len(parts) - number:,} more changes that there is no room for here"])
        shown.append(part)
    return "\n".join(shown)
