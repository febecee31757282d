"""Read and create daily notes, log interactions in them, and keep the user's preferences."""

import contextlib
import datetime as dt
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from knapper.changes.drafts import AddText, AtPosition, Create
from knapper.changes.rules import LogTarget
from knapper.changes.text import log_entries
from knapper.changes.text.log_entries import LogEntry, MentionFinder
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, ConflictError, KnapError, NotFound
from knapper.tools import answers, reading
from knapper.tools.context import Context
from knapper.tools.shapes import read
from knapper.tools.shapes.write import WriteResult
from knapper.vault import access, obsidian, parser, paths, source
from knapper.vault.obsidian import DailyNotes
from knapper.vault.parser import Note
from knapper.vault.paths import NotePath
from knapper.vault.source import Lines

_DATE: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_DAY_WORDS: Final = {"": 0, "today": 0, "yesterday": -1, "tomorrow": 1}
_NO_SUMMARY: Final = frozenset({"", "n/a", "na", "none"})
_MAX_ENTRY: Final = 200_000
"""Characters of one entry."""
_ENDS_BLANK: Final = re.compile(rb"(?:\A|\n|\r(?!\n))[ \t]*(?:\r\n|\r|\n)\Z")
_MAX_ATTEMPTS: Final = 4
"""How often an entry is written while others write to the same note."""
_NOTE_SUFFIX: Final = ".md"


def get_current_date(context: Context) -> read.Today:
    """Return today's date, as YYYY-MM-DD, and the local time.

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
) -> read.DailyNote:
    """Read a daily note at the path that the vault's settings name, or create it from their template.

    Args:
        context: The vault, as the client sees it.
        date: YYYY-MM-DD, today, yesterday or tomorrow; empty for today.
        create: Create the note where there is none.

    Returns:
        ``date``, ``path``, ``created``, and the fields of `read_file`; for a new note, those of a change.

    Raises:
        BadInput: The date isn't one.
        NotFound: There is no such note, and *create* is false.
        RefusedError: The client may not create it.
    """
    day = _parse_date(context, date)
    settings = obsidian.read_daily_notes(context.view.root)
    path = settings.path(day)
    date = day.date().isoformat()
    if reading.read_if_exists(context, path) is not None:
        return {**reading.read_file(context, path), "date": date, "created": False}
    if not create:
        hint = "create = true creates it"
        raise NotFound(f"there is no daily note '{path}'", hint=hint, code="no_daily_note", details={"path": path})
    opening, notices = _fill_template(context, settings, day)
    answer = answers.submit_one(context, Create(path=path, content=opening))
    return {
        **_with_notices(answer, notices),
        "path": answer.get("path", path),
        "date": date,
        "created": answer["status"] == "applied",
    }


def log_interaction(
    context: Context,
    task_description: str,
    query: str,
    summary: str,
    files: Sequence[str] | None = None,
    full_response: str | None = None,
) -> read.LogResult:
    """Log an interaction at the end of today's daily note, as an entry of its own that search leaves out.

    Names of notes become links. For a conversation give the summary "n/a", and the answer as full_response.

    Args:
        context: The vault, as the client sees it.
        task_description: What was done, in a line.
        query: What was asked.
        summary: The outcome; "n/a" where full_response holds it.
        files: Paths of notes that mattered.
        full_response: The answer as it was given.

    Raises:
        BadInput: There is nothing to log, or too much; or the note's last fence or comment isn't closed.
        ConflictError: Others keep writing to the note.
        RefusedError: The client may not write there.
    """
    now = context.now()
    linkable = _LinkableNames.from_context(context, but=obsidian.read_daily_notes(context.view.root).path(now))
    entry = LogEntry(
        time=obsidian.format_date(now, "HH:mm"),
        task=task_description,
        query=query,
        summary="" if summary.strip().lower() in _NO_SUMMARY else summary,
        response=full_response or "",
        files=[_link_or_name(context, file) for file in files or ()],
    )
    if not entry.task.strip():
        raise BadInput("task_description is empty", hint="say in a line what was done")
    if not (entry.summary.strip() or entry.response.strip()):
        hint = 'give a summary; or for a conversation the summary "n/a", and the answer as full_response'
        raise BadInput("there is nothing to log", hint=hint)
    size = len(entry.task) + len(entry.query) + len(entry.summary) + len(entry.response)
    if size > _MAX_ENTRY:
        raise BadInput(f"the entry has {size:,} characters", hint=f"log at most {_MAX_ENTRY:,}", code="too_large")
    text = log_entries.compose_entry(
        entry, linkable.find_in(f"{task_description}\n{query}\n{summary}\n{full_response or ''}")
    )
    answer = _append_entry(context, text, now)
    links: list[str] = sorted(set(re.findall(r"(?<!\\)\[\[([^\]|#]+)", text)))
    return {**answer, "links": links}


def _append_entry(context: Context, text: str, now: datetime) -> WriteResult:
    """Append an entry to the day's note, and retry where somebody else has just written there."""
    settings = obsidian.read_daily_notes(context.view.root)
    # Each attempt reads the note anew: the place of the entry depends on how the note ends now.
    for attempts_left in reversed(range(_MAX_ATTEMPTS)):
        try:
            return _try_append(context, settings, text, now)
        except ConflictError:
            if not attempts_left:
                raise
    raise AssertionError


def _try_append(context: Context, settings: DailyNotes, text: str, now: datetime) -> WriteResult:
    path = settings.path(now)
    note = reading.read_if_exists(context, path)
    notices: tuple[str, ...] = ()
    if note is not None:
        ends_blank = not note.raw or _ENDS_BLANK.search(note.raw)
        _check_entry_closed(note.raw, note.raw + (b"" if ends_blank else b"\n\n") + text.encode(), note.path)
        text = text if ends_blank else f"\n{text}"  # a blank line, so that the block above doesn't absorb it
        place = LogTarget(path=note.path)
        request = AtPosition(path=note.path, position="end", content=text, base=note.hash)
    else:
        opening, notices = _fill_template(context, settings, now)
        joined = opening + ("" if not opening or opening.endswith("\n") else "\n") + ("\n" if opening else "")
        place = LogTarget(path=context.view.new_path(path), opening=opening.encode())
        request = Create(path=path, content=joined + text)
        _check_entry_closed(opening.encode(), (joined + text).encode(), path)
    options = replace(context.submit_options or SubmitOptions(), log=place)
    return _with_notices(answers.submit_one(replace(context, submit_options=options), request), notices)


def _check_entry_closed(before: bytes, after: bytes, path: str) -> None:
    if not log_entries.is_entry(before, after):
        raise BadInput(
            f"nothing can be logged in '{path}': a fence or a comment at its end isn't closed",
            hint="close it in the note",
            code="open_block",
        )


def _fill_template(context: Context, settings: DailyNotes, day: datetime) -> tuple[str, tuple[str, ...]]:
    """Return the initial text of a day's note, and notices for the caller."""
    if not settings.template:
        return "", ()
    template_path = (
        settings.template if paths.suffix(settings.template) == _NOTE_SUFFIX else f"{settings.template}{_NOTE_SUFFIX}"
    )
    try:
        template = context.view.read(template_path.lstrip("/"))
    except KnapError as error:
        return "", (f"the template of daily notes can't be used: {error.message}",)
    return settings.fill(parser.decode_text(template.raw), day), ()


def _parse_date(context: Context, date: str) -> datetime:
    now = context.now()
    word = date.strip().lower()
    if word in _DAY_WORDS:
        return now + timedelta(days=_DAY_WORDS[word])
    match = _DATE.fullmatch(word)
    year, month, day = map(int, match.groups()) if match else (0, 0, 0)
    # Not the first and the last year: the days before and after the date must exist.
    if dt.MINYEAR < year < dt.MAXYEAR:
        with contextlib.suppress(ValueError):  # the 31st of February
            return now.replace(year=year, month=month, day=day)
    raise BadInput(f"'{date[:40]}' is no date", hint="write it as 2026-11-22, or today, yesterday, tomorrow")


def _link_or_name(context: Context, file: str) -> str:
    """Return a link to a file that the client sees; for any other file, its sanitized name."""
    try:
        path = context.view.path(file)
    except KnapError:
        return log_entries.sanitize_text(" ".join(file.split()), MentionFinder.of(()))
    target = path.removesuffix(_NOTE_SUFFIX)
    if any(sign in target for sign in "[]#^|"):
        return log_entries.sanitize_text(path, MentionFinder.of(()))
    name = paths.base_name(path).removesuffix(_NOTE_SUFFIX)
    return f"[[{target}]]" if name == target else f"[[{target}|{name}]]"


def _normalize(text: str) -> str:
    """Return a text in NFC: file names and texts may come in different Unicode forms."""
    return unicodedata.normalize("NFC", text)


def _with_notices(answer: WriteResult, notices: Sequence[str]) -> WriteResult:
    all_notes = [*answer.get("notes", ()), *notices]
    return {**answer, "notes": all_notes} if all_notes else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _LinkableNames:
    """Names of the notes that a client sees, each with the one note that has it."""

    context: Context
    by_name: dict[str, NotePath | None]
    """None where several notes have the name: a link to it would be ambiguous."""

    @classmethod
    def from_context(cls, context: Context, *, but: str) -> "_LinkableNames":
        _ = context.freshen(meaning=False)
        note_by_name: dict[str, NotePath | None] = {}
        excluded_key = paths.name_key(but)
        for path in context.index.store.file_states():
            if path.endswith(_NOTE_SUFFIX) and paths.name_key(path) != excluded_key and context.view.visible(path):
                name = _normalize(paths.stem(path))
                note_by_name[name] = None if name in note_by_name else path
        return cls(context=context, by_name=note_by_name)

    def find_in(self, text: str) -> MentionFinder:
        """Return the linkable names that occur in a text."""
        mentioned = {mention.name for mention in MentionFinder.of(self.by_name).find(_normalize(text))}
        noted = ((name, self.by_name[name]) for name in mentioned)
        return MentionFinder.of(name for name, path in noted if path is not None and self.context.sees(path))


_MAX_PREFERENCE: Final = 2_000
_BULLET_MARKS: Final = (b"- ", b"* ", b"+ ", b"-\t", b"*\t", b"+\t")
_BLANK_BYTES: Final = b" \t\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bullet:
    """One bullet point."""

    text: str
    marker: str
    first: int
    """Its first line, from 1."""
    last: int
    """Its last line that isn't blank."""


def save_preference(context: Context, preference: str) -> read.PreferenceResult:
    """Save a preference, correction or instruction of the user, as a bullet point in Preferences.md.

    The note is part of prompts, so what an agent or a script saves awaits a person's decision. All else in it stays.

    Args:
        context: The vault, as the client sees it.
        preference: The preference in a sentence; line breaks become spaces.

    Raises:
        BadInput: It is empty, or too long.
        RefusedError: The client may not write there.
    """
    text = " ".join(preference.split())
    if not text:
        raise BadInput("the preference is empty", hint="say in a sentence what is preferred")
    if len(text) > _MAX_PREFERENCE:
        raise BadInput(f"the preference has {len(text):,} characters", hint=f"give at most {_MAX_PREFERENCE:,}")
    note = _read_preferences(context)
    if note is None:
        return {
            **answers.submit_one(context, Create(path=access.PREFERENCES_NOTE, content=f"- {text}\n")),
            "preference": text,
        }
    items = _find_bullets(note)
    existing_number = next((number for number, item in enumerate(items, 1) if item.text == text), 0)
    if existing_number:
        return {
            "success": True,
            "status": "applied",
            "path": note.path,
            "hash": note.hash,
            "message": "it is saved already",
            "preference": text,
            "line_number": existing_number,
        }
    request = AddText(path=note.path, content=f"- {text}", where="end", base=note.hash)
    if items:
        position, marker = f"insert:{items[-1].last + 1}", items[-1].marker
        request = AtPosition(path=note.path, position=position, content=f"{marker} {text}\n", base=note.hash)
    return {**answers.submit_one(context, request), "preference": text}


def list_preferences(context: Context) -> read.PreferenceList:
    """List all saved preferences with the line numbers that remove_preference takes.

    Args:
        context: The vault, as the client sees it.

    Returns:
        ``results`` in the file's order, numbered from 1: the note's bullet points only.
    """
    note = _read_preferences(context)
    items = _find_bullets(note) if note is not None else []
    rows: list[read.PreferenceRow] = [
        {"line_number": number, "preference": item.text, "line": item.first} for number, item in enumerate(items, 1)
    ]
    answer: read.PreferenceList = {
        "success": True,
        "results": rows,
        "total": len(rows),
        "path": access.PREFERENCES_NOTE,
    }
    if not rows:
        answer["message"] = "No preferences saved"
    if note is not None:
        answer["path"], answer["hash"] = note.path, note.hash
        if answers.mark_if_foreign(context, note):
            answer["foreign"] = True
    return answer


def remove_preference(context: Context, line_number: int, expected_hash: str = "") -> read.PreferenceResult:
    """Remove a preference by the line number that list_preferences returns.

    What an agent or a script removes awaits a person's decision. All else in the note stays.

    Args:
        context: The vault, as the client sees it.
        line_number: The number from list_preferences, starting at 1.
        expected_hash: The ``hash`` from list_preferences; empty to skip the check.

    Raises:
        BadInput: There is no preference of this number.
        NotFound: No preference is saved.
        ConflictError: The note has changed since it was listed.
    """
    note = _read_preferences(context)
    items = _find_bullets(note) if note is not None else []
    if note is None or not items:
        raise NotFound("no preference is saved", hint="save_preference saves one", code="no_preferences")
    if not 1 <= line_number <= len(items):
        raise BadInput(
            f"there is no preference {line_number}; there are {len(items)}",
            hint="list_preferences lists their numbers",
            code="out_of_range",
        )
    item = items[line_number - 1]
    request = AtPosition(path=note.path, position=f"delete:{item.first}-{item.last}", base=expected_hash or note.hash)
    return {**answers.submit_one(context, request), "preference": item.text, "line_number": line_number}


def _read_preferences(context: Context) -> Note | None:
    try:
        return context.view.read(access.PREFERENCES_NOTE)
    except NotFound:
        return None


def _find_bullets(note: Note) -> list[_Bullet]:
    """Find the top-level bullet points of a note, in order; nested ones are part of theirs."""
    data = source.decode(note.raw).data if note.outline.encoding == "utf-16" else note.raw
    lines = Lines(starts=note.outline.line_starts, size=len(data))
    bullets: list[_Bullet] = []
    for block in note.outline.blocks:
        if block.kind == "list":
            for start, stop in zip(block.items, (*block.items[1:], block.stop), strict=True):
                item = data[start:stop].strip(_BLANK_BYTES)
                if item.startswith(_BULLET_MARKS):
                    last = start + len(data[start:stop].rstrip(_BLANK_BYTES)) - 1
                    text = " ".join(item[2:].decode(errors="replace").split())
                    bullets.append(
                        _Bullet(
                            text=text, marker=chr(item[0]), first=lines.line_number(start), last=lines.line_number(last)
                        )
                    )
    return bullets
