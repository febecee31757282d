"""Write the entries that the program adds to its own log in a note, and recognise them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from knapper.changes.text import log_text
from knapper.changes.text.mentions import Names
from knapper.vault import pending, source
from knapper.vault.parser import parse_note

_SPACE: Final = re.compile(r"\s+")
_LINES: Final = re.compile(rb"(?:>[^\r\n]*(?:\r\n|\r|\n|\Z))+\Z")
_OPENING: Final = f"> {pending.LOG_MARK}".encode()
_ENDINGS: Final = b"\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Hold what is logged of one interaction; empty parts aren't written."""

    time: str
    """Such as ``14:05``."""
    task: str
    query: str = ""
    summary: str = ""
    response: str = ""
    files: Sequence[str] = ()
    """Links, or names, as they are to stand there."""


def compose(entry: Entry, names: Names) -> str:
    r"""Write an entry: a folded callout of its own kind, each line of which begins with ``>``.

    ``> [!knap-log]- 14:05 · Plan the week`` is a first line. No text in it can end it: a heading, a fence or another
    entry's mark stands in the quote as all else does.

    Args:
        entry: What to write.
        names: The notes whose names become links.
    """
    title = log_text.harmless_line(_SPACE.sub(" ", entry.task).strip(), names)
    lines = [f"{pending.LOG_MARK}- {entry.time} · {title}"]
    for label, text in (("Query", entry.query), ("Summary", entry.summary), ("Response", entry.response)):
        if text.strip():
            lines += _part(label, text.strip("\r\n"), names)
    if entry.files:
        lines += ["", f"**Files:** {', '.join(entry.files)}"]
    return "".join(f"> {line}".rstrip() + "\n" for line in "\n".join(lines).split("\n"))


def is_entry(before: bytes, after: bytes) -> bool:
    """Tell whether all that was done to a note is that one whole entry was put at its end, apart from what was there.

    An entry that wouldn't be one there, since it lies in a fence, a comment or another quote that is open, isn't.
    """
    if not after.startswith(before):
        return False
    added = after[len(before) :].lstrip(_ENDINGS)
    if not added.startswith(_OPENING) or not _LINES.fullmatch(added):
        return False
    data = source.decode(after).data
    return (len(after) - len(added), len(after)) in pending.find_log_entries(data, parse_note(after))


def _part(label: str, text: str, names: Names) -> list[str]:
    """Lay a part out: on the label's line where it is one line, below it otherwise."""
    if "\n" in text or "\r" in text:
        return ["", f"**{label}:**", "", log_text.harmless(text, names)]
    return ["", f"**{label}:** {log_text.harmless_line(text.strip(), names)}"]
