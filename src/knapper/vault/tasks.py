"""Find task items, those with states of the owner's own included."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from knapper.vault import sections
from knapper.vault.covers import Cover
from knapper.vault.events import Part
from knapper.vault.lines import Lines
from knapper.vault.outline import Task

_TASK: Final = re.compile(rb"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([^\]\r\n]{1,4})\](?=[ \t]|[\r\n]|\Z)[ \t]*([^\r\n]*)")


def read(data: bytes, parts: Sequence[Part], hidden: Cover, lines: Lines) -> Iterator[Task]:
    """List the items that begin with ``[ ]``, ``[x]`` or any other character in brackets.

    A task's span is its first line, from the list marker on and without the line ending.
    """
    for part in parts:
        if part.kind != "item":
            continue
        match = _TASK.match(data, part.start)
        if match is None or hidden.holds(match.start(1)):
            continue
        state = match[1].decode(errors="replace")
        if len(state) == 1:
            text = sections.without_id(match[2].decode().rstrip())
            yield Task(state=state, text=text, start=part.start, stop=match.end(), line=lines.number(part.start))
