"""Read what a model replies to a task: JSON, whatever stands around it or is broken in it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import json_repair

from knapper.agents import halves, repair
from knapper.errors import BadInput
from knapper.jsontypes import JSONValue

MOST_EDITS: Final = 200
_FENCED: Final = re.compile(r"\A\s*```[a-z]*[ \t]*\n(.*)\n[ \t]*```\s*\Z", re.DOTALL)
_LINE_NUMBER: Final = re.compile(r"\A\d+: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class EditInstruction:
    """Hold one edit as a model gives it."""

    file: str
    position: str
    content: str = ""

    def as_dict(self) -> dict[str, JSONValue]:
        """Shape it as every surface shows it."""
        return {"file": self.file, "position": self.position, "content": self.content}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Hold what a model replied."""

    summary: str
    edits: tuple[EditInstruction, ...] = ()


def parse(text: str) -> Reply:
    r"""Read a reply.

    A fence around the whole is taken off; fences inside ``content`` stay. A text that holds no object is an answer.
    Broken JSON is mended only as far as that leaves no doubt about an edit: a reply that was cut short has none.

    Raises:
        BadInput: It is meant as JSON, and can't be read (code ``bad_reply``).
    """
    text = halves.joined(text)
    fenced = _FENCED.match(text)
    bare = (fenced[1] if fenced else text).strip()
    if not bare:
        raise BadInput("the reply is empty", hint="reply with the JSON object", code="bad_reply")
    start = bare.find("{")
    if start < 0 or ('"summary"' not in bare and '"edits"' not in bare):
        return Reply(summary=bare)
    said = _object(bare[start:])
    if repair.is_deep(said):
        raise BadInput("the reply nests too deep", hint='give "summary" and "edits" alone', code="bad_reply")
    edits = said.get("edits")
    if edits is None:
        edits = []
    if not isinstance(edits, list):
        raise BadInput("edits is no list", hint='give "edits": [] where nothing changes', code="bad_reply")
    if len(edits) > MOST_EDITS:
        raise BadInput(f"there are {len(edits)} edits", hint=f"give at most {MOST_EDITS}", code="bad_reply")
    summary = _summary(said.get("summary"))
    if not summary and not edits:
        raise BadInput("the reply says nothing", hint='give the answer as "summary"', code="bad_reply")
    return Reply(summary=summary, edits=tuple(map(_edit, edits)))


def _summary(given: JSONValue) -> str:
    text = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
    return halves.joined(text).strip()


def _object(text: str) -> Mapping[str, JSONValue]:
    decoder = json.JSONDecoder(strict=False)
    try:
        found, _ = decoder.raw_decode(text)
    except (ValueError, RecursionError):
        found = _mended(text)
    if not isinstance(found, dict):
        raise BadInput("the reply is no JSON object", hint="reply with one JSON object", code="bad_reply")
    return cast("dict[str, JSONValue]", found)


def _mended(text: str) -> object:
    """Mend small faults, such as a comma too many; a text that just ends isn't mended, for its end is unknown."""
    if not text.rstrip().rstrip("`").rstrip().endswith("}"):
        raise BadInput("the reply ends in the middle", hint="reply again, and shorter", code="bad_reply")
    try:
        found: object = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not _is_faithful(text, cast("dict[str, object]", found)):
        raise BadInput("the reply can't be read as JSON", hint="escape quotes and line ends", code="bad_reply")
    return cast("dict[str, object]", found)


def _is_faithful(text: str, found: Mapping[str, object]) -> bool:
    """Tell whether mending kept every edit whole: all its texts stand in the reply as they were read."""
    edits = found.get("edits", [])
    if not isinstance(edits, list):
        return False
    for edit in cast("list[object]", edits):
        if not isinstance(edit, dict) or not {"file", "position"} <= cast("dict[str, object]", edit).keys():
            return False
        for value in cast("dict[str, object]", edit).values():
            if not isinstance(value, str):
                return False
            quoted = json.dumps(value, ensure_ascii=False)
            if quoted not in text and json.dumps(value) not in text and f'"{value}"' not in text:
                return False
    return text.count('"position"') == len(cast("list[object]", edits))


def _edit(given: JSONValue) -> EditInstruction:
    if not isinstance(given, dict):
        raise BadInput("an edit is no object", hint='give {"file", "position", "content"}', code="bad_reply")
    file, position, content = given.get("file"), given.get("position"), given.get("content", "")
    if not isinstance(file, str) or not isinstance(position, str) or not file.strip() or not position.strip():
        raise BadInput("an edit names no file or no position", hint="give both as texts", code="bad_reply")
    if content is None:
        content = ""
    if not isinstance(content, str):
        raise BadInput(f"the content for {file} is no text", hint="give a text", code="bad_reply")
    if any(halves.joined(one) != one for one in (file, position, content)):
        hint = "write each character whole"
        raise BadInput(f"an edit of {halves.joined(file)} holds half a character", hint=hint, code="bad_reply")
    return EditInstruction(file=file.strip(), position=position.strip(), content=content)


def numbered_lines(edit: EditInstruction) -> bool:
    """Tell whether each line of an edit's text begins with a line's number, as the notes were shown."""
    rows = [row for row in edit.content.splitlines() if row.strip()]
    return len(rows) > 1 and all(_LINE_NUMBER.match(row) for row in rows)
