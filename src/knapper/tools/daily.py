"""Tell the day, give the day's note, and log there what was done."""

import contextlib
import datetime as dt
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Final

from knapper.changes.requests import AtPosition, Create
from knapper.changes.rules import LogTarget
from knapper.changes.text import log_entries
from knapper.changes.text.log_entries import LogEntry, MentionFinder
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, ConflictError, KnapError, NotFound
from knapper.tools import answers, reading
from knapper.tools.context import Context
from knapper.tools.shapes import Answer
from knapper.tools.shapes import daily as shapes
from knapper.vault import obsidian, parser, paths
from knapper.vault.obsidian import DailyNotes
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath

_DAY: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_WORDS: Final = {"": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
_NOT_SAID: Final = frozenset({"", "n/a", "na", "none"})
_MOST: Final = 200_000
"""Characters of one entry."""
_BLANK_END: Final = re.compile(rb"(?:\A|\n|\r(?!\n))[ \t]*(?:\r\n|\r|\n)\Z")
_TRIES: Final = 4
"""How often an entry is tried while others write to the same note."""
_NOTE: Final = ".md"


def get_current_date(context: Context) -> Annotated[Answer, shapes.Today]:
    """Tell today's date, as YYYY-MM-DD, and the local time.

    Args:
        context: The vault, as the client sees it.
    """
    now = context.now()
    return {
        "success": True,
        "date": now.date().isoformat(),
        "time": obsidian.format_date(now, "HH:mm"),
        "weekday": obsidian.format_date(now, "dddd"),
        "zone": obsidian.format_date(now, "Z"),
    }


def daily_note(
    context: Context,
    date: str = "",
    create: bool = False,  # noqa: FBT001, FBT002 - arguments of tools come by name
) -> Annotated[Answer, shapes.DailyNote]:
    """Read a day's note, where the vault's own settings keep it, or make it from their template.

    Args:
        context: The vault, as the client sees it.
        date: YYYY-MM-DD, today, yesterday or tomorrow; empty for today.
        create: Make the note where there is none.

    Returns:
        ``date``, ``path`` and what `read_file` gives; for a note that was made, what became of that, and ``created``.

    Raises:
        BadInput: The date isn't one.
        NotFound: There is no such note, and it wasn't to be made.
        RefusedError: The client may not make it.
    """
    at = _day(context, date)
    kept = obsidian.read_daily_notes(context.view.root)
    path = kept.path(at)
    said: Answer = {"date": at.date().isoformat()}
    if _existing(context, path) is not None:
        return {**reading.read_file(context, path), **said, "created": False}
    if not create:
        hint = "with create = true it is made"
        raise NotFound(f"there is no daily note '{path}'", hint=hint, code="no_daily_note", details={"path": path})
    opening, notices = _opening(context, kept, at)
    done = answers.one(context, Create(path=path, content=opening))
    return _noted({**done, **said, "created": done["status"] == "applied"}, notices)


def log_interaction(
    context: Context,
    task_description: str,
    query: str,
    summary: str,
    files: Sequence[str] | None = None,
    full_response: str | None = None,
) -> Annotated[Answer, shapes.Logged]:
    """Log an interaction at the end of today's daily note, as an entry of its own that search leaves out.

    Names of notes become links. For a conversation give the summary "n/a", and the answer as full_response.

    Args:
        context: The vault, as the client sees it.
        task_description: What was done, in a line.
        query: What was asked.
        summary: What came out; "n/a" where full_response says it.
        files: Paths of notes that mattered.
        full_response: The answer as it was given.

    Raises:
        BadInput: There is nothing to log, or too much; or the note's last fence or comment isn't closed.
        ConflictError: Others keep writing to the note.
        RefusedError: The client may not write there.
    """
    now = context.now()
    names = _Known.of(context, but=obsidian.read_daily_notes(context.view.root).path(now))
    entry = LogEntry(
        time=obsidian.format_date(now, "HH:mm"),
        task=task_description,
        query=query,
        summary="" if summary.strip().lower() in _NOT_SAID else summary,
        response=full_response or "",
        files=[_shown(context, file) for file in files or ()],
    )
    _check(entry)
    text = log_entries.compose_entry(
        entry, names.of_text(f"{task_description}\n{query}\n{summary}\n{full_response or ''}")
    )
    done = _append(context, text, now)
    links: list[str] = sorted(set(re.findall(r"(?<!\\)\[\[([^\]|#]+)", text)))
    return {**done, "links": [*links]}


def _append(context: Context, text: str, now: datetime) -> Answer:
    """Put an entry at the end of the day's note, again where somebody else has just written there."""
    kept = obsidian.read_daily_notes(context.view.root)
    for left in reversed(range(_TRIES)):
        try:
            return _append_once(context, kept, text, now)
        except ConflictError:
            if not left:
                raise
    raise AssertionError


def _append_once(context: Context, kept: DailyNotes, text: str, now: datetime) -> Answer:
    path = kept.path(now)
    note = _existing(context, path)
    notices: tuple[str, ...] = ()
    if note is not None:
        text = _apart(note, text)
        place = LogTarget(path=note.path)
        request = AtPosition(path=note.path, position="end", content=text, base=note.hash)
    else:
        opening, notices = _opening(context, kept, now)
        joined = opening + ("" if not opening or opening.endswith("\n") else "\n") + ("\n" if opening else "")
        place = LogTarget(path=context.view.new_path(path), opening=opening.encode())
        request = Create(path=path, content=joined + text)
        _check_closed(opening.encode(), (joined + text).encode(), path)
    asked = replace(context.asked or SubmitOptions(), log=place)
    return _noted(answers.one(replace(context, asked=asked), request), notices)


def _apart(note: Note, text: str) -> str:
    """Keep an entry apart from what stands above it, which would take it in."""
    blank = not note.raw or _BLANK_END.search(note.raw)
    _check_closed(note.raw, note.raw + (b"" if blank else b"\n\n") + text.encode(), note.path)
    return text if blank else f"\n{text}"


def _check_closed(before: bytes, after: bytes, path: str) -> None:
    if not log_entries.is_entry(before, after):
        raise BadInput(
            f"nothing can be logged in '{path}': a fence or a comment at its end isn't closed",
            hint="close it in the note",
            code="open_block",
        )


def _opening(context: Context, kept: DailyNotes, at: datetime) -> tuple[str, tuple[str, ...]]:
    """Give what a day's note begins with, and what the caller should hear of it."""
    if not kept.template:
        return "", ()
    wanted = kept.template if paths.suffix(kept.template) == _NOTE else f"{kept.template}{_NOTE}"
    try:
        template = context.view.read(wanted.lstrip("/"))
    except KnapError as error:
        return "", (f"the template of daily notes can't be used: {error.message}",)
    return kept.fill(parser.decode_text(template.raw), at), ()


def _existing(context: Context, path: str) -> Note | None:
    try:
        return context.view.read(path)
    except NotFound:
        return None


def _day(context: Context, date: str) -> datetime:
    now = context.now()
    word = date.strip().lower()
    if word in _WORDS:
        return now + timedelta(days=_WORDS[word])
    found = _DAY.fullmatch(word)
    year, month, day = map(int, found.groups()) if found else (0, 0, 0)
    if dt.MINYEAR < year < dt.MAXYEAR:  # so that there is a day before and after it
        with contextlib.suppress(ValueError):  # the 31st of February
            return now.replace(year=year, month=month, day=day)
    raise BadInput(f"'{date[:40]}' is no date", hint="write it as 2026-11-22, or today, yesterday, tomorrow")


def _check(entry: LogEntry) -> None:
    if not entry.task.strip():
        raise BadInput("task_description is empty", hint="say in a line what was done")
    if not (entry.summary.strip() or entry.response.strip()):
        hint = 'give a summary; or for a conversation the summary "n/a", and the answer as full_response'
        raise BadInput("there is nothing to log", hint=hint)
    size = len(entry.task) + len(entry.query) + len(entry.summary) + len(entry.response)
    if size > _MOST:
        raise BadInput(f"the entry has {size:,} characters", hint=f"log at most {_MOST:,}", code="too_large")


def _shown(context: Context, file: str) -> str:
    """Link a file that the client sees; what isn't there, or isn't for it, stays a name."""
    try:
        path = context.view.path(file)
    except KnapError:
        return log_entries.sanitize_text(" ".join(file.split()), MentionFinder.of(()))
    target = path.removesuffix(_NOTE)
    if any(sign in target for sign in "[]#^|"):
        return log_entries.sanitize_text(path, MentionFinder.of(()))
    name = paths.base_name(path).removesuffix(_NOTE)
    return f"[[{target}]]" if name == target else f"[[{target}|{name}]]"


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _noted(answer: Answer, notices: Sequence[str]) -> Answer:
    told = answer.get("notes")
    every = [*(told if isinstance(told, list) else ()), *notices]
    return {**answer, "notes": every} if every else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Hold the names of the notes that a client sees, each with the one note that has it."""

    context: Context
    by_name: dict[str, NotePath | None]
    """None where several notes have the name: which is meant can't be told."""

    @classmethod
    def of(cls, context: Context, *, but: str) -> "_Known":
        _ = context.freshen(meaning=False)
        found: dict[str, NotePath | None] = {}
        own = paths.name_key(but)
        for path in context.index.store.known():
            if path.endswith(_NOTE) and paths.name_key(path) != own and context.view.visible(path):
                name = _normal(paths.stem(path))
                found[name] = None if name in found else path
        return cls(context=context, by_name=found)

    def of_text(self, text: str) -> MentionFinder:
        """Give the names that may be linked among those that a text says."""
        said = {mention.name for mention in MentionFinder.of(self.by_name).find(_normal(text))}
        return MentionFinder.of(self._linkable(said))

    def _linkable(self, said: set[str]) -> Iterator[str]:
        for name in said:
            path = self.by_name[name]
            if path is not None and self.context.sees(path):
                yield name
