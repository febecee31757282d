"""Record what a model did on its way to an answer, in order, so that it can be shown again later."""

import json
from collections.abc import Iterable, Mapping
from typing import Final, Literal, cast

from knapper.agents.events import Round, Text, ToolCall, ToolResult
from knapper.jsontypes import JSONValue

TRACE_FIELD: Final = "trace"
"""The field of a stored outcome that has the entries."""
MAX_VALUE_CHARS: Final = 6_000
"""Characters of the arguments or the answer of one call, and of a text between calls; longer ones are cut."""
MAX_TRACE_CHARS: Final = 200_000
"""Characters of all entries of one answer; what comes later is named without its details."""

TraceEntry = dict[str, JSONValue]
_DETAIL_FIELDS: Final = ("arguments", "answer", "chars", "truncated", "cut")


class TraceRecorder:
    """The entries of one answer.

    A text that the model said before a call gives ``{"kind": "text", "text": "I look."}``, a call ``{"kind": "call",
    "id": "c1", "name": "read_file", "arguments": {…}, "success": True, "summary": "…", "answer": {…}}``, and a round of
    the scout ``{"kind": "round", "number": 1, "limit": 5}`` before its calls. What is too long stands there as the
    beginning of its JSON, and ``cut`` names it. The text after the last call is the answer
    itself, and no entry.
    """

    def __init__(self, entries: Iterable[JSONValue] = ()) -> None:
        """Continue from the entries of an answer that was interrupted."""
        self._entries: list[TraceEntry] = [dict(entry) for entry in entries if isinstance(entry, dict)]
        self._chars_left = MAX_TRACE_CHARS - len(json.dumps(self._entries))
        self._text = ""
        self._text_step = 0

    def record(self, event: object) -> None:
        """Record an event; those of other kinds are ignored."""
        match event:
            case Text():
                self._add_text(event)
            case ToolCall():
                self._end_text()
                entry = self._begin_call(event)
                entry |= {"success": None, "summary": ""}
                self._set_value(entry, "arguments", event.arguments)
            case Round():
                self._end_text()
                self._entries.append({"kind": "round", "number": event.number, "limit": event.limit})
            case ToolResult():
                entry = self._entry_of_call(event)
                entry |= {"success": event.success, "summary": _make_encodable(event.summary)[:MAX_VALUE_CHARS]}
                entry |= {"chars": event.chars, "truncated": event.truncated}
                self._set_value(entry, "answer", dict(event.answer))
            case _:
                pass

    def entries(self) -> list[JSONValue]:
        """Return the entries so far."""
        return [*self._entries]

    def _add_text(self, event: Text) -> None:
        if event.step != self._text_step:
            self._end_text()
            self._text_step = event.step
        self._text += event.text

    def _end_text(self) -> None:
        text, self._text = self._text.strip(), ""
        if text:
            entry: TraceEntry = {"kind": "text"}
            self._set_value(entry, "text", text)
            self._entries.append(entry)

    def _entry_of_call(self, event: ToolResult) -> TraceEntry:
        for entry in reversed(self._entries):
            if entry.get("id") == _make_encodable(event.id)[:MAX_VALUE_CHARS]:
                return entry
        return self._begin_call(event)

    def _begin_call(self, event: ToolCall | ToolResult) -> TraceEntry:
        call_id, name = (_make_encodable(text)[:MAX_VALUE_CHARS] for text in (event.id, event.name))
        entry: TraceEntry = {"kind": "call", "id": call_id, "name": name}
        self._entries.append(entry)
        return entry

    def _set_value(self, entry: TraceEntry, name: Literal["text", "arguments", "answer"], value: JSONValue) -> None:
        """Set a value of an entry, or the beginning of its JSON where it is too long."""
        whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        encodable = _make_encodable(whole)
        if encodable != whole:
            whole, value = encodable, encodable if isinstance(value, str) else json.loads(encodable)
        max_chars = min(MAX_VALUE_CHARS, max(self._chars_left, 0))
        is_cut = len(whole) > max_chars
        kept = whole[:max_chars] if is_cut else value
        self._chars_left -= min(len(whole), max_chars)
        entry[name] = kept
        if is_cut:
            entry["cut"] = [*cast("list[JSONValue]", entry.get("cut", [])), name]


def _make_encodable(text: str) -> str:
    """Replace halves of characters, which names of files may hold and no database takes."""
    return text.encode("utf-8", "replace").decode()


def add_trace(outcome: Mapping[str, JSONValue], entries: Iterable[JSONValue]) -> dict[str, JSONValue]:
    """Return an outcome as it is stored: with its entries, if there are any."""
    rows = [*entries]
    return {**outcome, TRACE_FIELD: rows} if rows else dict(outcome)


def without_details(entries: JSONValue) -> list[JSONValue]:
    """Return entries as a list of turns shows them: calls without arguments and answers."""
    rows = entries if isinstance(entries, list) else []
    return [
        {name: value for name, value in entry.items() if name not in _DETAIL_FIELDS}
        for entry in rows
        if isinstance(entry, dict)
    ]


def entries_of(outcome: Mapping[str, JSONValue]) -> list[JSONValue]:
    """Return the entries of a stored outcome; empty for one that was stored without."""
    entries = outcome.get(TRACE_FIELD)
    return entries if isinstance(entries, list) else []
