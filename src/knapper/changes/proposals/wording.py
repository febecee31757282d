"""Describe a proposal in words, for a person who is asked about it where nothing but text can be shown."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from knapper.changes.proposals.model import Proposal, ProposedFile
from knapper.changes.text.diff import Hunk

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
