"""Agents with a task of their own, and the schedules by which they work.

An agent is one Markdown file, of those that come with Knapper or of the owner's: its properties say which tools it has
and its task; its text is the prompt. Importing this needs no model. A schedule says which agent works when, within
which limits, and what became of it. Times are those of the wall clock: a schedule for 18:00 is due at 18:00 all year,
once on a day whose clock is set back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, get_args

from filelock import Timeout
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from knapper.changes.disk.storage import WorkLocks
from knapper.changes.writer import SubmitOptions
from knapper.errors import BadInput, ConflictError, KnapError, NotFound, SetupError, StorageError
from knapper.index.documents import Filter
from knapper.jsontypes import JSONValue, Record, ShownAs
from knapper.system import private
from knapper.vault import frontmatter
from knapper.vault.walk import FileStat

if TYPE_CHECKING:
    from knapper.tools.context import Context


BUILT_IN_FOLDER: Final = "builtin"
"""Of the agents that come with Knapper, in this package."""
OWN_FOLDER: Final = "agents"
"""Of the owner's, beside the configuration file."""
TASK: Final = "Do your task now."
"""The message that an agent works on where its file has none."""
NOTHING: Final = "There is nothing to do."
_NAME: Final = re.compile(r"[a-z][a-z-]{0,39}")
_RESERVED: Final = frozenset({"help", "model", "edits", "undo", "clear", "save", "exit", "quit", "q"})
"""What a slash before it means something else at the terminal."""
_OPEN_ENDED_TOOLS: Final = frozenset({"find_tool", "call_tool", "run_script"})
"""Tools that call others, so that a list with them would say nothing."""
_MAX_BYTES: Final = 100_000
_LINE: Final = r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*"
"""Text that shows as it is on a terminal."""
Need = Literal["orphans"]
"""What there has to be before a model is asked."""


def count_orphans(context: Context) -> str:
    """Return how many notes have no link in either direction, as a sentence; empty for none.

    Names of notes aren't told here: they are others' text, and the tool that lists them marks them so.

    Args:
        context: The vault, as the agent sees it.
    """
    _ = context.freshen(meaning=False)
    total = len(context.index.catalog.orphans(context.restrict(Filter())))
    if not total:
        return ""
    return f"{'1 note has' if total == 1 else f'{total:,} notes have'} no link in either direction. "


NEEDS: Final[Mapping[Need, Callable[[Context], str]]] = {"orphans": count_orphans}
"""For each: says what there is, as the beginning of the task; empty where there is nothing."""


_PROPERTY_MISTAKES: Final = {"missing": "it is needed", "extra_forbidden": "there is no such property"}


class _StageFile(BaseModel):
    """The properties of an agent's file."""

    model_config = ConfigDict(extra="forbid", strict=True)
    title: Annotated[str, Field(min_length=1, max_length=80, pattern=f"^{_LINE}$")]
    summary: Annotated[str, Field(max_length=200, pattern=f"^{_LINE}$")] = ""
    tools: Annotated[list[str], Field(min_length=1, max_length=100)]
    rounds: Annotated[int, Field(ge=1, le=100)] = 20
    task: Annotated[str, Field(min_length=1, max_length=4_000)] = TASK
    needs: Need | None = None
    nothing: Annotated[str, Field(min_length=1, max_length=200, pattern=f"^{_LINE}$")] = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Record):
    """An agent with a task of its own, which a session answers in the place of the chat."""

    shown = ("name", "title", "summary")
    name: str
    title: str
    """For the session, and for the proposals."""
    summary: str
    """What it does, in a few words."""
    prompt: str
    tools: frozenset[str]
    """The table's tools that it is offered."""
    rounds: int
    """How many rounds of calls it may make; they end it, or its own word that it is done."""
    task: str
    """The message that it works on."""
    needs: Need | None
    nothing: str
    """What is said where there is nothing of what it needs."""

    def write_task(self, context: Context) -> str:
        """Return the message that it works on; empty where there is nothing to do.

        Args:
            context: The vault, as the agent sees it.
        """
        if self.needs is None:
            return self.task
        there_is = NEEDS[self.needs](context)
        return there_is and f"{there_is}{self.task}"

    def hold_to_proposals(self, context: Context) -> Context:
        """Return the vault in which every change waits for a person, whatever the client may do otherwise."""
        options = context.submit_options or SubmitOptions()
        return replace(context, submit_options=replace(options, propose=True, reason=options.reason or self.title))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The agents that a message, a command or a schedule may name."""

    folder: Path | None = None
    """The owner's; None for none."""
    vaults: tuple[Path, ...] = ()
    """The vaults' folders: a file in one of them is a note, which others may have written, and never an agent."""
    tool_names: frozenset[str] = frozenset()
    """All tools there are, for files that name others; empty leaves that to the chat."""

    def names(self) -> list[str]:
        """List the names: first those that come with Knapper; of the owner's, some files may have mistakes."""
        own = sorted(file.stem for file in self.folder.glob("*.md")) if self.folder is not None else []
        return [*built_in_names(), *(name for name in own if name not in built_in_names())]

    def all(self) -> tuple[list[Stage], dict[str, KnapError]]:
        """Return the agents, and what is wrong with the files of others, by their names."""
        stages, problems = list[Stage](), dict[str, KnapError]()
        for name in self.names():
            try:
                stages.append(self.find(name))
            except KnapError as error:
                problems[name] = error
        return stages, problems

    def find(self, name: str) -> Stage:
        """Return an agent; its file is read anew.

        Raises:
            NotFound: There is none of that name (code ``no_agent``).
            SetupError: Its file has a mistake, or lies in a vault (code ``agent_invalid``).
        """
        if name in built_in_names():
            return parse(name, resources.files("knapper.agents").joinpath(BUILT_IN_FOLDER, f"{name}.md").read_bytes())
        file = self.folder / f"{name}.md" if self.folder is not None and "/" not in name else None
        if file is None or not file.is_file():
            hint = f"there are: {', '.join(self.names())}"
            raise NotFound(f"there is no agent '{name[:40]}'", hint=hint, code="no_agent")
        if not _NAME.fullmatch(name) or name in _RESERVED:
            raise _mistake(name, "its name", "take small letters and hyphens, and no command of the chat")
        # Where it leads in the end: a link could lead into a vault.
        target = file.resolve()
        if any(target.is_relative_to(vault.resolve()) for vault in self.vaults):
            raise _mistake(name, "its place", "it lies in a vault, where notes are data and give no orders")
        try:
            raw = target.read_bytes()
        except OSError as error:
            raise _mistake(name, "the file", error.strerror or "it can't be read") from error
        stage = parse(name, raw)
        unknown = stage.tools - self.tool_names if self.tool_names else ()
        if unknown:
            raise _mistake(
                name, "'tools'", f"there is no tool {', '.join(sorted(unknown))[:200]}; `knap tools` lists them"
            )
        return stage

    def named_by(self, text: str) -> Stage | None:
        """Return the agent that a message names, as in ``/weekly-review``; None for a message to the chat.

        Raises:
            SetupError: The agent's file has a mistake.
        """
        name = text.strip().removeprefix("/")
        if f"/{name}" != text.strip() or not _NAME.fullmatch(name) or name in _RESERVED:
            return None
        try:
            return self.find(name)
        except NotFound:
            return None


def parse(name: str, raw: bytes) -> Stage:
    """Return an agent from its file.

    Raises:
        SetupError: The file has a mistake (code ``agent_invalid``).
    """
    if len(raw) > _MAX_BYTES:
        raise _mistake(name, "the file", f"it has more than {_MAX_BYTES:,} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _mistake(name, "the file", "it has to be a text in UTF-8") from None
    properties, span = frontmatter.read_properties(raw), frontmatter.find_frontmatter(raw)
    if properties is None or span is None or properties.problems:
        raise _mistake(name, "its frontmatter", "begin it with title and tools between two lines of ---")
    try:
        fields = _StageFile.model_validate(properties.frontmatter.values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        what = _PROPERTY_MISTAKES.get(first["type"], first["msg"])
        raise _mistake(name, f"'{'.'.join(map(str, first['loc']))}'", what) from None
    prompt = raw[span[3] :].decode("utf-8").strip()
    if not prompt or "\0" in text:
        raise _mistake(name, "its text", "say below the properties what the agent does, and how")
    tools = frozenset(fields.tools)
    if tools & _OPEN_ENDED_TOOLS:
        raise _mistake(name, "'tools'", f"name each tool; not {', '.join(sorted(tools & _OPEN_ENDED_TOOLS))}")
    return Stage(name=name, prompt=prompt, tools=tools, **fields.model_dump(exclude={"tools"}))


@cache
def built_in_names() -> tuple[str, ...]:
    """Return the names of the agents that come with Knapper."""
    folder = resources.files("knapper.agents").joinpath(BUILT_IN_FOLDER)
    return tuple(sorted(file.name.removesuffix(".md") for file in folder.iterdir() if file.name.endswith(".md")))


def _mistake(name: str, where: str, what: str) -> SetupError:
    message = f"the agent '{name[:40]}' can't be used: {where} is wrong"
    return SetupError(
        message, hint=f"{what} (agents/{name[:40]}.md beside the configuration file)", code="agent_invalid"
    )


SCHEDULES_FILE: Final = "schedules.json"
"""In the vault's state folder."""
DEFAULT_CLIENT: Final = "schedule"
DEFAULT_AT: Final = time(18, 0)
DEFAULT_WEEKDAY: Final = 6
DEFAULT_TOKENS: Final = 200_000
DEFAULT_MINUTES: Final = 60
DEFAULT_RESULTS: Final = "Reviews"
DEFAULT_MAX_OPEN: Final = 20
TOKEN_RANGE: Final = (1_000, 100_000_000)
MINUTE_RANGE: Final = (1, 1_440)
OPEN_RANGE: Final = (1, 1_000)
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)
SETTLED_S: Final = 300
"""Seconds for which a folder has to stay as it is before its change counts."""
_MAX_SCHEDULES: Final = 50
_MAX_RUNS: Final = 100
_LOCK_S: Final = 10.0
_SCHEDULE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
Cadence = Literal["daily", "weekly", "changed"]
RunState = Literal["running", "complete", "limit", "asked", "failed", "interrupted", "cancelled", "held", "nothing"]
"""``held``: nothing was begun, since too much of it waits for a person; ``nothing``: there was nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRun(Record):
    """What became of one time of a schedule."""

    shown = ("at", "state", "session_id", "proposals", "changes", "tokens", "note", "reason", "cancelled")
    at: datetime
    state: RunState
    session_id: str = ""
    """The session with its report, which is its id as a run, too; empty for none."""
    proposals: int = 0
    changes: int = 0
    tokens: int = 0
    note: str = ""
    """Path of the report's note, which may be a proposal yet; empty for none."""
    reason: str = ""
    """Why it failed, or nothing was begun."""
    is_cancelled: bool = False

    @property
    def cancelled(self) -> bool:
        """Return whether what is at work is to end."""
        return self.is_cancelled

    def as_dict(self) -> dict[str, JSONValue]:
        """Return it as every surface shows it."""
        return {**Record.as_dict(self), "at": self.at.isoformat(timespec="seconds")}


class ScheduleRow(TypedDict):
    """A schedule, as every surface shows it."""

    name: str
    agent: str
    when: str
    """In words."""
    cadence: Cadence
    at: str
    weekday: Weekday
    folder: str
    next: str | None
    """When it is due, by the server's clock; null while it is paused, or waits for a change."""
    paused: bool
    client: str
    tokens: int
    minutes: int
    results: str
    max_open: int
    apply: bool
    last: Annotated[dict[str, JsonValue], ShownAs(ScheduledRun)] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """An agent that works by itself, and what became of it so far."""

    name: str
    agent: str
    cadence: Cadence
    at: time = DEFAULT_AT
    weekday: int = DEFAULT_WEEKDAY
    """0 for Monday."""
    folder: str = ""
    """Whose changes count, with the folders in it; empty for the whole vault."""
    client: str = DEFAULT_CLIENT
    """On whose behalf the agent works."""
    max_tokens: int = DEFAULT_TOKENS
    """Of one run."""
    max_minutes: int = DEFAULT_MINUTES
    """Of one run."""
    results: str = DEFAULT_RESULTS
    """The folder for reports; empty for none."""
    max_open: int = DEFAULT_MAX_OPEN
    """How many of its proposals may wait before it is held."""
    may_apply: bool = False
    is_paused: bool = False
    handled: datetime
    """The latest time that it was due and that was seen to; at first, when it was made."""
    fingerprint: str = ""
    """Of the folder, as it was after the last run."""
    changed: str = ""
    """Of the folder as it was when it was last looked at, where it has changed since the last run."""
    changed_at: datetime | None = None
    """Since when it has been so."""
    last: ScheduledRun | None = None
    runs: tuple[str, ...] = field(default=(), repr=False)
    """Ids of its latest runs, whose open proposals count."""

    def describe(self) -> str:
        """Return when it is due, in words: ``weekly on sunday at 18:00``."""
        if self.cadence == "changed":
            return f"when {self.folder or 'the vault'} has changed"
        at = f"at {self.at:%H:%M}"
        return f"daily {at}" if self.cadence == "daily" else f"weekly on {WEEKDAYS[self.weekday]} {at}"

    def due_at(self, now: datetime) -> datetime | None:
        """Return the latest time at which it was due and that wasn't seen to; None for none, or by a folder's changes.

        Times that were missed are one: whoever asks late does the latest of them.

        Args:
            now: The wall clock's time, without a zone.
        """
        if self.is_paused or self.cadence == "changed":
            return None
        latest = self._at_or_before(now)
        return latest if latest > self.handled else None

    def next_at(self, now: datetime) -> datetime | None:
        """Return when it is due next; None where it is paused, or due by a folder's changes."""
        if self.is_paused or self.cadence == "changed":
            return None
        days = 1 if self.cadence == "daily" else len(WEEKDAYS)
        return self.due_at(now) or self._at_or_before(now) + timedelta(days=days)

    def look(self, fingerprint: str, now: datetime) -> Schedule:
        """Return the schedule after a look at its folder; `is_settled` then says whether it is due."""
        if fingerprint == self.fingerprint:
            return replace(self, changed="", changed_at=None)
        if fingerprint == self.changed and self.changed_at is not None:
            return self
        return replace(self, changed=fingerprint, changed_at=now)

    def is_settled(self, now: datetime) -> bool:
        """Return whether its folder has changed, and has then been left alone for a while."""
        if self.is_paused or self.changed_at is None:
            return False
        return abs((now - self.changed_at).total_seconds()) >= SETTLED_S

    def as_dict(self, now: datetime) -> ScheduleRow:
        """Return it as every surface shows it."""
        last, due = self.last, self.next_at(now)
        return {
            "name": self.name,
            "agent": self.agent,
            "when": self.describe(),
            "cadence": self.cadence,
            "at": f"{self.at:%H:%M}",
            "weekday": WEEKDAYS[self.weekday],
            "folder": self.folder,
            "next": due.isoformat(timespec="minutes") if due else None,
            "paused": self.is_paused,
            "client": self.client,
            "tokens": self.max_tokens,
            "minutes": self.max_minutes,
            "results": self.results,
            "max_open": self.max_open,
            "apply": self.may_apply,
            "last": last.as_dict() if last else None,
        }

    def _at_or_before(self, now: datetime) -> datetime:
        day: date = now.date()
        if self.cadence == "weekly":
            day -= timedelta(days=(day.weekday() - self.weekday) % len(WEEKDAYS))
        latest = datetime.combine(day, self.at)
        days = 1 if self.cadence == "daily" else len(WEEKDAYS)
        return latest if latest <= now else latest - timedelta(days=days)


def wall_clock() -> datetime:
    """Return the local time, without a zone."""
    return datetime.now()  # noqa: DTZ005 - schedules are those of the clock on the wall


def parse_time(text: str) -> time:
    """Return a time of the day: ``7:30`` or ``18:00``.

    Raises:
        BadInput: It is none.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"'{text[:40]}' is no time of the day", hint="write it like 18:00")
    return time(int(match[1]), int(match[2]))


def parse_weekday(text: str) -> int:
    """Return a day of the week, 0 for Monday, from its English name or the beginning of that.

    Raises:
        BadInput: It is none, or several begin so.
    """
    beginning = text.strip().lower()
    matches = [number for number, name in enumerate(WEEKDAYS) if beginning and name.startswith(beginning)]
    if len(matches) != 1:
        raise BadInput(f"'{text[:40]}' is no day of the week", hint=f"there are: {', '.join(WEEKDAYS)}")
    return matches[0]


def make_fingerprint(files: Sequence[FileStat]) -> str:
    """Return what changes whenever a file comes, goes or is written."""
    rows = sorted([file.path, file.size, file.mtime_ns] for file in files)
    return hashlib.sha256(json.dumps(rows).encode("utf-8", "surrogatepass")).hexdigest()


def _with_run(runs: tuple[str, ...], session_id: str) -> tuple[str, ...]:
    return runs if not session_id or session_id in runs else (*runs, session_id)[-_MAX_RUNS:]


_ADAPTER: Final = TypeAdapter(list[Schedule])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleStore:
    """The schedules of one vault, in a file that processes share."""

    folder: Path
    """The vault's state folder."""

    def all(self) -> Sequence[Schedule]:
        """Return all by name; those whose process was killed have been interrupted.

        Raises:
            StorageError: The file can't be read, or is damaged.
        """
        return [self._with_state(one) for one in self._read()]

    def find(self, name: str) -> Schedule:
        """Return a schedule.

        Raises:
            NotFound: There is none of that name (code ``no_schedule``).
        """
        schedule = next((one for one in self.all() if one.name == name), None)
        if schedule is None:
            raise NotFound(f"there is no schedule '{name[:80]}'", hint="`knap schedule` lists them", code="no_schedule")
        return schedule

    def add(self, schedule: Schedule) -> Schedule:
        """Store a new schedule.

        Raises:
            BadInput: Its name or a number can't be used, or there are too many.
            ConflictError: There is one of that name.
        """
        if not _SCHEDULE_NAME.fullmatch(schedule.name):
            hint = "take 1 to 40 small letters, digits and hyphens"
            raise BadInput(f"'{schedule.name[:80]}' can be no schedule's name", hint=hint)
        with self._changing() as schedules:
            if any(one.name == schedule.name for one in schedules):
                hint = "give it another name, or remove that one first"
                raise ConflictError(f"there is a schedule '{schedule.name}' already", hint=hint, code="schedule_exists")
            if len(schedules) >= _MAX_SCHEDULES:
                raise BadInput(f"there are {_MAX_SCHEDULES} schedules", hint="remove one", code="too_many")
            schedules.append(schedule)
        return schedule

    def remove(self, name: str) -> None:
        """Remove a schedule; raises as `find` does, and ConflictError while it works."""
        _ = self.find(name)
        with self.working(name), self._changing() as schedules:
            schedules[:] = [one for one in schedules if one.name != name]
        with contextlib.suppress(OSError):
            self._locks.path(_lock_name(name)).unlink(missing_ok=True)

    def change(self, name: str, change: Callable[[Schedule], Schedule]) -> Schedule:
        """Change a schedule as it is stored now; raises as `find` does."""
        changed = change(self.find(name))
        with self._changing() as schedules:
            for number, one in enumerate(schedules):
                if one.name == name:
                    changed = schedules[number] = change(one)
        return changed

    def cancel(self, name: str) -> Schedule:
        """Have a schedule's run end, in whichever process it is at work.

        Raises:
            NotFound: There is no such schedule.
            ConflictError: It isn't at work (code ``schedule_idle``).
        """

        def cancelled(one: Schedule) -> Schedule:
            last = self._with_state(one).last
            if last is None or last.state != "running":
                raise ConflictError(
                    f"the schedule '{name}' isn't at work",
                    hint="`knap schedule` shows which one is, and when this one works next",
                    code="schedule_idle",
                )
            return replace(one, last=replace(last, is_cancelled=True))

        return self.change(name, cancelled)

    def tell_session(self, name: str, session_id: str) -> None:
        """Store in which session a schedule works, so that it can be followed, and counts if its process is killed."""

        def told(one: Schedule) -> Schedule:
            last = replace(one.last, session_id=session_id) if one.last else None
            return replace(one, last=last, runs=_with_run(one.runs, session_id))

        _ = self.change(name, told)

    def is_cancelled(self, name: str) -> bool:
        """Return whether a schedule's run is to end."""
        return any(one.name == name and one.last is not None and one.last.is_cancelled for one in self._read())

    def claim(self, name: str, is_due: Callable[[Schedule], datetime | None], now: datetime) -> bool:
        """Take a due time for this process, and return whether it was still to be taken.

        Args:
            name: The schedule's.
            is_due: Returns the time that is due, from the schedule as it is stored now.
            now: The wall clock's time.
        """
        with self._changing() as schedules:
            for number, one in enumerate(schedules):
                due = is_due(one) if one.name == name else None
                if due is not None:
                    schedules[number] = replace(one, handled=due, fingerprint=one.changed or one.fingerprint)
                    schedules[number] = replace(
                        schedules[number], changed="", changed_at=None, last=ScheduledRun(at=now, state="running")
                    )
                    return True
        return False

    def end(self, name: str, run: ScheduledRun, fingerprint: str = "") -> Schedule:
        """Store what became of a run; a schedule that was removed meanwhile stays removed.

        Args:
            name: The schedule's.
            run: What became of it.
            fingerprint: Of its folder, after the run; empty where that doesn't matter.
        """

        def ended(one: Schedule) -> Schedule:
            return replace(
                one, last=run, runs=_with_run(one.runs, run.session_id), fingerprint=fingerprint or one.fingerprint
            )

        return self.change(name, ended)

    @contextlib.contextmanager
    def working(self, name: str) -> Generator[None]:
        """Hold a schedule's lock while it works; the system releases it where the process ends.

        Raises:
            ConflictError: It works already (code ``schedule_busy``).
        """
        lock = self._locks.acquire(_lock_name(name), wait_s=0)
        if lock is None:
            raise ConflictError(f"the schedule '{name}' is at work", hint="wait until it is done", code="schedule_busy")
        try:
            yield
        finally:
            lock.release()

    def _with_state(self, schedule: Schedule) -> Schedule:
        last = schedule.last
        if last is None or last.state != "running":
            return schedule
        try:
            with self.working(schedule.name):
                reason = "its process ended while it worked"
                return replace(schedule, last=replace(last, state="interrupted", reason=reason))
        except ConflictError:
            return schedule

    @property
    def _locks(self) -> WorkLocks:
        return WorkLocks(self.folder)

    @contextlib.contextmanager
    def _changing(self) -> Generator[list[Schedule]]:
        private.make_folder(self.folder)
        lock = private.file_lock(self.folder / "schedules.lock", timeout_s=_LOCK_S)
        try:
            with lock:
                schedules = self._read()
                before = list(schedules)
                yield schedules
                if schedules != before:
                    schedules.sort(key=lambda one: one.name)
                    private.write_bytes(self.folder / SCHEDULES_FILE, _ADAPTER.dump_json(schedules, indent=1))
        except Timeout:
            raise StorageError("the schedules are being changed elsewhere", hint="try again in a moment") from None
        except OSError as error:
            raise StorageError(
                f"{self.folder / SCHEDULES_FILE} can't be written: {error.strerror or error}", hint="check the disk"
            ) from error

    def _read(self) -> list[Schedule]:
        file = self.folder / SCHEDULES_FILE
        try:
            return _ADAPTER.validate_json(file.read_bytes())
        except FileNotFoundError:
            return []
        except (OSError, ValidationError) as error:
            hint = "remove it, and add the schedules again"
            raise StorageError(f"the schedules in {file} can't be read", hint=hint, code="schedules") from error


def _lock_name(schedule: str) -> str:
    return f"schedule-{schedule}"
